#!/bin/sh
# cli_weights.sh - import, export, info, encode and rollout through the program, with the
# golden model and its published numbers.
#   tests/cli/cli_weights.sh BUILD
. "$(dirname "$0")/prelude.sh"
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
"$build/tests/test_store" --golden "$tmp/golden"
g=$tmp/golden

# ---- import, with and without its description
"$cgs" import "$g/golden.safetensors" --out "$tmp/model" --config "$g/upstream.json" --env pusht \
    --action-mean 0.1,-0.2 --action-std 0.5,0.25 --json >"$tmp/import"
"$cgs" import "$g/golden.safetensors" --out "$tmp/bare" >"$tmp/bare.txt"
grep -q "guessed.*model.encoder.heads" "$tmp/bare.txt" || fail "guesses: $(cat "$tmp/bare.txt")"
cmp "$tmp/model/model.safetensors" "$g/golden.safetensors" || fail "import changes the weights"

# ---- export carries everything: importing it gives the same directory
"$cgs" export "$tmp/model" --out "$tmp/export.safetensors" >"$tmp/out"
"$cgs" import "$tmp/export.safetensors" --out "$tmp/again" >"$tmp/out"
cmp "$tmp/model/model.safetensors" "$tmp/again/model.safetensors" || fail "weights after export"
cmp "$tmp/model/config.json" "$tmp/again/config.json" || fail "config.json after export"

# ---- info
for what in model bare export.safetensors; do "$cgs" info "$tmp/$what" --json; done >"$tmp/info"
"$cgs" info "$tmp/model" >"$tmp/info.txt"
grep -q "parameters  *18034478" "$tmp/info.txt" || fail "info: $(cat "$tmp/info.txt")"
python3 - "$tmp" <<'PY'
import json, sys
tmp = sys.argv[1]
got = json.load(open(tmp + "/import"))
assert got["tensors"] == 303 and got["parameters"] == 18034478, got
assert got["guessed"] == "" and got["statistics"] is True, got
model, bare, export = map(json.loads, open(tmp + "/info"))
for r in (model, bare, export):
    assert r["model"] == "LeWM" and r["format"] == "safetensors" and r["tensors"] == 303, r
    assert r["parameters"] == 18034478 and r["history"] == 3 and r["action_block"] == 10, r
    assert r["checksum"] == "good" and r["batches_tracked"] == 7 and r["ignored"] == 0, r
    assert r["sizes"]["model.width"] == 192 and r["sizes"]["model.predictor.heads"] == 16, r
assert model["card"]["env"] == "pusht" and model["card"]["action_mean"] == [0.1, -0.2], model
assert model["card"] == export["card"], (model, export)
assert bare["card"]["method"] == "imported" and "action_mean" not in bare["card"], bare
# what upstream would build the model from
config = json.load(open(tmp + "/model/config.json"))
want = json.load(open(tmp + "/golden/upstream.json"))
for section, values in want.items():
    for key, value in values.items() if isinstance(values, dict) else ():
        if key != "_target_":
            assert config[section][key] == value, (section, key, config[section])
PY

# ---- encode and rollout: the golden numbers
for device in cpu ref; do
    "$cgs" encode --model "$tmp/model" --images "$g/start.png" "$g/goal.png" --json \
        --device $device >"$tmp/z.$device"
done
"$cgs" rollout --model "$tmp/model" --start "$g/start.png" --goal "$g/goal.png" \
    --actions "$g/plan.txt" --json --threads 2 >"$tmp/rollout.f32"
"$cgs" rollout --model "$tmp/model" --start "$g/start.png" --goal "$g/goal.png" \
    --actions "$g/plan.txt" --json --precision bf16 >"$tmp/rollout.bf16"
"$cgs" rollout --model "$tmp/model" --start "$g/start.png" --goal "$g/goal.png" \
    --actions "$g/plan.txt" >"$tmp/rollout.txt"
[ "$(grep -c cost "$tmp/rollout.txt")" = 2 ] || fail "rollout as text"
python3 - "$tmp" <<'PY'
import json, math, sys
tmp = sys.argv[1]

