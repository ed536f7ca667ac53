#!/bin/sh
# cgs with frozen backbones: pretrain, train (all six methods), resume, eval, plan, info, import.
# usage: tests/cli/cli_dino.sh BUILD
. "$(dirname "$0")/prelude.sh"
cd "$tmp"

"$cgs" collect --env wall --out wall.h5 --episodes 8 --size 64 --quiet || fail collect
"$cgs" pretrain --data wall.h5 --out standin.safetensors --size small --updates 3 --batch 4 --quiet ||
    fail pretrain
"$cgs" info standin.safetensors | grep -q "stand-in" || fail "info does not say stand-in"

set -- model.predictor.layers=1 train.batch=4 train.precision=f32 train.validate_batches=1 \
    data.train_fraction=0.7 --data wall.h5 --size small --backbone standin.safetensors --quiet
for m in cls cls-ts cls-cgs patch patch-ts patch-cgs; do
    "$cgs" train "$@" --out "$m" --method "dinowm-$m" train.updates=2 || fail "train $m"
    grep -q '"backbone":	"stand-in"' "$m/config.json" || fail "$m does not name its backbone"
done

# features are computed once for each kind of token, and another backbone gets its own
[ "$(ls | grep -c '\.features$')" = 2 ] || fail "feature files: $(ls)"

# killed and continued is the same run
"$cgs" train "$@" --out whole --method dinowm-patch-cgs train.updates=12 train.checkpoint_every=1 ||
    fail "train whole"
cut_off KILL parts/checkpoint.safetensors 0 parts \
    "$cgs" train "$@" --out parts --method dinowm-patch-cgs train.updates=12 train.checkpoint_every=1
[ $status = 137 ] || fail "training ended with $status before it was killed"
"$cgs" train "$@" --out parts --method dinowm-patch-cgs train.updates=12 train.checkpoint_every=1 \
    --resume || fail "resume"
cmp -s whole/model.safetensors parts/model.safetensors || fail "a continued run differs"

# trained further: sizes, method and backbone are the model's
"$cgs" train --data wall.h5 --init whole --out further --quiet train.updates=1 train.batch=4 \
    train.precision=f32 train.validate_batches=1 data.train_fraction=0.7 optim.lr=0 optim.head_lr=0 ||
    fail "--init of DINO-WM"
grep -q "train.method = dinowm-patch-cgs" further/config.txt || fail "the method is not the model's"
cmp -s whole/model.safetensors further/model.safetensors || fail "it begins with other weights"
[ ! -e further/learned.json ] || fail "LeWM alone is measured"
if "$cgs" export whole --out graphs --onnx 2>err; then fail "DINO-WM as ONNX"; fi
grep -q "only LeWM is written as ONNX" err || fail "$(cat err)"

# without the cache the backbone runs in every update: the same numbers
"$cgs" train "$@" --out live --method dinowm-cls train.updates=2 data.features=false || fail live
"$cgs" info cls --json | grep -q '"model":"DINO-WM"' || fail "info of a model"
tail -1 cls/metrics.jsonl >a; tail -1 live/metrics.jsonl >b
pred() { sed 's/.*"pred":\([0-9.e-]*\).*/\1/' "$1"; }
awk -v a="$(pred a)" -v b="$(pred b)" 'BEGIN { d = a - b; exit !(d < 1e-4 && d > -1e-4) }' ||
    fail "cached and live features differ: $(pred a) $(pred b)"

"$cgs" eval --model cls patch-cgs --data wall.h5 --planner cem mppi gd --samples 4 --iters 1 \
    --seeds 0 --episodes 1 --budget 10 --horizon 2 --goal-offset 10 --gd-steps 2 --out r.jsonl \
    >table || fail eval
[ "$(grep -c '"backbone":"stand-in"' r.jsonl)" = 6 ] || fail "a result does not say stand-in"
[ "$(grep -c '"success":"solve"' r.jsonl)" = 6 ] || fail "a result does not say how success counts"
"$cgs" eval --model cls --data wall.h5 --planner cem --samples 4 --iters 1 --seeds 0 --episodes 1 \
    --budget 10 --horizon 2 --goal-offset 10 --success any --out r.jsonl --quiet >/dev/null || fail any
sed -n '7s/,"outcomes".*//p' r.jsonl | grep -q success\": && fail "any is named in a result"
"$cgs" eval --model cls patch-cgs --data wall.h5 --planner mppi --tau auto --samples 4 --iters 1 --seeds 0 \
    --episodes 1 --budget 5 --horizon 1 --goal-offset 5 --quiet >measured || fail "a measured temperature"
grep -q '5e-06' measured && fail "the published temperature was taken: $(cat measured)"
[ "$(wc -l <r.jsonl)" = 7 ] || fail "the rule of success is not in the hash"
[ "$(grep -c '(stand-in backbone)' table)" = 6 ] || fail "a row of the table does not say stand-in"
"$cgs" plan --model patch --data wall.h5 --planner mppi --samples 4 --iters 1 --budget 5 \
    --horizon 1 --goal-offset 5 | grep -q "frozen backbone: stand-in" || fail plan

# models of this kind are refused by verbs that know LeWM alone, with a sentence
"$cgs" prior --model cls --data wall.h5 2>err && fail "prior on DINO-WM"
grep -q "DINO-WM" err || fail "prior: $(cat err)"
"$cgs" train "$@" --out none --method dinowm-cls model.backbone.file= 2>err && fail "no backbone"
"$cgs" train "$@" --out none --method dinowm-nothing 2>err && fail "an unknown method"
grep -q "dinowm-cls" err || fail "unknown method: $(cat err)"
"$cgs" import standin.safetensors --out imported --json | grep -q '"layers":4' || fail import
"$cgs" info imported/backbone.weights --json | grep -q '"model":"backbone"' || fail "info imported"
echo "frozen backbones: everything agrees"
