"""Reading and judging datasets."""

from __future__ import annotations

import os
from ctypes import byref, c_double, c_int64, c_uint8, c_void_p
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

from ._declarations import COLUMN_TYPES, FOUND
from ._library import call, lib
from ._numbers import result
from ._owner import Owner


class Column(NamedTuple):
    type: str
    shape: Tuple[int, ...]  # of one row


class Findings(NamedTuple):
    problems: List[str]  # training refuses the file
    remarks: List[str]


def check(path: Union[str, os.PathLike], size: Optional[str] = None) -> Findings:
    """What `cgs data check` says of a file.  size: "small" or "paper", whose images it must fit."""
    found = Findings([], [])

    def note(_: Any, problem: int, sentence: bytes) -> None:
        (found.problems if problem else found.remarks).append(sentence.decode())
    call(lib.cgs_dataset_judge(os.fsencode(path), None if size is None else size.encode(),
                               FOUND(note), None))
    return found


class Dataset(Owner):
    """A recorded file: rows, episodes, columns, images and numbers."""
    _destroy = staticmethod(lib.cgs_dataset_close)

    def __init__(self, path: Union[str, os.PathLike]) -> None:
        handle = c_void_p()
        call(lib.cgs_dataset_open(byref(handle), os.fsencode(path)))
        self._handle = handle
        self.path = os.fspath(path)
        info = lib.cgs_dataset_describe(handle)
        self.rows: int = info.rows
        self.episodes: int = info.episodes
        self.height: int = info.height
        self.width: int = info.width
        self.action_dim: int = info.action_dim
        self.columns: Dict[str, Column] = {}
        for i in range(info.columns):
            c = lib.cgs_dataset_column(handle, i)
            self.columns[c.name.decode()] = Column(COLUMN_TYPES[c.dtype], tuple(c.shape[:c.rank]))

    def episode(self, index: int) -> Tuple[int, int]:
        """The first row of an episode, and how many it has."""
        first = c_int64()
        rows = lib.cgs_dataset_episode(self._open(), index, byref(first))
        if rows == 0:
            raise IndexError(f"{self.path}: episode {index} of {self.episodes}")
        return first.value, rows

    def numbers(self, column: str, first: int, count: int = 1) -> Any:
        """Consecutive rows of a column of numbers, (count, ...)."""
        if column not in self.columns:
            raise KeyError(f'{self.path}: no column "{column}", but {", ".join(self.columns)}')
        shape = self.columns[column].shape
        size = count
        for n in shape:
            size *= n
        out = (c_double * max(size, 1))()
        call(lib.cgs_dataset_read_rows_f64(self._open(), column.encode(), first, count, out))
        return result(out, "f8", (count, *shape))

    def images(self, first: int, count: int = 1) -> Any:
        """Consecutive images, (count, height, width, 3)."""
        out = (c_uint8 * max(count * self.height * self.width * 3, 1))()
        call(lib.cgs_dataset_read_pixels(self._open(), first, count, out))
        return result(out, "u1", (count, self.height, self.width, 3))
