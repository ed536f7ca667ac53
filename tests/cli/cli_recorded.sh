#!/bin/sh
# cli_recorded.sh - evaluation without a simulator, and every verb on data of an environment that
# nobody knows.
#   tests/cli/cli_recorded.sh BUILD
. "$(dirname "$0")/prelude.sh"
find_python "h5py, numpy"
cd "$tmp"
mkdir bin && ln -s "$cgs" bin/cgs
PATH=$tmp/bin:$PATH

cgs collect --env tworooms --out known.h5 --episodes 24 --size 16 --quiet
"$python" - <<'PY'
import h5py, shutil
for name, env in ("mars", "mars"), ("nameless", None):
    shutil.copy("known.h5", name + ".h5")
    with h5py.File(name + ".h5", "a") as f:
        for key in "env", "env_version", "policy", "seed":
            del f.attrs[key]
        if env:
            f.attrs["env"] = env
PY
small="model.image_size=16 model.patch=8 model.width=16 model.encoder.layers=1 model.encoder.heads=2
  model.encoder.mlp=16 model.projector.hidden=16 model.predictor.layers=1 model.predictor.heads=2
  model.predictor.head_width=8 model.predictor.mlp=16 model.action.hidden=16 loss.sigreg.projections=8"
few="--device cpu --samples 4 --iters 2"
for data in mars nameless; do
    # shellcheck disable=SC2086
    cgs train --data $data.h5 --out $data --json $small train.updates=6 train.batch=4 train.validate_every=6 \
        >out 2>err || fail "train on $data: $(cat err)"
    cgs prior --model $data --data $data.h5 --device cpu prior.updates=2 prior.every=2 prior.hidden=8 prior.batch=32 \
        --quiet >out 2>err || fail "prior on $data: $(cat err)"
    # all planners, by a temperature of data and model
    # shellcheck disable=SC2086
    cgs eval --recorded --model $data --data $data.h5 $few --planner mppi cem icem gd gn covo pg-mppi pg-gn prior zero random \
        --episodes 6 --seeds 4 --gd-steps 2 --precision f32 --out $data.json --quiet >out 2>err || fail "$data: $(cat err)"
    [ ! -s err ] || fail "$data: $(cat err)"
    # shellcheck disable=SC2086
    cgs eval --recorded --model $data --data $data.h5 $few --tau auto --episodes 6 --seeds 4 --out auto.json \
        --quiet >out 2>err || fail "$data, --tau auto: $(cat err)"
    # what needs no simulator works
    cgs info $data >out || fail "info"
    cgs decode --model $data --data $data.h5 --updates 2 --device cpu --quiet >out 2>err || fail "decode: $(cat err)"
    cgs surprise --model $data --data $data.h5 --episode 0 --edit freeze:2 --device cpu >out 2>err ||
        fail "surprise: $(cat err)"
    cgs geometry --curvature --model $data --data $data.h5 --device cpu --out curvature.json >out 2>err ||
        grep -q "plans make no difference" err || fail "curvature: $(cat err)"
    # what needs one says so
    for words in "plan $few" "eval $few" "prior --quality" "decode --strip"; do
        status=0
        # shellcheck disable=SC2086
        cgs $words --model $data --data $data.h5 >out 2>err || status=$?
        [ $status = 1 ] || [ $status = 2 ] || fail "$words on $data: $status: $(cat err)"
        grep -qE "unknown environment|does not name its environment" err || fail "$words on $data: $(cat err)"
    done
done

# threads and a second run change nothing
# shellcheck disable=SC2086
cgs eval --recorded --model mars --data mars.h5 $few --planner mppi gn zero --episodes 6 --seeds 4 --json --threads 3 --quiet >a
# shellcheck disable=SC2086
cgs eval --recorded --model mars --data mars.h5 $few --planner mppi gn zero --episodes 6 --seeds 4 --json --threads 1 --quiet >b
sed 's/--threads .//' a >a1 && sed 's/--threads .//' b >b1
cmp a1 b1 || fail "threads change results"

# numbers that somebody else computes: from the pictures by cgs encode, from the actions by NumPy
"$python" - <<'PY' || fail "the numbers"
import h5py, json, math, numpy as np, struct, subprocess, zlib

