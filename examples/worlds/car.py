"""A car that drifts: it is pushed along its heading and slides on sideways in curves."""
import numpy as np

from world import SIDE, World, bar, disc

EDGE = 7
FORWARD, SIDEWAYS = 0.85, 0.75  # shares of the speed that a step leaves


class Car(World):
    id = "car"
    hold = 8

    def begin(self):  # x, y, heading as cosine and sine, and speed
        angle = self.random.uniform(0, 2 * np.pi)
        place = self.random.uniform(EDGE, SIDE - EDGE, 2)
        return np.concatenate([place, [np.cos(angle), np.sin(angle)], [0, 0]])

    def some_action(self):  # throttle and steering; more often forwards
        return np.array([self.random.uniform(-0.4, 1), self.random.uniform(-1, 1)])

    def move(self, state, action):
        throttle, steering = np.clip(action, -1, 1)
        place, heading, speed = state[:2], state[2:4], state[4:]
        turn = 0.16 * steering * (heading @ speed)
        cos, sin = np.cos(turn), np.sin(turn)
        heading = np.array([heading[0] * cos - heading[1] * sin, heading[0] * sin + heading[1] * cos])
        side = np.array([-heading[1], heading[0]])
        speed = (FORWARD * (heading @ speed) + 0.4 * throttle) * heading + SIDEWAYS * (side @ speed) * side
        there = np.clip(place + speed, EDGE, SIDE - EDGE)
        speed = np.where(there == place + speed, speed, 0)  # walls stop it
        return np.concatenate([there, heading / np.hypot(*heading), speed])

    def draw(self, canvas, state):
        place, heading = state[:2], state[2:4]
        bar(canvas, place - 4 * heading, place + 4 * heading, 7, (40, 110, 60))
        disc(canvas, *(place + 5 * heading), 2.5, (240, 190, 30))

    def reached(self, state, goal):
        return np.hypot(*(state[:2] - goal[:2])) < 5
