#!/bin/sh
# cgs data convert on recordings by writers that are not ours: h5py, NumPy, ffmpeg, hyparquet-writer.
# What it makes is compared with what was recorded, and taken by cgs data check.
. "$(dirname "$0")/prelude.sh"
find_python "h5py, numpy"
cd "$tmp"

cat >make.py <<'PY'
import h5py, numpy as np, os, zlib, struct
rng = np.random.default_rng(1)
E, L, H, W, A = 3, 24, 48, 64, 2
N = E * L
u = rng.normal(size=(E, L, A)).astype("f4")
state = np.cumsum(np.insert(u[:, :-1], 0, 0, axis=1), axis=1).astype("f4")
px = np.zeros((E, L, H, W, 3), np.uint8)
for e, t in np.ndindex(E, L):
    px[e, t, :, :, 0] = np.arange(W)[None] * 4
    px[e, t, :, :, 1] = np.arange(H)[:, None] * 5
    px[e, t, :, :, 2] = 10 * t + e
np.savez("truth.npz", u=u, state=state, px=px)
flat = lambda x: x.reshape(N, *x.shape[2:])

def h5(name, **arrays):
    with h5py.File(name + ".h5", "w") as f:
        for k, v in arrays.items():
            f[k.replace("__", "/")] = v

idx, step = np.repeat(np.arange(E), L), np.tile(np.arange(L), E)
done = np.tile(np.arange(L) == L - 1, E)
usual = dict(action=flat(u), state=flat(state))
h5("lengths", pixels=flat(px), ep_len=np.full(E, L), **usual)
h5("by_episode", image=flat(px), actions=flat(u), state=flat(state), episode_index=idx)
h5("by_step", image=flat(px), actions=flat(u), state=flat(state), frame_index=step)
h5("by_flag", observations__images=flat(px), actions=flat(u), observations__state=flat(state),
   terminals=np.zeros(N, bool), timeouts=done)
h5("by_ends", img=flat(px), meta__episode_ends=np.arange(1, E + 1) * L, **usual)
h5("planes", pixels=np.moveaxis(flat(px), 3, 1), episode_idx=idx, **usual)
h5("floats", pixels=(flat(px) / 255).astype("f4"), episode_idx=idx, **usual)
h5("nested", images=px, actions=u, state=state)
h5("nested_less", images=px, actions=u[:, :-1], state=state)
h5("rgba", pixels=np.concatenate([flat(px), np.full((N, H, W, 1), 7, np.uint8)], -1), episode_idx=idx, **usual)
h5("gray", pixels=flat(px)[..., 0], episode_idx=idx, **usual)
h5("gray_planes", pixels=flat(px)[:, None, :, :, 0], episode_idx=idx, **usual)
late = np.full_like(u, np.nan)
late[:, 1:] = u[:, :-1]
h5("late", pixels=flat(px), action=flat(late), state=flat(state), episode_idx=idx)
h5("cameras", cam__left=flat(px), cam__right=255 - flat(px), episode_idx=idx, **usual)
h5("commands", pixels=flat(px), my__torque=flat(u), state=flat(state), episode_idx=idx)
h5("too_few", pixels=flat(px), action=flat(u)[:50], episode_idx=idx)
h5("beyond", pixels=flat(px), ep_len=np.full(E, L + 1), **usual)
h5("no_pictures", **usual)
h5("dark", pixels=-np.ones((N, 24, 24, 3), "f4"), episode_idx=idx, **usual)
with h5py.File("groups.h5", "w") as f:          # robomimic's
    for e in (2, 0, 1):
        g = f.create_group("data/demo_%d" % (e + 9))  # 9 comes before 10
        g["actions"], g["obs/agentview_image"], g["obs/state"] = u[e], px[e], state[e]
        g["rewards"] = np.zeros(L)
os.makedirs("aloha")
for e in range(E):
    with h5py.File("aloha/episode_%d.hdf5" % e, "w") as f:
        f["action"], f["observations/qpos"], f["observations/images/top"] = u[e], state[e], px[e]
np.savez("flat.npz", image=flat(px), actions=flat(u), state=flat(state), done=done)
np.savez_compressed("squeezed.npz", images=px, actions=u, state=state, words=np.array(["a", "b"]))
os.makedirs("npzs")
for e in range(E):
    np.savez_compressed("npzs/%d.npz" % e, images=px[e], actions=u[e, :-1], state=state[e])

