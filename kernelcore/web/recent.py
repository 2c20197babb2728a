"""A mapping of limited size that keeps what was used last."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from typing import Generic, NamedTuple, TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class _Kept(NamedTuple, Generic[_Value]):
    value: _Value
    size: int
    used: float  # seconds of a monotonic clock


class Recent(Generic[_Key, _Value]):
    """Values by keys; those unused for longest are dropped once all together are too large.

    Threads may share it.

    Parameters
    ----------
    most : int
        Largest sum of the sizes of all values.
    seconds : float, optional
        A value that was not used for so long is dropped too.

    Examples
    --------
    >>> from kernelcore.web.recent import Recent
    >>> recent = Recent(most=10)
    >>> for name in ("a", "b", "c"):
    ...     recent.put(name, name.upper(), size=4)
    >>> recent.get("a"), recent.get("c")
    (None, 'C')
    """

    def __init__(self, most: int, *, seconds: float = math.inf) -> None:
        self._most, self._seconds = most, seconds
        self._kept: OrderedDict[_Key, _Kept[_Value]] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def get(self, key: _Key) -> _Value | None:
        """Return the value of a key, or None if it was dropped or never put."""
        with self._lock:
            self._drop()
            kept = self._kept.get(key)
            if kept is None:
                return None
            self._kept[key] = kept._replace(used=time.monotonic())
            self._kept.move_to_end(key)
            return kept.value

    def put(self, key: _Key, value: _Value, *, size: int) -> None:
        """Keep a value of this size; one that is larger than all may be is not kept."""
        with self._lock:
            if key in self._kept:
                self._size -= self._kept.pop(key).size
            if size <= self._most:
                self._kept[key] = _Kept(value, size, time.monotonic())
                self._size += size
            self._drop()

    def _drop(self) -> None:
        oldest_allowed = time.monotonic() - self._seconds
        while self._kept:
            first = next(iter(self._kept))
            if self._size <= self._most and self._kept[first].used >= oldest_allowed:
                return
            self._size -= self._kept.pop(first).size
