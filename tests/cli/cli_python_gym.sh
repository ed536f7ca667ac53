#!/bin/sh
# cli_python_gym.sh - cgs.Sim and cgs.VectorSim keep Gymnasium's rules: without gymnasium, and with
# a stand-in of its interface (the registries of the machines that test this have no gymnasium).
#   tests/cli/cli_python_gym.sh BUILD
. "$(dirname "$0")/prelude.sh"
case $build in
*san) echo "python cannot load a library with sanitizers" && exit 77 ;;
esac
find_python numpy
CGS_LIBRARY=$(ls "$build"/libcgs.so.*)
export CGS_LIBRARY PYTHONPATH="$here/../python" PYTHONDONTWRITEBYTECODE=1

# what gymnasium 1.x has of what is used, written after its documentation
mkdir -p "$tmp/stand-in/gymnasium"
cat >"$tmp/stand-in/gymnasium/__init__.py" <<'PY'
from . import spaces, vector
class Env:
    metadata = {"render_modes": []}
    render_mode = None
    spec = None
    _np_random = None
    def reset(self, *, seed=None, options=None): raise NotImplementedError
    def step(self, action): raise NotImplementedError
    def render(self): raise NotImplementedError
    def close(self): pass
    @property
    def unwrapped(self): return self
    def __enter__(self): return self
    def __exit__(self, *args): self.close()
PY
cat >"$tmp/stand-in/gymnasium/spaces.py" <<'PY'
import numpy as np
class Box:
    def __init__(self, low, high, shape=None, dtype=np.float32, seed=None):
        assert isinstance(dtype, np.dtype) and isinstance(shape, tuple)
        self.low, self.high = np.full(shape, low, dtype), np.full(shape, high, dtype)
        self.shape, self.dtype, self.random = shape, dtype, np.random.default_rng(seed)
    def seed(self, seed=None): self.random = np.random.default_rng(seed)
    def sample(self):
        if np.isinf(self.low).any(): return self.random.normal(size=self.shape).astype(self.dtype)
        return self.random.uniform(self.low, self.high).astype(self.dtype)
    def contains(self, x):
        return isinstance(x, np.ndarray) and x.shape == self.shape and np.can_cast(x.dtype, self.dtype) \
            and bool((x >= self.low).all() and (x <= self.high).all())
    __contains__ = contains
PY
cat >"$tmp/stand-in/gymnasium/vector.py" <<'PY'
import enum
class AutoresetMode(enum.Enum):
    NEXT_STEP = "NextStep"
    SAME_STEP = "SameStep"
class VectorEnv:
    metadata, spec, render_mode, closed, num_envs = {}, None, None, False, 0
PY

cat >"$tmp/rules.py" <<'PY'
import inspect, sys
how = sys.argv[1]
if how == "bare":
    sys.modules["numpy"] = None
if how != "stand-in":
    sys.modules["gymnasium"] = None
import cgs
plain = lambda x: x.tolist() if hasattr(x, "tolist") else list(x)

def refused(kind, words, call):
    try:
        call()
    except kind as e:
        assert words in str(e), (words, str(e))
        return
    raise AssertionError(f"{words}: was accepted")

# ---- one environment
env = cgs.Sim("tworooms", size=32, limit=4)
if how == "stand-in":
    import gymnasium
    assert isinstance(env, gymnasium.Env) and isinstance(env.action_space, gymnasium.spaces.Box)
assert env.metadata["render_modes"] == ["rgb_array"] and env.render_mode == "rgb_array"
assert env.unwrapped is env and env.spec is None
assert {"seed", "options"} <= set(inspect.signature(env.reset).parameters)
assert env.action_space.shape == (2,) and env.observation_space.shape == (2,)
observation, info = env.reset(seed=3)
assert observation in env.observation_space and isinstance(info, dict) and info["is_success"] is False
assert plain(env.reset(seed=3)[0]) == plain(observation) != plain(env.reset(seed=4)[0])
env.reset(seed=3)
second, third = plain(env.reset()[0]), plain(env.reset()[0])
env.reset(seed=3)
assert [plain(env.reset()[0]), plain(env.reset()[0])] == [second, third] and second != third, "seeds go on"
env.action_space.seed(0)
for step in range(1, 5):
    action = env.action_space.sample()
    assert action in env.action_space
    out = env.step(action)
    assert len(out) == 5 and out[0] in env.observation_space
    assert type(out[1]) is float and type(out[2]) is bool and type(out[3]) is bool and type(out[4]) is dict
    assert out[3] == (step == 4), "truncated at the limit"
