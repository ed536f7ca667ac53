#!/bin/sh
# cli_eval.sh - eval, prior and plan through the program, on TwoRooms with random weights.
#   tests/cli/cli_eval.sh BUILD
. "$(dirname "$0")/prelude.sh"
find_python "json"

"$cgs" collect --env tworooms --out "$tmp/data.h5" --episodes 20 --size 64 --quiet --threads 1
"$build/tests/test_eval" --model "$tmp/a" tworooms "$tmp/data.h5" 1
"$build/tests/test_eval" --model "$tmp/b" tworooms "$tmp/data.h5" 2

evaluate() {
    "$cgs" eval --model "$tmp/a" "$tmp/b" --data "$tmp/data.h5" --planner mppi,zero --samples 2 8 \
        --iters 2 --seeds 0,1 --episodes 5 --threads 1 --out "$tmp/r.jsonl" "$@"
}
# ---- a sweep of two models: lines with everything inside, rates, areas, comparisons
evaluate --json >"$tmp/out"
"$python" - "$tmp/out" "$tmp/r.jsonl" <<'PY'
import json, math, sys
out = [json.loads(l) for l in open(sys.argv[1])]
kinds = [o["kind"] for o in out]
assert kinds.count("rate") == 6 and kinds.count("nauc") == 2 and kinds.count("comparison") == 3, kinds
lines = [json.loads(l) for l in open(sys.argv[2])]
assert len(lines) == 12 and len({l["hash"] for l in lines}) == 12
for l in lines:
    s = l["settings"]
    assert s["env"] == "tworooms" and s["history"] == "native" and s["budget"] == 50, s
    assert ("tau" in s) == (s["planner"] == "mppi") and ("samples" in s) == (s["planner"] == "mppi"), s
    assert s["seed"] == s["start_seed"] and len(s["weights"]) == 16
    o = l["outcomes"]
    assert len(o) == l["episodes"] == 5 and sum(x["success"] for x in o) == l["successes"]
    for x in o:
        assert x["success"] == (x["first"] > 0) and 1 <= x["actions"] <= 50 and x["reached"] >= 0, x
        assert x["solves"] == (1 if x["actions"] <= 25 else 2), x
        assert (x["planned"] is None) == (s["planner"] == "zero"), x
    p, n, z = l["rate"], 5, 1.959963984540054
    mid, half = (p + z*z/2/n) / (1 + z*z/n), z / (1 + z*z/n) * math.sqrt(p*(1-p)/n + z*z/4/n/n)
    assert abs(l["wilson"][0] - (mid - half)) < 1e-9 and abs(l["wilson"][1] - (mid + half)) < 1e-9
# the same starts for all models and planners of a seed
for seed in "0", "1":
    rows = {tuple((x["episode"], x["step"]) for x in l["outcomes"]) for l in lines
            if l["settings"]["seed"] == seed}
    assert len(rows) == 1, rows
PY

# ---- a result file that was cut short is continued, not repeated
cp "$tmp/r.jsonl" "$tmp/whole"
head -c 9000 "$tmp/whole" >"$tmp/r.jsonl"
before=$(grep -c "" "$tmp/r.jsonl")
evaluate >"$tmp/table"
grep -q "results were already in" "$tmp/table" || fail "nothing was reused after $before lines"
"$python" - "$tmp/whole" "$tmp/r.jsonl" <<'PY'
import json, sys
a, b = ([json.loads(l) for l in open(p)] for p in sys.argv[1:])
strip = lambda l: (l["hash"], [{k: v for k, v in o.items() if k != "seconds"} for o in l["outcomes"]])
assert len(a) == len(b) == 12 and [strip(x) for x in a] == [strip(x) for x in b]
PY

# ---- starts of several seeds are planned for together, and fare as each seed does alone
for seed in 0 1; do
    evaluate --seeds $seed --batch 3 --out "$tmp/alone.jsonl" --quiet >/dev/null