def png(path, rgb):
    h, w, _ = rgb.shape
    raw = b"".join(b"\0" + rgb[y].tobytes() for y in range(h))
    chunk = lambda k, d: struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d))
    open(path, "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, 8, 2, 0, 0, 0)) +
                           chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))

def table(path, e, lines=L, mark=",", time=True):
    with open(path, "w") as f:
        names = ["action_0", "action_1", "state.0", "state.1", "note"]
        f.write(mark.join(["time"] * time + names) + "\n")
        for t in range(lines):
            cells = ["%.9g" % v for v in (*u[e, t], *state[e, t])] + ['"a, ""b"""']
            f.write(mark.join(["%.3f" % (t / 10)] * time + cells) + "\n")

for e in range(E):
    os.makedirs("stills/run%d" % (e + 9))
    for t in range(L):
        png("stills/run%d/%d.png" % (e + 9, t), px[e, t])
    table("stills/run%d/log.csv" % (e + 9), e, lines=L - (e == 1), mark=",;\t"[e])
    if e == 1:  # the last picture has no line
        state[e, -1] = np.nan
np.savez("truth_stills.npz", u=u, state=state, px=px)
state = np.load("truth.npz")["state"]
os.makedirs("videos"), os.makedirs("timed")
for e in range(E):
    px[e].tofile("%d.raw" % e)
    table("videos/%d.csv" % e, e, time=False)
    table("timed/%d.csv" % e, e)

# LeRobot's: action and state as tests/parity/parquet_files.mjs has them
r = np.arange(48)
np.savez("truth_lerobot.npz", u=np.stack([np.sin(r), np.cos(2 * r)], 1).reshape(2, 24, 2).astype("f4"),
         state=np.stack([r, r * r, -r], 1).reshape(2, 24, 3).astype("f4"), px=px[:2])
px[:2].tofile("both.raw")
PY
cat >check.py <<'PY'
# the dataset, the truth, how far a byte may be off, and how pictures were made square
import h5py, numpy as np, sys
name, truth, tolerance, fit = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4]
t = np.load(truth)
u, state, px = t["u"], t["state"], t["px"].astype(float)
E, L, H, W, _ = px.shape
f = h5py.File(name, "r")
assert list(f["ep_len"]) == [L] * E, list(f["ep_len"])
a = f["action"][:].reshape(E, L, -1)
assert np.isnan(a[:, -1]).all() and np.allclose(a[:, :-1], u[:, :-1], atol=1e-6), "action"
s = f["qpos" if "qpos" in f else "state"][:].reshape(E, L, -1)
assert np.allclose(s, state, atol=1e-5, equal_nan=True), "state"
assert f["pixels"].chunks == (1, 24, 24, 3) and f["pixels"].dtype == "u1"
p = f["pixels"][:].reshape(E, L, 24, 24, 3).astype(int)
if fit == "crop":
    want = px[:, :, :, 8:56].reshape(E, L, 24, 2, 24, 2, 3).mean(axis=(3, 5))
elif fit == "pad":  # 64 columns become 24, 48 rows become 18
    fine = px.repeat(3, axis=2).repeat(3, axis=3).reshape(E, L, 18, 8, 24, 8, 3).mean(axis=(3, 5))
    want = np.zeros((E, L, 24, 24, 3))
    want[:, :, 3:21] = fine
else:
    want = px.repeat(3, axis=3).reshape(E, L, 24, 2, 24, 8, 3).mean(axis=(3, 5))
if "gray" in name:
    want = np.repeat(want[..., :1], 3, axis=-1)
d = np.abs(p - np.floor(want + 0.5)).max()
assert d <= tolerance, ("pixels", d)
PY
"$python" make.py || fail "the recordings could not be made"

count=0
converts() { # input, truth, tolerance, fit, options
    in=$1 truth=$2 tolerance=$3 fit=$4
    shift 4
    name=o_$(basename "$in" | sed 's/\..*//').h5
    rm -f "$name"
    "$cgs" data convert "$in" --out "$name" --size 24 --fit "$fit" "$@" >out 2>&1 || fail "$in: $(cat out)"
    "$python" check.py "$name" "$truth" "$tolerance" "$fit" || fail "$in is not what was recorded: $(cat out)"
    "$cgs" data check "$name" >out 2>&1 || fail "$in, check: $(cat out)"
    count=$((count + 1))
}
refused() { # input, words, options
    in=$1 words=$2
    shift 2
    "$cgs" data convert "$in" --out none.h5 --size 24 "$@" >out 2>&1 && fail "$in was taken"
    grep -q -- "$words" out || fail "$in: $(cat out)"
    [ ! -e none.h5 ] || fail "$in left a dataset"
    rm -f none.h5.part # of the episodes before
}

