"""Numbers in and out: arrays where NumPy is installed, else lists and bytes."""

from __future__ import annotations

import ctypes
from ctypes import c_double, c_float, c_int32, c_int64, c_uint8, c_void_p
from typing import Any, List, Sequence, Tuple

numpy: Any
try:
    import numpy
except ImportError:
    numpy = None

TYPES = {"u1": c_uint8, "f4": c_float, "f8": c_double, "i4": c_int32, "i8": c_int64}
RAW = (bytes, bytearray, memoryview)


def _flat(values: Any, into: List[Any]) -> List[Any]:
    for v in values:
        if hasattr(v, "__iter__"):
            _flat(v, into)
        else:
            into.append(v)
    return into


def _as_bytes(values: Any) -> bytes:
    if isinstance(values, RAW):
        return bytes(values)
    if all(isinstance(v, RAW) for v in values):
        return b"".join(bytes(v) for v in values)
    return bytes(_flat(values, []))


def _from_array(values: Any, kind: str, what: str) -> Any:
    if isinstance(values, RAW):
        a = numpy.frombuffer(values, numpy.uint8)
    elif kind == "u1" and isinstance(values, (list, tuple)) and all(isinstance(v, RAW) for v in values):
        a = numpy.frombuffer(b"".join(values), numpy.uint8)
    else:
        a = numpy.asarray(values)
    # an image of floats would be truncated silently
    if kind == "u1" and a.dtype != numpy.uint8 and not (
            a.dtype.kind in "iu" and a.size and 0 <= a.min() and a.max() <= 255):
        raise TypeError(f"{what}: wants bytes from 0 to 255, got {a.dtype}")
    if kind in ("i4", "i8") and a.dtype.kind not in "iu":
        raise TypeError(f"{what}: wants whole numbers, got {a.dtype}")
    return numpy.ascontiguousarray(a, "=" + kind)


def numbers(values: Any, kind: str, multiple: int, what: str) -> Tuple[Any, int]:
    """A C array of `values`, and its length in units of `multiple` numbers."""
    data: Any
    pointer: Any
    if numpy is not None:
        data = _from_array(values, kind, what)
        count, pointer = data.size, data.ctypes.data_as(c_void_p)
    else:
        if kind == "u1":
            flat: Any = _as_bytes(values)
            data = (c_uint8 * len(flat)).from_buffer_copy(flat)
        else:
            flat = _flat(values, [])
            data = (TYPES[kind] * len(flat))(*flat)
        count, pointer = len(flat), ctypes.cast(data, c_void_p)
    pointer.keep = data  # alive as long as the pointer
    if count == 0 or count % multiple:
        raise ValueError(f"{what}: wants {multiple} numbers or a multiple, got {count}")
    return pointer, count // multiple


def exactly(values: Any, kind: str, size: int, what: str) -> Any:
    pointer, times = numbers(values, kind, size, what)
    if times != 1:
        raise ValueError(f"{what}: wants {size} numbers, got {times * size}")
    return pointer


def _nest(flat: List[Any], shape: Sequence[int]) -> List[Any]:
    if len(shape) <= 1:
        return flat
    size = len(flat) // shape[0] if shape[0] else 0
    return [_nest(flat[i * size:(i + 1) * size], shape[1:]) for i in range(shape[0])]


def result(data: Any, kind: str, shape: Sequence[int]) -> Any:
    """A copy of a ctypes array or pointer as an array, or as lists (images: bytes)."""
    size = 1
    for n in shape:
        size *= n
    if numpy is not None:
        raw = ctypes.string_at(data, size * ctypes.sizeof(TYPES[kind]))
        return numpy.frombuffer(raw, kind).reshape(shape).copy()
    if kind == "u1":
        return ctypes.string_at(data, size)
    return _nest([data[i] for i in range(size)], shape)


def plain(values: Any) -> Any:
    """Lists, whatever came."""
    return values.tolist() if hasattr(values, "tolist") else list(values)