def near(got, want, tolerance, what):
    error = math.dist(got[:len(want)], want) / math.hypot(*want)
    print(f"{what}: relative error {error:.1e}")
    assert error <= tolerance, (what, got[:len(want)], want)

for device in ("cpu", "ref"):
    rows = [json.loads(line) for line in open(f"{tmp}/z.{device}")]
    assert [r["image"] for r in rows] == [tmp + "/golden/start.png", tmp + "/golden/goal.png"], rows
    assert all(len(r["z"]) == 192 and set(r) == {"image", "z"} for r in rows)
    near(rows[0]["z"], [0.8675792, -0.3875259, 0.6000574, -0.7020185, -0.8191579, 0.3552952],
         1e-4, device + " z of the start")
    near(rows[1]["z"], [1.227361, -0.256037, 0.673518, -0.6837731, -0.4786695, 0.4933824],
         1e-4, device + " z of the goal")
# the first terminal frame is one of the slices that bf16 moves by more than 2e-2 (golden_judge.c)
for precision, moved, others in (("f32", 1e-4, 1e-4), ("bf16", 4e-2, 2e-2)):
    rows = [json.loads(line) for line in open(f"{tmp}/rollout.{precision}")]
    assert [r["candidate"] for r in rows] == [0, 1], rows
    assert all(len(r["terminal"]) == 192 for r in rows)
    near(rows[0]["terminal"], [-0.5039747, 0.6438051, -0.2100393, -0.07215578, 0.2194378,
                               -0.1682307], moved, precision + " terminal 0")
    near(rows[1]["terminal"], [-0.5895618, 0.3744891, 0.5923596, 0.9995298, -0.07098647,
                               0.2377447], others, precision + " terminal 1")
    near([rows[0]["cost"]], [137.4169], others, precision + " cost 0")
    near([rows[1]["cost"]], [142.4164], others, precision + " cost 1")
PY

# ---- more images and candidates than one batch: order and values stay
i=0
set --
while [ $i -lt 18 ]; do
    set -- "$@" "$g/start.png" "$g/goal.png"
    i=$((i + 1))
done
"$cgs" encode --model "$tmp/model" --images "$@" --json >"$tmp/many"
python3 - "$tmp" <<'PY'
import json, math, sys
rows, two = ([json.loads(line) for line in open(sys.argv[1] + name)] for name in ("/many", "/z.cpu"))
assert len(rows) == 36
for i, r in enumerate(rows):
    want = two[i % 2]
    assert r["image"] == want["image"] and math.dist(r["z"], want["z"]) <= 1e-4 * math.hypot(*want["z"]), i
PY
i=0
: >"$tmp/plans"
while [ $i -lt 33 ]; do
    cat "$g/plan.txt" >>"$tmp/plans"
    i=$((i + 1))
done
"$cgs" rollout --model "$tmp/model" --start "$g/start.png" --goal "$g/goal.png" \
    --actions "$tmp/plans" --json >"$tmp/many"
python3 - "$tmp" <<'PY'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1] + "/many")]
assert [r["candidate"] for r in rows] == list(range(66))
for r in rows:
    assert abs(r["cost"] - rows[r["candidate"] % 2]["cost"]) <= 1e-4 * r["cost"], r
PY

# ---- refusals: 1 for what is in files, 2 for what is on the command line
refuse() { # exit status, words, then the command
    wanted=$1
    words=$2
    shift 2
    status=0
    "$@" >"$tmp/out" 2>"$tmp/err" || status=$?
    [ "$status" = "$wanted" ] || fail "$* exits with $status: $(cat "$tmp/err")"
    grep -q -- "$words" "$tmp/err" || fail "$* says: $(cat "$tmp/err")"
}
refuse 2 "needs one weight file" "$cgs" import --out "$tmp/x"
refuse 2 "--out is required" "$cgs" import "$g/golden.safetensors"
refuse 2 "given together" "$cgs" import "$g/golden.safetensors" --out "$tmp/x" --action-mean 1,2
refuse 2 "an action of pusht has 2" "$cgs" import "$g/golden.safetensors" --out "$tmp/x" \
    --env pusht --action-mean 1,2,3 --action-std 1,2,3
refuse 1 "the action block is 10" "$cgs" import "$g/golden.safetensors" --out "$tmp/x" \
    --action-mean 1,2,3 --action-std 1,2,3