def png(path, rgb):
    rows = b"".join(b"\0" + r.tobytes() for r in rgb)
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", rgb.shape[1], rgb.shape[0], 8, 2, 0, 0, 0)) +
                chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))

d = json.load(open("mars.json"))
assert d["format"] == "cgs-recorded" and d["env"] == "mars" and d["windows"] == 6 and d["horizon"] == 5, d
m, = d["models"]
assert m["held_out"] is True and m["frameskip"] == 5 and len(m["starts"]) == 6, m
f = h5py.File("mars.h5")
offset = f["ep_offset"][:]
rows = [[offset[e] + s + 5 * h for h in range(6)] for e, s in m["starts"]]
names = []
for i, w in enumerate(rows):
    for h, r in enumerate(w):
        names.append(f"w{i}_{h}.png")
        png(names[-1], f["pixels"][r])
out = subprocess.run(["cgs", "encode", "--model", "mars", "--device", "cpu", "--json", "--images", *names],
                     check=True, capture_output=True, text=True).stdout
z = np.array([json.loads(l)["z"] for l in out.splitlines()]).reshape(6, 6, -1)
for p in m["predictions"]:
    h = p["ahead"]
    copy = np.mean((z[:, 0] - z[:, h]) ** 2)
    assert abs(p["copy"] - copy) <= 1e-3 * copy, (h, p["copy"], copy)
    for key in "model", "mean", "linear":
        assert p[key] > 0 and math.isfinite(p[key]), p
assert [p["ahead"] for p in m["predictions"]] == [1, 2, 3, 4, 5]

card = json.load(open("mars/config.json"))
def find(o, key):
    if isinstance(o, dict):
        return o[key] if key in o else next((v for v in (find(x, key) for x in o.values()) if v is not None), None)
mean, std = np.array(find(card, "action_mean")), np.array(find(card, "action_std"))
u = np.array([f["action"][w[0]:w[0] + 25] for w in rows])
a = (u - mean) / std
plans = {p["planner"]: p for p in m["plans"]}
rest = plans["zero"]
still = -mean / std if rest["actions"] != 0 else 0 * mean
want = {"actions": 1 - ((still - a) ** 2).sum() / (a ** 2).sum(),
        "first_block": 1 - ((still - a[:, :5]) ** 2).sum() / (a[:, :5] ** 2).sum(),
        "sums": 1 - ((25 * still - a.sum(1)) ** 2).sum() / (a.sum(1) ** 2).sum()}
for key, value in want.items():
    assert abs(rest[key] - value) < 1e-3, (key, rest[key], value)
error = np.sqrt(((still - a) ** 2).mean((1, 2))).mean()
assert abs(rest["action_error"]["mean"] - error) < 1e-3 * error, (rest["action_error"], error)
assert len(plans) == 11
for p in plans.values():
    assert p["path"] > 0 and p["end"]["lo"] <= p["end"]["mean"] <= p["end"]["hi"], p
assert plans["mppi"]["ess"] == 1 or plans["mppi"].get("tau"), plans["mppi"]
print("recorded:", {k: round(v, 4) for k, v in want.items()})
PY

# refusals
refuse() {
    words=$1
    shift
    status=0
    "$@" >out 2>err || status=$?
    [ $status = 1 ] || [ $status = 2 ] || fail "$* ended with $status"
    grep -qF -- "$words" err || fail "expected \"$words\", got: $(cat err)"
}
refuse "one number of samples" cgs eval --recorded --model mars --data mars.h5 --samples 4 8
refuse "asks no environment" cgs eval --recorded --model mars --data mars.h5 --protocol strict
refuse "episode has the 500 actions" cgs eval --recorded --model mars --data mars.h5 --horizon 100
# data that the model does not know: every second episode is scored, and that is said
cgs collect --env tworooms --out other.h5 --episodes 5 --size 16 --seed 9 --quiet
# shellcheck disable=SC2086
cgs eval --recorded --model mars --data other.h5 $few --planner zero --episodes 4 --seeds 1 --json --quiet >out 2>err ||
    fail "other data: $(cat err)"
grep -q "may be of episodes that the model trained on" err && grep -q '"held_out":false' out || fail "$(cat err out)"
