#!/bin/sh
# cli_claims.sh - the claims' table on made-up lines with known answers: confirmed, reversed, not
# confirmed although starts alone would say so, one training seed; and what a page says of seeds.
#   tests/cli/cli_claims.sh BUILD
. "$(dirname "$0")/prelude.sh"
find_python "json"

"$python" - "$tmp" <<'PY'
import json, os, sys
N = 100


# won: by method and training seed, how many of the N starts; digits: short lines
def write(path, env, won, planner="cem", compact=False, **more):
    with open(path, "a") as f:
        for method, seeds in won.items():
            for k, count in enumerate(seeds):
                name = method if k == 0 else f"{method}-s{k}"
                numbers = {} if planner == "gd" else {"samples": 128, "iters": 30}
                if planner == "gd":
                    numbers = {"steps": 100}
                s = {"model": "m/" + name, "method": method, "env": env, "episodes": N, "history": "native",
                     "held_out": False, "skip_solved": False, "start_seed": "0", "starts": "s0", "seed": "0",
                     "planner": planner, **numbers, **more}
                digits = "".join("1" if (i * 37) % N < count else "0" for i in range(N))
                out = {"success": digits, "solves": 2 * N, "seconds": 3.0} if compact else [
                    {"success": c == "1"} for c in digits]
                f.write(json.dumps({"format": "cgs-eval", "version": 1, "hash": "0" * 16, "settings": s, "episodes": N,
                                    "outcomes": out}) + "\n")


d = sys.argv[1]
write(d + "/a.jsonl", "pusht", {"lewm": (50, 52, 51), "lewm-ts": (80, 82, 83), "lewm-cgs": (70, 71, 72)}, compact=True)
# far ahead once, hardly otherwise: of these models beyond doubt, of the method not
write(d + "/a.jsonl", "pusht", {"lewm": (50, 50, 50), "lewm-cgs": (90, 55, 52)}, planner="gd")
write(d + "/a.jsonl", "pusht", {"lewm": (50, 50, 50), "lewm-cgs": (60, 61, 62)}, protocol="strict")
write(d + "/b.jsonl", "cube", {"lewm": (40,), "lewm-cgs": (60,)})
PY
"$cgs" report "$tmp/a.jsonl" "$tmp/b.jsonl" --out "$tmp/page.html" --claims "$tmp/claims.md" --quiet
"$python" - "$tmp" <<'PY'
import sys
text = open(sys.argv[1] + "/claims.md").read()
recorded, other = text.split("## Other judges and histories")
rows = [[c.strip() for c in l.strip("| \n").split("|")] for l in recorded.splitlines() if l.startswith("| PushT")]
lewm, ts = rows
assert lewm[3].startswith("**confirmed** * +20.0 (") and "3 seeds)" in lewm[3], lewm
assert ts[3].startswith("**reversed** * −10.7 ("), ts
assert lewm[5].startswith("not confirmed +15.7 (−"), lewm
starts = lewm[5].split("these models ")[1]
assert float(starts.split(" to ")[0]) > 5, starts
assert "| Cube (b.jsonl) | | | one seed +20.0, these models" in recorded, recorded
assert "strict" in other and "**confirmed**" in other, other
assert "Of 5 comparisons 1 have one training seed only. Of the other 4, 2 are confirmed, 1 not confirmed\nand 1 reversed" in text, text
page = open(sys.argv[1] + "/page.html").read()
assert "Over 3 training seeds and the starts: +20.0 points" in page
assert "One training seed: the interval is over starts" in page
PY
# the same numbers from short and from long lines
"$cgs" report "$tmp/b.jsonl" --out "$tmp/page.html" --claims "$tmp/page.html" 2>"$tmp/err" && fail "one file for two pages"
grep -q "name the same file" "$tmp/err" || fail "$(cat "$tmp/err")"
sed 's/"lewm-cgs"/"lewm"/g; s#m/lewm-cgs#m/lewm#' "$tmp/b.jsonl" >"$tmp/c.jsonl"
"$cgs" report "$tmp/c.jsonl" --out "$tmp/page.html" --claims "$tmp/none.md" 2>"$tmp/err" && fail "claims without CGS"
grep -q "no run compares CGS" "$tmp/err" || fail "$(cat "$tmp/err")"
[ ! -e "$tmp/none.md" ] || fail "an empty page of claims"
echo "claims: confirmed, reversed, neither, one seed"
