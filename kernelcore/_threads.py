"""Thread pools, cancellation by Ctrl-C, progress, and libraries on one thread."""

from __future__ import annotations

import functools
import os
import sys
import threading
from _thread import start_new_thread
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import lru_cache, partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias, TypeVar
from weakref import WeakSet

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController

from kernelcore import _extras
from kernelcore._check import check_integer

_MOST_THREADS = 4096
_INTERVAL = 0.05  # seconds between two looks of a waiting call
_MOST_REPORTS = 10_000
_WORK_PER_THREAD = 1e6  # nanoseconds
_SILENT = nullcontext()

StopFlag: TypeAlias = npt.NDArray[np.bool_]
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class cached_property(functools.cached_property[_Result]):  # noqa: N801, TID251 -- as there
    """``functools.cached_property`` without the lock that it has up to Python 3.11.

    All objects of a class share that lock: a process forked while another thread computes a
    value waits for it forever. Without it two threads may compute a value twice.
    """

    if not TYPE_CHECKING:  # it is typed there

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            value = vars(instance)[self.func.__name__] = self.func(instance)
            return value


class Stopped(BaseException):
    """Ends the work of a thread whose result is no longer needed."""


def available_cores() -> int:
    """Cores that this process may run on (its affinity mask where the system has one)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def resolve_n_threads(n_threads: int | None) -> int:
    """Turn the public `n_threads` into a number of threads.

    None means every core this process may use, or ``KERNELCORE_NUM_THREADS`` if that is
    set. Results never depend on the number but for sums in torch, by a rounding.
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


def threads_for(n_threads: int | None, work: float) -> int:
    """Turn the public `n_threads` into the number of threads for a call of this much work.

    To start a thread and to wait for it takes some tenths of a millisecond on a busy machine,
    so each is to have a millisecond of work.

    Parameters
    ----------
    n_threads : int, optional
        As the caller of the public function gave it.
    work : float
        Nanoseconds that the call takes on one thread, within a factor of a few.

    Examples
    --------
    >>> from kernelcore._threads import threads_for
    >>> threads_for(8, 0.0), threads_for(8, 1e9)
    (1, 8)
    """
    if n_threads is None and work < _WORK_PER_THREAD:
        return 1
    return min(resolve_n_threads(n_threads), 1 + int(work / _WORK_PER_THREAD))


def stop_flag() -> StopFlag:
    """Return an array of one element that becomes True when this thread is to stop.

    It is for compiled loops that hold no GIL; they return early, and their caller then calls
    `check_stopped`. In a thread that `in_threads` did not start it stays False: there the
    loop looks for Ctrl-C itself, with ``PyErr_CheckSignals()``, which in turn is deaf in all
    threads but the main one.
    """
    return _here.flag


def check_stopped() -> None:
    """Raise `Stopped` if the call that started this thread was interrupted.

    Work in a thread of `in_threads` that takes longer than some 50 ms calls it between its
    steps. In other threads it does nothing.
    """
    if _here.flag[0]:
        raise Stopped


def in_threads(
    work: Callable[[_Item], _Result],
    items: Collection[_Item],
    n_threads: int,
    *,
    setting: Callable[[], AbstractContextManager[object]] = nullcontext,
    report: Callable[[int, int], None] | None = None,
) -> list[_Result]:
    """Return the result of `work` for each of the items, in their order.

    Parameters
    ----------
    work : callable
        Called with one item, in a thread of its own even where `n_threads` is 1.
    items : collection
        They are handed out in their order, to whichever thread is free.
    n_threads : int
        Threads to start, at most one per item.
    setting : callable, optional
        Makes a context that each thread works in, such as ``one_blas_thread``.
    report : callable, optional
        Called with (items done, items in all) from the calling thread, for every item or, of
        many, some ten thousand times; last with the total, once the threads have ended.

    Raises
    ------
    Exception
        The error of `work` for the first item that has one, which is the same for every
        number of threads. No item is begun after an error.

    Notes
    -----
    On Ctrl-C, or an error of `report`, the call ends when each thread has ended its item or
    has reached its next `check_stopped`. A call within the `work` of another call stops with
    it. All this holds for calls in threads other than the main one, which get no signals.

    Examples
    --------
    >>> from kernelcore._threads import in_threads
    >>> in_threads(str.upper, ["a", "b", "c"], 2)
    ['A', 'B', 'C']
    """
    tasks = _Tasks(work, items, setting)
    n_items = len(items)
    n_told, n_threads = 0, min(n_threads, n_items)
    started: list[int] = []
    try:
        try:
            # In one step, so that no Ctrl-C comes between a start and its entry.
            started.extend(map(start_new_thread, [tasks.run] * n_threads, [()] * n_threads))
        except RuntimeError:  # no more threads: those that started do the work
            if not started:
                raise
        while tasks.n_ended < len(started):
            tasks.wait()
            check_stopped()
            n_told = _tell(report, n_told, min(tasks.n_done, n_items - 1), n_items)
    except BaseException:
        tasks.flag[0] = True
        while tasks.n_ended < len(started):
            tasks.wait()
        raise
    results = tasks.results()
    if report is not None and _tell(report, n_told, n_items, n_items) < n_items:
        report(n_items, n_items)
    return results


