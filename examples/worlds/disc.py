"""A red disc on a plain ground; an action moves it by up to two pixels."""
import numpy as np

from world import SIDE, World, disc


class Disc(World):
    id = "disc"
    edge = 6

    def begin(self):
        return self.random.uniform(self.edge, SIDE - self.edge, 2)

    def some_action(self):
        return self.random.uniform(-1, 1, 2)

    def move(self, state, action):
        return np.clip(state + 2 * action, self.edge, SIDE - self.edge)

    def draw(self, canvas, state):
        disc(canvas, *state, 5, (200, 30, 30))

    def reached(self, state, goal):
        return np.hypot(*(state - goal)) < 4
