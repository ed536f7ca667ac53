"""Latent world models that are easy to plan with: the C library from Python.

Standard library only.  With NumPy, arguments and results are arrays; without, images are bytes and
numbers are (nested) lists.  With gymnasium, Sim and VectorSim are its environments; without, they
have the same methods.

    import cgs
    agent = cgs.Agent("runs/lewm-cgs", planner="cem", samples=64)
    sim = cgs.Sim("tworooms", size=agent.image_size)
    sim.reset(seed=0)
    agent.goal_image(sim.render_goal())
    plan = agent.plan(sim.render())
    for action in plan.actions[0]:                 # the first action block
        sim.step(action)

    result = cgs.evaluate("runs/lewm-cgs", sim, cgs.starts("tworooms.h5", 50))
    print(result)                                  # 47 of 50, 94.0 % [83.8, 97.9]

The library is the file named by the environment variable CGS_LIBRARY; else the one in this package,
the one built in this source tree, the one installed with it, or the system's, in this order.
Failures raise cgs.Error with the library's message.
"""

from ._library import Error
from ._numbers import numpy
from .agent import Agent, Plan
from .dataset import Column, Dataset, Findings, check
from .evaluate import evaluate
from .names import environments, load_environment, planners, version
from .result import Outcome, Paired, Result, compare, wilson
from .sim import Sim
from .starts import Start, Starts, seeds, starts
from .train import TrainStep, Validation, train
from .vector import VectorSim
from .writer import Writer

__all__ = [
    "Agent", "Column", "Dataset", "Error", "Findings", "Outcome", "Paired", "Plan", "Result", "Sim",
    "Start", "Starts", "TrainStep", "Validation", "VectorSim", "Writer", "check", "compare",
    "environments", "evaluate", "load_environment", "numpy", "planners", "seeds", "starts", "train",
    "version", "wilson",
]
__version__ = version()
