"""A lift on one motor: the action is in volts, and 2.6 of 0 to 5 keep it where it is."""
import numpy as np

from world import SIDE, World, bar

BOTTOM, TOP, STILL = 56.0, 8.0, 2.6


class Lift(World):
    id = "lift"
    hold = 6

    def begin(self):
        return np.array([self.random.uniform(TOP, BOTTOM)])

    def some_action(self):
        return self.random.uniform(1.6, 3.6, 1)

    def move(self, state, action):
        volts = np.clip(action, 0, 5)
        return np.clip(state - 1.8 * (volts - STILL), TOP, BOTTOM)

    def draw(self, canvas, state):
        bar(canvas, (32, 4), (32, 60), 3, (150, 150, 150))
        bar(canvas, (26, state[0]), (38, state[0]), 10, (120, 50, 150))
        bar(canvas, (12, SIDE - state[0]), (14, SIDE - state[0]), 7, (60, 60, 60))  # its counterweight

    def reached(self, state, goal):
        return abs(state[0] - goal[0]) < 3
