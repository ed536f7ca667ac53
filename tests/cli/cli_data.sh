#!/bin/sh
# Datasets between this program and h5py: what the writer makes is read by plain h5py with
# the documented columns; what h5py makes is read, checked and shown by cgs data.
. "$(dirname "$0")/prelude.sh"
find_python "h5py, numpy"

# ---- our file in h5py ------------------------------------------------------------------
"$build/tests/test_data" dataset "$tmp/own.h5" 3 12 20 || fail "the recording failed"
"$python" - "$tmp/own.h5" <<'PY'
import sys, h5py, numpy as np
f = h5py.File(sys.argv[1], "r")
E, L, S = 3, 12, 20
expected = {"pixels": ("uint8", (E * L, S, S, 3)), "action": ("float32", (E * L, 2)),
            "proprio": ("float32", (E * L, 2)), "state": ("float32", (E * L, 2)),
            "ep_len": ("int32", (E,)), "ep_offset": ("int64", (E,)),
            "episode_idx": ("int32", (E * L,)), "step_idx": ("int64", (E * L,))}
assert set(f) == set(expected), sorted(f)
for name, (dtype, shape) in expected.items():
    assert f[name].dtype == dtype and f[name].shape == shape, (name, f[name])
assert f["pixels"].chunks == (1, S, S, 3) and f["pixels"].compression == "gzip"
assert list(f["ep_len"]) == [L] * E and list(f["ep_offset"]) == [0, L, 2 * L]
assert (f["episode_idx"][:] == np.repeat(np.arange(E), L)).all()
assert (f["step_idx"][:] == np.tile(np.arange(L), E)).all()
a, x = f["action"][:], f["state"][:]
last = np.arange(E * L) % L == L - 1
assert np.isnan(a[last]).all() and np.isfinite(a[~last]).all()
# row t holds the action that leads to row t + 1
r = S / 12
for t in np.flatnonzero(~last):
    moved = np.clip(x[t] + S / 32 * a[t], r, S - 1 - r)
    assert np.allclose(moved, x[t + 1], atol=1e-4), (t, moved, x[t + 1])
# the disc is where the state says: red, so green is 0 there
for t in range(0, E * L, 5):
    y, c = np.nonzero(f["pixels"][t, :, :, 1] == 0)
    assert abs(c.mean() - x[t, 0]) < 0.75 and abs(y.mean() - x[t, 1]) < 0.75
assert (f["pixels"][:, :, :, 0] == 255).all()
assert f.attrs["env"] == b"synthetic" and f.attrs["seed"] == 4 and f.attrs["frame_rate"] == 10.0
assert len(f.attrs["code_commit"]) > 0
PY

# ---- h5py's files here -----------------------------------------------------------------
"$python" - "$tmp" <<'PY'
import sys, h5py, numpy as np
rng = np.random.default_rng(0)
E, S = 4, 16
lengths = [9, 12, 7, 10]
order = [2, 0, 3, 1]           # episodes do not lie in the order of their numbers
offset = [0] * E
at = 0
for e in order:
    offset[e] = at
    at += lengths[e]
n = at
pixels = rng.integers(0, 255, (n, S, S, 3), dtype=np.uint8)
action = np.zeros((n, 2))
state = np.zeros((n, 2))
idx, step = np.zeros(n, int), np.zeros(n, int)
for e in range(E):
    rows = slice(offset[e], offset[e] + lengths[e])
    u = rng.normal(size=(lengths[e], 2))
    p = np.cumsum(np.vstack([[0, 0], u[:-1]]), axis=0)
    u[-1] = np.nan
    action[rows], state[rows], idx[rows], step[rows] = u, p, e, np.arange(lengths[e])

def write(name, libver=None, action=action, state=state, index="ep_idx", float_type="f4",
          **options):
    f = h5py.File(sys.argv[1] + "/" + name + ".h5", "w", libver=libver)
    f.create_dataset("pixels", data=pixels, **options)
    numeric = {k: v for k, v in options.items() if k != "chunks"}
    if options.get("chunks"):
        numeric["chunks"] = True
    f.create_dataset("action", data=action.astype(float_type), **numeric)
    f.create_dataset("state", data=state.astype(float_type), **numeric)
    f.create_dataset("terminated", data=np.zeros(n, bool))
    f["env_name"] = np.array(["x"] * n, dtype=h5py.string_dtype())
    f["ep_len"], f["ep_offset"] = np.array(lengths, "i4"), np.array(offset, "i8")
    f[index], f["step_idx"] = idx.astype("i4"), step.astype("i8")
    f.attrs["env"] = "test"
    f.attrs["seed"] = 2**63 + 1
    f.close()

