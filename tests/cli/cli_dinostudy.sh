#!/bin/sh
# cli_dinostudy.sh - the study of DINO-WM at its tiniest: from data to a page, with a stand-in
# backbone and with a file; killed pretraining and features resume; planning times.
#   tests/cli/cli_dinostudy.sh BUILD
. "$(dirname "$0")/prelude.sh"
cd "$tmp"

# ---- the plans
"$cgs" reproduce dinowm --dry-run >plan || fail "no plan"
for env in pusht wall pointmaze-umaze pointmaze-medium; do
    grep -q "^dinowm-$env\$" plan || fail "dinowm does not name $env"
    grep -q "collect --env $env " plan || fail "dinowm does not collect $env"
done
[ "$(grep -c '\] train dinowm' plan)" = 24 ] || fail "four environments and six models are 24 trainings"
[ "$(grep -c '\] train lewm' plan)" = 3 ] || fail "PushT has LeWM beside them"
[ "$(grep -c 'method dinowm.*--backbone runs/dinowm/dinowm-[a-z-]*/backbone.safetensors' plan)" = 24 ] ||
    fail "a model without its backbone"
if grep 'method lewm' plan | grep -q backbone; then fail "LeWM has no backbone"; fi
if grep -q '[{}@]' plan; then fail "a hole: $(grep '[{}@]' plan | head -1)"; fi
"$cgs" reproduce dinowm --preset brief --dry-run >brief || fail "no brief plan"
[ "$(grep -c '\] train' brief)" = 27 ] || fail "the brief study has other models"
[ "$(grep -c 'train --data.* --size paper .*train.updates=400' brief)" = 27 ] || fail "brief is not the paper's size"
[ "$(grep -c 'method dinowm-[a-z]* .*optim.head_lr=1e-5' brief)" = 8 ] || fail "rates of plain models"
[ "$(grep -c 'method dinowm-[a-z]*-[a-z]* .*optim.head_lr=1e-4' brief)" = 16 ] || fail "rates of TS and CGS"
[ "$(grep -c -- '--samples 32,64,128 --iters 30' brief)" = 8 ] || fail "brief plans with other budgets"
if grep -q '[{}@]' brief; then fail "a hole: $(grep '[{}@]' brief | head -1)"; fi
"$cgs" reproduce ablations --preset brief --dry-run 2>err && fail "the ablations have no brief study"
grep -q 'no preset "brief"' err || fail "$(cat err)"
"$cgs" reproduce dinowm --data x.h5 --dry-run 2>err && fail "one dataset for four environments"
grep -q "has its own data" err || fail "$(cat err)"
"$cgs" reproduce demo --backbone x --dry-run 2>err && fail "the demo has no backbone"
grep -q "no frozen backbone" err || fail "$(cat err)"

# ---- the whole of it
cat >tiny <<SH
#!/bin/sh
exec "$cgs" reproduce dinowm-wall --preset small --device cpu --threads 2 --episodes 6 --updates 2 \\
    validate=2 checkpoint=1 backbone_updates=2 'pretrain=--batch 4' K=2,3 iters=1 gd_steps=1 starts=1 \\
    start_seeds=0 gif_K=2 'train=model.predictor.layers=1 train.batch=4 train.validate_batches=1 data.train_fraction=0.7' "\$@"
SH
chmod +x tiny
./tiny --out a >first || fail "the study: $(cat first)"
for f in data.h5 backbone.safetensors models/dinowm-patch-cgs/model.safetensors plans/dinowm-cls.gif report.html; do
    [ -s "a/$f" ] || fail "no $f"
done
[ "$(grep -c . a/results.jsonl)" = 36 ] || fail "$(grep -c . a/results.jsonl) results, not 36"
[ "$(grep -c '"backbone":"stand-in"' a/results.jsonl)" = 36 ] || fail "a result does not name its backbone"
[ "$(ls a | grep -c '\.features$')" = 2 ] || fail "features are computed once a kind of token: $(ls a)"
grep -q 'id="frozen-0"' a/report.html || fail "no table of frozen features"
grep -q "Backbone: stand-in" a/report.html || fail "the page does not say whose features"
grep -q "distance of two views" first || fail "pretraining does not say what it found"
./tiny --out a >again
n=$(grep -c 'done before:' again)
[ "$n" = "$(grep -c . a/stages.jsonl)" ] || fail "a finished stage ran again: $(cat again)"

