#!/bin/sh
# cli_manners.sh - what the program says and does when something is wrong, slow or interrupted.
#   tests/cli/cli_manners.sh BUILD
. "$(dirname "$0")/prelude.sh"
find_python "json, pty"
cd "$tmp"

"$cgs" collect --env tworooms --out data.h5 --episodes 20 --size 64 --quiet --threads 1
"$build/tests/test_eval" --model model tworooms data.h5 1

# refused STATUS WORDS COMMAND...: the exit status, and a sentence that has the words
refused() {
    want=$1 words=$2 status=0
    shift 2
    timeout 60 "$cgs" "$@" >out 2>err || status=$?
    [ $status = "$want" ] || fail "cgs $*: exit status $status, not $want: $(cat err)"
    grep -qF -- "$words" err || fail "cgs $*: \"$(cat err)\" does not say \"$words\""
}

# ---- did you mean
refused 2 'did you mean "train"?' tarin
refused 2 'did you mean "eval"?' help evla
refused 2 'did you mean "--data"?' train --dta x
refused 2 'did you mean "--data"?' train -data x
refused 2 'did you mean "--episodes"?' eval --epis 3
refused 2 'did you mean "tworooms"?' reproduce tworoms
refused 2 'did you mean "main"?' reproduce mian
refused 2 'did you mean "optim.lr"?' train --data data.h5 --out run --size small lr=1
refused 2 'did you mean "train.updates"?' train --data data.h5 --out run --size small updats=1
refused 2 'did you mean "plan.gn.gamma"?' eval --model model --data data.h5 plan.gn.gama=1
refused 2 'did you mean "episodes"?' reproduce demo epissodes=3 --dry-run
refused 2 'cgs help lists them' frobnicate
! grep -q "did you mean" err || fail "a hint where nothing is near"

# ---- what fits
refused 2 "--size small" train --data data.h5 --out run
refused 1 'has no device "gpu": it has' train --data data.h5 --out run --size small --device gpu
grep -q "cpu and ref" err || fail "the devices are not listed: $(cat err)"
"$cgs" help eval | grep -q "^devices:" || fail "help does not list devices"
"$cgs" help eval | grep -q "this build has .*cpu and ref" || fail "help does not say what it has"

# ---- files are called what they are
weights=model/model.safetensors
printf 'some words\n' >words.h5
: >empty.h5
head -c 3000 data.h5 >cut.h5
"$python" - <<'PY'
import zipfile
with zipfile.ZipFile("a.npz", "w") as z: z.writestr("x.npy", b"\x93NUMPY")
with zipfile.ZipFile("a.pt", "w") as z: z.writestr("a/data.pkl", b"\x80\x02.")
open("a.parquet", "wb").write(b"PAR1....PAR1")
open("a.mp4", "wb").write(b"\0\0\0\x18ftypmp42")
open("a.png", "wb").write(b"\x89PNG\r\n\x1a\n")
PY
refused 1 "cgs data info describes it" info data.h5
refused 1 "a safetensors file, weights of a model" train --data $weights --out run --size small
refused 1 "a safetensors file, weights of a model: cgs info" data info $weights
refused 1 "a model directory: cgs info" data info model
refused 1 "a model directory" eval --model model --data model
refused 1 "not a model directory: it is an HDF5 file" eval --model data.h5 --data data.h5
refused 1 "it is text" data info words.h5
refused 1 "it is empty" data info empty.h5
refused 1 "a damaged HDF5 file" data info cut.h5
refused 1 "NumPy" data check a.npz
refused 1 "PyTorch" data check a.pt
refused 1 "Parquet" data check a.parquet
refused 1 "a video" data check a.mp4
refused 1 "a PNG picture" import a.png --out run
refused 1 "a folder" data check .

# ---- ranges
for wrong in -3 1025 100000 99999999999999999999; do
    refused 2 "--threads wants a whole number from 0 to 1024" eval --model model --data data.h5 --threads $wrong
    refused 2 "--threads wants" collect --env tworooms --out x.h5 --threads $wrong
    refused 2 "--threads wants" train --data data.h5 --out run --threads $wrong
done
for wrong in 0 -2 99999999999; do
    refused 2 "--episodes wants a whole number from 1" eval --model model --data data.h5 --episodes $wrong
    refused 2 "--samples wants" plan --model model --data data.h5 --samples $wrong
    refused 2 "--samples wants" eval --model model --data data.h5 --samples $wrong
    refused 2 "--updates wants" pretrain --data data.h5 --out b --updates $wrong
done
refused 2 "--threads wants a whole number, got" encode --model model --images x.png --threads 2x
refused 2 "are too many" eval --model model --data data.h5 --episodes 2 --samples 2000000000

# ---- a failed command leaves no empty folder
refused 2 "outside" train --data data.h5 --out deep/run --size small train.batch=1
refused 2 "outside" train --data data.h5 --out deep/run --size small train.updates=-7
refused 1 "null" replay --env tworooms --state 1,2 --actions /dev/null --frames frames/deep
refused 1 "it is" import data.h5 --out deep/import
refused 2 "windows" train --data data.h5 --out deep/run --size small train.batch=60000
mkdir mine
refused 2 "windows" train --data data.h5 --out mine --size small train.batch=60000
[ -d mine ] || fail "a folder that was there is gone"
for made in deep run frames b x.h5; do
    [ ! -e $made ] || fail "$made was left: $(find $made)"
