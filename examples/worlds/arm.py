"""An arm of three joints, seen from the side; an action is the speed of each joint."""
import numpy as np

from world import SIDE, World, bar, disc

LENGTHS = (14, 9, 6)
LIMITS = np.array([1.1, 1.6, 1.6])  # of each joint, to both sides
COLOURS = ((40, 70, 160), (40, 140, 90), (220, 120, 30))


class Arm(World):
    id = "arm"

    def begin(self):
        return self.random.uniform(-LIMITS, LIMITS)

    def some_action(self):
        return self.random.uniform(-1, 1, 3)

    def move(self, state, action):
        return np.clip(state + 0.08 * np.clip(action, -1, 1), -LIMITS, LIMITS)

    @staticmethod
    def points(state):
        """From the shoulder to the hand."""
        at, angle, points = np.array([SIDE / 2, SIDE - 20.0]), -np.pi / 2, []
        points.append(at)
        for length, turn in zip(LENGTHS, state):
            angle += turn
            at = at + length * np.array([np.cos(angle), np.sin(angle)])
            points.append(at)
        return points

    def draw(self, canvas, state):
        points = self.points(state)
        for start, end, colour in zip(points, points[1:], COLOURS):
            bar(canvas, start, end, 4, colour)
        disc(canvas, *points[0], 4, (60, 60, 60))
        disc(canvas, *points[-1], 3, (200, 30, 30))

    def reached(self, state, goal):
        hand, there = self.points(state)[-1], self.points(goal)[-1]
        return np.hypot(*(hand - there)) < 5 and np.abs(state - goal).max() < 0.4
