#!/bin/sh
# cli_python_train.sh - cgs.train: progress, interruption and resume, to the bits of cgs train.
#   tests/cli/cli_python_train.sh BUILD
. "$(dirname "$0")/prelude.sh"
case $build in
*san) echo "python cannot load a library with sanitizers" && exit 77 ;;
esac
find_python json
CGS_LIBRARY=$(ls "$build"/libcgs.so.*)
export CGS_LIBRARY PYTHONPATH="$here/../python" PYTHONDONTWRITEBYTECODE=1
cd "$tmp"
small="model.image_size=16 model.patch=8 model.width=16 model.encoder.layers=1 model.encoder.heads=2
  model.encoder.mlp=16 model.projector.hidden=16 model.predictor.layers=1 model.predictor.heads=2
  model.predictor.head_width=8 model.predictor.mlp=16 model.action.hidden=16 loss.sigreg.projections=8
  train.batch=4 train.validate_batches=1 train.validate_every=5 train.updates=20"
"$cgs" collect --env tworooms --out d.h5 --episodes 6 --size 16 --quiet --threads 1
# shellcheck disable=SC2086 # settings are words
"$cgs" train --data d.h5 --out theirs --size small --threads 1 --device cpu --quiet $small

cat >train.py <<'PY'
import os, signal, sys
import cgs
settings = dict(word.split("=") for word in sys.argv[1].split())
how = dict(size="small", threads=1, device="cpu", settings=settings)

def refused(kind, words, call):
    try:
        call()
    except kind as e:
        assert words in str(e), (words, str(e))
        return
    raise AssertionError(f"{words}: was accepted")
same = lambda a, b: open(a + "/model.safetensors", "rb").read() == open(b + "/model.safetensors", "rb").read()

# ---- progress: every update, a validation after some
steps = []
assert cgs.train("d.h5", "mine", progress=steps.append, **how) is True
assert [s.step for s in steps] == list(range(1, 21)) and {s.total for s in steps} == {20}
assert [s.step for s in steps if s.validation] == [5, 10, 15, 20]
assert all(s.loss > 0 and s.rate >= 0 and s.frames_per_second > 0 for s in steps)
assert all(v > 0 for s in steps if s.validation for v in s.validation)
assert same("mine", "theirs"), "the program trains the same"

# ---- stopped by the callback, by Ctrl-C and by an error; then continued to the same bits
assert cgs.train("d.h5", "parts", progress=lambda s: s.step < 4, **how) is False
def ctrl_c(s):
    if s.step == 9:
        os.kill(os.getpid(), signal.SIGINT)
refused(KeyboardInterrupt, "", lambda: cgs.train("d.h5", "parts", resume=True, progress=ctrl_c, **how))
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
def broken(s):
    raise LookupError("mine")
refused(LookupError, "mine", lambda: cgs.train("d.h5", "parts", resume=True, progress=broken, **how))
left = []
assert cgs.train("d.h5", "parts", resume=True, progress=left.append, **how) is True
assert 10 <= left[0].step <= 12 and left[-1].step == 20, left[0]
assert same("parts", "mine"), "interruptions leave no trace"
assert cgs.train("d.h5", "parts", resume=True, **how) is True  # it is finished

# ---- a model to begin with; what is refused
assert cgs.train("d.h5", "tuned", init="mine", threads=1, settings={"train.updates": 2, "train.batch": 4})
assert not same("tuned", "mine")
refused(cgs.Error, "", lambda: cgs.train("d.h5", "mine", **how))
assert cgs.train("d.h5", "tuned", force=True, **how) and same("tuned", "mine")
refused(cgs.Error, "replaces", lambda: cgs.train("d.h5", "mine", resume=True, force=True, **how))
refused(cgs.Error, "nothing.h5", lambda: cgs.train("nothing.h5", "new", **how))
refused(cgs.Error, "train.no_key", lambda: cgs.train("d.h5", "new", size="small", settings={"train.no_key": 1}))
refused(cgs.Error, "huge", lambda: cgs.train("d.h5", "new", size="huge"))
print("trained, interrupted three times, to the same", os.path.getsize("mine/model.safetensors"), "bytes")
PY
"$python" train.py "$small"