done

# ---- a training says what matters; its settings are beside it, short, or printed when asked for
"$cgs" train --data data.h5 --out run --size small --threads 1 train.updates=2 train.batch=4 \
    train.validate_batches=1 optim.lr=1e-3 2>err
[ "$(wc -l <err)" -lt 40 ] || fail "a wall of settings: $(cat err)"
grep -q "settings: run/config.txt" err || fail "it does not say where the settings are"
! grep -q "^optim.lr" err || fail "settings that nobody asked for"
grep -qx "optim.lr = 0.001" run/config.txt || fail "a long number: $(grep optim.lr run/config.txt)"
grep -E "[0-9]{8}" run/config.txt | grep -v "window\|seed" >digits || true
[ ! -s digits ] || fail "long numbers: $(cat digits)"
"$cgs" train --data data.h5 --out again --size small --threads 1 --config run/config.txt --settings 2>err
grep -qx "optim.lr = 0.001" err || fail "--settings does not print them"
cmp run/config.txt again/config.txt || fail "short numbers read back as others"
cmp run/model.safetensors again/model.safetensors || fail "the same settings train another model"

# ---- progress: as wide as the terminal, and lines where there is none
cat >widths.py <<'PY'
import fcntl, os, pty, re, struct, sys, termios
width, command = int(sys.argv[1]), sys.argv[2:]
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(2, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    os.execv(command[0], command)
text = b""
while True:
    try: piece = os.read(fd, 4096)
    except OSError: break
    if not piece: break
    text += piece
os.waitpid(pid, 0)
bars = [b for b in re.split(rb"\r\x1b\[K|\r?\n", text) if b"% " in b and b" left" in b]
assert len(bars) > 3, text
assert max(len(b) for b in bars) < width, (width, max(bars, key=len))
print(max(len(b) for b in bars))
PY
for width in 80 40 200; do
    rm -rf wide
    "$python" widths.py $width "$cgs" train --data data.h5 --out wide --size small --threads 1 \
        train.updates=60 train.batch=4 train.validate_batches=1 >longest || fail "bars on $width columns"
    echo "$width columns: $(cat longest)"
done
[ "$(cat longest)" -gt 80 ] || fail "a wide terminal is not used"
rm -rf wide
CGS_PROGRESS=0.2 "$cgs" theory --systems 3000 --threads 1 --out t.json 2>err >out
grep -Eq "^systems: [0-9]+%, [0-9:]+ left$" err || fail "no line of progress: $(cat err)"
! grep -q "$(printf '\r')" err || fail "a bar where there is no terminal"
CGS_PROGRESS=0 "$cgs" theory --systems 300 --threads 1 --out t.json 2>err >out
[ ! -s err ] || fail "CGS_PROGRESS=0 is not silent: $(cat err)"

# ---- SIGTERM is obeyed within a second; ten are allowed, as a busy machine may see it late, and what
# is stopped here would go on for minutes.
# Priors and decoders that are stopped are the best so far, and complete.
ends() { # FILE COMMAND...: it is told to stop a moment after the file is there, and does
    there=$1
    shift
    "$cgs" "$@" >out 2>err &
    pid=$!
    for _ in $(seq 600); do
        [ ! -e $there ] || break
        sleep 0.1
    done
    sleep 1
    kill -TERM $pid 2>/dev/null || fail "cgs $* had ended before: $(cat err)"
    timeout 10 tail --pid=$pid -f /dev/null || { kill -KILL $pid || true; fail "cgs $* went on"; }
    status=0
    wait $pid || status=$?
    [ $status != 0 ] || [ "$1" = prior ] || [ "$1" = decode ] || fail "cgs $* was stopped and says it succeeded"
}
many="--model model --data data.h5 --episodes 1200"
ends data.h5 eval $many --planner zero --seeds 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25 --threads 1
grep -q "stopped" err || fail "no sentence: $(cat err)"
ends data.h5 eval $many --planner cem --threads 1 --out r.jsonl
grep -q "stopped" err || fail "no sentence: $(cat err)"
ends data.h5 collect --env tworooms --out many.h5 --episodes 100000
ends long/metrics.jsonl train --data data.h5 --out long --size small --threads 1 train.updates=100000 train.batch=8
[ -s long/checkpoint.safetensors ] || fail "a stopped training saved nothing"
ends data.h5.frames pretrain --data data.h5 --out b.safetensors --size small --updates 100000
ends data.h5 prior --model model --data data.h5 prior.updates=1000000 prior.patience=1000000 prior.batch=16
ends data.h5 theory --systems 1000000
ends data.h5 decode --model model --data data.h5 --updates 1000000
ends data.h5 bench plan --size small --threads 1
ends data.h5 reproduce tworooms --preset tiny --out study --quiet
