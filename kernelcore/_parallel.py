"""How many threads a call may use: one rule for the whole package."""

import os

from kernelcore._validation import check_integer

_MOST_THREADS = 4096


def available_cores() -> int:
    """Cores that this process may run on (its affinity mask where the system has one)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def resolve_n_threads(n_threads: int | None) -> int:
    """Turn the public `n_threads` into a number of threads.

    None means every core this process may use, or ``KERNELCORE_NUM_THREADS`` if that is
    set. Results never depend on the number.
    """
    if n_threads is not None:
        return check_integer("n_threads", n_threads, minimum=1, maximum=_MOST_THREADS)
    text = os.environ.get("KERNELCORE_NUM_THREADS", "").strip()
    if not text:
        return available_cores()
    if not text.isdecimal() or not 1 <= int(text) <= _MOST_THREADS:
        raise ValueError(
            f"KERNELCORE_NUM_THREADS must be a whole number from 1 to {_MOST_THREADS}, "
            f"got {text!r}"
        )
    return int(text)
