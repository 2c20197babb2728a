"""Limits of memory and time for what reads a file of a stranger."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def bounded(memory: int, seconds: float) -> Iterator[None]:
    """Refuse more than so many further bytes of memory; fail if it took longer."""
    begin = time.thread_time()
    if sys.platform != "linux":
        yield
    else:
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        before = resource.getrlimit(resource.RLIMIT_AS)
        limit = pages * resource.getpagesize() + memory
        resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_AS, before)
    assert time.thread_time() - begin <= seconds
