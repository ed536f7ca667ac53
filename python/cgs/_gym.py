"""Gymnasium's classes where it is installed; else stand-ins with what a loop needs of them."""

from __future__ import annotations

import math
import random
from typing import Any, List, Optional, Sequence

from ._numbers import numpy, plain

Env: Any
VectorEnv: Any
try:
    import gymnasium
    from gymnasium import Env
    from gymnasium.vector import VectorEnv
except ImportError:
    gymnasium = None


class _Env:
    """What gymnasium.Env has beside the methods of an environment."""
    metadata: dict = {}
    render_mode: Optional[str] = None
    spec: Any = None

    @property
    def unwrapped(self) -> Any:
        return self


class Box:
    """Numbers between bounds, with an interface like gymnasium.spaces.Box."""

    def __init__(self, low: float, high: float, shape: Sequence[int], dtype: str) -> None:
        self.low, self.high, self.shape, self.dtype = low, high, tuple(shape), dtype
        self._random = random.Random()

    def seed(self, seed: Optional[int] = None) -> Optional[int]:
        self._random.seed(seed)
        return seed

    def _one(self) -> float:
        if self.dtype == "uint8":
            return self._random.randint(int(self.low), int(self.high))
        if math.isinf(self.low) or math.isinf(self.high):
            return self._random.gauss(0, 1)
        return self._random.uniform(self.low, self.high)

    def sample(self) -> Any:
        def nested(shape: Sequence[int]) -> Any:
            return [nested(shape[1:]) for _ in range(shape[0])] if shape else self._one()
        values = nested(self.shape)
        return values if numpy is None else numpy.array(values, self.dtype)

    def contains(self, x: Any) -> bool:
        def fits(x: Any, shape: Sequence[int]) -> bool:
            if shape:
                return hasattr(x, "__len__") and len(x) == shape[0] and all(fits(v, shape[1:]) for v in x)
            return isinstance(x, (int, float)) and self.low <= x <= self.high
        if isinstance(x, bytes):  # an image without NumPy
            return self.dtype == "uint8" and len(x) == math.prod(self.shape)
        return fits(plain(x), self.shape)

    __contains__ = contains

    def __repr__(self) -> str:
        return f"Box({self.low}, {self.high}, {self.shape}, {self.dtype})"


if gymnasium is None:
    Env = VectorEnv = _Env


def box(low: float, high: float, shape: Sequence[int], dtype: str) -> Any:
    """Gymnasium's Box, or the stand-in."""
    if gymnasium is None:
        return Box(low, high, shape, dtype)
    return gymnasium.spaces.Box(low, high, tuple(shape), numpy.dtype(dtype))


def next_step_reset() -> Any:
    """Gymnasium's word for: an episode that has ended is reset by the step after."""
    mode = getattr(getattr(gymnasium, "vector", None), "AutoresetMode", None)
    return mode.NEXT_STEP if mode else "NextStep"


def stacked(rows: List[Any]) -> Any:
    return rows if numpy is None else numpy.stack(rows)


def array(values: List[Any], dtype: str) -> Any:
    return values if numpy is None else numpy.array(values, dtype)
