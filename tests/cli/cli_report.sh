#!/bin/sh
# cli_report.sh - cgs report on a synthetic study: every figure, valid drawings, honest verdicts,
# nothing injected, and broken files that are only warnings.
#   tests/cli/cli_report.sh BUILD
. "$(dirname "$0")/prelude.sh"
find_python "json"

# ---- a whole study
"$python" "$here/cli/report_study.py" "$tmp/study"
"$cgs" report "$tmp/study" --out "$tmp/a.html" --json >"$tmp/summary" 2>"$tmp/err"
[ ! -s "$tmp/err" ] || fail "warnings about a good study: $(cat "$tmp/err")"
cat >"$tmp/check.py" <<'PY'
"""Reads a page: checks that it is well-formed, complete in itself and harmless."""
import base64, html.parser, re, sys, xml.dom.minidom


class Page(html.parser.HTMLParser):
    VOID = {"meta", "link", "img", "br"}

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.ids, self.links, self.text = [], [], [], [], []
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append((tag, attrs))
        assert tag != "script", attrs
        assert not [k for k in attrs if k.startswith("on")], attrs
        if "id" in attrs:
            self.ids.append(attrs["id"])
        for key in ("href", "src"):
            if key in attrs:
                assert attrs[key].startswith(("data:", "#")), attrs
                self.links.append(attrs[key])
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open[-5:])
        self.open.pop()

    def handle_data(self, data):
        self.text.append(data)


def read(path):
    text = open(path, encoding="utf-8").read()
    page = Page(text)
    drawings = re.findall(r"<svg.*?</svg>", text, re.S)
    assert len(drawings) == text.count("<svg")
    for d in drawings:
        svg = xml.dom.minidom.parseString(d)
        assert svg.documentElement.getAttribute("aria-label")
        assert "nan" not in re.sub(r">[^<]*<|aria-label=\"[^\"]*\"", "", d).lower()
    assert len(page.ids) == len(set(page.ids)), page.ids
    for link in page.links:
        if link.startswith("#"):
            assert link[1:] in page.ids, link
        elif link != "data:,":
            data = base64.b64decode(link.split(",", 1)[1], validate=True)
            assert data.startswith(b"\x89PNG") or data.startswith(b"GIF89a")
    urls = set(re.findall(r"https?://[^\"' <]+", text))
    assert urls <= {"http://www.w3.org/2000/svg"}, urls
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]", text)
    return text, page, drawings


Z = 1.959963984540054


def wilson(k, n):
    p = k / n
    mid, half = (p + Z*Z/2/n) / (1 + Z*Z/n), Z / (1 + Z*Z/n) * (p*(1-p)/n + Z*Z/4/n/n) ** 0.5
    return mid - half, mid + half


def newcombe(a, b):
    """The interval of the share of a minus that of b, start by start."""
    n = len(a)
    both, na, nb = sum(x and y for x, y in zip(a, b)), sum(a), sum(b)
    cross = both * (n - na - nb + both) - (na - both) * (nb - both)
    cross = max(0, cross - n / 2) if cross > 0 else cross
    under = (na * (n - na) * nb * (n - nb)) ** 0.5
    phi = cross / under if under else 0
    (la, ua), (lb, ub) = wilson(na, n), wilson(nb, n)
    pa, pb = na / n, nb / n
    return (pa - pb - ((pa-la)**2 - 2*phi*(pa-la)*(ub-pb) + (ub-pb)**2) ** 0.5,
            pa - pb + ((ua-pa)**2 - 2*phi*(ua-pa)*(pb-lb) + (pb-lb)**2) ** 0.5)


def tables(path):
    """A Markdown file: {section: {(first words of a row): other cells}}, checked to be rectangular."""
    found, section, width = {}, None, None
    for line in open(path, encoding="utf-8").read().split("\n"):
        if line.startswith("## "):
            section = found.setdefault(line[3:], {})
        if not line.startswith("|"):
            width = None
            continue
        cells = [c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]]
        assert width in (None, len(cells)), line
        if width is None:
            head = cells
        width = len(cells)
        if cells[0] == "---":
            continue
        words = 2 if "planner" in head[:2] else 1
        key = tuple(cells[:words]) if words == 2 or head[0] in ("", "τ") else (head[0], cells[0])
        section[key] = cells[words:]
    return found
