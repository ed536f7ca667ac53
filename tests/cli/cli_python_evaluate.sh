#!/bin/sh
# cli_python_evaluate.sh - cgs.evaluate in the library's own TwoRooms: the lines, intervals and
# paired tests of cgs eval on the same starts, and an environment that is nobody's.
#   tests/cli/cli_python_evaluate.sh BUILD
. "$(dirname "$0")/prelude.sh"
case $build in
*san) echo "python cannot load a library with sanitizers" && exit 77 ;;
esac
find_python numpy
CGS_LIBRARY=$(ls "$build"/libcgs.so.*)
export CGS_LIBRARY PYTHONPATH="$here/../python" PYTHONDONTWRITEBYTECODE=1
cd "$tmp"

"$cgs" collect --env tworooms --out data.h5 --episodes 20 --size 64 --quiet --threads 1
for seed in 1 2; do "$build/tests/test_eval" --model m$seed tworooms data.h5 $seed; done
evaluate() { # options, beside what all have
    "$cgs" eval --model m1 m2 --data data.h5 --seeds 3 --episodes 4 --threads 1 --device cpu "$@"
}
evaluate --planner mppi cem zero random --samples 8 --iters 2 --out r.jsonl --json >r.json
evaluate --planner gd --gd-steps 3 --budget 37 --success solve --out r.jsonl >/dev/null
evaluate --planner icem --samples 12 --iters 2 --history online --execute 2 --success end plan.sigma=0.5 \
    --out r.jsonl >/dev/null

cat >same.py <<'PY'
import json, math, sys
if sys.argv[1] == "bare":
    sys.modules["numpy"] = None
import cgs
theirs = {l["hash"]: l for l in map(json.loads, open("r.jsonl"))}
sim = cgs.Sim("tworooms", size=64, continuing=True)
starts = cgs.starts("data.h5", 4, seed=3)
timed = ("seconds", "first_plan", "outcomes", "code_commit")

def same(model, steps=0, **how):
    """Python's result of these settings is a line of cgs eval's."""
    agent = {k: how.pop(k) for k in ("planner", "samples", "settings") if k in how}
    if "planner" in agent and agent["planner"] not in ("zero", "random"):
        agent["iters"] = steps
    r = cgs.evaluate(model, sim, starts, threads=1, **agent, **how)
    mine, other = json.loads(r.line), theirs.pop(r.hash, None)
    assert other, (mine["settings"], [l["settings"] for l in theirs.values()])
    assert {k: v for k, v in mine.items() if k not in timed} == \
           {k: v for k, v in other.items() if k not in timed}, (mine, other)
    for a, b in zip(mine["outcomes"], other["outcomes"]):
        assert {**a, "seconds": 0} == {**b, "seconds": 0}, (a, b)
    for key in ("successes", "cost", "size"):
        assert mine["first_plan"][key] == other["first_plan"][key], key
    assert r.successes == sum(o.success for o in r.outcomes) == other["successes"]
    return r

results = {}
for model in ("m1", "m2"):
    for planner in ("mppi", "cem"):
        results[model, planner] = same(model, 2, planner=planner, samples=8)
    results[model, "zero"], results[model, "random"] = (same(model, planner=p) for p in ("zero", "random"))
    same(model, 3, planner="gd", budget=37, rule="solve")
    same(model, 2, planner="icem", samples=12, history="online", execute=2, rule="end",
         settings={"plan.sigma": 0.5})
assert not theirs, "every line has been met"

# ---- intervals and comparisons are those of the program
printed = [json.loads(l) for l in open("r.json")]
for p in printed:
    if p["kind"] == "rate":
        low, high = results[p["model"], p["planner"]].interval
        assert math.isclose(100 * low, p["low"], rel_tol=1e-5, abs_tol=1e-9) and math.isclose(100 * high, p["high"], rel_tol=1e-5)
    if p["kind"] == "comparison":
        c = cgs.compare(results["m1", p["planner"]], results["m2", p["planner"]])
        assert (c.n, c.only_a, c.only_b) == (p["n"], p["only_first"], p["only_second"])
        for ours, his in ((100 * c.difference, p["difference"]), (100 * c.interval[0], p["low"]),
                          (100 * c.interval[1], p["high"]), (100 * c.bootstrap[0], p["bootstrap_low"]),
                          (c.p, p["p"])):
            assert math.isclose(ours, his, rel_tol=1e-4, abs_tol=1e-9), (c, p)