class _Here(threading.local):
    """State of the current thread."""

    flag: StopFlag = np.zeros(1, np.bool_)


_here = _Here()


class _Tasks(Generic[_Item, _Result]):
    """Items for threads, and their results or errors."""

    def __init__(
        self,
        work: Callable[[_Item], _Result],
        items: Collection[_Item],
        setting: Callable[[], AbstractContextManager[object]],
    ) -> None:
        self.flag: StopFlag = np.zeros(1, np.bool_)
        self.n_done = self.n_ended = 0
        self._work, self._setting = work, setting
        self._waiting = iter(enumerate(items))
        self._results: dict[int, _Result] = {}
        self._errors: dict[int, BaseException] = {}
        self._lock = threading.Lock()
        # Whatever moment Ctrl-C interrupts, it stays usable: Thread.join() and Event do not.
        self._ended: SimpleQueue[None] = SimpleQueue()

    def run(self) -> None:
        """Process items until there are no more; run by each thread."""
        _here.flag = self.flag
        k = -1
        try:
            with self._setting():
                while True:
                    with self._lock:
                        k, *found = next(self._waiting, (-1,))
                    if not found or self._errors or self.flag[0]:
                        break
                    self._results[k] = self._work(*found)
                    with self._lock:
                        self.n_done += 1
        except BaseException as error:  # the calling thread raises it
            self._errors[k] = error
        finally:
            with self._lock:
                self.n_ended += 1
            self._ended.put(None)

    def wait(self) -> None:
        """Wait for a thread to end, for a short time."""
        with suppress(Empty):
            self._ended.get(timeout=_INTERVAL)

    def results(self) -> list[_Result]:
        """Return the results in order, or raise the error of the first item that has one."""
        if not self._errors:
            return [self._results[k] for k in range(len(self._results))]
        error = self._errors[min(self._errors)]
        self._errors.clear()  # their tracebacks hold this object
        try:
            raise error
        finally:
            del error


