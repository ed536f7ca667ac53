"""Recording datasets."""

from __future__ import annotations

import os
from ctypes import byref, c_int64, c_void_p
from typing import Any, List, Mapping, Sequence, Tuple, Union

from ._declarations import COLUMN_RANK, COLUMN_TYPES, ColumnSpec
from ._library import Error, call, lib
from ._numbers import RAW, numbers
from ._owner import Owner
from .dataset import check

KINDS = {"f32": "f4", "f64": "f8", "i32": "i4", "i64": "i8", "u8": "u1"}


class Writer(Owner):
    """Records a dataset, episode by episode; docs/your-data.md says what training needs.

        with cgs.Writer("mine.h5", {"pixels": ("u8", (64, 64, 3)), "action": ("f32", (2,)),
                                    "state": ("f64", (4,))}, env="mine") as writer:
            writer.add(pixels=frames, action=actions, state=states)

    Columns have a type (f32, f64, i32, i64, u8) and the shape of one row; keywords become
    attributes of the file.  Episodes go to NAME.part, which becomes the dataset at the end of the
    `with`; where that does not come, the next Writer continues: `episodes` says how many there are.
    """
    _destroy = staticmethod(lib.cgs_writer_destroy)

    def __init__(self, path: Union[str, os.PathLike],
                 columns: Mapping[str, Tuple[str, Sequence[int]]], **attributes: Any) -> None:
        self.path = os.fspath(path)
        self.columns = {name: (kind, tuple(shape)) for name, (kind, shape) in columns.items()}
        specs = (ColumnSpec * len(columns))()
        for spec, (name, (kind, shape)) in zip(specs, self.columns.items()):
            if kind not in KINDS:
                raise ValueError(f'column "{name}": "{kind}" is not one of {", ".join(KINDS)}')
            if len(shape) > COLUMN_RANK:
                raise ValueError(f'column "{name}": a row of {len(shape)} axes')
            spec.name, spec.dtype, spec.rank = name.encode(), COLUMN_TYPES.index(kind), len(shape)
            spec.shape[:len(shape)] = shape
        handle = c_void_p()
        call(lib.cgs_writer_create(byref(handle), os.fsencode(path), specs, len(specs)))
        self._handle = handle
        for name, value in attributes.items():
            self._attribute(name, value)
        recorded = c_int64()
        call(lib.cgs_writer_begin(handle, byref(recorded)))
        self.episodes = recorded.value

    def _attribute(self, name: str, value: Any) -> None:
        key = name.encode()
        if isinstance(value, str):
            call(lib.cgs_writer_text(self._handle, key, value.encode()))
        elif isinstance(value, int) and value >= 0:
            call(lib.cgs_writer_integer(self._handle, key, value))
        else:
            call(lib.cgs_writer_real(self._handle, key, float(value)))

    def add(self, **values: Any) -> None:
        """One episode: for every column its rows.  T actions make T + 1 rows; where "action" has
        one row less than the first column, the last one, NaN, is added."""
        if set(values) != set(self.columns):
            raise ValueError(f"an episode has the columns {', '.join(self.columns)}, "
                             f"got {', '.join(values) or 'none'}")
        data, rows = [], 0
        for name, (kind, shape) in self.columns.items():
            size = 1
            for n in shape:
                size *= n
            pointer, count = numbers(values[name], KINDS[kind], size, f'column "{name}"')
            if name == "action" and kind in ("f32", "f64") and count + 1 == rows:
                pointer, count = numbers(_rows(values[name]) + [float("nan")] * size, KINDS[kind],
                                         size, name)
            if rows and count != rows:
                raise ValueError(f'column "{name}" has {count} rows, the others {rows}')
            rows = count
            data.append(pointer)
        call(lib.cgs_writer_add(self._open(), rows, (c_void_p * len(data))(*data)))
        self.episodes += 1

    def finish(self) -> List[str]:
        """Makes the dataset; returns remarks of `cgs data check` and raises what it calls problems,
        which training refuses."""
        call(lib.cgs_writer_finish(self._open()))
        self.close()
        found = check(self.path)
        if found.problems:
            raise Error("format", f"{self.path}: " + "; ".join(found.problems))
        return found.remarks

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None and self._handle is not None:
            self.finish()
        self.close()


def _rows(values: Any) -> Any:
    """Numbers one after the other."""
    if hasattr(values, "tolist"):
        values = values.tolist()
    flat: List[Any] = []
    for v in values:
        if hasattr(v, "__iter__") and not isinstance(v, RAW):
            flat.extend(_rows(v))
        else:
            flat.append(v)
    return flat