done
"$python" - "$tmp/whole" "$tmp/alone.jsonl" <<'PY'
import json, sys
a, b = ([json.loads(l) for l in open(p)] for p in sys.argv[1:])
strip = lambda l: (l["hash"], [{k: v for k, v in o.items() if k != "seconds"} for o in l["outcomes"]])
assert len(b) == 12 and sorted((strip(x) for x in a), key=str) == sorted((strip(x) for x in b), key=str)
PY

# ---- a dataset with every fifth image: the missing ones are rendered, nothing else changes
"$cgs" collect --env tworooms --out "$tmp/sparse.h5" --episodes 20 --size 64 --every 5 --quiet --threads 1
for d in data sparse; do
    "$cgs" eval --model "$tmp/a" --data "$tmp/$d.h5" --planner cem --samples 8 --iters 2 --seeds 0 \
        --episodes 5 --threads 1 --quiet --out "$tmp/$d.jsonl" >/dev/null
done
"$python" - "$tmp/data.jsonl" "$tmp/sparse.jsonl" <<'PY'
import json, sys
a, b = (json.loads(open(p).readline())["outcomes"] for p in sys.argv[1:])
assert any(o["step"] % 5 for o in a), "no start lies between two images"
strip = lambda l: [{k: v for k, v in o.items() if k != "seconds"} for o in l]
assert strip(a) == strip(b), (a, b)
PY

# ---- a protocol by name: said, part of every line, beside random actions, and its list is its own
for protocol in moderate strict; do
    "$cgs" eval --model "$tmp/a" --data "$tmp/data.h5" --planner zero --seeds 0 --episodes 5 --threads 1 --quiet \
        --protocol $protocol --manifest "$tmp/$protocol.starts" --out "$tmp/$protocol.jsonl" >"$tmp/table"
    grep -q "^$protocol protocol: the agent is closer than 8 px" "$tmp/table" || fail "$(cat "$tmp/table")"
    grep -q " random " "$tmp/table" || fail "no random actions"
    [ "$(grep -c "\"protocol\":\"$protocol\"" "$tmp/$protocol.jsonl")" = 2 ] || fail "lines of the $protocol protocol"
    hash=$(sed -n '1s/.*"starts":"\([0-9a-f]*\)".*/\1/p' "$tmp/$protocol.starts")
    grep -q "\"starts\":\"$hash\"" "$tmp/$protocol.jsonl" || fail "lines and list have other checksums"
done
grep -q '"success":"end"' "$tmp/strict.jsonl" || fail "the strict protocol looks at the end"
grep -q '"protocol"' "$tmp/r.jsonl" && fail "the official protocol is named in a line"

# ---- the frozen lists are what the protocols choose from the same data
frozen=$here/../results/referee
"$cgs" collect --env tworooms --out "$tmp/tworooms.h5" --episodes 100 --size 64 --every 5 --seed 0 --quiet --threads 1
for protocol in official moderate strict; do
    "$cgs" eval --model "$tmp/a" --data "$tmp/tworooms.h5" --planner zero --seeds 0 --episodes 150 --threads 1 --quiet \
        --protocol $protocol --manifest "$tmp/again-$protocol.starts" >"$tmp/table"
    cmp "$tmp/again-$protocol.starts" "$frozen/tworooms-$protocol.starts" || fail "other starts of the $protocol protocol"
done
sed '2s/"step":[0-9]*/"step":0/' "$frozen/tworooms-strict.starts" >"$tmp/changed.starts"
"$cgs" eval --model "$tmp/a" --data "$tmp/tworooms.h5" --planner zero --seeds 0 --protocol strict --threads 1 \
    --manifest "$tmp/changed.starts" 2>"$tmp/err" >"$tmp/out" && fail "a list that was changed passed"

# ---- the prior, and the planners that want it
"$cgs" prior --model "$tmp/a" --data "$tmp/data.h5" --threads 1 --json prior.batch=32 \
    prior.updates=40 prior.every=10 prior.hidden=64 >"$tmp/prior"
grep -q '"validation_loss"' "$tmp/prior" || fail "no validation error"
"$cgs" eval --model "$tmp/a" --data "$tmp/data.h5" --planner pg-cem --samples 4 --iters 2 --seeds 0 \
    --episodes 3 --threads 1 --quiet | grep -q "pg-cem K=4" || fail "pg-cem"
