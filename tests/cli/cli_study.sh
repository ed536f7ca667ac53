#!/bin/sh
# cli_study.sh - a whole study in seconds: finished stages are reused, killed ones resume, changed
# settings run what depends on them, and results are the same as without interruptions.
#   tests/cli/cli_study.sh BUILD
. "$(dirname "$0")/prelude.sh"
# tiny FOLDER [more]: the demo's stages with little of everything.  A script of its own, so that
# a signal to it reaches the program.
cat >"$tmp/tiny" <<SH
#!/bin/sh
dir=\$1
shift
exec "$cgs" reproduce demo --out "\$dir" --device cpu --threads 1 --episodes 12 --updates 8 validate=4 \\
    checkpoint=2 'train=train.batch=4 loss.sigreg.projections=16 train.validate_batches=1' \\
    'prior=prior.updates=4 prior.every=2 prior.batch=16 prior.hidden=16' held=2 starts=3 held_K=1,2 \\
    held_pg_K=1 iters=2 gif_K=2 gd_steps=2 'geometry=--anchors 4 --windows 1' \\
    'mechanism=--anchors 2' 'probe=--episodes 10' "\$@"
SH
chmod +x "$tmp/tiny"
stages='collect train prior held-out held-out-pg held-out-gd'

# ---- the list, and the commands of every recipe can be written down
"$cgs" reproduce list >"$tmp/list"
for name in pusht cube tworooms reacher demo ablations cube-references reacher-histories dinowm dinowm-pusht \
    dinowm-wall dinowm-pointmaze-umaze dinowm-pointmaze-medium; do
    grep -q "^  $name " "$tmp/list" || fail "$name is not in the list"
    "$cgs" reproduce "$name" --dry-run >"$tmp/plan" || fail "no plan of $name"
    if grep -q '[{}@]' "$tmp/plan"; then fail "a hole in $name: $(grep '[{}@]' "$tmp/plan" | head -1)"; fi
done
for name in pusht cube tworooms reacher; do
    "$cgs" reproduce "$name" --dry-run >"$tmp/plan"
    for stage in 'geometry' 'mechanism of MPPI' 'probes' 'quality of the priors' 'priors alone' 'surprise' \
        'imagined beside simulated'; do
        grep -q "\] $stage  (" "$tmp/plan" || fail "$name has no stage \"$stage\""
    done
done
"$cgs" reproduce pusht --dry-run --seeds 3072,1,2 >"$tmp/plan"
[ "$(grep -c '\] train ' "$tmp/plan")" = 9 ] || fail "three methods and three seeds are nine trainings"
grep -q 'models/lewm-s1 .*train.seed=1 ' "$tmp/plan" || fail "seed 1 has no folder of its own"
# every command the list names is accepted
grep -o 'cgs reproduce [a-z-]*.*' "$tmp/list" | grep -v NAME | sed 's/|[a-z|]*//' | sort -u | while read -r _ _ words; do
    # shellcheck disable=SC2086
    "$cgs" reproduce $words --dry-run >/dev/null || fail "cgs reproduce $words"
done

# ---- what is wrong is refused with a sentence
status=0
"$cgs" reproduce nothing 2>"$tmp/err" || status=$?
[ $status = 2 ] || fail "an unknown study gives $status"
"$cgs" reproduce demo --out "$tmp/x" helt=3 2>"$tmp/err" && fail "a mistyped setting passed"
grep -q helt "$tmp/err" || fail "the sentence does not name the setting"
"$cgs" reproduce demo --out "$tmp/x" --only lunch 2>"$tmp/err" && fail "an unknown stage passed"
[ ! -e "$tmp/x" ] || fail "a refused study left a folder"

# ---- from beginning to end
"$tmp/tiny" "$tmp/a" >"$tmp/first"
for f in study.json stages.jsonl data.h5 results.jsonl models/lewm-cgs/prior.safetensors plans/lewm.gif \
    plans/lewm.json geometry.json mechanism.json prior-quality.json probe.json report.html; do
    [ -s "$tmp/a/$f" ] || fail "no $f"
done
n=$(grep -c . "$tmp/a/stages.jsonl")
[ "$n" = 19 ] || fail "$n stages instead of 19"
grep -q 'validation pairs' "$tmp/first" || fail "a stage does not say what it found"

