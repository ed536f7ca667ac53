#!/bin/sh
# cli_python.sh - python/cgs: against the program, with NumPy and without.
#   tests/cli/cli_python.sh BUILD
. "$(dirname "$0")/prelude.sh"
case $build in
*san) echo "python cannot load a library with sanitizers" && exit 77 ;;
esac
find_python numpy

"$build/tests/test_eval" --model "$tmp/model" tworooms none 1
CGS_LIBRARY=$(ls "$build"/libcgs.so.*)
export CGS_LIBRARY PYTHONPATH="$here/../python" PYTHONDONTWRITEBYTECODE=1

# what the program says: three states, and the latents of their images
printf '1,0\n0.5,-1\n' >"$tmp/actions"
"$build/cgs" replay --env tworooms --state 40,60 --actions "$tmp/actions" --frames "$tmp/frames" \
    --size 64 --json >"$tmp/states"
"$build/cgs" encode --model "$tmp/model" --images "$tmp"/frames/*.png --precision f32 --threads 1 \
    --json >"$tmp/latents"

cat >"$tmp/door.py" <<'PY'
import json, sys
tmp, bare = sys.argv[1], sys.argv[2] == "bare"
if bare:
    sys.modules["numpy"] = None  # import numpy then fails
import cgs
assert (cgs.numpy is None) == bare

def plain(x):  # lists, whatever came
    return x.tolist() if hasattr(x, "tolist") else list(x) if isinstance(x, bytes) else x

def refused(kind, words, call):
    try:
        call()
    except kind as e:
        assert words in str(e), (words, str(e))
        return e
    raise AssertionError(f"{words}: was accepted")

states = [json.loads(l)["state"] for l in open(tmp + "/states")]
latents = [json.loads(l)["z"] for l in open(tmp + "/latents")]

# ---- environments: the same bits as the program's
assert {"pusht", "tworooms", "wall"} <= set(cgs.environments())
assert {"mppi", "cem", "gd", "zero"} <= set(cgs.planners())
sim = cgs.Sim("tworooms")
assert (sim.state_dim, sim.action_dim) == (2, 2) and "16 px" in sim.success_rule
sim.set_state([40, 60])
frames = [sim.render(64)]
assert plain(sim.state) == states[0]
for k, action in enumerate([(1, 0), [0.5, -1]]):
    assert plain(sim.step(action)[0]) == states[k + 1], (sim.state, states[k + 1])
    frames.append(sim.render(64))
sim.set_goal(sim.state)
assert sim.success is True
first = plain(sim.reset(seed=5)[0])
assert first != plain(sim.goal) and plain(sim.reset(5)[0]) == first and plain(sim.reset(6)[0]) != first

# ---- encoding: as the program encodes
agent = cgs.Agent(tmp + "/model", planner="cem", samples=8, iters=2, threads=1, precision="f32")
assert (agent.image_size, agent.width, agent.history, agent.frameskip) == (64, 96, 3, 5)
assert agent.env == "tworooms" and agent.horizon == 5
if bare:
    together = b"".join(frames)
    shape = lambda x: (len(x), len(x[0]))
else:
    import numpy as np
    assert frames[0].shape == (64, 64, 3) and frames[0].dtype == np.uint8
    together = np.stack(frames)
    shape = np.shape
z = agent.encode(together)
assert shape(z) == (3, 96)
worst = max(abs(a - b) for p, q in zip(plain(z), latents) for a, b in zip(p, q))
largest = max(abs(v) for row in latents for v in row)
assert worst <= 1e-5 * largest, (worst, largest)
assert plain(agent.encode(frames[1]))[0] == plain(z)[1], "one image or three, the same latent"

# ---- planning: lists, bytes and arrays give one plan; a goal is needed
refused(cgs.Error, "goal", lambda: agent.plan(frames[0]))
agent.goal_image(frames[2])
plan = agent.plan(frames[0])
actions = plain(plan.actions)
assert (len(actions), len(actions[0]), len(actions[0][0])) == (5, 5, 2)
assert plan.iterations == 2 and not plan.cut and plan.cost > 0
twin = cgs.Agent(tmp + "/model", planner="cem", samples=8, iters=2, threads=1, precision="f32")
twin.goal_latent(plain(z)[2])
frame = plain(frames[0])
again = twin.plan(frame)
assert plain(again.actions) == actions, "goal as a latent, frame as lists"
if not bare:
    odd = np.zeros((64, 128, 3), np.uint8)
    odd[:, ::2] = frames[0]
    twin = cgs.Agent(tmp + "/model", planner="cem", samples=8, iters=2, threads=1, precision="f32")
    twin.goal_latent(z[2].astype(np.float64))
    assert plain(twin.plan(odd[:, ::2]).actions) == actions, "strided arrays, another float type"
    refused(TypeError, "float64", lambda: agent.encode(frames[0] / 255))
done = agent.plan(together, executed=[[0.1] * 10] * 2, advanced=1)
assert len(done.actions) == 5

# ---- a cost of one's own, and what goes wrong in it
seen = []
def cost(z, actions):
    seen.append((len(z), len(z[0]), len(actions[0][0]), len(actions[0][0][0])))
    return [sum(v * v for block in a for step in block for v in step) for a in plain(actions)]
agent.goal_cost(cost)
quiet = agent.plan(frames[0])
assert seen[0] == (8, 5, 5, 2) and quiet.cost >= 0
def broken(z, actions):
    raise KeyError("mine")
agent.goal_cost(broken)
refused(KeyError, "mine", lambda: agent.plan(frames[0]))
agent.goal_cost(lambda z, actions: [0.0])
refused(ValueError, "cost: wants 8", lambda: agent.plan(frames[0]))

# ---- refusals
assert refused(cgs.Error, "mars", lambda: cgs.Sim("mars")).status == "argument"
refused(cgs.Error, "nothing", lambda: cgs.Agent(tmp + "/nothing"))
refused(cgs.Error, "nan", lambda: sim.step([float("nan"), 0]))
refused(ValueError, "action: wants 2", lambda: sim.step([1, 2, 3]))
refused(ValueError, "frames: wants 12288", lambda: agent.encode(bytes(5)))
refused(ValueError, "executed", lambda: agent.plan(together))
with cgs.Sim("wall") as wall:
    wall.reset()
refused(ValueError, "closed", lambda: wall.state)
wall.close()
agent.close()
print("without" if bare else "with", "numpy: latents agree to", worst / largest)
PY
"$python" "$tmp/door.py" "$tmp" numpy
"$python" "$tmp/door.py" "$tmp" bare
# any python 3 will do without NumPy
if command -v python3 >/dev/null; then python3 "$tmp/door.py" "$tmp" bare >/dev/null; fi

# what it declares is what the header declares
sed -n 's/.*\b\(cgs_[a-z0-9_]*\)(.*/\1/p' "$here"/../include/cgs/*.h | grep -v 'cgs_set_log\|cgs_env_add\|_fn$' |
    sort -u >"$tmp/header"
grep -o '("cgs_[a-z0-9_]*"' "$here/../python/cgs/_declarations.py" | tr -d '("' | sort -u >"$tmp/module"
diff "$tmp/header" "$tmp/module" || { echo "FAILED: python/cgs declares other functions"; exit 1; }
