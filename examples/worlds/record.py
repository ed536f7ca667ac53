"""Records one of the five worlds as an HDF5 file, with h5py and NumPy alone.

    python3 examples/worlds/record.py WORLD OUT.h5 [EPISODES [STEPS]]
"""
import sys

import h5py
import numpy as np

from arm import Arm
from car import Car
from disc import Disc
from lift import Lift
from two_discs import TwoDiscs

WORLDS = {world.id: world for world in (Disc, Arm, TwoDiscs, Car, Lift)}


def episode(world, steps):
    """`steps` actions make one row more; the last row's action is NaN."""
    world.reset()
    action, frames, actions, states = None, [world.render()], [], [world.state]
    for step in range(steps):
        action = world.wander(action, step)
        world.step(action)
        frames.append(world.render())
        actions.append(action)
        states.append(world.state)
    return frames, actions + [np.full_like(action, np.nan)], states


def record(world, path, episodes, steps):
    world.reset(seed=0)
    frames, actions, states = zip(*(episode(world, steps) for _ in range(episodes)))
    with h5py.File(path, "w") as f:
        f.create_dataset("pixels", data=np.concatenate(frames), chunks=(1, 64, 64, 3), compression=1)
        f["action"] = np.concatenate(actions).astype("f4")
        f["state"] = np.concatenate(states).astype("f4")
        f["ep_len"] = np.full(episodes, steps + 1)
        f["ep_offset"] = np.arange(episodes) * (steps + 1)


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in WORLDS:
        sys.exit("usage: record.py " + "|".join(WORLDS) + " OUT.h5 [EPISODES [STEPS]]")
    count, length = (int(v) for v in sys.argv[3:5] + ["400", "60"][len(sys.argv[3:5]):])
    record(WORLDS[sys.argv[1]](), sys.argv[2], count, length)