# ---- a backbone of one's own: nothing is pretrained, and another file is another study
./tiny --out b --backbone a/backbone.safetensors --only 'train dinowm-cls' >own || fail "own backbone"
grep -q pretrain own && fail "a stand-in beside a file"
cmp -s a/models/dinowm-cls/model.safetensors b/models/dinowm-cls/model.safetensors ||
    fail "the same backbone from a file gives other weights"
grep -q '"backbone":.*a/backbone.safetensors' b/study.json || fail "study.json does not name the file"
"$cgs" pretrain --data a/data.h5 --out other.safetensors --size small --updates 2 --batch 4 --seed 1 --quiet
./tiny --out b --backbone other.safetensors --only 'train dinowm-cls' >own 2>err && fail "two backbones in one folder"
grep -q "with other settings" err || fail "$(cat err)"

# ---- pretraining that was killed ends in the same bytes
set -- pretrain --data a/data.h5 --size small --updates 12 --batch 4 --checkpoint-every 1 --threads 2 --quiet
"$cgs" "$@" --out whole.safetensors
cut_off KILL parts.safetensors.checkpoint 0 parts.safetensors "$cgs" "$@" --out parts.safetensors
[ $status = 137 ] || fail "pretraining ended with $status before it was killed"
[ ! -e parts.safetensors ] || fail "a backbone before its last update"
"$cgs" "$@" --out parts.safetensors 2>err && fail "begun anew over a checkpoint"
grep -q -- "--resume" err || fail "$(cat err)"
"$cgs" "$@" --out parts.safetensors --resume --lr 1e-3 2>err && fail "continued with another rate"
grep -q 'made with "lr = 0.0005", this run has "lr = 0.001"' err || fail "$(cat err)"
"$cgs" "$@" --out parts.safetensors --resume || fail "resume"
cmp whole.safetensors parts.safetensors || fail "a continued pretraining differs"
"$cgs" "$@" --out parts.safetensors --resume || fail "resume of a finished one"

# ---- features that were cut off: the rest is computed, the file is the same
features=$(ls a/data.h5.patch-*.features)
cp "$features" kept
head -c $(($(wc -c <kept) / 2)) kept >"$features.part"
rm "$features"
"$cgs" train --data a/data.h5 --out c --size small --method dinowm-patch --backbone a/backbone.safetensors \
    model.predictor.layers=1 train.batch=4 data.train_fraction=0.7 train.updates=1 train.validate_batches=1 2>log
grep -q 'are computed once.*, [1-9][0-9]* exist' log || fail "$(cat log)"
grep -q 'frames/s' log || fail "features without their rate"
cmp kept "$features" || fail "continued features differ"

# ---- a backbone file that is none
"$cgs" train --data a/data.h5 --out d --size small --method dinowm-cls --backbone a/models/dinowm-cls/model.safetensors \
    2>err && fail "a world model is no backbone"
grep -q "names neither of DINOv2's" err || fail "$(cat err)"

# ---- the times of planning
"$cgs" bench architectures --device cpu --size small --samples 2 --iters 1 --gd-steps 1 --episodes 2 --runs 1 \
    --out timing.json >times || fail "bench architectures"
grep -q '16.8x *47.0x *40.5x' times || fail "the paper's ratios are missing: $(cat times)"
grep -q '"format":"cgs-timing"' timing.json || fail "timing.json"
"$cgs" report . --out times.html --quiet && grep -q 'paper 47.0×' times.html || fail "no page of times"
"$cgs" bench architectures --device cpu --size small --runs 0 2>err && fail "a median of nothing"
echo "DINO-WM's study: everything agrees"
