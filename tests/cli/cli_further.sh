#!/bin/sh
# Models go on: a finished run gets longer, a stored run keeps its settings, a model is trained
# further on other data (--init), and nothing that is finished is overwritten unless that is said.
#   tests/cli/cli_further.sh BUILD
. "$(dirname "$0")/prelude.sh"
cd "$tmp"
refuse() { # exit status, words, then the command
    wanted=$1 words=$2 status=0
    shift 2
    "$@" >out 2>err || status=$?
    [ "$status" = "$wanted" ] || fail "$* exits with $status: $(cat err)"
    grep -q -- "$words" err || fail "$* says: $(cat err)"
}
"$cgs" collect --env tworooms --episodes 4 --size 64 --out rooms.h5 >out 2>&1
"$cgs" collect --env cube --episodes 3 --size 64 --out cube.h5 >out 2>&1 || rm -f cube.h5
tiny="model.encoder.layers=1 model.predictor.layers=1 model.width=24 model.encoder.heads=2
    model.encoder.mlp=32 model.projector.hidden=32 model.predictor.mlp=32 model.action.hidden=32
    train.batch=4 loss.sigreg.projections=8 train.validate_batches=1 model.frameskip=2"
# shellcheck disable=SC2086 # settings are words
new() { "$cgs" train --data rooms.h5 --size small --threads 1 $tiny "$@"; }
go_on() { "$cgs" train --data rooms.h5 --threads 1 --resume "$@"; }

# ---- a stored run keeps its settings
new --out run --method lewm-ts train.updates=4 train.seed=5 optim.lr=2e-3 --quiet
cp run/config.txt before
go_on --out run 2>err || fail "resume without settings: $(cat err)"
cmp before run/config.txt || fail "the settings of the run have changed"
go_on --out run --method lewm-ts --size small optim.lr=2e-3 train.seed=5 train.validate_every=7 \
    --quiet || fail "the same settings again"
refuse 2 'made with "optim.lr = 0.002"' go_on --out run optim.lr=1e-3
refuse 2 'made with "model.width = 24"' go_on --out run model.width=32
refuse 2 "made with --method lewm-ts" go_on --out run --method lewm-cgs
refuse 2 "made with --size small" go_on --out run --size paper
refuse 2 "unknown size preset" go_on --out run --size tiny
cp rooms.h5 others.h5
refuse 2 "made with the data" "$cgs" train --data others.h5 --resume --out run

# ---- a finished run gets longer, and a run cut short is as one that was not
updates() { grep -c '"grad_norm"' "$1/metrics.jsonl"; }
rate() { sed -n "s/^{\"step\":$2,.*\"lr\":\([0-9.e-]*\).*/\1/p" "$1/metrics.jsonl"; }
refuse 2 "of a run of 4 updates: 3 are fewer" go_on --out run train.updates=3
go_on --out run train.updates=8 2>err || fail "a longer run: $(cat err)"
grep -q "8 updates instead of 4" err || fail "it does not say so: $(cat err)"
[ "$(updates run)" = 8 ] || fail "$(updates run) updates"
grep -q "train.updates = 8" run/config.txt || fail "the settings keep the old length"
go_on --out run --quiet || fail "resume of the longer run"
# the rate is that of a run of the new length; the old one ended at zero
new --out long --method lewm-ts train.updates=8 train.seed=5 optim.lr=2e-3 --quiet
[ -n "$(rate run 6)" ] && [ "$(rate run 6)" = "$(rate long 6)" ] ||
    fail "the rate of update 6: $(rate run 6), of a run of that length $(rate long 6)"
new --out parts --method lewm-ts train.updates=4 train.seed=5 optim.lr=2e-3 --quiet
go_on --out parts train.updates=8 train.stop_epoch=1 --quiet || fail "a longer run, once more"
cmp run/model.safetensors parts/model.safetensors || fail "a longer run is not repeatable"

# ---- nothing is overwritten
refuse 2 "continue it with --resume, replace it with --force" new --out run train.updates=4
refuse 2 "give one of them" go_on --out run --force
cp -r run bare
rm bare/checkpoint.safetensors
cp bare/model.safetensors kept
for how in "" --resume; do
    # shellcheck disable=SC2086
    refuse 2 "train it further in another folder with --init bare" new --out bare $how
done
cmp kept bare/model.safetensors || fail "a refused training has changed the model"
new --out bare train.updates=2 --force --quiet || fail "--force"
! cmp -s kept bare/model.safetensors || fail "--force has changed nothing"
"$cgs" export run --out run.safetensors >out
refuse 2 "replace it with --force" "$cgs" import run.safetensors --out long
refuse 2 "replace it with --force" "$cgs" import run.safetensors --out run
"$cgs" import run.safetensors --out long --force >out || fail "import --force"
cmp long/model.safetensors run/model.safetensors || fail "import --force has changed nothing"
[ ! -e long/checkpoint.safetensors ] || fail "the checkpoint of another model has stayed"
refuse 2 "fewer than train.batch" new --out nowhere train.batch=60000
[ ! -e nowhere ] || fail "a failed command leaves a folder"

# ---- trained further: sizes and weights come from the model
"$cgs" train --data rooms.h5 --init run --out same --threads 1 train.batch=4 train.updates=1 \
    optim.lr=0 loss.sigreg.projections=8 2>err || fail "--init: $(cat err)"
grep -q "begins with \([0-9]*\) of \1 tensors" err || fail "--init: $(cat err)"
grep -q "model.width = 24" same/config.txt || fail "the sizes are not the model's"
grep -q "train.method = lewm-ts" same/config.txt || fail "the method is not the model's"
grep -q '"init":	"run"' same/config.json || fail "the card does not say what it began with"
"$cgs" export same --out same.safetensors >out
"$cgs" info same.safetensors --json >a
"$cgs" train --data rooms.h5 --init run.safetensors --out file --threads 1 train.batch=4 \
    train.updates=1 optim.lr=0 loss.sigreg.projections=8 --quiet || fail "--init FILE"
cmp same/model.safetensors file/model.safetensors || fail "a directory and its export begin alike"
refuse 1 "nowhere" "$cgs" train --data rooms.h5 --init nowhere --out x
refuse 2 "tensors fit this model" new --init run --out x model.width=48
[ ! -e x ] || fail "a refused --init leaves a folder"
if [ -e cube.h5 ]; then # five numbers for an action instead of two: one tensor does not fit
    "$cgs" train --data cube.h5 --init run --out other --threads 1 train.batch=4 train.updates=1 \
        loss.sigreg.projections=8 2>err || fail "other actions: $(cat err)"
    grep -q 'begins anew: action_encoder.patch_embed.weight is \[10,4,1\] there and \[10,10,1\] here' \
        err || fail "the tensor that does not fit: $(cat err)"
    [ "$(grep -c "begins anew" err)" = 1 ] || fail "others begin anew, too: $(cat err)"
fi
echo ok
