"""Where episodes of an evaluation begin, and what their goals are."""

from __future__ import annotations

import os
from typing import Any, Callable, Iterator, List, NamedTuple, Optional, Union

from ._declarations import SKIP, StartRow
from ._library import call, lib
from .agent import Agent
from .dataset import Dataset


class Start(NamedTuple):
    """seed and options go to reset; frame and goal are images, where None is what the environment
    renders.  episode, step and row are kept with the result."""
    seed: Optional[int] = None
    options: Optional[dict] = None
    frame: Any = None
    goal: Any = None
    episode: int = 0
    step: int = 0
    row: int = 0


class Starts:
    """A list of starts, and what is said about them in a result line."""

    def __init__(self, rows: List[StartRow], make: Callable[[StartRow], Start], *, seed: int = 0,
                 dataset: str = "", dataset_rows: int = 0, offset: int = 0, held_out: bool = False,
                 skip_solved: bool = False) -> None:
        self.rows, self._make, self.seed = rows, make, seed
        self.dataset, self.dataset_rows, self.offset = dataset, dataset_rows, offset
        self.held_out, self.skip_solved = held_out, skip_solved

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Start]:
        for row in self.rows:
            yield self._make(row)


def seeds(count: int, first: int = 0) -> Starts:
    """Starts that the environment draws: reset(seed=first), reset(seed=first + 1), ..."""
    return Starts([StartRow(first + i, 0, first + i) for i in range(count)],
                  lambda r: Start(seed=r.row, episode=r.episode, row=r.row), seed=first)


def starts(data: Union[str, os.PathLike, Dataset], count: int = 50, *, seed: int = 0,
           offset: int = 25, state: str = "state", held_out: Optional[Agent] = None,
           skip: Optional[Callable[[Any, Any], bool]] = None) -> Starts:
    """Rows of a dataset, drawn as `cgs eval` draws them, with goals `offset` rows later.

    The environment is reset with options={"state": ..., "goal": ...}, those rows of the column
    `state`; the first image and the goal's are the recorded ones.  held_out: an agent, whose model
    has not been trained on the episodes that are drawn from.  skip(state, goal): true for starts
    that are not wanted, such as those at their goal."""
    d = data if isinstance(data, Dataset) else Dataset(data)
    raised: List[BaseException] = []

    def unwanted(_: Any, start: Any) -> int:
        row = start.contents.row
        try:
            assert skip is not None
            return int(not raised and skip(d.numbers(state, row)[0], d.numbers(state, row + offset)[0]))
        except BaseException as e:  # exceptions cannot cross C
            raised.append(e)
            return 0

    def make(r: StartRow) -> Start:
        options = {"state": d.numbers(state, r.row)[0], "goal": d.numbers(state, r.row + offset)[0]}
        return Start(options=options, frame=_image(d, r.row), goal=_image(d, r.row + offset),
                     episode=r.episode, step=r.step, row=r.row)
    rows = (StartRow * max(count, 1))()
    status = lib.cgs_dataset_starts(
        d._open(), count, offset, seed, held_out._open() if held_out else None,
        SKIP(unwanted) if skip else SKIP(), None, rows)
    if raised:
        raise raised[0]
    call(status)
    return Starts(list(rows), make, seed=seed, dataset=os.path.basename(d.path),
                  dataset_rows=d.rows, offset=offset, held_out=held_out is not None,
                  skip_solved=skip is not None)


def _image(d: Dataset, row: int) -> Any:
    image = d.images(row)
    return image if isinstance(image, bytes) else image[0]
