"""Kernels that fail, wait or kill, for tests of tasks; workers import them by name."""

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np

from kernelcore.distributed.store import working_on


def plain(X, Y):
    return X.astype(np.float64) @ Y.astype(np.float64).T


def fails(X, Y):
    raise ArithmeticError("no value today")


def fails_for_large(X, Y):
    if max(X.max(), Y.max()) > 40:
        raise ArithmeticError("too large")
    return plain(X, Y)


def fails_at_first(X, Y, folder):
    """Fail in the first two calls."""
    for k in range(2):
        try:
            (Path(folder) / str(k)).touch(exist_ok=False)
        except FileExistsError:
            continue
        raise OSError("not yet")
    return plain(X, Y)


def kills_once(X, Y, folder):
    """Kill the process of the first call."""
    try:
        (Path(folder) / "killed").touch(exist_ok=False)
        os.kill(os.getpid(), signal.SIGKILL)
    except FileExistsError:
        pass
    return plain(X, Y)


def takes_a_moment(X, Y):
    time.sleep(0.1)
    return plain(X, Y)


def waits(X, Y, folder):
    """Wait until a file is there."""
    (Path(folder) / f"waiting-{os.getpid()}").touch()
    while not (Path(folder) / "go").exists():
        time.sleep(0.02)
    return plain(X, Y)


def wrong_shape(X, Y):
    return np.zeros((1, 1))


def negative(X, Y):
    return -plain(X, Y) - 1.0


def not_finite(X, Y):
    return np.full((len(X), len(Y)), np.nan)


def holds(folder, ready):
    """Work on a store until this process is killed."""
    with working_on(folder):
        ready.set()
        threading.Event().wait()


NOT_A_FUNCTION = 3
