"""Draws one planned episode of each world: what the camera saw every ten actions, and the goal.

    PYTHONPATH=python python3 examples/worlds/show.py OUT.png WORLD=DATA.h5,MODEL_DIR ...
"""
import struct
import sys
import zlib

import numpy as np

import cgs
from record import WORLDS


def episode(world, start, agent):
    """Images of one episode, planned as cgs.evaluate plans it, and the goal."""
    agent.begin(0, 0)
    world.reset(options=start.options)
    agent.goal_image(start.goal)
    images = [world.render()]
    for _ in range(2):
        for action in agent.plan(world.render()).actions.reshape(-1, agent.action_dim):
            if not world.success():
                world.step(action)
            images.append(world.render())
    return images[::10], start.goal


def strip(images, goal):
    gap = np.full((64, 2, 3), 255, np.uint8)
    row = [part for image in images for part in (image, gap)] + [gap] * 4 + [goal]
    return np.concatenate(row, axis=1)


def write_png(path, rgb):
    rows = b"".join(b"\0" + row.tobytes() for row in rgb)
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n")
        head = struct.pack(">IIBBBBB", rgb.shape[1], rgb.shape[0], 8, 2, 0, 0, 0)
        for kind, data in ((b"IHDR", head), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b"")):
            f.write(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)))


def main(out, *given):
    rows = []
    for word in given:
        name, paths = word.split("=", 1)
        data, model = paths.split(",")
        world = WORLDS[name]()
        with cgs.Agent(model, threads=2) as agent:
            start = next(iter(cgs.starts(data, 1, seed=4, held_out=agent, skip=world.reached)))
            rows += [strip(*episode(world, start, agent)), None]
    white = np.full((2, rows[0].shape[1], 3), 255, np.uint8)
    write_png(out, np.concatenate([white if row is None else row for row in rows[:-1]]))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("usage: show.py OUT.png WORLD=DATA.h5,MODEL_DIR ...")
    main(*sys.argv[1:])
