#!/bin/sh
# cli_analysis.sh - probe and geometry through the program, on TwoRooms with random weights.
#   tests/cli/cli_analysis.sh BUILD
. "$(dirname "$0")/prelude.sh"
find_python "json"

"$cgs" collect --env tworooms --out "$tmp/data.h5" --episodes 20 --size 64 --quiet --threads 1
"$build/tests/test_eval" --model "$tmp/a" tworooms "$tmp/data.h5" 1
"$build/tests/test_eval" --model "$tmp/b" tworooms "$tmp/data.h5" 2
mkdir "$tmp/out"

# ---- probes: a table with the published numbers, a file, latents kept beside it
probe() {
    "$cgs" probe --data "$tmp/data.h5" --episodes 20 --threads 1 probe.epochs=2 "$@"
}
probe --model "$tmp/a,$tmp/b" --out "$tmp/out/probe.json" --quiet >"$tmp/table"
grep -q '( 0.952)' "$tmp/table" || fail "no published score: $(cat "$tmp/table")"
[ "$(ls "$tmp/out" | grep -c latents-)" = 2 ] || fail "latents were not kept"
probe --model "$tmp/a" "$tmp/b" --out "$tmp/out/probe2.json" | grep -q "earlier run" ||
    fail "latents were made again"
probe --json >"$tmp/alone.json"
"$python" - "$tmp/out" "$tmp/alone.json" <<'PY'
import json, sys
a, b = (json.load(open(sys.argv[1] + "/" + n)) for n in ("probe.json", "probe2.json"))
assert a["format"] == "cgs-probe" and a["version"] == 1 and a["env"] == "tworooms", a
assert a["command"].startswith("cgs probe --data") and a["episodes"] == 20
assert a["physical"] == b["physical"] and a["models"] == b["models"]
assert len(a["models"]) == 2 and a["targets"] == ["agent position"]
row = a["models"][1]["rows"][0]
assert set(row) >= {"target", "D_lin", "D_mlp", "C_A", "C_AS", "B_A", "B_AS"}, row
alone = json.load(open(sys.argv[2]))
assert alone["models"] == [] and alone["physical"] == a["physical"]
PY

# ---- geometry and mechanism
"$cgs" geometry --model "$tmp/a" "$tmp/b" --data "$tmp/data.h5" --anchors 4 --windows 1 --threads 1 \
    --out "$tmp/out/geometry.json" --quiet >"$tmp/table"
[ "$(wc -l <"$tmp/table")" = 3 ] || fail "$(cat "$tmp/table")"
"$cgs" geometry --mechanism --model "$tmp/a" --data "$tmp/data.h5" --anchors 4 --threads 1 \
    --out "$tmp/out/mechanism.json" --quiet >/dev/null
"$python" - "$tmp/out" <<'PY'
import json, math, sys
g, m = (json.load(open(sys.argv[1] + "/" + n)) for n in ("geometry.json", "mechanism.json"))
assert g["format"] == "cgs-geometry" and m["format"] == "cgs-mechanism"
w = g["windows"][0]
assert w["actions"][0] == [0, 0] and len(w["actions"]) == 30 and len(w["models"]) == 2
for k in range(32):
    assert abs(g["ideal"][k] - math.cos(2 * math.pi * k / 32)) < 1e-5
assert [s["anchors"] for s in g["summary"]] == [4, 4]
assert m["samples"] == [2**k for k in range(9)] and m["tau"] == 2 and m["published"] == []
assert len(m["models"][0]["p"]) == 9 and len(m["models"][0]["q_inf"]) == 4
PY

# ---- what cannot be is said by name
refused() {
    want=$1
    shift
    if "$cgs" "$@" >"$tmp/said" 2>&1; then fail "accepted: $*"; fi
    grep -q "$want" "$tmp/said" || fail "cgs $* said: $(cat "$tmp/said")"
}
refused "20 episodes, the probes need 200" probe --data "$tmp/data.h5"
refused "9 episodes cannot be divided" probe --data "$tmp/data.h5" --episodes 9
refused 'tworooms has no target "block yaw"; it has: agent position' probe --data "$tmp/data.h5" \
    --episodes 20 --target "block yaw"
refused "was collected in tworooms, not in pusht" probe --data "$tmp/data.h5" --env pusht
refused 'is not EPISODE:STEP' geometry --model "$tmp/a" --data "$tmp/data.h5" --window 3-4
refused 'is not EPISODE:STEP' geometry --model "$tmp/a" --data "$tmp/data.h5" --window 3:4:5:6
refused "no episode 99" geometry --model "$tmp/a" --data "$tmp/data.h5" --window 99:0 --frames 6
refused "is no start of 5 blocks" geometry --model "$tmp/a" --data "$tmp/data.h5" --window 0:0:2 --frames 6
refused "20 of its 20 episodes have 25 actions in a row; 32 are needed" \
    geometry --mechanism --model "$tmp/a" --data "$tmp/data.h5"
echo "probe and geometry: files, tables, kept latents, refusals"