# how near it comes before any search: the same starts whatever counts as doing nothing
for zero in control mean; do
    "$cgs" prior --quality --model "$tmp/a" --data "$tmp/data.h5" --seeds 0,1 --episodes 4 --zero $zero \
        --threads 1 --quiet --out "$tmp/quality-$zero.json" >"$tmp/table"
    grep -q "nothing ($zero), 8 starts" "$tmp/table" || fail "$(cat "$tmp/table")"
done
"$cgs" prior --quality --model "$tmp/a" --data "$tmp/data.h5" --seeds 0,1 --episodes 4 --threads 1 --json >"$tmp/json"
"$python" - "$tmp" <<'PY'
import json, sys
c, m, again = (json.load(open(sys.argv[1] + "/" + n)) for n in ("quality-control.json", "quality-mean.json", "json"))
assert c["format"] == "cgs-prior-quality" and c["starts"] == 8 and c["seeds"] == ["0", "1"] and c["zero"] == "control"
assert again["models"] == c["models"] and c["held_out"] is False
a, b = c["models"][0], m["models"][0]
assert a["ratios"] != b["ratios"] and len(a["ratios"]) == 8 and a["horizon"] == 5
mean = sum(a["ratios"]) / 8
assert abs(a["rho"]["mean"] - mean) < 1e-5 * mean and a["rho"]["lo"] <= mean <= a["rho"]["hi"], a
middle = sorted(a["ratios"])[3:5]
assert abs(a["rho_median"]["median"] - sum(middle) / 2) < 1e-5 * mean, a
assert a["below_one"] == sum(r < 1 for r in a["ratios"])
# gamma of sampled Gauss-Newton, which does not depend on what counts as doing nothing
assert a["gamma"] == b["gamma"] > 0 and a["prediction_variance"] > 0
assert abs(a["gamma"] * a["plan_variance"] / a["prediction_variance"] - 1) < 1e-5, a
assert abs(a["prior_gamma"] * a["prior_variance"] / a["prediction_variance"] - 1) < 1e-5, a
PY
# planners at the same number of rollouts, and settings that no option names
"$cgs" eval --model "$tmp/a" --data "$tmp/data.h5" --planner gn pg-gn mppi prior --rollouts 8 32 \
    plan.ess=2 plan.gn.gamma=0.5 --seeds 0 --episodes 2 --threads 1 --quiet >"$tmp/table"
for words in 'gn K=8 I=1 gamma=0.5 decay=0.8' 'pg-gn K=16 I=2 gamma=0.5' 'mppi K=16 I=2 ess=2 ' \
    'gn  *over rollouts = 8 ... 32 (2 points)'; do
    grep -q "$words" "$tmp/table" || fail "no $words in $(cat "$tmp/table")"
done
for wrong in "--rollouts 8 --samples 4" "--rollouts 0" "plan.samples=3" "plan.gn.gamma=-2"; do
    # shellcheck disable=SC2086
    "$cgs" eval --model "$tmp/a" --data "$tmp/data.h5" --planner gn --episodes 1 $wrong 2>"$tmp/err" &&
        fail "$wrong passed"
    [ -s "$tmp/err" ] || fail "$wrong: no sentence"
done
# gamma by the model's card, which cgs prior wrote; by a prior with a spread; from the inverse head
cp -r "$tmp/a" "$tmp/spread"
"$cgs" eval --model "$tmp/b" --data "$tmp/data.h5" --planner gn --episodes 1 plan.gn.gamma=auto 2>"$tmp/err" &&
    fail "gamma of a card that says nothing passed"
grep -q "cgs prior measures it" "$tmp/err" || fail "$(cat "$tmp/err")"
for kind in behaviour inverse; do
    "$cgs" prior --model "$tmp/spread" --data "$tmp/data.h5" --kind $kind --threads 1 --json prior.batch=32 \
        prior.updates=20 prior.every=10 prior.hidden=16 prior.spread=learned >"$tmp/prior"
    grep -q '"likelihood"' "$tmp/prior" || fail "no likelihood"
    "$cgs" prior --quality --model "$tmp/spread" --data "$tmp/data.h5" --kind $kind --seeds 0 --episodes 4 \
        --threads 1 --quiet >"$tmp/table"
    grep -q "recorded values within 50 %: .* of the prior, whose spread is learned" "$tmp/table" ||
        fail "$(cat "$tmp/table")"