# ---- again: nothing runs
"$tmp/tiny" "$tmp/a" >"$tmp/again"
[ "$(grep -c 'done before:' "$tmp/again")" = 19 ] || fail "a finished stage ran again"
[ "$(grep -c . "$tmp/a/stages.jsonl")" = 19 ] || fail "a stage is recorded twice"

# ---- the folder may be moved, and the machine does not matter
mv "$tmp/a" "$tmp/b"
"$tmp/tiny" "$tmp/b" --threads 2 >"$tmp/again"
[ "$(grep -c 'done before:' "$tmp/again")" = 19 ] || fail "a moved study begins anew"

# ---- more starts: the evaluation runs, training does not
"$tmp/tiny" "$tmp/b" held=4 --only held-out >"$tmp/more"
[ "$(grep -c 'done before:' "$tmp/more")" = 4 ] || fail "more starts: $(cat "$tmp/more")"
# ---- other training in the same folder is refused, and names the file
"$tmp/tiny" "$tmp/b" train=optim.lr=1e-4 --only train 2>"$tmp/err" >/dev/null && fail "two trainings in one folder"
grep -q 'models/lewm/model.safetensors was made with other settings' "$tmp/err" || fail "$(cat "$tmp/err")"
# ---- a result that was deleted is made again
rm "$tmp/b/plans/lewm-ts.gif"
"$tmp/tiny" "$tmp/b" --only plan >"$tmp/more"
[ -s "$tmp/b/plans/lewm-ts.gif" ] || fail "a deleted result stays away"
[ "$(grep -c 'done before:' "$tmp/more")" = 6 ] || fail "more than the deleted one was made"
[ "$(grep -c . "$tmp/b/stages.jsonl")" = 20 ] || fail "the stage that was made again is recorded twice"
# ---- ... and until it exists again it does not count as finished
rm "$tmp/b/plans/lewm-ts.gif"
mkdir "$tmp/b/plans/lewm-ts.gif.tmp"
"$tmp/tiny" "$tmp/b" --only plan >"$tmp/more" 2>&1 && fail "an image that cannot be written passed"
rmdir "$tmp/b/plans/lewm-ts.gif.tmp"
: >"$tmp/b/plans/lewm-ts.gif" # as a run that was cut off may leave it
"$tmp/tiny" "$tmp/b" --only plan >"$tmp/more"
[ -s "$tmp/b/plans/lewm-ts.gif" ] || fail "half a result was taken for a whole one"

# ---- killed without warning, again and again: the end is the same, bit for bit
tries=0
while :; do
    # shellcheck disable=SC2086
    "$tmp/tiny" "$tmp/c" --only $stages >>"$tmp/killed" 2>&1 &
    pid=$!
    sleep "0.$((3 + tries % 5))"
    [ $tries -lt 6 ] || break
    kill -9 $pid 2>/dev/null || break
    wait $pid 2>/dev/null || true
    tries=$((tries + 1))
done
wait $pid || fail "after $tries kills: $(tail -5 "$tmp/killed")"
[ $tries -ge 3 ] || fail "it was killed only $tries times"
[ "$(cut -d'"' -f4 "$tmp/c/stages.jsonl" | sort | uniq -d | wc -l)" = 0 ] || fail "a stage ran twice"
for m in lewm lewm-ts lewm-cgs; do
    cmp "$tmp/b/models/$m/model.safetensors" "$tmp/c/models/$m/model.safetensors" || fail "$m differs"
done
[ "$(grep -c . "$tmp/c/results.jsonl")" = 24 ] || fail "$(grep -c . "$tmp/c/results.jsonl") results"

# ---- an interrupt ends it soon, and the message says how to resume
"$tmp/tiny" "$tmp/d" --updates 100000 --only train >"$tmp/out" 2>"$tmp/err" &
pid=$!
tries=0
until [ -s "$tmp/d/models/lewm/metrics.jsonl" ] || [ $tries = 300 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
sleep 0.3
kill -INT $pid
status=0
wait $pid || status=$?
[ $status = 1 ] || fail "interrupted: status $status"
grep -q 'resume with' "$tmp/err" || fail "$(cat "$tmp/err")"
[ -s "$tmp/d/models/lewm/checkpoint.safetensors" ] || fail "nothing was saved"
# ---- the time budget
"$tmp/tiny" "$tmp/d" --updates 100000 --budget-minutes 0.01 --only train >"$tmp/out" 2>"$tmp/err" && fail "no budget"
grep -q 'the time budget is used up at "train lewm"' "$tmp/err" || fail "$(cat "$tmp/err")"
echo ok
