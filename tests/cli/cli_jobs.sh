#!/bin/sh
# cli_jobs.sh - stages side by side: lines, journal and models are the same as one after another,
# also after kills and stops; a failure is named and keeps only what needs it from running.
#   tests/cli/cli_jobs.sh BUILD
. "$(dirname "$0")/prelude.sh"
# tiny PARENT [more]: the study a below it, so that paths in lines are the same everywhere.  A script
# of its own, so that a signal to it reaches the program.
cat >"$tmp/tiny" <<SH
#!/bin/sh
mkdir -p "\$1" && cd "\$1" && shift
exec "$cgs" reproduce tworooms --preset tiny --out a --device cpu --threads 1 --seeds 3072,1 \\
    rows='collect train prior budget-mppi budget-cem gd budget-pg-mppi refine strict geometry report' "\$@"
SH
chmod +x "$tmp/tiny"
timeless() { # of lines; pages between, which show what there is by then, have their own sizes
    sed -E 's/"(seconds|finished)":("[^"]*"|[0-9.e+-]+|\[[^]]*\])//g; s/[0-9]+ (frames\/s|KiB)//g' "$1"
}
same() { # FOLDER: as one after another?
    for f in results.jsonl stages.jsonl; do
        timeless "$tmp/one/a/$f" >"$tmp/want"
        timeless "$1/a/$f" >"$tmp/got"
        cmp "$tmp/want" "$tmp/got" || fail "$f of $1 differs: $(diff "$tmp/want" "$tmp/got" | cut -c1-200 | head -4)"
    done
    for m in lewm lewm-ts-s1 lewm-cgs-s1; do
        for f in model prior; do
            cmp "$tmp/one/a/models/$m/$f.safetensors" "$1/a/models/$m/$f.safetensors" || fail "$m differs"
        done
    done
    timeless "$tmp/one/a/geometry.json" >"$tmp/want"
    timeless "$1/a/geometry.json" | cmp - "$tmp/want" || fail "geometry differs"
    [ -z "$(ls "$1/a/parts")" ] || fail "parts are left: $(ls "$1/a/parts")"
}

"$tmp/tiny" "$tmp/one" >"$tmp/out" || fail "one at a time: $(tail -3 "$tmp/out")"
n=$(grep -c . "$tmp/one/a/stages.jsonl")
"$tmp/tiny" "$tmp/four" --jobs 4 >"$tmp/out" || fail "four at a time: $(tail -3 "$tmp/out")"
same "$tmp/four"
grep -q "stages done now, 0 before" "$tmp/out" || fail "$(tail -3 "$tmp/out")"
[ -z "$(find "$tmp/four" -name '*.err')" ] || fail "errors of stages that had none"
# ---- again, and with another number: nothing runs
for jobs in 1 3; do
    "$tmp/tiny" "$tmp/four" --jobs $jobs >"$tmp/again"
    [ "$(grep -c 'done before:' "$tmp/again")" = "$n" ] || fail "a finished stage ran again"
    same "$tmp/four"
done
# ---- lines that another stage has are not made again: I = 2 is the sweep over K's
[ "$(grep -c '"planner":"cem","horizon":5,"samples":2,"iters":2.*"train_seed":"1"' "$tmp/four/a/results.jsonl")" = 12 ] ||
    fail "CEM with K = 2: three models, two seeds of starts, two protocols"

# ---- killed and stopped again and again, each time with another number of jobs
tries=0
while [ $tries -lt 6 ]; do
    "$tmp/tiny" "$tmp/cut" --jobs $((1 + tries * 2 % 5)) >>"$tmp/killed" 2>&1 &
    pid=$!
    sleep "0.$((3 + tries % 5))"
    kill -$([ $((tries % 2)) = 0 ] && echo 9 || echo TERM) $pid 2>/dev/null || break
    wait $pid 2>/dev/null || true
    tries=$((tries + 1))
