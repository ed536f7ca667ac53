"""What the five worlds have in common: Gymnasium's reset, step and render, and pictures of 64 x 64.

NumPy only.  A world says how it starts (begin), moves (move), looks (draw), when a goal is reached
(reached), and how a person without a plan would act in it (wander).  reset takes
options={"state": ..., "goal": ...}, as an evaluation from recorded rows needs it.
"""
import numpy as np

SIDE = 64
COLUMNS, ROWS = np.meshgrid(np.arange(SIDE) + 0.5, np.arange(SIDE) + 0.5)  # middles of pixels


class World:
    id = "world"
    version = 1
    metadata = {"render_modes": ["rgb_array"]}
    render_mode = "rgb_array"
    hold = 5  # steps that a wandering person keeps an action

    def reset(self, *, seed=None, options=None):
        if seed is not None or not hasattr(self, "random"):
            self.random = np.random.default_rng(seed)
        options = options or {}
        self.state = np.array(options.get("state", self.begin()), float)
        self.goal = np.array(options.get("goal", self.begin()), float)
        return self.state.copy(), {"is_success": self.success()}

    def step(self, action):
        self.state = self.move(self.state, np.asarray(action, float))
        done = self.success()
        return self.state.copy(), float(done), done, False, {"is_success": done}

    def success(self):
        return bool(self.reached(self.state, self.goal))

    def render(self):
        return self.picture(self.state)

    def render_goal(self):
        return self.picture(self.goal)

    def picture(self, state):
        canvas = np.full((SIDE, SIDE, 3), 230.0)
        self.draw(canvas, state)
        return np.rint(canvas).astype(np.uint8)

    def wander(self, last, step):
        """An action to record: a new one every `hold` steps."""
        return self.some_action() if step % self.hold == 0 else last


def paint(canvas, inside, colour):
    """inside: (SIDE, SIDE) distances in pixels from an edge, positive within; edges are smooth."""
    share = np.clip(inside + 0.5, 0, 1)[..., None]
    canvas += share * (np.array(colour, float) - canvas)


def disc(canvas, x, y, radius, colour):
    paint(canvas, radius - np.hypot(COLUMNS - x, ROWS - y), colour)


def bar(canvas, start, end, width, colour):
    """A line with round ends."""
    start, along = np.asarray(start, float), np.asarray(end, float) - start
    dx, dy = COLUMNS - start[0], ROWS - start[1]
    t = np.clip((dx * along[0] + dy * along[1]) / max(along @ along, 1e-9), 0, 1)
    paint(canvas, width / 2 - np.hypot(dx - t * along[0], dy - t * along[1]), colour)
