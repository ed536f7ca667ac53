"""A trained model with a planner."""

from __future__ import annotations

import ctypes
import os
from ctypes import byref, c_char_p, c_double, c_float, c_void_p
from typing import Any, Callable, Mapping, NamedTuple, Optional, Tuple, Union

from ._declarations import COST, AgentInfo, AgentOptions, Observation, PlanReport
from ._library import call, lib
from ._numbers import exactly, numbers, result
from ._owner import Owner


class Plan(NamedTuple):
    actions: Any  # (horizon, frameskip, action_dim)
    seconds: float  # of encoding and planning
    iterations: int
    cut: bool  # the deadline passed, and this is the best plan so far
    cost: float  # lowest of the last iteration; NaN for planners that compute none


def setting_list(settings: Optional[Mapping[str, Any]]) -> Any:
    """A C array of key=value; None makes none."""
    def text(value: Any) -> str:
        return str(value).lower() if isinstance(value, bool) else str(value)
    words = [f"{key}={text(value)}".encode() for key, value in (settings or {}).items()]
    return (c_char_p * len(words))(*words)


def encoded(text: Optional[str]) -> Optional[bytes]:
    return None if text is None else text.encode()


class Agent(Owner):
    """A model directory with a planner.  Omitted options have the library's defaults (cgs.h);
    settings are those of `cgs help settings`: {"plan.sigma": 0.5}."""
    _destroy = staticmethod(lib.cgs_agent_destroy)
    image_size: int
    width: int
    history: int
    action_dim: int
    frameskip: int
    horizon: int
    env: str
    method: str

    def __init__(self, directory: Union[str, os.PathLike], *, device: Optional[str] = None,
                 precision: Optional[str] = None, threads: int = 0, planner: Optional[str] = None,
                 samples: int = 0, iters: int = 0, horizon: int = 0, tau: float = 0.0,
                 seed: int = 0, settings: Optional[Mapping[str, Any]] = None) -> None:
        words = setting_list(settings)
        options = AgentOptions(encoded(device), encoded(precision), threads, encoded(planner),
                               samples, iters, horizon, tau, seed, words, len(words))
        handle = c_void_p()
        call(lib.cgs_agent_create(byref(handle), os.fsencode(directory), byref(options)))
        self._handle = handle
        self._cost: Any = None
        self._raised: Optional[BaseException] = None
        info = lib.cgs_agent_describe(handle)
        for field in AgentInfo._fields_:
            value = getattr(info, field[0])
            setattr(self, field[0], value.decode() if isinstance(value, bytes) else value)
        self._frame = self.image_size * self.image_size * 3

    def encode(self, frames: Any) -> Any:
        """The latents (n, width) of images (n, S, S, 3), or of one image (S, S, 3)."""
        p, n = numbers(frames, "u1", self._frame, "frames")
        z = (c_float * (n * self.width))()
        call(lib.cgs_agent_encode(self._open(), p, n, z))
        return result(z, "f4", (n, self.width))

    def goal_image(self, rgb: Any) -> None:
        """Sets the goal to this image (S, S, 3)."""
        p = exactly(rgb, "u1", self._frame, "goal image")
        call(lib.cgs_agent_goal_image(self._open(), p))

    def goal_latent(self, z: Any) -> None:
        """Sets the goal to this latent (width)."""
        p = exactly(z, "f4", self.width, "goal latent")
        call(lib.cgs_agent_goal_latent(self._open(), p))

    def goal_cost(self, cost: Callable[[Any, Any], Any]) -> None:
        """Sets the goal to a low cost(z, actions) -> (n): z (n, horizon, width) are the predicted
        latents, actions (n, horizon, frameskip, action_dim) those that lead there."""
        def answer(_: Any, z: Any, actions: Any, n: int, out: Any) -> int:
            try:
                values = cost(result(z, "f4", (n, self.horizon, self.width)),
                              result(actions, "f4", (n, self.horizon, self.frameskip,
                                                     self.action_dim)))
                ctypes.memmove(out, exactly(values, "f4", n, "cost"), 4 * n)
                return 0
            except BaseException as e:  # exceptions cannot cross C: plan re-raises it
                self._raised = e
                return 1
        function = COST(answer)
        call(lib.cgs_agent_goal_cost(self._open(), function, None))
        self._cost = function  # alive as long as the library may call it

    def plan(self, frames: Any, executed: Any = None, advanced: int = 0,
             deadline: float = 0.0) -> Plan:
        """The next actions.  frames: the present image, or up to `history` of them one action
        block apart, the present last, with the blocks `executed` between them.  advanced: blocks
        of the last plan executed since; its rest warm-starts the search.  deadline: seconds."""
        p, n = numbers(frames, "u1", self._frame, "frames")
        e = None
        if n > 1:
            if executed is None:
                raise ValueError(f"{n} frames need the actions executed between them")
            e = exactly(executed, "f8", (n - 1) * self.frameskip * self.action_dim, "executed")
        actions = (c_double * (self.horizon * self.frameskip * self.action_dim))()
        report = PlanReport()
        now = Observation(p, n, e, advanced)
        self._raised = None
        status = lib.cgs_agent_plan(self._open(), byref(now), deadline, actions, byref(report))
        if self._raised is not None:
            raise self._raised
        call(status)
        shape = (self.horizon, self.frameskip, self.action_dim)
        return Plan(result(actions, "f8", shape), report.seconds, report.iterations,
                    bool(report.cut), report.cost)

    def begin(self, seed: int = 0, episode: int = 0) -> None:
        """Another episode: the next search starts from nothing, with the random candidates of that
        episode of an evaluation with that seed."""
        lib.cgs_agent_begin(self._open(), seed, episode)

    def weigh(self) -> Tuple[float, float]:
        """What the model says of the last plan: its cost, and the root mean square of its
        standardised actions.  For goals that are images or latents."""
        cost, size = c_double(), c_double()
        call(lib.cgs_agent_weigh(self._open(), byref(cost), byref(size)))
        return cost.value, size.value
