"""Two discs: actions move the red one, the blue one runs along its own path and cannot be moved."""
import numpy as np

from world import SIDE, World, disc

EDGE = 7


class TwoDiscs(World):
    id = "two-discs"

    def begin(self):  # red x, y; blue x, y and its speed
        angle = self.random.uniform(0, 2 * np.pi)
        return np.concatenate([self.random.uniform(EDGE, SIDE - EDGE, 4), [np.cos(angle), np.sin(angle)]])

    def some_action(self):
        return self.random.uniform(-1, 1, 2)

    def move(self, state, action):
        red = np.clip(state[:2] + 2 * action, EDGE, SIDE - EDGE)
        blue, speed = state[2:4] + state[4:], state[4:].copy()
        outside = (blue < EDGE) | (blue > SIDE - EDGE)
        speed[outside] *= -1  # it bounces
        return np.concatenate([red, np.clip(blue, EDGE, SIDE - EDGE), speed])

    def draw(self, canvas, state):
        disc(canvas, *state[2:4], 6, (40, 60, 190))
        disc(canvas, *state[:2], 5, (200, 30, 30))

    def reached(self, state, goal):
        return np.hypot(*(state[:2] - goal[:2])) < 4  # of the blue one nothing can be asked