done
[ $tries -ge 3 ] || fail "it was stopped only $tries times"
"$tmp/tiny" "$tmp/cut" --jobs 4 >"$tmp/out" 2>&1 || fail "after $tries stops: $(tail -3 "$tmp/out")"
[ "$(cut -d'"' -f4 "$tmp/cut/a/stages.jsonl" | sort | uniq -d | wc -l)" = 0 ] || fail "a stage ran twice"
sort "$tmp/one/a/results.jsonl" >"$tmp/sorted" # lines of what was cut off may be in another place
timeless "$tmp/sorted" >"$tmp/want"
sort "$tmp/cut/a/results.jsonl" >"$tmp/sorted"
timeless "$tmp/sorted" | cmp - "$tmp/want" || fail "other lines after stops"
for m in lewm lewm-cgs-s1; do
    cmp "$tmp/one/a/models/$m/model.safetensors" "$tmp/cut/a/models/$m/model.safetensors" || fail "$m differs"
done

# ---- SIGTERM: every child saves its work, and the message says where
"$tmp/tiny" "$tmp/long" --jobs 3 --updates 100000 checkpoint=100 --only train >"$tmp/out" 2>"$tmp/err" &
pid=$!
tries=0
until [ "$(find "$tmp/long/a/models" -name metrics.jsonl 2>/dev/null | wc -l)" -ge 3 ] || [ $tries = 300 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
sleep 0.3
kill -TERM $pid
status=0
wait $pid || status=$?
[ $status = 1 ] || fail "stopped: status $status"
grep -q 'stopped at "train lewm, seed 3072", 1 of 7 stages' "$tmp/err" || fail "$(cat "$tmp/err")"
for m in lewm lewm-ts lewm-cgs; do
    [ -s "$tmp/long/a/models/$m/checkpoint.safetensors" ] || fail "$m did not save its work"
done
# ---- the time budget ends them all, too
"$tmp/tiny" "$tmp/long" --jobs 3 --updates 100000 checkpoint=100 --budget-minutes 0.01 --only train \
    >"$tmp/out" 2>"$tmp/err" && fail "no budget"
grep -q 'the time budget is used up at "train lewm, seed 3072"' "$tmp/err" || fail "$(cat "$tmp/err")"

# ---- one stage fails: it is named with its reason, and the others finish
mkdir -p "$tmp/bad/a/geometry.json.tmp" # where its result cannot be written
"$tmp/tiny" "$tmp/bad" --jobs 4 >"$tmp/out" 2>"$tmp/err" && fail "a failed stage passed"
grep -q '] geometry' "$tmp/out" && grep -q 'failed; its log is a/logs/geometry.txt' "$tmp/err" || fail "$(cat "$tmp/err")"
grep -q 'geometry.json' "$tmp/err" || fail "no reason: $(cat "$tmp/err")"
grep -q "1 of $n stages failed, 0 were skipped" "$tmp/err" || fail "$(cat "$tmp/err")"
[ "$(grep -c . "$tmp/bad/a/stages.jsonl")" = $((n - 1)) ] || fail "the others did not finish"
# ---- without models there is nothing to plan with
"$tmp/tiny" "$tmp/none" --jobs 4 train=train.batch=0 >"$tmp/out" 2>"$tmp/err" && fail "no models"
grep -q "6 of $n stages failed, $((n - 9)) were skipped" "$tmp/err" || fail "$(cat "$tmp/err")"

# ---- a group: all members side by side, one page
(cd "$tmp" && "$cgs" reproduce dinowm-mazes --preset tiny --seeds 1 --out g --device cpu --threads 1 --jobs 3 \
    --only train >out 2>err) || { "$cgs" envs | grep -q '^pointmaze' && fail "$(cat "$tmp/err")"; }
grep -q '] dinowm-wall: train dinowm-cls-s1\|] dinowm-wall: train dinowm-cls' "$tmp/out" || fail "$(cat "$tmp/out")"
"$cgs" reproduce demo --jobs 0 --dry-run 2>"$tmp/err" && fail "no jobs"
grep -q 'jobs 0' "$tmp/err" || fail "$(cat "$tmp/err")"
echo "side by side: the same lines, journal and models; stops and failures"