write("contiguous")
write("chunked", libver="latest", chunks=(5, S, S, 3), index="episode_idx")
write("gzip", chunks=(1, S, S, 3), compression="gzip", float_type="f8")
write("shuffle", libver="latest", chunks=(3, 8, 8, 3), compression="gzip", shuffle=True)
write("fletcher", chunks=(4, S, S, 3), fletcher32=True)
write("lzf", libver="latest", chunks=(100 if n > 100 else n, S, S, 3), compression="lzf")
write("big_endian", float_type=">f4")
bad = action.copy(); bad[offset[1] + 4, 1] = np.nan
write("hole", action=bad)
late = np.full_like(action, np.nan)
for e in range(E):
    late[offset[e] + 1: offset[e] + lengths[e]] = action[offset[e]: offset[e] + lengths[e] - 1]
write("late", action=late)
shifted = action.copy()
for e in range(E):
    shifted[offset[e] + 1: offset[e] + lengths[e] - 1] = action[offset[e]: offset[e] + lengths[e] - 2]
write("shifted", action=shifted)
lost = state.copy(); lost[offset[3] + 2, 0] = np.inf
write("lost", state=lost)
np.savez(sys.argv[1] + "/truth.npz", mean=np.nanmean(action.astype("f4").astype("f8"), axis=0),
         std=np.nanstd(action.astype("f4").astype("f8"), axis=0), pixels=pixels, n=n)
PY

for name in contiguous chunked gzip shuffle fletcher lzf big_endian; do
    "$cgs" data check "$tmp/$name.h5" model.frameskip=1 --quiet || fail "$name: check failed"
    "$cgs" data info "$tmp/$name.h5" --json >"$tmp/info.json"
    "$python" - "$tmp/info.json" "$tmp/truth.npz" "$name" <<'PY'
import sys, json, numpy as np
i, t = json.load(open(sys.argv[1])), np.load(sys.argv[2])
assert i["episodes"] == 4 and i["rows"] == t["n"] and i["height"] == 16 and i["action_dim"] == 2
assert (i["shortest"], i["longest"]) == (7, 12)
assert i["attributes"] == {"env": "test", "seed": 2**63 + 1}, i["attributes"]
assert np.allclose(i["action"]["mean"], t["mean"], atol=1e-9), i["action"]
assert np.allclose(i["action"]["std_population"], t["std"], atol=1e-9)
k = i["action"]["rows"]
assert i["action"]["skipped"] == 4 and k == t["n"] - 4
assert np.allclose(i["action"]["std_unbiased"], t["std"] * np.sqrt(k / (k - 1)), atol=1e-9)
columns = {c["name"]: c for c in i["columns"]}
assert columns["pixels"]["shape"] == [16, 16, 3] and columns["pixels"]["dtype"] == "u8"
assert columns["terminated"]["readable"] and not columns["env_name"]["readable"]
assert "ep_len" not in columns and "ep_offset" not in columns
PY
done

expect() { # name, words of the message
    if "$cgs" data check "$tmp/$1.h5" model.frameskip=1 >/dev/null 2>"$tmp/error"; then
        fail "$1: check found nothing"
    fi
    grep -q "$2" "$tmp/error" || fail "$1: $(cat "$tmp/error")"
}
expect hole "action 1 in row 4 of episode 1 is nan"
expect late "actions lie one row late"
expect shifted "actions lie one row late: the action of row t+1 explains 100%"
# of no use to a probe, of no concern to training
"$cgs" data check "$tmp/lost.h5" model.frameskip=1 >/dev/null 2>"$tmp/error" || fail "lost: refused"
grep -q "remark: column \"state\" in row 2 of episode 3 is inf" "$tmp/error" || fail "lost: $(cat "$tmp/error")"
expect missing "missing.h5: No such file"

# ---- preview ---------------------------------------------------------------------------
"$cgs" data preview "$tmp/own.h5" --out "$tmp/own.gif" --episodes 2 --quiet
[ "$(head -c 6 "$tmp/own.gif")" = GIF89a ] || fail "preview: not a GIF"
# two images of 20 and a gap of 4
size=$(od -An -tu2 -j6 -N4 "$tmp/own.gif" | tr -s ' ')
[ "$size" = " 44 20" ] || fail "preview: size$size"

# ---- usage -----------------------------------------------------------------------------
status=0
"$cgs" data 2>/dev/null || status=$?
[ $status = 2 ] || fail "no arguments: exit $status"
status=0
"$cgs" data paint "$tmp/own.h5" 2>/dev/null || status=$?
[ $status = 2 ] || fail "unknown action: exit $status"
status=0
"$cgs" data preview "$tmp/own.h5" 2>/dev/null || status=$?
[ $status = 2 ] || fail "no --out: exit $status"
"$cgs" data info "$tmp/own.h5" | grep -q "chunks of 1 row, deflate" || fail "info: no layout"
echo "all formats agree"