# ---- HDF5 and npz ------------------------------------------------------------------------
for name in lengths by_episode by_step by_flag by_ends planes nested nested_less rgba gray gray_planes groups; do
    converts $name.h5 truth.npz 0 crop
done
converts floats.h5 truth.npz 0 crop
converts lengths.h5 truth.npz 0 pad
converts lengths.h5 truth.npz 0 stretch
converts late.h5 truth.npz 0 crop --late
converts cameras.h5 truth.npz 0 crop --pixels left
converts commands.h5 truth.npz 0 crop --action my/torque
for name in aloha flat.npz squeezed.npz npzs; do converts $name truth.npz 0 crop; done
"$cgs" data info o_aloha.h5 --json | grep -q '"converted_from":"aloha"' || fail "no origin"
refused cameras.h5 "several arrays of pictures; choose with --pixels NAME among: .*cam/left u8 (72, 48, 64, 3)"
refused cameras.h5 "no array of pictures" --pixels middle
refused commands.h5 'no array "action"; choose with --action NAME among: .*my/torque f32 (72, 2)'
refused late.h5 "NaN in row 0 would mean --late"
refused too_few.h5 "50 actions (action) for 72 pictures"
refused beyond.h5 "an episode of 25 rows from row 50 on, there are 72"
refused no_pictures.h5 "no array of pictures (height x width, with 1, 3 or 4 channels first or last)"
refused dark.h5 "holds -1, which is no brightness"
refused lengths.h5 "crop, pad or stretch" --fit squeeze
refused make.py "neither HDF5 nor npz"
refused nowhere "No such file"
"$cgs" data convert dark.h5 --out none.h5 2>out && fail "dark.h5 was taken"
[ ! -e none.h5.part ] || fail "a conversion without an episode left a file"
mkdir empty
refused empty "neither HDF5, npz nor LeRobot"
"$cgs" data convert lengths.h5 >out 2>&1 && fail "no --out"
"$cgs" data convert lengths.h5 --out o_lengths.h5 --size 24 >out 2>&1 && fail "it overwrites"
grep -q "exists already" out || fail "$(cat out)"
head -c 3000 squeezed.npz >cut.npz
refused cut.npz "cut.npz: "
"$python" - <<'PY'
import numpy as np
b = bytearray(open("squeezed.npz", "rb").read())
rng = np.random.default_rng(5)
for i in range(60):
    c = bytearray(b)
    for at in rng.integers(0, len(b), 1 + i % 4):
        c[at] ^= 1 << rng.integers(8)
    open("damaged_%d.npz" % i, "wb").write(c)
PY
for i in $(seq 0 59); do
    status=0
    "$cgs" data convert damaged_$i.npz --out d.h5 --size 24 --quiet 2>err || status=$?
    [ $status -le 1 ] || fail "damaged_$i.npz: exit $status: $(cat err)"
    rm -f d.h5 d.h5.part
done

# ---- pictures and videos with tables -------------------------------------------------------
converts stills truth_stills.npz 0 crop
mv stills/run9/5.png stills/run9/x5.txt
refused stills "run9/log.csv: 24 lines for 23 pictures"
mv stills/run9/x5.txt stills/run9/5.png
sed -i '3s/,/,x/' stills/run9/log.csv
refused stills "log.csv: column action_0 is not numbers"

video() { # file, raw pictures
    ffmpeg -v error -y -f rawvideo -pix_fmt rgb24 -s 64x48 -r 10 -i "$2" -c:v libx264rgb -crf 0 "$1" 2>err ||
        ffmpeg -v error -y -f rawvideo -pix_fmt rgb24 -s 64x48 -r 10 -i "$2" -c:v ffv1 "${1%.mp4}.mkv" ||
        fail "ffmpeg: $(cat err)"
}
if ! command -v ffmpeg >/dev/null; then
    echo "left out: no ffmpeg to make videos with"
