"""Time several ways to do the same work, side by side in one process."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import peers

import kernelcore

Way = Callable[[], Any]


def compare(
    work: str,
    ways: Mapping[str, Way],
    *,
    check: Callable[[Any], object],
    read: Mapping[str, Callable[[Any], Any]] | None = None,
    before: Mapping[str, Way] | None = None,
    n_threads: int = 1,
    rounds: int,
    seconds: float = 6.0,
    shape: str = "",
    size: float | None = None,
    unit: str = "",
) -> dict[str, Any]:
    """Let the ways take turns, so that all of them see the same machine.

    Parameters
    ----------
    work : str
        What is done; the name under which `targets` looks for it, with the threads.
    ways : mapping of str to callable
        How it is done. A name that starts with a peer's is left out where the peer is not
        installed; all others are ours.
    check : callable
        Raises unless it is given the right answer. Each way's first one is checked.
    read : mapping of str to callable, optional
        Brings the answer of a way into the form that `check` takes, outside the time.
    before : mapping of str to callable, optional
        What a way needs once, such as to be compiled; not timed.
    n_threads : int, default 1
        Of everybody.
    rounds : int
        Turns of each way; fewer once it has taken `seconds`. The first one counts like the
        others, as the fastest is what is read.
    seconds : float, default 6.0
    shape : str
        Size of the problem, for readers.
    size : float, optional
        Number of units of work, for rates.
    unit : str
        What `size` counts.

    Returns
    -------
    dict
        What is stored: all times of every way, and what they were measured on.
    """
    before = before or {}
    present = {
        by: way
        for by, way in ways.items()
        if (name := peers.peer_of(by)) is None or peers.is_here(name)
    }
    times: dict[str, list[float]] = {by: [] for by in present}
    with peers.threads(n_threads):
        for by in present.keys() & before.keys():
            timed(by, before[by])
        for turn in range(rounds):
            for by, way in present.items():
                if sum(times[by]) > seconds:
                    continue
                elapsed, answer = timed(by, way)
                times[by].append(elapsed)
                if turn == 0:
                    check((read or {}).get(by, lambda answer: answer)(answer))
    return {
        "work": work,
        "n_threads": n_threads,
        "instruction_set": kernelcore.show_config()["instruction_set"],
        "shape": shape,
        "size": size,
        "unit": unit,
        "seconds": {by: [round(value, 9) for value in all_] for by, all_ in times.items()},
        "absent": sorted(set(ways) - set(present)),
    }


def timed(by: str, way: Way) -> tuple[float, Any]:
    """Seconds and answer of one call; what peers warn of is theirs."""
    with warnings.catch_warnings():
        if peers.peer_of(by) is not None:
            warnings.simplefilter("ignore")
        start = time.perf_counter()
        answer = way()
        return time.perf_counter() - start, answer


def key_of(work: str, n_threads: int) -> str:
    """Name of a measurement in the file of results."""
    return f"{work}, {threads_of(n_threads)}"


def threads_of(n_threads: int) -> str:
    """Number of threads in words."""
    return "1 thread" if n_threads == 1 else f"{n_threads} threads"


def describe(entry: Mapping[str, Any]) -> str:
    """One line for the terminal: the fastest round of each way, the first one as the unit."""
    fastest = {by: min(values) for by, values in entry["seconds"].items()}
    unit = next(iter(fastest.values()))
    times = ", ".join(
        f"{by} {value:.3g} s ({value / unit:.2f})" for by, value in fastest.items()
    )
    rate = f"; {entry['size'] / unit:.3g} {entry['unit']}/s" if entry["size"] else ""
    missing = f"; without {', '.join(entry['absent'])}" if entry["absent"] else ""
    return f"{key_of(entry['work'], entry['n_threads'])}: {times}{rate}{missing}"
