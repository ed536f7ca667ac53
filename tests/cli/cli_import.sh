#!/bin/sh
# Other people's checkpoints, written by Python alone: names with what frameworks put in front,
# several files and their index, a torch checkpoint with an optimiser beside the model, parts that
# are missing or too many, statistics from data; and indices that lie.
#   tests/cli/cli_import.sh BUILD
. "$(dirname "$0")/prelude.sh"
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
cd "$tmp"
refuse() { # exit status, words, then the command
    wanted=$1 words=$2 status=0
    shift 2
    "$@" >out 2>err || status=$?
    [ "$status" = "$wanted" ] || fail "$* exits with $status: $(cat out err)"
    grep -q -- "$words" err || fail "$* says: $(cat err)"
}
"$cgs" collect --env tworooms --episodes 4 --size 64 --out rooms.h5 >out 2>&1
"$cgs" train --data rooms.h5 --out run --size small --threads 1 train.updates=1 train.batch=4 \
    loss.sigreg.projections=8 train.validate_batches=1 --quiet
"$cgs" export run --out run.safetensors >out

cat >files.py <<'PY'
import io, json, os, pickle, struct, sys, types, zipfile

def read(path):
    with open(path, "rb") as f:
        head = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        base = f.tell()
        head.pop("__metadata__", None)
        out = {}
        for name, e in head.items():
            f.seek(base + e["data_offsets"][0])
            out[name] = (e["dtype"], e["shape"], f.read(e["data_offsets"][1] - e["data_offsets"][0]))
        return out

def write(path, tensors):
    head, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        head[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(head).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(t[2] for t in tensors.values()))

def named(prefix, tensors):
    return {prefix + k: v for k, v in tensors.items()}

# a torch file without torch: what torch.save writes of a dictionary of tensors
def stand_in(module, name):
    sys.modules.setdefault(module, types.ModuleType(module))
    made = type(name, (), {"__module__": module, "__qualname__": name})
    setattr(sys.modules[module], name, made)
    return made
stand_in("torch", "FloatStorage"), stand_in("torch", "LongStorage")
def _rebuild_tensor_v2(*a): pass
_rebuild_tensor_v2.__module__, _rebuild_tensor_v2.__qualname__ = "torch._utils", "_rebuild_tensor_v2"
sys.modules["torch._utils"] = types.ModuleType("torch._utils")
sys.modules["torch._utils"]._rebuild_tensor_v2 = _rebuild_tensor_v2

class Storage:
    def __init__(self, kind, key, count): self.id = ("storage", kind, key, "cpu", count)
class Tensor:
    def __init__(self, storage, shape): self.storage, self.shape = storage, tuple(shape)
    def __reduce__(self):
        stride, n = [], 1
        for d in reversed(self.shape): stride.insert(0, n); n *= d
        return _rebuild_tensor_v2, (self.storage, 0, self.shape, tuple(stride), False, {})
class Pickler(pickle.Pickler):
    def persistent_id(self, v): return v.id if isinstance(v, Storage) else None