image = env.render()
assert len(bytes(image)) == 32 * 32 * 3 and bytes(env.render(16)) != bytes(image)

# ---- goals: options set them, reaching one terminates unless the task continues
observation, info = env.reset(options={"state": [40, 60], "goal": [40, 61]})
assert plain(observation) == [40, 60] and plain(info["goal"]) == [40, 61]
_, reward, terminated, _, info = env.step([0, 0])
assert (reward, terminated, info["is_success"]) == (1.0, True, True)
lasting = cgs.Sim("tworooms", continuing=True)
lasting.reset(options={"state": [40, 60], "goal": [40, 61]})
assert lasting.step([0, 0])[1:3] == (1.0, False)
env.reset(options={"goal": [180, 60]})
assert plain(env.goal) == [180, 60]
far = bytes(env.render_goal())
env.reset(options={"state": [180, 60]})
assert bytes(env.render()) == far, "the goal's image is what is seen there"
pixels = cgs.Sim("tworooms", size=16, observation="pixels")
assert pixels.observation_space.shape == (16, 16, 3)
assert pixels.reset(seed=0)[0] in pixels.observation_space

# ---- several at once: each as alone; ended episodes begin again with the next step
many = cgs.VectorSim("tworooms", 3, size=16, limit=2)
if how == "stand-in":
    assert isinstance(many, gymnasium.vector.VectorEnv)
    assert many.metadata["autoreset_mode"] is gymnasium.vector.AutoresetMode.NEXT_STEP
assert many.num_envs == 3 and many.action_space.shape == (3, 2) and many.single_action_space.shape == (2,)
observations, infos = many.reset(seed=5)
assert observations in many.observation_space
actions = [[1.0, 0.5], [0.0, -1.0], [0.25, 0.0]]
alone = []
for i in range(3):
    one = cgs.Sim("tworooms", size=16, limit=2)
    assert plain(one.reset(seed=5 + i)[0]) == plain(observations[i])
    alone.append(one)
for turn in range(3):
    observations, rewards, terminated, truncated, infos = many.step(actions)
    ended = turn == 1
    assert plain(truncated) == [ended] * 3 and plain(terminated) == [False] * 3 and plain(rewards) == [0.0] * 3
    assert plain(infos["_goal"]) == [True] * 3 and len(infos["goal"]) == 3
    for i in range(3):
        there = alone[i].reset()[0] if turn == 2 else alone[i].step(actions[i])[0]
        assert plain(observations[i]) == plain(there), (turn, i)
assert len(many.render()) == 3 and len(bytes(many.render()[0])) == 16 * 16 * 3
assert many.reset(seed=[1, 2, None])[0] in many.observation_space
many.close()
refused(ValueError, "closed", lambda: many.envs[0].state)

refused(ValueError, "num_envs", lambda: cgs.VectorSim("tworooms", 0))
refused(ValueError, "2 for 3", lambda: cgs.VectorSim("tworooms", 3).step([[0, 0]] * 2))
refused(ValueError, "observation", lambda: cgs.Sim("tworooms", observation="sound"))
refused(ValueError, '"speed"', lambda: env.reset(options={"speed": 1}))
refused(ValueError, "state: wants 2", lambda: env.reset(options={"state": [1]}))
if len(sys.argv) > 2:  # a plug-in is an environment by its path
    pole = cgs.Sim(sys.argv[2], size=32)
    assert pole.id == "cartpole" and pole.action_space.shape == (1,)
    assert pole.reset(seed=1)[0] in pole.observation_space and len(bytes(pole.render())) == 3072
    refused(cgs.Error, "nothing.so", lambda: cgs.Sim("./nothing.so"))
print(how, "keeps the rules")
PY
${CC:-cc} -shared -fPIC -O2 -I"$here/../include" -o "$tmp/libcartpole.so" "$here/../examples/env_cartpole.c" -lm
"$python" "$tmp/rules.py" numpy "$tmp/libcartpole.so"
"$python" "$tmp/rules.py" bare "$tmp/libcartpole.so"
PYTHONPATH="$PYTHONPATH:$tmp/stand-in" "$python" "$tmp/rules.py" stand-in
