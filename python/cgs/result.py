"""Results of evaluations: successes with intervals, and what compares two of them."""

from __future__ import annotations

from ctypes import byref, c_uint8
from typing import Any, List, NamedTuple, Sequence, Tuple, Union

from ._declarations import PairedCounts
from ._library import call, lib

RESAMPLES = 10000  # of the bootstrap, as cgs eval has it


class Outcome(NamedTuple):
    """How one episode went; costs that a planner does not have are NaN."""
    success: bool
    first: int  # actions until then, or 0
    actions: int
    solves: int
    planned: float  # lowest cost in the last iteration of the last solve
    reached: float  # |z - goal|^2 at the end
    seconds: float  # encoding and planning
    first_success: bool  # of the first plan alone
    first_cost: float
    first_size: float
    first_seconds: float


class Result:
    """What came of an evaluation.  outcomes: of its episodes, [] where a file had them; line: as in
    the files of `cgs eval --out`."""

    def __init__(self, line: str, hash: str, successes: Sequence[bool], seconds: float,
                 outcomes: List[Outcome], starts: Any) -> None:
        self.line, self.hash, self.outcomes, self.seconds = line, hash, outcomes, seconds
        self.success = [bool(s) for s in successes]
        self.episodes, self.successes = len(self.success), sum(self.success)
        self.rate = self.successes / self.episodes
        self.interval = wilson(self.successes, self.episodes)
        self.starts = starts  # what tells whether two results are of the same episodes

    def __str__(self) -> str:
        low, high = self.interval
        return (f"{self.successes} of {self.episodes}, {100 * self.rate:.1f} % "
                f"[{100 * low:.1f}, {100 * high:.1f}]")


def wilson(successes: int, n: int) -> Tuple[float, float]:
    """The 95 % score interval of a proportion."""
    interval = lib.cgs_wilson(successes, n)
    return interval.low, interval.high


class Paired(NamedTuple):
    """b against a on the same starts."""
    n: int
    only_a: int
    only_b: int
    difference: float  # rate of b - rate of a
    interval: Tuple[float, float]  # Newcombe's, 95 %
    bootstrap: Tuple[float, float]
    p: float  # McNemar's exact test, two-sided

    def __str__(self) -> str:
        return (f"{100 * self.difference:+.1f} [{100 * self.interval[0]:+.1f}, "
                f"{100 * self.interval[1]:+.1f}], p = {self.p:.3g} (only second {self.only_b}, "
                f"only first {self.only_a}, of {self.n})")


def compare(a: Union[Result, Sequence[bool]], b: Union[Result, Sequence[bool]]) -> Paired:
    """b against a, two results (or lists of successes) on the same starts."""
    if isinstance(a, Result) and isinstance(b, Result) and a.starts != b.starts:
        raise ValueError("these results have different starts: they are no pairs")
    x = b.success if isinstance(b, Result) else [bool(s) for s in b]
    y = a.success if isinstance(a, Result) else [bool(s) for s in a]
    if len(x) != len(y) or not x:
        raise ValueError(f"{len(y)} and {len(x)} episodes are no pairs")
    out = PairedCounts()
    successes = c_uint8 * len(x)
    call(lib.cgs_compare_paired(successes(*x), successes(*y), len(x), RESAMPLES, 0, byref(out)))
    return Paired(out.n, out.only_b, out.only_a, out.difference,
                  (out.newcombe.low, out.newcombe.high), (out.bootstrap.low, out.bootstrap.high),
                  out.p)