done
for inverse in false true; do
    "$cgs" eval --model "$tmp/spread" --data "$tmp/data.h5" --planner gn pg-gn pg-mppi prior --rollouts 8 \
        plan.gn.gamma=auto plan.inverse=$inverse --seeds 0 --episodes 2 --threads 1 --quiet \
        --out "$tmp/spread.jsonl" >"$tmp/table"
done
[ "$(grep -c '"prior":"[0-9a-f]*"' "$tmp/spread.jsonl")" = 6 ] || fail "priors in $(cat "$tmp/spread.jsonl")"
[ "$(grep -c '"inverse":1' "$tmp/spread.jsonl")" = 3 ] || fail "inverse heads in $(cat "$tmp/spread.jsonl")"
"$python" - "$tmp/spread/config.json" "$tmp/spread.jsonl" <<'PY'
import json, sys
card = json.load(open(sys.argv[1]))["cgs"]["card"]
lines = [json.loads(l)["settings"] for l in open(sys.argv[2])]
want = card["prediction_variance"] / card["plan_variance"]
got = [l["gamma"] for l in lines if l["planner"] == "gn"]
assert len(got) == 1 and abs(got[0] / want - 1) < 0.06, (got, want) # both runs have the same
assert all(l["gamma"] > 0 for l in lines if "gn" in l["planner"])
PY
cp "$tmp/a/prior.json" "$tmp/a/prior.safetensors" "$tmp/b"
# on held-out starts: no episode that the prior or the decoder was fitted to
"$cgs" prior --quality --model "$tmp/a" --data "$tmp/data.h5" --seeds 0 --episodes 4 --held-out --threads 1 --json |
    grep -q '"held_out":true' || fail "quality on held-out starts"
"$cgs" decode --model "$tmp/a" --data "$tmp/data.h5" --updates 1 --strip --held-out --episodes 1 --samples 2 \
    --iters 1 --budget 10 --threads 1 --quiet --out "$tmp/strips.json" \
    decode.frames=64 >/dev/null || fail "strips of held-out starts"

# a temperature from the model's curvature, beside one that is given
"$cgs" eval --model "$tmp/a" --data "$tmp/data.h5" --planner mppi --samples 1 --tau auto,3 --seeds 0 \
    --episodes 2 --threads 1 --quiet >"$tmp/table"
tau=$(grep -o 'mppi K=1 I=30 tau=[^ ]*' "$tmp/table" | sed 's/.*tau=//' | tr '\n' ' ')
case $tau in [0-9]*' 3 ') ;; *) fail "temperatures: $tau" ;; esac
"$cgs" geometry --curvature --model "$tmp/a" --data "$tmp/data.h5" --threads 1 --quiet >"$tmp/table"
grep -q " ${tau%% *} * 128 " "$tmp/table" || fail "$tau is not the temperature of $(cat "$tmp/table")"
"$cgs" plan --model "$tmp/a" --data "$tmp/data.h5" --samples 4 --iters 1 --tau auto --budget 5 --horizon 1 \
    --goal-offset 5 --threads 1 --json >"$tmp/plan" || fail "cgs plan --tau auto"

# ---- plan
"$cgs" plan --model "$tmp/a" --data "$tmp/data.h5" --planner gd --threads 1 --json --episode 2 \
    --budget 10 --horizon 2 --goal-offset 10 --gif "$tmp/x.gif" >"$tmp/plan"
[ "$(head -c 6 "$tmp/x.gif")" = GIF89a ] || fail "no animation"
"$python" - "$tmp/plan" <<'PY'
import json, sys
lines = [json.loads(l) for l in open(sys.argv[1])]
steps = [l["step"] for l in lines if "step" in l]
solves = [l for l in lines if "solve" in l]
assert steps == list(range(len(steps))) and len(steps) >= 2, steps
assert len(solves[0]["lowest"]) == 100 and solves[0]["lowest"][1] < solves[0]["lowest"][0], solves
assert lines[-1]["episode"] == 2 and lines[-1]["actions"] == len(steps) - 1, lines[-1]
PY