refuse 1 "missing.pt" "$cgs" import "$tmp/missing.pt" --out "$tmp/x"
refuse 2 "not positive" "$cgs" import "$g/golden.safetensors" --out "$tmp/x" --action-mean 1,2 \
    --action-std 1,0
sed 's/"depth":6/"depth":4/' "$g/upstream.json" >"$tmp/wrong.json"
refuse 1 "predictor.depth says 4" "$cgs" import "$g/golden.safetensors" --out "$tmp/x" \
    --config "$tmp/wrong.json"
[ ! -e "$tmp/x" ] || fail "a refused import leaves a directory"
refuse 2 "one model directory or file" "$cgs" info "$tmp/model" "$tmp/nowhere"
refuse 1 "nowhere" "$cgs" info "$tmp/nowhere"
refuse 1 "plan.txt" "$cgs" info "$g/plan.txt"
refuse 1 "model.safetensors" "$cgs" info "$g"
refuse 1 "nowhere" "$cgs" export "$tmp/nowhere" --out "$tmp/x"
refuse 2 "neither f32 nor bf16" "$cgs" encode --model "$tmp/model" --images "$g/start.png" \
    --precision f16
refuse 1 "this build has no device" "$cgs" encode --model "$tmp/model" --images "$g/start.png" \
    --device abacus
refuse 2 "--images is required" "$cgs" encode --model "$tmp/model"
refuse 1 "plan.txt" "$cgs" encode --model "$tmp/model" --images "$g/plan.txt"
printf '0,0\n' >"$tmp/a"
"$cgs" replay --env wall --state 20,20 --actions "$tmp/a" --frames "$tmp/frames" --size 64 >"$tmp/out"
refuse 1 "64 x 64 pixels, the model takes 224 x 224" "$cgs" encode --model "$tmp/model" \
    --images "$g/start.png" "$tmp/frames/frame_00000.png"
try() { # words, then the text of a file of actions
    printf "$2" >"$tmp/bad"
    refuse 1 "$1" "$cgs" rollout --model "$tmp/model" --start "$g/start.png" \
        --goal "$g/goal.png" --actions "$tmp/bad"
}
try "bad:1: 2 numbers, expected a multiple of the action block 10" '1,2\n'
try "contains no candidate" '# nothing\n\n'
try "not finite" '1,2,3,4,5,6,7,8,9,inf\n'
try "bad:2: 20 numbers, the candidates before have 10" \
    '1,2,3,4,5,6,7,8,9,10\n1,2,3,4,5,6,7,8,9,10,1,2,3,4,5,6,7,8,9,10\n'

# ---- a bit that flipped on the disk
cp -r "$tmp/model" "$tmp/flipped"
python3 - "$tmp/flipped/model.safetensors" <<'PY'
import sys
with open(sys.argv[1], "r+b") as f:
    f.seek(-1000, 2)
    byte = f.read(1)[0]
    f.seek(-1000, 2)
    f.write(bytes([byte ^ 16]))
PY
refuse 1 "damaged" "$cgs" info "$tmp/flipped"
refuse 1 "damaged" "$cgs" encode --model "$tmp/flipped" --images "$g/start.png"

# ---- a file does not steer the terminal
python3 - "$tmp/evil.safetensors" <<'PY'
import json, struct, sys
head = json.dumps({"action_encoder.\u001b[2J\u009b1m": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})
open(sys.argv[1], "wb").write(struct.pack("<Q", len(head)) + head.encode() + b"\0\0\0\0")
PY
refuse 1 "holds no tensor" "$cgs" info "$tmp/evil.safetensors"
sed 's/"method":.*/"method": "\\u001b[2J",/' "$tmp/model/config.json" >"$tmp/flipped/config.json"
cp "$tmp/model/model.safetensors" "$tmp/flipped/model.safetensors"
"$cgs" info "$tmp/flipped" >"$tmp/out"
grep -q 'method .*?\[2J' "$tmp/out" || fail "info shows the method as: $(grep method "$tmp/out")"
! grep -q "$(printf '\033')" "$tmp/out" || fail "an escape sequence reaches the terminal"
echo ok
