"""The library's environments, as Gymnasium's."""

from __future__ import annotations

import math
import random
from ctypes import byref, c_uint8, c_void_p
from typing import Any, Dict, Mapping, Optional, Tuple

from ._gym import Env, box
from ._library import call, lib
from ._numbers import exactly, result
from ._owner import Owner
from .names import load_environment


class Sim(Owner, Env):
    """One environment with a goal: reset, then step.  id: a name that cgs.environments() gives, or
    the path of a plug-in, "./libmine.so".

    Gymnasium's reset, step and render, spaces, seeds, terminated (the goal is reached, unless
    `continuing`) and truncated (after `limit` steps, 0: never).  observation: "state" or "pixels",
    images of `size`.  Options of reset: {"state": ..., "goal": ...}, each (state_dim).  The action
    space is what actions nominally lie in; nothing is clipped."""
    _destroy = staticmethod(lib.cgs_sim_destroy)
    metadata = {"render_modes": ["rgb_array"]}
    render_mode = "rgb_array"

    def __init__(self, id: str, *, size: int = 224, observation: str = "state", limit: int = 0,
                 continuing: bool = False) -> None:
        if observation not in ("state", "pixels"):
            raise ValueError(f'observation: "{observation}" is not "state" or "pixels"')
        self._handle = self._open_one(id)
        self._there: Any = None  # where the goal is drawn
        self._observation, self._limit, self._continuing = observation, limit, continuing
        self._seeds, self._steps = random.Random(), 0
        info = lib.cgs_sim_describe(self._handle)
        self.id: str = info.id.decode()
        self.summary: str = info.summary.decode()
        self.success_rule: str = info.success.decode()
        self.version: int = info.version
        self.state_dim: int = info.state_dim
        self.action_dim: int = info.action_dim
        self.action_range: float = info.action_range
        self.size = size
        self.action_space = box(-self.action_range, self.action_range, (self.action_dim,), "float64")
        self.observation_space = (
            box(0, 255, (size, size, 3), "uint8") if observation == "pixels"
            else box(-math.inf, math.inf, (self.state_dim,), "float64"))

    @staticmethod
    def _open_one(id: str) -> c_void_p:
        handle = c_void_p()
        known = load_environment(id) if "/" in id else id
        call(lib.cgs_sim_create(byref(handle), known.encode()))
        return handle

    def close(self) -> None:
        if getattr(self, "_there", None) is not None:
            lib.cgs_sim_destroy(self._there)
            self._there = None
        Owner.close(self)

    # ---- Gymnasium's ---------------------------------------------------------------------------

    def reset(self, seed: Optional[int] = None,
              options: Optional[Mapping[str, Any]] = None) -> Tuple[Any, Dict[str, Any]]:
        """A random start and goal; those of the options where they are given."""
        options = options or {}
        for name in options:
            if name not in ("state", "goal"):
                raise ValueError(f'options: "{name}" is not "state" or "goal"')
        if seed is not None:
            self._seeds.seed(seed)
        call(lib.cgs_sim_reset(self._open(), self._seeds.getrandbits(64) if seed is None else seed))
        if "state" in options:
            goal = options.get("goal", self.goal)
            self.set_state(options["state"])
            self.set_goal(goal)
        elif "goal" in options:
            self.set_goal(options["goal"])
        self._steps = 0
        return self._look(), self._info()

    def step(self, action: Any) -> Tuple[Any, float, bool, bool, Dict[str, Any]]:
        """One primitive action: observation, reward (1 at the goal), terminated, truncated, info."""
        p = exactly(action, "f8", self.action_dim, "action")
        call(lib.cgs_sim_step(self._open(), p, self.action_dim))
        self._steps += 1
        reached = self.success
        return (self._look(), float(reached), reached and not self._continuing,
                0 < self._limit <= self._steps, self._info())

    def render(self, side: int = 0) -> Any:
        """The image, (side, side, 3); 0: of the environment's size."""
        return self._draw(self._open(), side)

    def _look(self) -> Any:
        return self.render() if self._observation == "pixels" else self.state

    def _info(self) -> Dict[str, Any]:
        return {"is_success": self.success, "goal": self.goal}

    # ---- more ----------------------------------------------------------------------------------

    def _draw(self, handle: Any, side: int) -> Any:
        side = side or self.size
        if side <= 0:
            raise ValueError(f"side: wants at least 1, got {side}")
        rgb = (c_uint8 * (side * side * 3))()
        call(lib.cgs_sim_render(handle, side, rgb))
        return result(rgb, "u1", (side, side, 3))

    def render_goal(self, side: int = 0) -> Any:
        """The image that the camera would see at the goal."""
        if self._there is None:
            self._open()
            self._there = self._open_one(self.id)
        goal = exactly(self.goal, "f8", self.state_dim, "goal")
        call(lib.cgs_sim_set_state(self._there, goal, self.state_dim))
        return self._draw(self._there, side)

    def set_state(self, state: Any) -> None:
        """A new simulation in that state, which is also its goal until set_goal."""
        p = exactly(state, "f8", self.state_dim, "state")
        call(lib.cgs_sim_set_state(self._open(), p, self.state_dim))

    def set_goal(self, goal: Any) -> None:
        p = exactly(goal, "f8", self.state_dim, "goal")
        call(lib.cgs_sim_set_goal(self._open(), p, self.state_dim))

    @property
    def state(self) -> Any:
        return result(lib.cgs_sim_state(self._open()), "f8", (self.state_dim,))

    @property
    def goal(self) -> Any:
        return result(lib.cgs_sim_goal(self._open()), "f8", (self.state_dim,))

    @property
    def success(self) -> bool:
        """Whether the present state satisfies success_rule."""
        return bool(lib.cgs_sim_success(self._open()))