# ---- what is refused, with its name: usage errors give 2, everything else 1
refused() {
    want=$1 word=$2
    shift 2
    code=0
    "$cgs" "$@" --threads 1 >"$tmp/out" 2>"$tmp/err" || code=$?
    [ "$code" = "$want" ] || fail "cgs $*: status $code, not $want: $(cat "$tmp/err")"
    grep -q -- "$word" "$tmp/err" || fail "cgs $*: \"$(cat "$tmp/err")\" does not mention \"$word\""
    [ ! -s "$tmp/out" ] || fail "cgs $*: printed to standard output"
}
base="--model $tmp/a --data $tmp/data.h5"
refused 2 "--samples wants" eval $base --samples 0
refused 2 "plan.elites: 9" eval $base --planner cem --samples 8 --elites 9
refused 2 "plan.tau: -1" eval $base --tau=-1
refused 2 "tau wants numbers or auto, got .often" eval $base --tau 4,often
refused 2 "2 temperatures" plan $base --tau 4,8
refused 2 "one at a time" geometry $base --curvature --mechanism
refused 2 "horizon 99" eval $base --horizon 99
refused 2 "99999 rows later" eval $base --goal-offset 99999
refused 2 '"sgd"' eval $base --planner sgd
refused 2 '"often"' eval $base --history often
refused 2 "samples wants whole numbers" eval $base --samples 4,x
refused 2 "not in pusht" eval $base --env pusht
refused 1 "nothing" eval --model "$tmp/nothing" --data "$tmp/data.h5"
refused 1 "nothing.h5" eval --model "$tmp/a" --data "$tmp/nothing.h5"
refused 1 "prior was fitted to weights" eval --model "$tmp/b" --data "$tmp/data.h5" --planner pg-mppi
refused 2 "prior.stride: 7" prior $base prior.stride=7
refused 2 "pairs of rows" prior $base
refused 2 "prior.nonsense" prior $base prior.nonsense=1
refused 2 "prior.batch=3.* is a setting of the fit" prior --quality $base prior.batch=3
refused 2 "--out belongs to --quality" prior $base --out "$tmp/q.json"
refused 2 '"none" is not control or mean' prior --quality $base --zero none
refused 2 "--episodes wants" prior --quality $base --episodes 0
refused 1 "prior was fitted to weights" prior --quality --model "$tmp/b" --data "$tmp/data.h5"
# a prior and a decoder from before they recorded the split
for f in prior.json decoder.safetensors; do
    LC_ALL=C sed 's/"split"/"spilt"/' "$tmp/a/$f" >"$tmp/older" && cp "$tmp/older" "$tmp/a/$f"
done
older="is not known to have been fitted without the model's held-out episodes"
refused 2 "prior $older" eval $base --planner pg-mppi --samples 1 --held-out --episodes 2
refused 2 "prior $older" plan $base --planner pg-mppi --held-out
refused 2 "prior $older" prior --quality $base --held-out
refused 2 "decoder $older" decode $base --strip --held-out --out "$tmp/strips.json" --json --quiet
refused 2 "episode 2 has no step 5000" plan $base --episode 2 --step 5000
# a dataset and a model of other versions of the environment
sed 's/"env_version"\( *:[ \t]*\)"1"/"env_version"\1"77"/' "$tmp/a/config.json" >"$tmp/config" &&
    cp "$tmp/config" "$tmp/b/config.json"
refused 2 "version 77 of tworooms" eval --model "$tmp/b" --data "$tmp/data.h5"
if [ -n "$python" ] && "$python" -c 'import h5py' 2>/dev/null; then
    "$python" -c "import h5py, sys; h5py.File(sys.argv[1], 'a').attrs['env_version'] = 77" "$tmp/data.h5"
    refused 2 "version 77 of tworooms" eval $base
fi