def torch_save(path, tree):
    blobs = []
    def convert(v):
        if isinstance(v, dict): return {k: convert(x) for k, x in v.items()}
        if not isinstance(v, tuple): return v
        kind = {"F32": sys.modules["torch"].FloatStorage, "I64": sys.modules["torch"].LongStorage}[v[0]]
        blobs.append(v[2])
        return Tensor(Storage(kind, str(len(blobs) - 1), len(v[2]) // (4 if v[0] == "F32" else 8)), v[1])
    text = io.BytesIO()
    Pickler(text, protocol=2).dump(convert(tree))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as z:
        z.writestr("archive/data.pkl", text.getvalue())
        for i, b in enumerate(blobs): z.writestr(f"archive/data/{i}", b)
        z.writestr("archive/version", "3\n")

def index(folder, pairs, **more):
    os.makedirs(folder, exist_ok=True)
    json.dump({"metadata": {"total_size": 1}, "weight_map": pairs, **more},
              open(folder + "/model.safetensors.index.json", "w"))
PY
cat >make.py <<'PY'
from files import *
all = read("run.safetensors")
for i, prefix in enumerate(["module.", "_orig_mod.", "jepa.", "module._orig_mod.model.", "model.jepa.module."]):
    write(f"prefix{i}.safetensors", named(prefix, all))
extra = ("F32", [2], b"\0" * 8)
torch_save("trainer.pt", {"epoch": 3, "model_state_dict": named("module.", all),
                          "optimizer_state_dict": {"state": {"m": extra}}})
torch_save("lightning.ckpt", {"state_dict": {**named("model.", all), "callbacks_x": extra,
                                             "sigreg.t": extra}})
write("extra.safetensors", {**all, "sigreg.t": extra, "decoder.out.weight": extra, "ema.decay": extra})
write("short.safetensors", {k: v for k, v in all.items() if "encoder.layer.3." not in k})
write("gap.safetensors", {k: v for k, v in all.items() if "encoder.layer.2." not in k})
# three files and their index, as they are published
names = list(all)
parts = {f"model-0000{i + 1}-of-00003.safetensors": names[i::3] for i in range(3)}
os.makedirs("shards", exist_ok=True)
for part, have in parts.items():
    write("shards/" + part, {k: all[k] for k in have})
pairs = {k: part for part, have in parts.items() for k in have}
index("shards", pairs)
first, second = list(parts)[:2]
def lie(name, wrong, **more):
    os.makedirs(name, exist_ok=True)
    for part in parts:
        if not os.path.exists(f"{name}/{part}"): os.link("shards/" + part, f"{name}/{part}")
    index(name, {**pairs, **wrong}, **more)
lie("up", {names[0]: "../shards/" + first})
lie("absolute", {names[0]: "/etc/passwd"})
lie("missing", {names[0]: "model-00004-of-00004.safetensors"})
lie("elsewhere", {names[0]: second})
lie("itself", {names[0]: "model.safetensors.index.json"})
lie("folder", {names[0]: "model-00001-of-00003.safetensors", "x": "sub"})
os.makedirs("folder/sub", exist_ok=True)
lie("number", {names[0]: 1e300})
lie("many", {f"x{i}": f"f{i}.safetensors" for i in range(400)})
for i in range(400): os.path.exists(f"many/f{i}.safetensors") or write(f"many/f{i}.safetensors", {f"x{i}": extra})
lie("twice", {})
write("twice/more.safetensors", {names[0]: all[names[0]]})
index("twice", {**pairs, names[0]: "more.safetensors"})
os.makedirs("none", exist_ok=True)
index("none", {})
for name, text in {"cut": '{"weight_map": {"a": "b', "deep": '{"weight_map":' + "[" * 5000,
                   "list": '{"weight_map": ["a"]}', "nul": '{"weight_map": {"a\\u0000b": "c"}}',
                   "big": '{"weight_map": {"a": "' + "b" * 5000000 + '"}}',
                   "long": '{"weight_map": {"a": "' + "b" * 3000 + '"}}'}.items():
    os.makedirs(name, exist_ok=True)
    open(name + "/model.safetensors.index.json", "w").write(text)
os.makedirs("link", exist_ok=True)
os.path.lexists("link/loop.safetensors") or os.symlink("loop.safetensors", "link/loop.safetensors")
index("link", {"a": "loop.safetensors"})
os.makedirs("pipe", exist_ok=True)
os.path.exists("pipe/p.safetensors") or os.mkfifo("pipe/p.safetensors")
index("pipe", {"a": "p.safetensors"})
PY
PYTHONPATH=. python3 make.py || fail "the files cannot be made"

# ---- names, folders and containers of all kinds hold the same model
for file in prefix0.safetensors prefix1.safetensors prefix2.safetensors prefix3.safetensors \
    prefix4.safetensors trainer.pt lightning.ckpt shards shards/model.safetensors.index.json run; do
    "$cgs" import $file --out got --force --json >out 2>err || fail "$file: $(cat err)"
    cmp got/model.safetensors run/model.safetensors || fail "$file is another model"
done
"$cgs" info shards/model.safetensors.index.json --json | grep -q '"format":"sharded safetensors"' ||
    fail "info of an index"
"$cgs" import lightning.ckpt --out named >out
grep -q "ignored 2 tensors: callbacks_x, sigreg.t" out || fail "what is ignored: $(cat out)"

# ---- what is too much is named, and left out if that is said
refuse 1 'tensor "decoder.out.weight" is no part' "$cgs" import extra.safetensors --out more
"$cgs" import extra.safetensors --out more --ignore 'decoder.*' 'ema.*' >out || fail "--ignore"
grep -q "ignored 3 tensors: " out && grep -q "decoder.out.weight" out || fail "--ignore: $(cat out)"
cmp more/model.safetensors run/model.safetensors || fail "--ignore changes the model"
refuse 2 'no tensor matches "decodr' "$cgs" import extra.safetensors --out x --ignore 'decodr.*'
refuse 1 "projector.net" "$cgs" import run.safetensors --out x --ignore 'projector.*'

# ---- layers that are missing
"$cgs" import short.safetensors --out short >out || fail "a smaller model"
grep -q "3 encoder and 3 predictor layers, models of width 96 usually 4 and 3" out ||
    fail "nothing said of a missing layer: $(cat out)"
refuse 1 "encoder layers" "$cgs" import short.safetensors --out x --config run/config.json
refuse 1 "is no part of LeWM" "$cgs" import gap.safetensors --out x

# ---- statistics of the actions from data
"$cgs" import prefix0.safetensors --out plain --config run/config.json >out
"$cgs" import prefix0.safetensors --out stats --data rooms.h5 >out || fail "--data"
! grep -q "statistics are unknown" out || fail "--data: $(cat out)"
python3 - <<'PY'
import json
card = lambda d: json.load(open(d + "/config.json"))["cgs"]["card"]
stats, run = card("stats"), card("run")
for key in ("action_mean", "action_std", "env", "dataset", "dataset_bytes", "dataset_episodes", "stats_rows"):
    assert stats[key] == run[key], (key, stats[key], run[key])
PY
refuse 2 "give no others" "$cgs" import run.safetensors --out x --data rooms.h5 --action-mean 1,2 \
    --action-std 1,1
refuse 1 "nowhere.h5" "$cgs" import run.safetensors --out x --data nowhere.h5

# ---- indices that lie
refuse 1 'is no file in the folder of the index' "$cgs" import up --out x
refuse 1 'is no file in the folder of the index' "$cgs" import absolute --out x
refuse 1 'is no file in the folder of the index' "$cgs" import number --out x
refuse 1 'is no file in the folder of the index' "$cgs" import long --out x
refuse 1 'model-00004-of-00004.safetensors: No such file' "$cgs" import missing --out x
refuse 1 'has no tensor' "$cgs" import elsewhere --out x
refuse 1 'neither a safetensors file nor a torch' "$cgs" import itself --out x
refuse 1 'not a regular file' "$cgs" import folder --out x
refuse 1 'not a regular file' "$cgs" import pipe --out x
refuse 1 'loop.safetensors' "$cgs" import link --out x
refuse 1 'more than 256 files' "$cgs" import many --out x
refuse 1 'given twice\|twice\|two' "$cgs" import twice --out x
refuse 1 'no "weight_map"' "$cgs" import none --out x
refuse 1 'no "weight_map"' "$cgs" import list --out x
refuse 1 'not valid JSON' "$cgs" import cut --out x
refuse 1 'not valid JSON' "$cgs" import deep --out x
refuse 1 'not a text file' "$cgs" import nul --out x
refuse 1 'an index has at most' "$cgs" import big --out x
refuse 1 'a folder without' "$cgs" import "$tmp" --out x
[ ! -e x ] || fail "a refused import leaves a folder"

# ---- a name says what is in a file
refuse 2 "name it m.safetensors" "$cgs" export run --out m.pt
refuse 2 "name it ./a.b/m.safetensors" "$cgs" export run --out ./a.b/m.ckpt
[ ! -e m.pt ] || fail "a refused export leaves a file"
"$cgs" export run --out a.b >out || fail "another name"
echo ok
