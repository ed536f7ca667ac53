"""What the library knows by name."""

from __future__ import annotations

from ctypes import byref, c_char_p
from typing import List

from ._library import call, lib


def version() -> str:
    """The version of the loaded library."""
    return lib.cgs_version().decode()


def environments() -> List[str]:
    """The ids of the environments."""
    return [lib.cgs_sim_id(i).decode() for i in range(lib.cgs_sim_count())]


def load_environment(path: str) -> str:
    """Loads an environment of your own, a shared library made with cgs/env.h, and returns its id,
    which Sim and VectorSim then take.  Nothing is searched for: the path has a slash."""
    id = c_char_p()
    call(lib.cgs_env_load(path.encode(), byref(id)))
    return (id.value or b"").decode()


def planners() -> List[str]:
    """The names of the planners that an Agent takes."""
    return [lib.cgs_planner_id(i).decode() for i in range(lib.cgs_planner_count())]
