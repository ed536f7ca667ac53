"""Objects that own one of the library's."""

from __future__ import annotations

from typing import Any, Callable


class Owner:
    """Closed by close(), `with`, or garbage collection."""
    _destroy: Callable[[Any], None]
    _handle: Any = None

    def close(self) -> None:
        if self._handle is not None:
            self._destroy(self._handle)
            self._handle = None

    def _open(self) -> Any:
        if self._handle is None:
            raise ValueError(f"this {type(self).__name__} is closed")
        return self._handle

    def __enter__(self) -> Any:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()