assert sum(p["kind"] == "comparison" for p in printed) == 4
c = cgs.compare([True] * 8 + [False] * 2, [False] * 8 + [True, False])
assert (c.only_a, c.only_b, c.difference) == (8, 1, -0.7) and abs(c.p - 0.0390625) < 1e-12

# ---- files: what is there is not computed again, an unfinished line is cut off
def count(i, n):
    global seen
    seen += 1
seen = 0
how = dict(planner="zero", threads=1, out="mine.jsonl", progress=count)
first = cgs.evaluate("m1", sim, starts, **how)
assert seen == 4
open("mine.jsonl", "a").write('{"format":"cgs-ev')
again = cgs.evaluate("m1", sim, starts, **how)
assert seen == 4 and again.success == first.success and again.hash == first.hash and not again.outcomes
cgs.evaluate("m2", sim, starts, compact=True, **how)
assert seen == 8 and len(open("mine.jsonl").readlines()) == 2
assert cgs.evaluate("m2", sim, starts, compact=True, **how).episodes == 4 and seen == 8

# ---- an environment that is nobody's: Gymnasium's methods, success and goal as functions
class Own:
    """A grey square that gets lighter; its goal is white."""
    def reset(self, *, seed=None, options=None):
        self.level, self.seed = 0.0, seed
        return self.level, {}
    def step(self, action):
        assert len(action) == 2
        self.level = min(255.0, self.level + 10)
        return self.level, 0.0, False, self.level > 200, {}
    def render(self):
        return bytes([int(self.level)]) * (64 * 64 * 3)
own = Own()
went = cgs.evaluate("m1", own, 3, planner="random", threads=1, success=lambda env: env.level >= 100,
                    goal=lambda env: bytes([255]) * (64 * 64 * 3))
assert went.successes == 3 and [o.first for o in went.outcomes] == [10] * 3 and own.seed == 2
assert json.loads(went.line)["settings"]["env"] == "Own" and json.loads(went.line)["settings"]["dataset"] == ""
assert str(went).startswith("3 of 3, 100.0 % [43.9, 100.0]"), str(went)
short = cgs.evaluate("m1", own, 2, planner="random", threads=1, success=lambda env: False,
                     goal=lambda env: bytes(64 * 64 * 3))
assert short.successes == 0 and [o.actions for o in short.outcomes] == [21] * 2, "truncated ends it"

# ---- refusals
def refused(kind, words, call):
    try:
        call()
    except kind as e:
        assert words in str(e), (words, str(e))
        return
    raise AssertionError(f"{words}: was accepted")
white = lambda env: bytes([255]) * (64 * 64 * 3)
refused(TypeError, "render_goal", lambda: cgs.evaluate("m1", own, 1, planner="zero"))
refused(TypeError, "is_success", lambda: cgs.evaluate("m1", own, 1, planner="zero", goal=white))
refused(ValueError, '"often"', lambda: cgs.evaluate("m1", sim, starts, rule="often"))
refused(ValueError, "action blocks", lambda: cgs.evaluate("m1", sim, starts, execute=9))
refused(ValueError, "different starts", lambda: cgs.compare(first, went))
refused(ZeroDivisionError, "", lambda: cgs.starts("data.h5", 4, skip=lambda s, g: 1 / 0))
refused(cgs.Error, "only_this", lambda: cgs.starts("only_this.h5", 4))
refused(KeyError, "no column", lambda: list(cgs.starts("data.h5", 4, state="nothing")))
refused(cgs.Error, "no_such", lambda: cgs.evaluate("m1", sim, starts, settings={"plan.no_such": 1}))
agent = cgs.Agent("m1", planner="zero", threads=1)
refused(TypeError, "settings already", lambda: cgs.evaluate(agent, sim, starts, planner="cem"))
refused(cgs.Error, "no plan", agent.weigh)
if sys.argv[1] != "bare":
    big = cgs.Sim("tworooms")
    refused(ValueError, "224x224x3, the model wants 64x64x3", lambda: cgs.evaluate(agent, big, 1))
assert all(s.seed for s in cgs.seeds(3, first=7)) and len(cgs.seeds(3)) == 3
print(sys.argv[1], "the same as cgs eval:", len(results), "results")
PY
"$python" same.py numpy
rm mine.jsonl
"$python" same.py bare
