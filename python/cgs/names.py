"""What the library knows by name."""

from __future__ import annotations

from typing import List

from ._library import lib


def version() -> str:
    """The version of the loaded library."""
    return lib.cgs_version().decode()


def environments() -> List[str]:
    """The ids of the environments."""
    return [lib.cgs_sim_id(i).decode() for i in range(lib.cgs_sim_count())]


def planners() -> List[str]:
    """The names of the planners that an Agent takes."""
    return [lib.cgs_planner_id(i).decode() for i in range(lib.cgs_planner_count())]
