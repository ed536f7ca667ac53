"""Finds and loads the C library."""

from __future__ import annotations

import ctypes
import ctypes.util
import glob
import os
from typing import List

from ._declarations import FUNCTIONS

SONAME = "libcgs.so.2"


class Error(RuntimeError):
    """A call failed; status is the name of the library's status code."""

    def __init__(self, status: str, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def _candidates() -> List[str]:
    here = os.path.dirname(os.path.abspath(__file__))
    if os.environ.get("CGS_LIBRARY"):
        return [os.environ["CGS_LIBRARY"]]
    carried = os.path.join(here, "lib", SONAME)
    built = sorted(glob.glob(os.path.join(here, "..", "..", "build", "libcgs.so.*")))
    installed = os.path.join(here, "..", "..", "..", "..", "lib", SONAME)
    found = [p for p in [carried, *built, installed] if os.path.exists(p)]
    return found or [ctypes.util.find_library("cgs") or SONAME]


def _load() -> ctypes.CDLL:
    path = _candidates()[0]
    try:
        library = ctypes.CDLL(path)
    except OSError as e:
        raise ImportError(f"{path}: {e}; run make, or name the library in CGS_LIBRARY") from e
    for name, result, arguments in FUNCTIONS:
        function = getattr(library, name, None)
        if function is None:
            raise ImportError(f"{path} has no {name}: it is of another version than this package")
        function.restype, function.argtypes = result, arguments
    return library


lib = _load()


def call(status: int) -> None:
    """Raises what a function of the library reported."""
    if status:
        raise Error(lib.cgs_status_name(status).decode(), lib.cgs_last_error().decode())
