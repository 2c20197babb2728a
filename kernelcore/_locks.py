"""Locks on files and folders, which the system drops when their process dies."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakSet

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

_NO_LOCKS = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EBADF}


@contextmanager
def held(path: Path, *, wait: bool = False, without_locks: bool = False) -> Iterator[None]:
    """Lock a file or folder; BlockingIOError if another process holds it or has removed it.

    Where nothing can be locked it is an OSError, unless the caller can do `without_locks`.
    """
    if fcntl is None:
        if not without_locks:
            raise OSError(errno.ENOLCK, "this system has no locks", os.fspath(path))
        yield
        return
    held = _Open(path)
    try:
        try:
            fcntl.flock(held.descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError as error:
            if not without_locks or error.errno not in _NO_LOCKS:
                raise
        if not os.path.samestat(os.fstat(held.descriptor), path.lstat()):
            raise BlockingIOError(errno.EAGAIN, "another process replaced it", os.fspath(path))
        yield
    finally:
        held.close()


class _Open:
    """An open file or folder, closed with its last reference at the latest.

    Ctrl-C may come just before `close`. The lock would then be held as long as the process
    lives, and the next writer in it would wait for ever.
    """

    def __init__(self, path: Path) -> None:
        self.descriptor = os.open(path, os.O_RDONLY)
        _opened.add(self)

    def close(self) -> None:
        """Close it, once."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        if hasattr(self, "descriptor"):
            self.close()


_opened: WeakSet[_Open] = WeakSet()


def _close_all() -> None:
    """Close what a process inherited when it was forked: it would keep locks of its parent."""
    for one in list(_opened):
        one.close()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_close_all)
