#!/bin/sh
# cli_python_data.sh - cgs.Writer, cgs.Dataset and cgs.check against h5py and the program.
#   tests/cli/cli_python_data.sh BUILD
. "$(dirname "$0")/prelude.sh"
case $build in
*san) echo "python cannot load a library with sanitizers" && exit 77 ;;
esac
find_python "h5py, numpy"
CGS_LIBRARY=$(ls "$build"/libcgs.so.*)
export CGS_LIBRARY PYTHONPATH="$here/../python" PYTHONDONTWRITEBYTECODE=1
cd "$tmp"

cat >write.py <<'PY'
import os, sys
if sys.argv[1] == "bare":
    sys.modules["numpy"] = None
import cgs
COLUMNS = {"pixels": ("u8", (16, 16, 3)), "action": ("f32", (2,)), "state": ("f64", (2,)), "kind": ("i32", ())}

def refused(kind, words, call):
    try:
        call()
    except kind as e:
        assert words in str(e), (words, str(e))
        return
    raise AssertionError(f"{words}: was accepted")

def episode(e, T=24):
    """T actions, T + 1 rows; everything follows from e."""
    actions = [[((7 * t + 3 * e) % 11) / 11, ((5 * t + e) % 7) / 7] for t in range(T)]
    states, at = [[0.0, e]], [0.0, float(e)]
    for a in actions:
        at = [at[0] + a[0], at[1] + a[1]]
        states.append(at)
    frames = [bytes((t * 3 + e + i) % 256 for i in range(16 * 16 * 3)) for t in range(T + 1)]
    return dict(pixels=frames, action=actions, state=states, kind=[e] * (T + 1))

# ---- interrupted after two episodes, then continued; the attributes say where from
writer = cgs.Writer("mine.h5", COLUMNS, env="mine", speed=1.5, seed=2**63)
assert writer.episodes == 0
writer.add(**episode(0))
writer.add(**episode(1))
writer.close()
assert os.path.exists("mine.h5.part") and not os.path.exists("mine.h5")
with cgs.Writer("mine.h5", COLUMNS, env="mine", speed=1.5, seed=2**63) as writer:
    assert writer.episodes == 2
    for e in range(2, 4):
        writer.add(**episode(e))
assert os.path.exists("mine.h5") and not os.path.exists("mine.h5.part")
assert cgs.check("mine.h5").problems == []
refused(cgs.Error, "exists already", lambda: cgs.Writer("mine.h5", COLUMNS))
assert "frames are 16x16, model.image_size is 64" in cgs.check("mine.h5", "small").problems[0]

# ---- reading back
plain = lambda x: x.tolist() if hasattr(x, "tolist") else list(x)
with cgs.Dataset("mine.h5") as d:
    assert (d.rows, d.episodes, d.height, d.width, d.action_dim) == (100, 4, 16, 16, 2)
    assert d.columns["state"] == ("f64", (2,)) and d.columns["kind"] == ("i32", ())
    assert d.episode(2) == (50, 25)
    assert plain(d.numbers("state", 25, 25)) == episode(1)["state"]
    assert plain(d.numbers("kind", 99)) == [3]
    assert bytes(d.images(75, 2)) == b"".join(episode(3)["pixels"][:2])
    refused(IndexError, "episode 4 of 4", lambda: d.episode(4))
    refused(KeyError, 'no column "x"', lambda: d.numbers("x", 0))
    refused(cgs.Error, "", lambda: d.numbers("state", 99, 2))
    where = cgs.starts(d, 3, seed=1, offset=5)
    assert [s.row for s in where] == [r.row for r in where.rows] and len(where) == 3
    for s in where:
        assert plain(s.options["goal"]) == plain(d.numbers("state", s.row + 5))[0]
        assert bytes(s.frame) == bytes(d.images(s.row)) and bytes(s.goal) == bytes(d.images(s.row + 5))
    far = cgs.starts(d, 3, seed=1, offset=5, skip=lambda state, goal: state[1] < 2)
    assert far.skip_solved and all(plain(s.options["state"])[1] >= 2 for s in far)
    refused(cgs.Error, "requested", lambda: cgs.starts(d, 3, offset=5, skip=lambda state, goal: True))

# ---- refusals of the library, and of numbers before it
def fresh(**columns):
    if os.path.exists("bad.h5.part"):
        os.unlink("bad.h5.part")
    return cgs.Writer("bad.h5", columns or COLUMNS)
refused(ValueError, '"f16" is not one of', lambda: fresh(x=("f16", ())))
refused(cgs.Error, "is added by the writer", lambda: fresh(ep_len=("i32", ())))
refused(cgs.Error, "not a valid name", lambda: fresh(**{"a b": ("f32", ())}))
bad = fresh()
good = episode(0)
refused(ValueError, "has the columns", lambda: bad.add(action=[[0, 0]]))
refused(ValueError, 'column "state" has 24 rows', lambda: bad.add(**{**good, "state": good["state"][1:]}))
refused(ValueError, 'column "pixels": wants 768', lambda: bad.add(**{**good, "pixels": [bytes(5)]}))
nan = float("nan")
holes = [list(a) for a in good["action"]] + [[nan, nan]]
holes[3][1] = nan
refused(cgs.Error, "action 1 of row 3 of 25 is nan", lambda: bad.add(**{**good, "action": holes}))
refused(cgs.Error, "the last row alone is NaN", lambda: bad.add(**{**good, "action": good["action"] + [[0, 0]]}))
refused(cgs.Error, "no episode was recorded", bad.finish)
bad.close()
try:
    with fresh() as bad:
        bad.add(**good)
        raise KeyboardInterrupt
except KeyboardInterrupt:
    pass
assert os.path.exists("bad.h5.part") and not os.path.exists("bad.h5"), "an interruption keeps what there is"
os.unlink("bad.h5.part")
# what a file of its own lacks for training is said at its end
refused(cgs.Error, 'no column "pixels"', lambda: late(cgs.Writer("numbers.h5", {"action": ("f32", (2,))})))
PY
sed -i '/^# what a file of its own/i\
def late(writer):\
    writer.add(action=good["action"] + [[nan, nan]])\
    writer.finish()' write.py
"$python" write.py bare || fail "without NumPy"
mv mine.h5 bare.h5 && rm numbers.h5
"$python" write.py numpy || fail "with NumPy"
cmp bare.h5 mine.h5 || fail "lists and arrays make two files"

# what h5py reads is what was written, and the program thinks of it as the package does
"$python" - <<'PY'
import h5py, numpy as np
with h5py.File("mine.h5") as f:
    assert f["pixels"].shape == (100, 16, 16, 3) and f["action"].dtype == "f4" and f["kind"].shape == (100,)
    assert f.attrs["env"] in ("mine", b"mine") and f.attrs["speed"] == 1.5 and f.attrs["seed"] == 2**63
    action, state = f["action"][:], f["state"][:]
    assert np.isnan(action[24::25]).all() and np.isfinite(np.delete(action, np.s_[24::25], 0)).all()
    steps = np.diff(state.reshape(4, 25, 2), axis=1)
    assert np.allclose(steps, action.reshape(4, 25, 2)[:, :-1], atol=1e-6)
PY
"$cgs" data check mine.h5 >check || fail "the program refuses it: $(cat check)"
grep -q "4 episodes, 100 frames" check || fail "$(cat check)"
echo "lists and arrays: the same $(stat -c %s mine.h5) bytes"
