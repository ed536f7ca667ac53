#!/bin/sh
# cgs export --onnx: the graphs pass python3-onnx's checker, and onnxruntime-web, a runtime that is
# not ours, finds the latents and costs that cgs finds.  What is not installed is left out: the
# Debian package python3-onnx; npm's onnxruntime-web, in NODE_MODULES or npm's folder.
#   tests/cli/cli_onnx.sh BUILD
. "$(dirname "$0")/prelude.sh"
cd "$tmp"
"$cgs" collect --env tworooms --episodes 4 --size 64 --out rooms.h5 >out 2>&1
"$cgs" train --data rooms.h5 --out model --size small --threads 1 train.updates=30 train.batch=4 \
    loss.sigreg.projections=8 train.validate_batches=1 --quiet
"$cgs" export model --out graphs --onnx >out || fail "export"
grep -q "graphs: encoder.onnx, predictor.onnx" out || fail "$(cat out)"
cp graphs/predictor.onnx first
"$cgs" export model --out graphs --onnx >out && cmp first graphs/predictor.onnx || fail "other bytes"
cp model/config.json config

# ---- the wire format, read by a few lines that know nothing of ONNX but its field numbers
if command -v python3 >/dev/null; then
    cat >read.py <<'PY'
import sys
def varint(b, i):
    v = s = 0
    while True:
        v |= (b[i] & 127) << s; s += 7; i += 1
        if b[i - 1] < 128: return v, i
def fields(b):
    i, out = 0, []
    while i < len(b):
        key, i = varint(b, i)
        if key & 7 == 0: v, i = varint(b, i)
        elif key & 7 == 2: n, i = varint(b, i); v, i = b[i:i + n], i + n
        elif key & 7 == 5: v, i = b[i:i + 4], i + 4
        else: raise ValueError(key)
        out.append((key >> 3, v))
    assert i == len(b)
    return out
for name, inputs, outputs in (("encoder", 1, 1), ("predictor", 2, 1)):
    model = fields(open(f"graphs/{name}.onnx", "rb").read())
    graph = fields(dict(model)[7])
    assert dict(fields(dict(model)[8]))[2] == 17, "opset"
    assert sum(k == 11 for k, _ in graph) == inputs and sum(k == 12 for k, _ in graph) == outputs
    made, used = {b"pixels", b"latents", b"actions"}, set()
    for k, v in graph: # nodes come after what they read
        if k == 5: made.add(dict(fields(v))[8])
        if k == 1:
            node = fields(v)
            for n, x in node:
                if n == 1: assert x in made, (name, x); used.add(x)
            made |= {x for n, x in node if n == 2}
PY
    python3 read.py || fail "the wire format"
else
    echo "left out: no python3"
fi
for python in /usr/bin/python3 python3; do
    "$python" -c "import onnx" 2>/dev/null || continue
    "$python" - <<'PY' || fail "the checker of onnx"
import onnx
for name in ("encoder", "predictor"):
    model = onnx.load(f"graphs/{name}.onnx")
    onnx.checker.check_model(model, full_check=True)
    print(name, "checked by onnx", onnx.__version__ + ":", len(model.graph.node), "nodes")
PY
    checked=1
    break
done
[ -n "${checked:-}" ] || echo "left out: no python3-onnx"

# ---- another runtime
modules=${NODE_MODULES:-$(npm root -g 2>/dev/null || true)}
run="$here/parity/onnx_run.mjs"
if command -v node >/dev/null && [ -d "$modules/onnxruntime-web" ]; then
    node "$run" pictures . 64 5
    awk 'BEGIN { for (p = 0; p < 7; p++) { line = ""; for (i = 0; i < 60; i++)
        line = line (i ? "," : "") sprintf("%.6f", 2 * sin(p + 1.7 * i * (p + 1))); print line } }' >plans.txt
    "$cgs" encode --model model --images p0.png p1.png p2.png p3.png p4.png --json >encode.jsonl
    "$cgs" rollout --model model --start p0.png --goal p1.png --actions plans.txt --json >rollout.jsonl
    node "$run" compare . 64 "$modules" || fail "onnxruntime-web finds other numbers"
    # a comparison that sees a difference: the costs of other plans
    sed 1d plans.txt >others && "$cgs" rollout --model model --start p0.png --goal p1.png \
        --actions others --json >rollout.jsonl
    if node "$run" compare . 64 "$modules" >out 2>&1; then fail "other plans have the same costs"; fi
else
    echo "left out: no onnxruntime-web in NODE_MODULES or npm's folder"
fi
echo ok