elif printf 'x' >x.mp4 && mkdir one && mv x.mp4 one && printf 'action_0\n1\n' >one/x.csv &&
    "$cgs" data convert one --out none.h5 2>&1 | grep -q "this build cannot read videos"; then
    refused one "libavformat-dev"
    echo "left out: this build cannot read videos"
else
    refused one "x.mp4: not a video"
    for e in 0 1 2; do
        video videos/$e.mp4 $e.raw
        cp videos/$e.m* timed/
    done
    converts videos truth.npz 1 crop
    converts timed truth.npz 1 crop
    "$cgs" data info o_videos.h5 --json | grep -q '"frame_rate":10' || fail "no rate"
    sed -i '$d' videos/1.csv # the last picture has no line: its action is NaN anyway
    sed -i '$d' videos/2.csv
    sed -i '$d' videos/2.csv
    refused videos "2.csv: 22 lines for 24 pictures"

    # ---- LeRobot: tables by hyparquet-writer, videos by ffmpeg
    lerobot() { # folder with lerobot2 and lerobot3
        cp -r "$1/lerobot2" "$1/lerobot3" .
        mkdir -p lerobot2/videos/chunk-000/observation.images.front lerobot3/videos/observation.images.front/chunk-000
        for e in 0 1; do video lerobot2/videos/chunk-000/observation.images.front/episode_00000$e.mp4 $e.raw; done
        video lerobot3/videos/observation.images.front/chunk-000/file-000.mp4 both.raw
    }
    if ffmpeg -v error -encoders 2>/dev/null | grep -q libx264rgb; then
        lerobot "$here/golden/parquet"
        if "$cgs" data convert lerobot2 --out any.h5 2>&1 | grep -q "install libsnappy-dev"; then
            echo "left out: this build cannot read Snappy"
        else
            converts lerobot2 truth_lerobot.npz 1 crop
            converts lerobot3 truth_lerobot.npz 1 crop
            converts lerobot3 truth_lerobot.npz 1 pad --pixels front
            "$cgs" data info o_lerobot3.h5 | grep -q "next.done" || fail "columns of LeRobot: $("$cgs" data info o_lerobot3.h5)"
            refused lerobot3 "there are observation.images.front" --pixels back
            sed -i 's/v3.0/v1.6/' lerobot3/meta/info.json
            refused lerobot3 "LeRobot v1.6; versions 2 and 3 are read"
            sed -i 's/v1.6/v3.0/; s,data/chunk-{chunk,../chunk-{chunk,' lerobot3/meta/info.json
            refused lerobot3 "no data_path that can be used"
            rm -f lerobot2/data/chunk-000/episode_000001.parquet
            refused lerobot2 "episode_000001.parquet: No such file"
            # freshly made, where npm's packages are
            modules=${NODE_MODULES:-$(npm root -g 2>/dev/null || true)}
            if command -v node >/dev/null && [ -d "$modules/hyparquet-writer" ]; then
                rm -rf lerobot2 lerobot3
                node "$here/parity/parquet_files.mjs" fresh "$modules" || fail "hyparquet-writer"
                lerobot fresh
                converts lerobot2 truth_lerobot.npz 1 crop
                converts lerobot3 truth_lerobot.npz 1 crop
            else
                echo "left out: no hyparquet-writer in NODE_MODULES or npm's folder; the stored files served"
            fi
        fi
    else
        echo "left out: ffmpeg without libx264rgb"
    fi
fi

# ---- interrupted ---------------------------------------------------------------------------
"$python" -c "
import h5py, numpy as np
rng = np.random.default_rng(0)
with h5py.File('long.h5', 'w') as f:
    f['pixels'] = rng.integers(0, 255, (40 * 25, 32, 32, 3), np.uint8)
    f['action'], f['ep_len'] = rng.normal(size=(40 * 25, 2)), np.full(40, 25)"
"$cgs" data convert long.h5 --out whole.h5 --size 128 --quiet || fail "whole"
cut_off KILL parts.h5.part 200000 parts.h5 "$cgs" data convert long.h5 --out parts.h5 --size 128 --quiet
"$cgs" data convert long.h5 --out parts.h5 --size 128 --json >json || fail "resume"
grep -q '"resumed":[1-9]' json || fail "it began anew: $(cat json)"
cmp whole.h5 parts.h5 || fail "an interrupted conversion differs"
echo "$count recordings converted"