PY
"$python" - "$tmp" <<'PY'
import json, re, sys
sys.path.insert(0, sys.argv[1])
from check import newcombe, read
tmp = sys.argv[1]
text, page, drawings = read(tmp + "/a.html")
summary = json.load(open(tmp + "/summary"))
sections = ["success", "budget", "refinement", "temperature", "geometry", "mechanism", "priors", "plans",
            "training", "probe", "theory", "decode", "surprise", "timing", "stages"]
assert page.ids == [s + "-0" for s in sections], page.ids
assert summary["sections"] == len(sections) and summary["warnings"] == 0, summary
images = [a for t, a in page.tags if t == "img"]
assert len(images) == 4 and summary["figures"] == len(drawings) + len(images) == text.count("<figure>"), summary
titles = " ".join(re.findall(r'aria-label="([^"]*)"', text))
for want in ["LeWM+CGS minus LeWM", "MPPI on TwoRooms", "CEM on TwoRooms", "PG-MPPI on TwoRooms", "Ideal",
             "Episode 13 from step 4", "Gram error", "isotropy", "pair error", "direction cosine", "Contraction", "progress",
             "Prediction loss", "SIGReg", "Temporal straightening", "CGS loss", "Consecutive cosine",
             "Learning rate", "Throughput", "agent moved elsewhere", "Distance from the goal under the prior",
             "Success of the prior alone"]:
    assert want in titles, want
for want in ["cgs eval --model", "cgs train --data", "cgs geometry", "cgs mechanism", "cgs prior-quality", "cgs probe",
             "cgs theory", "cgs decode", "cgs surprise", "cgs plan"]:
    assert "<code>" + want in text, want
# published: MPPI at K = 128 on TwoRooms, and the area under the paper's curve
for want in ["paper 92.0 ± 3.5", "paper 97.3 ± 1.1", "paper 67.7", "paper 76.9", "paper −0.341", "paper 0.841",
             "paper 0.262", "paper 100.0 ± 0.0"]:
    assert want in text, want

# the numbers of the verdict, computed again from the results
ok = {}
for l in map(json.loads, open(tmp + "/study/results.jsonl")):
    s = l["settings"]
    if s["planner"] == "mppi" and s["samples"] == 128 and s["iters"] == 30 and s["tau"] == 128:
        ok.setdefault(s["method"], []).extend(o["success"] for o in l["outcomes"])
a, b = ok["lewm-cgs"], ok["lewm"]
n = len(a)
assert n == len(b) == 150
pa, pb = sum(a) / n, sum(b) / n
low, high = newcombe(a, b)
sentence = (f"LeWM+CGS reaches {100*pa:.1f} % on TwoRooms with MPPI at K=128, I=30, τ=128, "
            f"{100*(pa-pb):.1f} points above LeWM (95 % interval +{100*low:.1f} to +{100*high:.1f}, {n} paired episodes).")
assert sentence in text, sentence
assert "CGS helped" in text and 'class="verdict good"' in text
PY
# the same folder gives the same bytes
"$cgs" report "$tmp/study" --out "$tmp/b.html" --quiet
cmp "$tmp/a.html" "$tmp/b.html" || fail "two pages of one study differ"

# ... also with compressed lines; lines that end early leave a page with a warning
cp -r "$tmp/study" "$tmp/packed"
mkdir "$tmp/apart"
mv "$tmp/study" "$tmp/apart/study"
mv "$tmp/packed" "$tmp/study"
gzip "$tmp/study/results.jsonl"
"$cgs" report "$tmp/study" --out "$tmp/b.html" --quiet
cmp "$tmp/a.html" "$tmp/b.html" || fail "compressed results make another page"
head -c 2000 "$tmp/study/results.jsonl.gz" >"$tmp/cut" && mv "$tmp/cut" "$tmp/study/results.jsonl.gz"
"$cgs" report "$tmp/study" --out "$tmp/b.html" --quiet 2>&1 | grep -q "results.jsonl.gz: .*end" || fail "compressed lines that end early"
rm -r "$tmp/study"
mv "$tmp/apart/study" "$tmp/study"