def _tell(
    report: Callable[[int, int], None] | None, n_told: int, n_done: int, n_items: int
) -> int:
    """Report the steps since the last report; return the number of the last step."""
    if report is not None:
        step = max(1, n_items // _MOST_REPORTS)
        while n_told + step <= n_done:
            n_told += step
            report(n_told, n_items)
    return n_told


Report: TypeAlias = Callable[[int, int], None]
"""Called with (steps done, steps in all) from the thread that made the call."""

Progress: TypeAlias = bool | Report
"""The public option: True draws a bar (extra ``cli``), a callable is called."""


def reporting(progress: Progress, description: str) -> AbstractContextManager[Report | None]:
    """Return a context with the function that reports progress, or None.

    The function is `attentive`: compiled code that calls it can be stopped.
    """
    if progress is False and _here.flag is _Here.flag:  # most calls
        return _SILENT
    if callable(progress):
        return nullcontext(attentive(progress))
    if not isinstance(progress, bool):
        raise TypeError(f"progress must be True, False or a callable, got {progress!r}")
    return _progress_bar(description) if progress else nullcontext(attentive(None))


@contextmanager
def _progress_bar(description: str) -> Iterator[Report | None]:
    rich_progress = _extras.require("rich.progress")
    console = _extras.require("rich.console").Console(stderr=True)
    with rich_progress.Progress(
        rich_progress.TextColumn("{task.description}"),
        rich_progress.BarColumn(),
        rich_progress.MofNCompleteColumn(),
        rich_progress.TimeRemainingColumn(compact=True, elapsed_when_finished=True),
        console=console,
    ) as bar:
        task = bar.add_task(description, total=None)
        yield attentive(lambda done, total: bar.update(task, completed=done, total=total))


@contextmanager
def working(progress: Progress, description: str) -> Iterator[None]:
    """Show that a step without known progress is running."""
    with reporting(progress, description) as report:
        yield
        if report is not None:
            report(1, 1)


def attentive(report: Report | None) -> Report | None:
    """Return a report function for compiled code, by which it can be stopped in any thread.

    Compiled code notices Ctrl-C by itself in the main thread only. In a thread of `in_threads`
    the function calls `check_stopped`, even if no report is wanted.
    """
    if _here.flag is _Here.flag:  # `in_threads` did not start this thread
        return report

    def checking(done: int, total: int) -> None:
        check_stopped()
        if report is not None:
            report(done, total)

    return checking


class Limit(NamedTuple):
    """A setting of a library: how to read and to change it, and its value for one thread."""

    get: Callable[[], int]
    set: Callable[[int], object]
    value: int = 1
    is_per_thread: bool = False


class OneThread:
    """Limits libraries to one thread as long as any thread of ours is inside a block.

    Most libraries have one limit for the process: the first thread sets it, and the last to
    leave restores it. OpenBLAS over OpenMP has one for each thread, which each thread sets
    and restores for itself.

    Parameters
    ----------
    limits : callable
        Returns the limits; called when the first thread enters.
    """

    def __init__(self, limits: Callable[[], list[Limit]]) -> None:
        self._limits = limits
        self._changed: list[tuple[Limit, int]] = []
        self._n_inside = 0
        self._lock = threading.Lock()
        self._thread = threading.local()
        _settings.add(self)

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Keep the limits during a block, without waiting for other threads."""
        if getattr(self._thread, "is_inside", False):
            yield
            return
        with self._lock:
            if not self._changed:  # after a fork, the values from before a lost thread stay
                self._changed = [(limit, limit.get()) for limit in self._limits()]
            self._n_inside += 1
            for limit, _ in self._changed:
                limit.set(limit.value)
        self._thread.is_inside = True
        try:
            yield
        finally:
            self._thread.is_inside = False
            with self._lock:
                self._n_inside -= 1
                for limit, before in self._changed:
                    if self._n_inside == 0 or limit.is_per_thread:
                        limit.set(before)
                if self._n_inside == 0:
                    self._changed = []

    def forget_other_threads(self) -> None:
        """Count again after a fork, which keeps only the current thread."""
        self._lock = threading.Lock()
        self._n_inside = int(getattr(self._thread, "is_inside", False))


_settings: WeakSet[OneThread] = WeakSet()


def _after_fork() -> None:
    for setting in _settings:
        setting.forget_other_threads()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)


@lru_cache(maxsize=1)
def _blas_libraries(n_modules: int) -> list[Limit]:
    """Find the loaded libraries, anew only after imports: it takes milliseconds."""
    limits = []
    for library in ThreadpoolController().lib_controllers:
        if library.user_api == "blas":
            layer = library.info().get("threading_layer")
            is_per_thread = layer == "openmp" and str(library.internal_api) == "openblas"
            setter = partial(_limit_blas, library)
            limits.append(Limit(library.get_num_threads, setter, is_per_thread=is_per_thread))
    return limits


def _limit_blas(library: Any, n_threads: int) -> None:
    # From version 3.7 on, threadpoolctl lets only the first thread change the limit of the
    # process. Here a later thread may be the last to leave.
    release = getattr(library, "clear_controlling_thread", None)
    if release is not None:
        release(force=True)
    library.set_num_threads(n_threads)
    if release is not None:
        release(force=True)


def _opencv_limits() -> list[Limit]:
    cv2 = _extras.require("cv2")
    log = getattr(cv2.utils, "logging", cv2)  # version 5 moved it
    return [
        Limit(cv2.getNumThreads, cv2.setNumThreads),
        Limit(log.getLogLevel, log.setLogLevel, 0),  # our errors say what decoders log
    ]


def _torch_limits() -> list[Limit]:
    torch = _extras.require("torch")
    return [Limit(torch.get_num_threads, torch.set_num_threads)]


# OpenBLAS and MKL split a product differently for every number of threads, and round
# differently: where results must have the same bits, each thread calls BLAS in this block.
one_blas_thread = OneThread(lambda: _blas_libraries(len(sys.modules)))
one_torch_thread = OneThread(_torch_limits)
one_opencv_thread = OneThread(_opencv_limits)  # and silent; photos are processed side by side
