#!/bin/sh
# Does it learn?  The table after a training, in cgs info and in the report, on data that name no
# environment; probe and geometry on them; and the card: what a model was trained on, how it plans,
# what it needs.
#   tests/cli/cli_learned.sh BUILD
. "$(dirname "$0")/prelude.sh"
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
cd "$tmp"
refuse() { # exit status, words, then the command
    wanted=$1 words=$2 status=0
    shift 2
    "$@" >out 2>err || status=$?
    [ "$status" = "$wanted" ] || fail "$* exits with $status: $(cat out err)"
    grep -q -- "$words" err || fail "$* says: $(cat err)"
}
says() { grep -q -- "$1" "$2" || fail "no \"$1\" in: $(cat "$2")"; }
"$cgs" collect --env tworooms --episodes 40 --size 64 --out rooms.h5 >out 2>&1
"$cgs" data convert rooms.h5 --out plain.h5 --size 64 >out 2>&1 # names no environment
"$cgs" data info plain.h5 --json | grep -q '"env"' && fail "the copy names an environment"

# ---- after a training
"$cgs" train --data plain.h5 --out run --size small --threads 2 train.updates=120 train.batch=16 \
    model.encoder.layers=2 loss.sigreg.projections=64 2>err || fail "train: $(cat err)"
for words in "error of prediction  *the model  *a copy  *the mean" "  1 block ahead  *[0-9.]* *[0-9.]* *[0-9.]*$" \
    "  5 blocks ahead" "R2 of columns  *linear  *nonlinear" "  state  *[0-9.-]* *[0-9.-]*$" \
    "one action block changes [0-9.]* % of the pixels" "scored on .* episodes that it was not trained on"; do
    says "$words" err
done
python3 - <<'PY'
import json, math
d = json.load(open("run/learned.json"))
assert d["format"] == "cgs-learned" and d["version"] == 1 and d["held_out"] is True, d
assert [e["blocks"] for e in d["prediction"]] == [1, 5] and d["advice"], d
for e in d["prediction"]:
    assert all(math.isfinite(e[k]) and e[k] > 0 for k in ("model", "copy", "mean")), e
names = {c["name"]: c for c in d["columns"]}
assert "action" not in names and "pixels" not in names and {"state", "pos_agent"} <= set(names), names
assert 0.3 < names["state"]["linear"] < 1 and 0.3 < names["state"]["nonlinear"] < 1, names
assert 0 < d["movement"]["pixels"] < 0.2 and 0 < d["movement"]["latent"] < 1.5, d
PY
cp run/learned.json before
for python in /usr/bin/python3 python3; do # columns of no use are shown as such
    "$python" -c "import h5py, numpy" 2>/dev/null || continue
    cp plain.h5 more.h5
    "$python" - <<'PY'
import h5py, numpy
with h5py.File("more.h5", "r+") as f:
    rows = len(f["action"])
    f["fixed"], f["holes"] = numpy.ones((rows, 2)), numpy.full(rows, numpy.nan)
PY
    "$cgs" info run --data more.h5 >out || fail "columns of no use: $(cat out)"
    says "  fixed  *-  *-$" out
    says "  holes  *-  *-$" out
    says "it may have been trained on them" out
    "$cgs" probe --data more.h5 --episodes 20 --json probe.epochs=1 >one 2>err || fail "probe"
    says 'column "fixed" is not probed' err
    says 'column "holes" is not probed' err
    cp before run/learned.json
    break
done
"$cgs" train --data plain.h5 --out run --resume --threads 1 2>err || fail "again: $(cat err)"
cmp before run/learned.json || fail "another number of threads, other numbers"
"$cgs" train --data plain.h5 --out silent --size small --threads 2 train.updates=1 train.batch=4 \
    loss.sigreg.projections=8 --quiet 2>err
[ ! -s err ] && [ ! -e silent/learned.json ] || fail "--quiet measures: $(cat err)"
"$cgs" collect --env tworooms --episodes 2 --size 64 --out two.h5 >out 2>&1
"$cgs" train --data two.h5 --out two --size small --threads 1 train.updates=1 train.batch=4 \
    loss.sigreg.projections=8 2>err || fail "two episodes: $(cat err)"
says "is not measured: .*too few episodes" err