# ---- a file of results alone, two runs on a page, a model folder
"$cgs" report "$tmp/study/results.jsonl" --out "$tmp/b.html" | grep -q "points above LeWM" || fail "single file"
"$cgs" report "$tmp/study" "$tmp/study/results.jsonl" --out "$tmp/b.html" --quiet
"$cgs" report "$tmp/study/models/lewm" --out "$tmp/c.html" | grep -q "no verdict" || fail "a verdict from nothing"
(cd "$tmp" && "$python" -c "
from check import read
assert len(read('b.html')[1].ids) == 15 + 6
assert read('c.html')[1].ids == ['training-0']")

# ---- tables as Markdown: the numbers of the page, every section
"$cgs" report "$tmp/study" --out "$tmp/b.html" --tables "$tmp/a.md" --json | grep -q '"tables":7' || fail "number of tables"
cmp "$tmp/a.html" "$tmp/b.html" || fail "tables change the page"
"$cgs" report "$tmp/study" --out "$tmp/b.html" --tables "$tmp/b.md" | grep -q "b.md: 7 tables" || fail "tables are not named"
cmp "$tmp/a.md" "$tmp/b.md" || fail "two files of tables of one study differ"
"$python" - "$tmp" <<'PY'
import json, re, sys
sys.path.insert(0, sys.argv[1])
from check import read, tables
page = read(sys.argv[1] + "/a.html")[0]
found = tables(sys.argv[1] + "/a.md")
assert list(found) == ["Success at K = 128", "Over K", "Area over K", "Area over iterations", "Over temperature",
                       "Matched priors before any search", "Straightness", "Commands"], list(found)
commands = open(sys.argv[1] + "/a.md", encoding="utf-8").read().split("\n## Commands\n")[1]
stages = [json.loads(line) for line in open(sys.argv[1] + "/study/stages.jsonl", encoding="utf-8")]
assert re.findall("^    (.*)$", commands, re.M) == list(dict.fromkeys(s["command"] for s in stages)), commands
for section, rows in found.items():
    for cells in rows.values():
        for c in cells if section != "Straightness" else []:
            for number in re.findall(r"\d+\.\d(?: ± \d+\.\d)?", c):
                assert number in page, (section, c)
assert found["Matched priors before any search"][("TwoRooms",)] == [
    "0.310 [0.290, 0.330] (0.262)", "0.280 [0.260, 0.300]", "0.210 [0.190, 0.230]"], found
assert found["Straightness"][("TwoRooms",)] == ["−0.100 (−0.341)", "0.300 (−0.168)", "−0.100"], found["Straightness"]
PY

# ... exact cells of made-up outcomes: ties, what was not run, two runs of an environment
"$python" - "$tmp" <<'PY'
import json, os, sys
HELD_OUT = {"held_out": True, "skip_solved": True}


def write(folder, rows):
    os.makedirs(folder)
    with open(folder + "/results.jsonl", "w") as f:
        for method, planner, numbers, counts in rows:
            for seed, won in enumerate(counts):
                n = 20 if numbers.get("held_out") else 10
                s = {"model": "models/" + method, "method": method, "env": "tworooms", "episodes": n, "budget": 50,
                     "history": "native", "held_out": False, "skip_solved": False, "start_seed": str(seed),
                     "starts": f"s{seed}", "seed": str(seed), "planner": planner, "device": "cpu", **numbers}
                f.write(json.dumps({"format": "cgs-eval", "version": 1, "settings": s, "episodes": n, "outcomes": [
                    {"success": i < won} for i in range(n)]}) + "\n")


def mppi(K, tau=128, **more):
    return {"samples": K, "iters": 30, "tau": tau, **more}


def cem(K):
    return {"samples": K, "iters": 30}


write(sys.argv[1] + "/one", [
    ("lewm", "mppi", mppi(32), (4, 6)), ("lewm-cgs", "mppi", mppi(32), (10, 10)),
    ("lewm", "mppi", mppi(128), (6, 8)), ("lewm-ts", "mppi", mppi(128), (8, 8)), ("lewm-cgs", "mppi", mppi(128), (9, 7)),
    ("lewm", "cem", cem(32), (0, 0)), ("lewm-cgs", "cem", cem(32), (10, 10)),
    ("lewm", "cem", cem(128), (0, 0)), ("lewm-cgs", "cem", cem(128), (10, 10)),
    ("lewm", "gd", {"steps": 100, "lr": 0.1}, (5,)), ("lewm", "zero", {}, (1, 1)),
    ("lewm", "mppi", mppi(32, **HELD_OUT), (11,)), ("lewm-ts", "mppi", mppi(32, **HELD_OUT), (16,)),
    ("lewm-cgs", "mppi", mppi(32, **HELD_OUT), (15,)), ("lewm", "zero", HELD_OUT, (3,))])
# the environment's temperature, not the lowest, represents MPPI
write(sys.argv[1] + "/two", [("lewm", "mppi", mppi(128, tau), (won, won)) for tau, won in ((8, 2), (128, 7), (512, 4))])
# one setting in which CGS is clearly worse, and many in which it is clearly better: 40 of 41 leave it to chance
for many in (40, 30):
    write(f"{sys.argv[1]}/better{many}", [row for K in range(1, many + 1) for row in (
        ("lewm", "mppi", mppi(K), (0, 0)), ("lewm-cgs", "mppi", mppi(K), (10, 10)))] + [
        ("lewm", "cem", cem(128), (10, 10)), ("lewm-cgs", "cem", cem(128), (0, 0))])
PY
"$cgs" report "$tmp/better40" --out "$tmp/b.html" --quiet
grep -q ">CGS helped<" "$tmp/b.html" || fail "one miss of 41 makes the verdict mixed"
"$cgs" report "$tmp/better30" --out "$tmp/b.html" --quiet
grep -q ">Mixed<" "$tmp/b.html" || fail "one miss of 31 does not make the verdict mixed"
"$cgs" report "$tmp/one" "$tmp/two" --out "$tmp/b.html" --tables "$tmp/b.md" --quiet
"$python" - "$tmp" <<'PY'
import sys
sys.path.insert(0, sys.argv[1])
from check import newcombe, tables, wilson
found = tables(sys.argv[1] + "/b.md")


def expect(section, key, cells):
    assert found[section][key] == cells, (section, key, found[section].get(key))


def held_out(won):
    low, high = wilson(won, 20)
    return f"{5.0 * won:.1f}", f" [{100 * low:.1f}, {100 * high:.1f}]"


def difference(a, b):
    low, high = newcombe([i < a for i in range(20)], [i < b for i in range(20)])
    sign = "−" if a < b else "+"
    return f"{sign}{5.0 * abs(a - b):.1f} ({100 * low:.1f} to {100 * high:.1f})".replace("-", "−")


one, two = "TwoRooms (one)", "TwoRooms (two)"
assert list(found) == ["Success at K = 128", "Over K", "Area over K", "Over temperature", "Held-out starts"], list(found)
s = "Success at K = 128"
expect(s, (one, "MPPI"), ["70.0 ± 14.1 (92.0)", "**80.0 ± 0.0** (97.3)", "**80.0 ± 14.1** (97.3)"])
expect(s, (one, "CEM"), ["0.0 ± 0.0 (76.7)", "not run (97.3)", "**100.0 ± 0.0** (95.3)"])
expect(s, (one, "GD"), ["50.0 (41.3)", "not run (65.3)", "not run (70.7)"])
expect(s, (one, "zero action"), ["10.0 ± 0.0", "", ""])
expect(s, (two, "MPPI"), ["70.0 ± 0.0 (92.0)"])
s = "Over K"
expect(s, (one, "MPPI, LeWM"), ["50.0 (82.0)", "70.0 (92.0)"])
expect(s, (one, "MPPI, LeWM+TS"), ["not run (88.0)", "80.0 (97.3)"])
s = "Area over K"
row = found[s][(one, "MPPI")]
assert row[0] == "60.0 (87.0)" and row[1].startswith("not run (92.") and row[2] == "**90.0** (95.0)", row
assert row[3].startswith("+30.0 ("), row
assert found[s][(one, "CEM")][3] == "+100.0 (100.0 to 100.0)", found[s]
expect("Over temperature", (two + ", LeWM",), ["20.0", "70.0", "40.0", "48.3 (77.6)"])
s = "Held-out starts"
a, b, c = held_out(11), held_out(16), held_out(15)
expect(s, (one, "MPPI, K = 32"), ["".join(a), f"**{b[0]}**{b[1]}", "".join(c), difference(15, 11), difference(15, 16)])
expect(s, (one, "zero action"), ["".join(held_out(3)), "", "", "", ""])
PY

# ---- models that differ in one setting of their training are a curve over it
"$python" - "$tmp" <<'PY'
import json, os, sys
tmp = sys.argv[1]
base = {"loss.cgs.ramp": 0.05, "model.history": 3, "loss.sigreg.weight": 0.09, "loss.cgs.weight": 0.01}
models = {"lewm-cgs": {}, "lewm-cgs-ramp-0": {"loss.cgs.ramp": 0}, "lewm-cgs-ramp-0.2": {"loss.cgs.ramp": 0.2},
          "lewm-cgs-N-4": {"model.history": 4}, "lewm-cgs-both": {"model.history": 2, "loss.cgs.weight": 1}}
for m, change in models.items():
    os.makedirs(f"{tmp}/ablate/models/{m}")
    with open(f"{tmp}/ablate/models/{m}/config.txt", "w") as f:
        f.writelines(f"{k} = {v}\n" for k, v in {**base, **change}.items())
with open(tmp + "/ablate/results.jsonl", "w") as out:
    for l in map(json.loads, open(tmp + "/study/results.jsonl")):
        s = l["settings"]
        if s["method"] != "lewm-cgs" or s["planner"] not in ("mppi", "gd") or s.get("samples", 128) != 128:
            continue
        for m in models:
            s["model"] = "models/" + m
            out.write(json.dumps(l) + "\n")
PY
"$cgs" report "$tmp/ablate" --out "$tmp/ablate.html" --quiet
(cd "$tmp" && "$python" -c "
import re
from check import read
text, page, drawings = read('ablate.html')
assert 'ablations-0' in page.ids, page.ids
curves = {re.search('aria-label=\"([^\"]*)\"', d).group(1): d for d in drawings}
assert 'Ramp of the CGS weight' in curves and 'History' in curves, list(curves)
assert 'Weight of SIGReg' not in curves and 'Weight of CGS' not in curves
# MPPI and GD at ramps 0, 0.05 and 0.2; the model with two changes is on no curve
assert curves['Ramp of the CGS weight'].count('<title>') == 6, curves['Ramp of the CGS weight']
assert curves['History'].count('<title>') == 4 and 'reference' in curves['History']")

# ---- honest: worse is called worse, the same is called the same
flip() {
    mkdir -p "$tmp/$1"
    "$python" - "$tmp/study/results.jsonl" "$2" >"$tmp/$1/results.jsonl" <<'PY'
import json, sys
how = {"worse": {"lewm": "lewm-cgs", "lewm-cgs": "lewm"}, "same": {}}[sys.argv[2]]
for l in map(json.loads, open(sys.argv[1])):
    s = l["settings"]
    s["method"] = how.get(s["method"], s["method"])
    s["model"] = "models/" + s["method"]
    if sys.argv[2] == "same":
        if s["method"] != "lewm":
            continue
        print(json.dumps(l))
        s["method"] = s["model"] = "lewm-cgs"
    print(json.dumps(l))
PY
    "$cgs" report "$tmp/$1" --out "$tmp/$1.html"
}
flip worse worse | grep -q "12.7 points below LeWM (95 % interval −18.6 to −7.3" || fail "worse is not called worse"
grep -q 'class="verdict bad"' "$tmp/worse.html" || fail "worse does not look worse"
flip same same | grep -q "level with LeWM" || fail "the same is not called the same"
grep -q "No clear difference" "$tmp/same.html" || fail "the same is not called no difference"

# ---- architectures: DINO-WM beside LeWM, whose features, the paper's numbers and ratios
"$python" "$here/cli/report_frozen.py" "$tmp/frozen"
"$python" "$here/cli/report_frozen.py" "$tmp/dinov2" dinov2
"$cgs" report "$tmp/frozen" --out "$tmp/frozen.html" --json >"$tmp/summary" 2>"$tmp/err"
"$cgs" report "$tmp/dinov2" --out "$tmp/dinov2.html" --quiet
[ ! -s "$tmp/err" ] || fail "warnings about architectures: $(cat "$tmp/err")"
"$python" - "$tmp" <<'PY'
import json, re, sys
tmp = sys.argv[1]
sys.path.insert(0, tmp)
from check import read
text, page, drawings = read(tmp + "/frozen.html")
assert page.ids[:3] == ["frozen-0", "architectures-0", "success-0"], page.ids
titles = re.findall(r'aria-label="([^"]*)"', text)
for want in ["CEM on PushT, K=128", "MPPI on PushT, K=128", "GD on PushT", "Planning with CEM",
             "Planning with MPPI", "Planning with GD"]:
    assert any(want in t for t in titles), (want, titles)
# Table 13 on PushT: patch+CGS with MPPI at 128, CLS with GD, and LeWM beside them
for want in ["paper 80.7 ± 2.3", "paper 46.0 ± 2.0", "paper 66.7 ± 6.4", "paper 77.3 ± 6.4"]:
    assert want in text, want
# Table 14: ratios of this run and of the paper
for want in ["25.0×", "45.0×", "50.0×", "paper 16.8×", "paper 47.0×", "paper 40.5×", "paper 86.852 s"]:
    assert want in text, want
assert "Backbone: stand-in" in text and "stand-in" not in read(tmp + "/dinov2.html")[0]
# a verdict for each of the three architectures
for want in ["DINO-WM CLS+CGS reaches", "DINO-WM patch+CGS reaches", "LeWM+CGS reaches"]:
    assert want in text, want
# a bar is the success of its lines
ok = [o["success"] for l in map(json.loads, open(tmp + "/frozen/results.jsonl")) for o in l["outcomes"]
      if l["settings"]["method"] == "dinowm-patch-cgs" and l["settings"]["planner"] == "gd"]
assert len(ok) == 150 and f">{100 * sum(ok) / 150:.3g}<" in text
PY
mkdir "$tmp/timing"
cp "$tmp/frozen/timing.json" "$tmp/timing"
"$cgs" report "$tmp/timing" --out "$tmp/t.html" --quiet || fail "a page of times alone"
sed -i 's/"models": \[/"models": [7, null, {"planners": 3}, {"method": [], "planners": [1]},/' "$tmp/timing/timing.json"
"$cgs" report "$tmp/timing" --out "$tmp/t.html" --quiet || fail "a page of strange times"

# ---- names that want to be markup
"$python" "$here/cli/report_study.py" "$tmp/hostile" --hostile
"$cgs" report "$tmp/hostile" --out "$tmp/h.html" --tables "$tmp/h.md" --title '</title><script>alert(1)</script>' >"$tmp/out" 2>"$tmp/err"
(cd "$tmp" && "$python" -c "
from check import read, tables
text, page, drawings = read('h.html')
assert '<script' not in text and '&lt;script&gt;' in text
lines = open('h.md').read().split('\\n')
assert not any('<' in line for line in lines if line[:4] != '    ') and any('&lt;script&gt;' in line for line in lines)
assert sum(line[:4] == '    ' for line in lines) == 3  # what is indented is code
assert len(tables('h.md')) == 8
assert len(page.ids) == 15, page.ids")

# ---- broken and foreign files: one warning each, on the page and on standard error;
# ---- files changed at random: never a crash, always a good page
"$python" - "$tmp" "$cgs" <<'PY'
import glob, os, random, re, shutil, subprocess, sys
tmp, cgs = sys.argv[1:]
sys.path.insert(0, tmp)
from check import read, tables
run = os.path.join(tmp, "small")
shutil.copytree(os.path.join(tmp, "study"), run)
rng = random.Random(1)
lines = open(run + "/results.jsonl").read().splitlines()
lines = rng.sample(lines, 12)
files = glob.glob(run + "/**/*.*", recursive=True)
open(run + "/results.jsonl", "w").write("\n".join(lines) + "\n")
for f in glob.glob(run + "/models/*/metrics.jsonl"):
    open(f, "w").write("".join(open(f).readlines()[:40]))
kept = {f: open(f, "rb").read() for f in files}


def report():
    p = subprocess.run([cgs, "report", run, "--out", tmp + "/f.html", "--tables", tmp + "/f.md", "--quiet"], capture_output=True, text=True,
                       timeout=60)
    assert p.returncode == 0, (p.returncode, p.stderr[-3000:])
    text = read(tmp + "/f.html")[0]
    tables(tmp + "/f.md")
    for f, data in kept.items():
        open(f, "wb").write(data)
    return text, p.stderr


def broken(name, change, word):
    path = os.path.join(run, name)
    data = change(kept[path].decode("latin-1"))
    open(path, "wb").write(data.encode("latin-1"))
    text, err = report()
    warnings = [l for l in err.splitlines() if l]
    assert len(warnings) == 1 and word in warnings[0], (name, word, err)
    assert word != "outside" and os.path.basename(name) in warnings[0] or "outside" in warnings[0], err
    assert text.count("<li>") == 1 and "Left out of this page" in text, name


for kind in "geometry", "mechanism", "prior-quality", "probe", "theory", "decode", "surprise":
    broken(kind + ".json", lambda t: t[:100], "not a JSON object")
    broken(kind + ".json", lambda t: t.replace("cgs-" + kind, "other"), '"other", not "cgs-%s"' % kind)
    broken(kind + ".json", lambda t: t.replace('"version": 1', '"version": 9'), "version 9")
broken("study.json", lambda t: "[1, 2]", "not a JSON object")
broken("stages.jsonl", lambda t: t + "garbage\n{}\n", "1 of 5 lines")
broken("results.jsonl", lambda t: t + '{"format":"cgs-eval"}\n', "without settings")
broken("plans/lewm.gif", lambda t: "GIF?", "not a GIF")
broken("decode/one.png", lambda t: "x", "not a PNG")
broken("decode.json", lambda t: t.replace("decode/one.png", "decode/../../study/decode/one.png"), "outside")
broken("decode.json", lambda t: t.replace("decode/one.png", "/etc/passwd"), "outside")
# a line that is still being written
open(run + "/results.jsonl", "a").write('{"format":"cgs-ev')
assert report()[1] == ""

swaps = ["[]", "{}", "null", "-1", "1e308", "-1e308", '"x"', "true", "0", "[[]]", "[null]", "1e-320", '"\\u0000"']
texts = [f for f in files if ".json" in f]
for trial in range(15):
    for f in rng.sample(texts, 8):
        text = kept[f].decode()
        for _ in range(5):
            values = list(re.finditer(r'(?<=[:,\[ ])(-?\d[\d.e-]*|"[^"]*"|\[[^\[\]]*\])(?=[,\]}])', text))
            if values:
                m = rng.choice(values)
                text = text[:m.start()] + rng.choice(swaps) + text[m.end():]
        open(f, "w").write(text)
    report()
PY

# ---- what is refused
refused() {
    want=$1 word=$2
    shift 2
    code=0
    "$cgs" report "$@" >"$tmp/out" 2>"$tmp/err" || code=$?
    [ "$code" = "$want" ] || fail "cgs report $*: status $code, not $want: $(cat "$tmp/err")"
    grep -q -- "$word" "$tmp/err" || fail "cgs report $*: \"$(cat "$tmp/err")\" does not mention \"$word\""
}
mkdir "$tmp/empty"
refused 2 "at least one run"
refused 2 "nonsense" "$tmp/study" --nonsense
refused 1 "no such run" "$tmp/nowhere"
refused 1 "nothing to report" "$tmp/empty"
refused 1 "no-such-folder" "$tmp/study" --out "$tmp/no-such-folder/x.html"
refused 1 "no-such-folder/x.md" "$tmp/study" --out "$tmp/x.html" --tables "$tmp/no-such-folder/x.md"
refused 1 "nothing for the tables" "$tmp/timing" --out "$tmp/x.html" --tables "$tmp/x.md"
refused 2 "the same file" "$tmp/study" --out "$tmp/x.md" --tables "$tmp/x.md"
[ ! -e "$tmp/x.md" ] || fail "tables were written beside an error"
