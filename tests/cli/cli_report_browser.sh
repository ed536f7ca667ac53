#!/bin/sh
# cli_report_browser.sh - the report in headless Chromium: no errors in the console, nothing
# fetched, every figure drawn, no sideways scrolling on a phone, light and dark.
#   tests/cli/cli_report_browser.sh BUILD
. "$(dirname "$0")/prelude.sh"
find_python "json"
browser=
for b in chromium chromium-browser; do
    if command -v "$b" >/dev/null; then browser=$b && break; fi
done
[ -n "$browser" ] || { echo "no chromium: the page was not opened in a browser"; exit 77; }

open_page() {
    timeout 60 "$browser" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
        --disable-background-networking --disable-component-update --disable-sync \
        --hide-scrollbars --user-data-dir="$tmp/profile" --enable-logging=stderr "$@" 2>"$tmp/log"
    ! grep "CONSOLE" "$tmp/log" || fail "the console of $* is not empty"
}

"$python" "$here/cli/report_study.py" "$tmp/study"
"$cgs" report "$tmp/study" --out "$tmp/a.html" --quiet
open_page --dump-dom "file://$tmp/a.html" >"$tmp/dom" || fail "chromium: $(tail -n 5 "$tmp/log")"
for scheme in 0 1; do
    open_page --blink-settings=preferredColorScheme=$scheme --window-size=1200,1500 \
        --screenshot="$tmp/$scheme.png" "file://$tmp/a.html" >/dev/null
    [ -s "$tmp/$scheme.png" ] || fail "no screenshot"
done
! cmp -s "$tmp/0.png" "$tmp/1.png" || fail "dark looks like light"

# A page around the page measures it at three widths; a script may look into srcdoc, which has
# the origin of the page around it.
"$python" - "$tmp" <<'PY'
import html, sys
page = open(sys.argv[1] + "/a.html").read()
frames = "".join(f'<iframe style="border:0;width:{w}px;height:900px" srcdoc="{html.escape(page)}"></iframe>' for w in (390, 800, 1200))
open(sys.argv[1] + "/m.html", "w").write("<!DOCTYPE html>" + frames + """<pre id="found"></pre><script>
window.onload = () => {
  const found = [...document.querySelectorAll("iframe")].map(f => {
    const d = f.contentDocument, box = e => e.getBoundingClientRect();
    const flat = [...d.querySelectorAll("figure svg, figure img")].filter(e => box(e).width < 60 || box(e).height < 30);
    const wide = [...d.querySelectorAll("figure svg")].filter(e => box(e).right > f.clientWidth + 1);
    const lost = [...d.querySelectorAll("img")].filter(e => !e.complete || !e.naturalWidth);
    const clipped = [...d.querySelectorAll("svg")].flatMap(s => [...s.querySelectorAll("text")].filter(t =>
      box(t).left < box(s).left - 1 || box(t).right > box(s).right + 1).map(t => t.textContent));
    return {width: f.clientWidth, page: d.documentElement.scrollWidth, figures: d.querySelectorAll("figure").length,
            flat: flat.length, wide: wide.length, lost: lost.length, clipped: clipped};
  });
  document.getElementById("found").textContent = JSON.stringify(found);
};</script>""")
PY
open_page --virtual-time-budget=5000 --window-size=1300,1000 --dump-dom "file://$tmp/m.html" >"$tmp/measured"
"$python" - "$tmp" <<'PY'
import html, json, re, sys
tmp = sys.argv[1]
text = open(tmp + "/a.html").read()
dom = open(tmp + "/dom").read()
assert dom.count("<svg") == text.count("<svg") and dom.count("<figure") == text.count("<figure")
found = json.loads(html.unescape(re.search(r'<pre id="found">(.*?)</pre>', open(tmp + "/measured").read(), re.S).group(1)))
assert len(found) == 3, found
for f in found:
    assert f["page"] <= f["width"], f
    assert f["figures"] == text.count("<figure>"), f
    assert f["flat"] == f["wide"] == f["lost"] == 0 and f["clipped"] == [], f
PY