# ---- in cgs info, whose weights it was, and measured later
"$cgs" info run >out
says "trained on   plain.h5, 40 episodes, 90 % of them" out
says "trained by   lewm-cgs, recipe robust, 120 updates, seed 3072" out
says "error of prediction" out
says "needs        pictures of 64 x 64, actions of 2 numbers, 5 to a block$" out
! grep -q "of_other_weights\|before its weights changed" out || fail "they are its weights: $(cat out)"
"$cgs" train --data plain.h5 --out run --resume --threads 1 train.updates=121 --quiet
"$cgs" info run >out && says "measured before its weights changed" out
"$cgs" info run --data plain.h5 --json >json 2>err || fail "info --data: $(cat err)"
says '"of_other_weights":false' json
says '"needs":{"image_size":64,"action_dim":2,"frameskip":5,"action_statistics":false}' json
"$cgs" export run --out run.safetensors >out
"$cgs" import run.safetensors --out bare >out
"$cgs" info bare --data plain.h5 >out 2>err || fail "an imported model: $(cat err)"
says "error of prediction" out
refuse 2 "give its directory" "$cgs" info --data plain.h5
refuse 1 "nowhere.h5" "$cgs" info run --data nowhere.h5

# ---- files that lie
for text in '' '[' '{"format":"x"}' '"\u0000"'; do
    printf '%s' "$text" >bare/learned.json
    "$cgs" info bare >out || fail "a broken learned.json ends cgs info"
    says "bare/learned.json" out
done
python3 - <<'PY'
import json
evil = {"format": "cgs-learned", "version": 1, "prediction": [1, {"blocks": 1e308, "model": "x"}, []],
        "columns": [{"name": "\u001b[2J" + "n" * 5000}, 7], "movement": {"pixels": 1e308},
        "advice": ["\u001b]0;x\u0007", 5, None], "frames": -1e308, "weights": 3}
json.dump(evil, open("bare/learned.json", "w"))
PY
"$cgs" info bare >out || fail "an evil learned.json ends cgs info"
! grep -q "$(printf '\033')" out || fail "an escape sequence reaches the terminal"
"$cgs" report bare --out page.html >out 2>&1 || fail "an evil learned.json ends cgs report: $(cat out)"

# ---- in the report
"$cgs" report run --out page.html >out || fail "report"
says 'What was learned' page.html
says 'pos_agent' page.html
says 'another episode' page.html

# ---- probe and geometry without an environment
"$cgs" probe --data plain.h5 --model run --episodes 20 --json probe.epochs=2 >probe.json 2>err ||
    fail "probe: $(cat err)"
python3 - <<'PY'
import json
d = json.load(open("probe.json"))
assert {"pos_agent", "proprio", "state"} <= set(d["targets"]), d["targets"]
assert [r for r in d["physical"] if r["target"] == "state"][0]["P_A_lin"] > 0.8, d["physical"]
assert all(r["D_lin"] is not None for r in d["models"][0]["rows"]), d["models"]
PY
"$cgs" probe --data plain.h5 --model run --episodes 20 --target state --json probe.epochs=2 >one ||
    fail "a column as target"
says '"targets":\["state"\]' one
"$cgs" probe --data rooms.h5 --episodes 20 --target proprio --json probe.epochs=2 >one ||
    fail "a column of data with an environment"
says '"targets":\["proprio"\]' one
refuse 2 'has no column of numbers "sate"; it has: pos_agent, proprio, state' "$cgs" probe \
    --data plain.h5 --target sate
refuse 2 'no target "sate"' "$cgs" probe --data rooms.h5 --target sate
"$cgs" geometry --data plain.h5 --model run --frames 8 --anchors 8 --horizon 3 --windows 1 --json \
    --quiet >geometry.json || fail "geometry"
says '"gram_error"' geometry.json
"$cgs" geometry --data plain.h5 --model run --mechanism --anchors 4 --quiet >out || fail "mechanism"
"$cgs" geometry --data plain.h5 --model run --curvature --quiet >curvature || fail "curvature"
"$cgs" geometry --data rooms.h5 --model run --curvature --quiet >same || fail "curvature"
[ "$(sed -n 2p curvature | cut -c1-56)" = "$(sed -n 2p same | cut -c1-56)" ] || fail "$(cat curvature same)"

# ---- how it plans: results that have its weights
mkdir -p study/models
cp -r run study/models/
"$cgs" eval --model study/models/run --data rooms.h5 --out study/results.jsonl --planner cem \
    --samples 4,8 --iters 2 --episodes 3 --threads 2 --quiet >out 2>err || fail "eval: $(cat err)"
"$cgs" info study/models/run >out
says "plans        tworooms by cem: [0-9.]* % of 9 goals, [48] candidates, 2 times (the best of 2 settings)" out
"$cgs" info study/models/run --json >json
says '"plans":\[{"env":"tworooms","planner":"cem","samples":4,"iters":2,"episodes":9,"successes":' json
"$cgs" info bare --json >json
! grep -q '"plans"' json || fail "plans of nobody"
printf '{"settings":{"weights":"x"}\n[[[\n' >>study/results.jsonl
"$cgs" info study/models/run >out || fail "a broken line of results ends cgs info"
echo ok
