"""How well a model of one of the five worlds sees and plans: R^2 of the state, and goals reached.

    PYTHONPATH=python python3 examples/worlds/judge.py WORLD DATA.h5 MODEL_DIR [STARTS [RESULTS.jsonl]]

R^2 is of a linear read-out of latents (ridge), fitted to 1,500 images of random states and tested
on 500 others, none of them recorded.  Starts are rows of held-out episodes that are not at their
goal already, goals lie 25 rows later, and 50 actions may be used.
"""
import sys

import numpy as np

import cgs
from record import WORLDS

PLANNERS = ("random", "mppi", "cem")


def explained(agent, world, fit=1500, test=500):
    """R^2 of every number of the state."""
    states, latents = [], []
    for seed in range(fit + test):
        world.reset(seed=10_000 + seed)
        states.append(world.state)
        latents.append(agent.encode(world.render())[0])
    x, y = np.array(latents, float), np.array(states)
    x, y = x - x[:fit].mean(0), y - y[:fit].mean(0)
    readout = np.linalg.solve(x[:fit].T @ x[:fit] + 1e-3 * np.eye(x.shape[1]) * fit, x[:fit].T @ y[:fit])
    error = ((x[fit:] @ readout - y[fit:]) ** 2).mean(0)
    return 1 - error / ((y[fit:] - y[fit:].mean(0)) ** 2).mean(0)


def judge(name, data, model, count, out):
    world = WORLDS[name]()
    with cgs.Agent(model, threads=2) as agent:
        print(name, "R^2", " ".join(f"{v:.3f}" for v in explained(agent, world)))
        starts = cgs.starts(data, count, held_out=agent, skip=world.reached)
    for planner in PLANNERS:
        result = cgs.evaluate(model, world, starts, planner=planner, threads=2, out=out, compact=True)
        print(f"{name} {planner} {result}; {result.seconds:.2f} s of planning per episode")


if __name__ == "__main__":
    if len(sys.argv) < 4 or sys.argv[1] not in WORLDS:
        sys.exit("usage: judge.py " + "|".join(WORLDS) + " DATA.h5 MODEL_DIR [STARTS [RESULTS.jsonl]]")
    number, results = (sys.argv[4:6] + ["100", None][len(sys.argv[4:6]):])
    judge(*sys.argv[1:4], int(number), results)
