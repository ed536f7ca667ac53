#!/bin/sh
# cli_watch.sh - the live view: silent without a terminal, and on one nothing but lines drawn
# over themselves.
#   tests/cli/cli_watch.sh BUILD
. "$(dirname "$0")/prelude.sh"
command -v script >/dev/null || { echo "no script(1) to make a terminal with"; exit 77; }
script -qec true /dev/null >/dev/null 2>&1 </dev/null || { echo "no pseudo terminal here"; exit 77; }
esc=$(printf '\033')
export LC_ALL=C.UTF-8 COLUMNS=80

"$cgs" collect --env tworooms --out "$tmp/data.h5" --episodes 8 --size 64 --quiet --threads 1
train="$cgs train --data $tmp/data.h5 --size small --method lewm-cgs --device cpu --threads 1 train.updates=6
 train.validate_every=2 train.batch=4 loss.sigreg.projections=8 train.validate_batches=1 data.train_fraction=0.7"

# ---- no terminal: not a byte
# shellcheck disable=SC2086
$train --out "$tmp/a" --watch --json >"$tmp/out" 2>"$tmp/err"
if grep -q "$esc" "$tmp/out" "$tmp/err"; then fail "codes for a terminal that is not there"; fi
"$cgs" watch "$tmp/a" >"$tmp/out" 2>&1
[ ! -s "$tmp/out" ] || fail "watch speaks without a terminal"

# ---- drawn once: every line, no codes
"$cgs" watch "$tmp/a" --once >"$tmp/out"
for word in "6 of 6 updates" loss prediction SIGReg CGS cosine frames/s memory █; do
    grep -q "$word" "$tmp/out" || fail "no $word in $(cat "$tmp/out")"
done
if grep -q "$esc" "$tmp/out"; then fail "codes in a file"; fi
LC_ALL=C "$cgs" watch "$tmp/a" --once >"$tmp/out"
if LC_ALL=C grep -q '[^ -~]' "$tmp/out"; then fail "not plain in a plain locale"; fi

# ---- on a terminal: cursor up, clear line, and no other code; it ends with the run
# shellcheck disable=SC2086
script -qec "$(echo $train --out $tmp/b --watch)" /dev/null >"$tmp/pty" </dev/null
grep -q "6 of 6 updates, 0:00 left" "$tmp/pty" || fail "the last picture is not the end: $(cat "$tmp/pty")"
script -qec "$cgs watch $tmp/b" /dev/null >>"$tmp/pty" </dev/null
codes=$(grep -o "$esc\[[0-9;?]*[A-Za-z]" "$tmp/pty" | sed "s/^$esc\[[0-9]*//" | sort -u | tr -d '\n')
case $codes in AK | K) ;; *) fail "other codes: $codes" ;; esac

# ---- a running training: interrupting the view does not end the run
# shellcheck disable=SC2086
$train --out "$tmp/c" --quiet train.updates=100000 &
run=$!
until [ -s "$tmp/c/metrics.jsonl" ]; do sleep 0.1; done
script -qec "timeout -s INT 2 $cgs watch $tmp/c" /dev/null >"$tmp/pty" </dev/null || true
[ "$(grep -c 'of 100000 updates' "$tmp/pty")" -ge 2 ] || fail "it does not move: $(cat "$tmp/pty")"
kill -0 $run || fail "watching ended the run"
kill $run
wait $run 2>/dev/null || true

# ---- a run that came to nothing is called so, here, by info and on the report's page
made_up() { # NAME PREDICTION MEAN-AT-THE-END: a thousand updates, the latents' variance from 1 to that
    mkdir -p "$tmp/lost/models/$1"
    cp "$tmp/a/config.json" "$tmp/a/model.safetensors" "$tmp/lost/models/$1"
    awk -v p="$2" -v m="$3" 'BEGIN { for (n = 10; n <= 1000; n += 10)
        printf "{\"step\":%d,\"loss\":1,\"pred\":%g,\"copy\":0.7,\"mean\":%g,\"total\":1000}\n", n, p, 1 + n / 1000 * (m - 1) }' \
        >"$tmp/lost/models/$1/metrics.jsonl"
}
made_up good 0.1 1
made_up stuck 0.99 1
made_up fallen 0.001 0.01
for run in good: stuck:"not learned to predict" fallen:collapsed; do
    name=${run%%:*} word=${run#*:}
    "$cgs" watch "$tmp/lost/models/$name" --once >"$tmp/out"
    grep -q "trivial" "$tmp/out" || fail "no trivial predictors in $(cat "$tmp/out")"
    "$cgs" info "$tmp/lost/models/$name" >"$tmp/info"
    if [ -z "$word" ]; then
        if grep -q "update 1000:" "$tmp/out"; then fail "a good run is blamed: $(cat "$tmp/out")"; fi
        grep -q "learned" "$tmp/info" || fail "info: $(cat "$tmp/info")"
        continue
    fi
    grep -q "$word" "$tmp/out" || fail "watch does not say $word: $(cat "$tmp/out")"
    grep -q "$word" "$tmp/info" || fail "info does not say $word: $(cat "$tmp/info")"
done
"$cgs" report "$tmp/lost" --out "$tmp/lost.html" >/dev/null 2>&1
for word in "models/stuck: update 1000: it has not learned" "models/fallen: update 1000: it has collapsed"; do
    grep -q "$word" "$tmp/lost.html" || fail "the report does not say: $word"
done
if grep -q "models/good: update" "$tmp/lost.html"; then fail "the report blames a good run"; fi

# ---- what an enemy wrote
mkdir "$tmp/bad"
printf '{"step":1,"loss":1e999}\n{"step":-5}\nnot json\n{"valid":7}\n\001\033[2J\n{"step":2,"loss":"x"}\n{"step":3' \
    >"$tmp/bad/metrics.jsonl"
"$cgs" watch "$tmp/bad" --once >"$tmp/out"
if grep -q "$esc" "$tmp/out"; then fail "a file sends codes"; fi
mkdir "$tmp/none"
"$cgs" watch "$tmp/none" --once 2>"$tmp/err" && fail "nothing to watch is a success"
grep -q "no metrics.jsonl" "$tmp/err" || fail "$(cat "$tmp/err")"
echo ok
