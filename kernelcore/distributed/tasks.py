"""Tasks: the missing pieces of a store, computed here or by the workers of a cluster.

A task carries the folder of a store, the number of a piece and two digests. What is done is
read from the store, never from the results of tasks. So a run that was killed, or whose
workers or scheduler died, is completed by the next run.
"""

from __future__ import annotations

import importlib
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor
from concurrent.futures import wait as wait_for
from contextlib import contextmanager
from typing import Any, Protocol, TypeAlias
from uuid import uuid4

import kernelcore
from kernelcore._threads import (
    Progress,
    Report,
    check_stopped,
    in_threads,
    one_blas_thread,
    reporting,
    resolve_n_threads,
)
from kernelcore.distributed.store import Piece, Store

ExecutorLike: TypeAlias = Any
"""A client of Dask, an executor of `concurrent.futures`, or None: threads of this process."""

_MAKERS = {
    "gram": "gram",
    "photos": "photos",
    "diagonal": "pivots",
    "pivots": "pivots",
    "landmark features": "landmarks",
    "embeddings": "landmark_kcca",
    "triangles": "landmark_kcca",
    "gold scores": "ranks",
    "counts": "ranks",
    "best": "search",
}
"""Module that computes the pieces of each kind of store, by its functions `make` and `need`."""

_ATTEMPTS = 3
_INTERVAL = 0.2  # seconds between two looks at tasks, if none ends
_LOOK = 5.0  # seconds between two looks at workers
_PATIENCE = 60.0  # seconds to wait for a worker
_TASKS_PER_WORKER = 3  # submitted and not finished
_MANY = 3000  # tasks for an executor that does not say how many workers it has
_USABLE = 0.8  # of a worker's memory: beyond it Dask pauses the worker
_PYTHON_BYTES = 200 << 20  # of Python and its packages


class PiecesFailedError(RuntimeError):
    """Some pieces could not be computed; all others are in the store.

    Attributes
    ----------
    reasons : dict of int to str
        The error of each piece, by its number.
    """

    def __init__(self, folder: str, n_pieces: int, reasons: dict[int, str]) -> None:
        shown = [f"piece {number}: {text}" for number, text in sorted(reasons.items())[:5]]
        more = f"\nand {len(reasons) - 5} more" if len(reasons) > 5 else ""
        super().__init__(
            f"{len(reasons)} of {n_pieces} pieces of {folder} failed {_ATTEMPTS} times:\n"
            + "\n".join(shown)
            + more
        )
        self.reasons = reasons
        self._arguments = (folder, n_pieces, reasons)

    def __reduce__(self) -> tuple[type[PiecesFailedError], tuple[Any, ...]]:
        return PiecesFailedError, self._arguments


class ClusterLostError(RuntimeError):
    """The scheduler or the workers are gone; the pieces computed so far are in the store."""


def compute_piece(
    folder: str, number: int, identity: str, version: str, attempt: str = ""
) -> None:
    """Compute a piece of a store and write it; the task that workers run.

    `attempt` makes the arguments of each call new: Dask may take the result of equal ones.

    Raises
    ------
    RuntimeError
        If this process has another version of the package.
    ValueError
        If the folder holds another store than when the task was made.
    """
    if version != kernelcore.__version__:
        raise RuntimeError(
            f"workers must have kernelcore {version}, this one has {kernelcore.__version__}"
        )
    store = Store.open(folder)
    if store.identity != identity:
        raise ValueError(f"{folder} holds another store than when the run began")
    if not store.is_done(number):
        store.put(number, made(store, number))


def made(store: Store, number: int) -> Piece:
    """Compute a piece of a store on one thread."""
    with one_blas_thread():
        piece: Piece = _maker_of(store).make(store, number)
        return piece


def needed_bytes(store: Store) -> int:
    """Estimate the memory that a worker takes for a piece, beyond Python and its packages."""
    return int(_maker_of(store).need(store))


def complete(
    store: Store,
    executor: ExecutorLike = None,
    *,
    n_threads: int | None = None,
    progress: Progress = False,
) -> None:
    """Compute the missing pieces of a store.

    Parameters
    ----------
    store : Store
    executor : distributed.Client, concurrent.futures.Executor or None
        Who computes. None: threads of this process, a piece each.
    n_threads : int, optional
        Threads where `executor` is None; the default is every core this process may run on.
    progress : bool or callable
        True draws a bar; a callable is called with (pieces done, pieces).

    Raises
    ------
    TypeError
        If `executor` is none of these.
    ValueError
        If the workers have less memory than a piece needs.
    PiecesFailedError
        If pieces fail three times.
    ClusterLostError
        If the workers cannot be reached any more.
    """
    threads = resolve_n_threads(n_threads)
    pool = _pool_of(executor)
    missing = store.missing()
    n_done = store.n_pieces - len(missing)
    if not missing:
        return
    need = needed_bytes(store)
    if pool is not None:
        pool.check_memory(need)
    with reporting(progress, f"{store.kind}, {_megabytes(need)} a worker") as report:

        def tell(n_new: int, _: int) -> None:
            if report is not None:
                report(n_done + n_new, store.n_pieces)

        if pool is None:
            failures = _in_this_process(store, missing, threads, tell)
        else:
            failures = _in_workers(pool, store, missing, tell)
    left = set(store.missing())
    reasons = {number: failures.get(number, "its mark has vanished") for number in left}
    if reasons:
        raise PiecesFailedError(str(store.folder), store.n_pieces, reasons)


def _in_this_process(
    store: Store, missing: list[int], n_threads: int, tell: Report
) -> dict[int, str]:
    failures: dict[int, str] = {}

    def compute(number: int) -> None:
        for attempt in range(_ATTEMPTS):
            check_stopped()
            try:
                store.put(number, made(store, number))
                return
            except Exception as error:
                if attempt == _ATTEMPTS - 1:
                    failures[number] = _told(error)

    in_threads(compute, missing, n_threads, setting=one_blas_thread, report=tell)
    return failures


def _in_workers(pool: _Pool, store: Store, missing: list[int], tell: Report) -> dict[int, str]:
    """Keep a bounded number of tasks with the workers until all have ended."""
    first, again = ((number, 1) for number in missing), deque[tuple[int, int]]()
    running: dict[Any, tuple[int, int]] = {}
    failures: dict[int, str] = {}
    n_ended = 0
    run = uuid4().hex
    folder, identity, version = str(store.folder), store.identity, kernelcore.__version__
    try:
        while n_ended < len(missing):
            pool.check_alive(n_ended, len(missing))
            while len(running) < pool.window():
                task = next(first, None) or (again.popleft() if again else None)
                if task is None:
                    break
                number, attempt = task
                future = pool.submit(folder, number, identity, version, f"{run} {attempt}")
                running[future] = task
            for future in pool.ended(running):
                number, attempt = running.pop(future)
                error = pool.error_of(future)
                if isinstance(error, BrokenExecutor):
                    others = sorted(number for number, _ in running.values())
                    raise _lost(n_ended, len(missing), [number, *others]) from error
                if error is not None and attempt < _ATTEMPTS:
                    again.append((number, attempt + 1))
                    continue
                if error is not None:
                    failures[number] = _told(error)
                n_ended += 1
                tell(n_ended, len(missing))
    finally:
        pool.abandon(running)
    return failures


class _Pool(Protocol):
    """Who runs tasks elsewhere."""

    def check_memory(self, need: int) -> None: ...

    def check_alive(self, n_done: int, n_pieces: int) -> None: ...

    def window(self) -> int: ...

    def submit(self, *arguments: Any) -> Any: ...

    def ended(self, futures: Iterable[Any]) -> list[Any]: ...

    def error_of(self, future: Any) -> BaseException | None: ...

    def abandon(self, futures: Iterable[Any]) -> None: ...


class _Processes:
    """An executor of `concurrent.futures`."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        n_workers = getattr(executor, "_max_workers", getattr(executor, "num_workers", None))
        self._window = _MANY
        if isinstance(n_workers, int) and n_workers > 0:
            self._window = _TASKS_PER_WORKER * n_workers

    def check_memory(self, need: int) -> None:
        """Do nothing: executors do not say how much memory their workers have."""

    def check_alive(self, n_done: int, n_pieces: int) -> None:
        """Do nothing: the tasks of a broken executor fail."""

    def window(self) -> int:
        return self._window

    def submit(self, *arguments: Any) -> Any:
        try:
            return self._executor.submit(compute_piece, *arguments)
        except BrokenExecutor as error:
            raise _lost() from error

    def ended(self, futures: Iterable[Any]) -> list[Any]:
        return list(wait_for(futures, _INTERVAL, FIRST_COMPLETED).done)

    def error_of(self, future: Any) -> BaseException | None:
        if future.cancelled():
            return RuntimeError("the executor cancelled the task")
        error: BaseException | None = future.exception()
        return error

    def abandon(self, futures: Iterable[Any]) -> None:
        for future in futures:
            future.cancel()


class _Dask:
    """A client of Dask."""

    def __init__(self, client: Any) -> None:
        if client.asynchronous:
            raise TypeError("executor must be a client that is not asynchronous")
        if client.status != "running":
            raise ValueError(
                f"executor must be connected, got a client that is {client.status}"
            )
        self._client = client
        self._workers: list[dict[str, Any]] = []
        self._has_ended = threading.Event()
        self._looked = self._had_workers = time.monotonic()
        self._look()

    def check_memory(self, need: int) -> None:
        for about in self._workers:
            limit, n_threads = about["memory_limit"], max(1, about["nthreads"])
            least = (need * n_threads + _PYTHON_BYTES) / _USABLE
            if limit and limit < least:
                raise ValueError(
                    f"executor must have workers with at least {_megabytes(least)} "
                    f"({_megabytes(need)} for each of {n_threads} threads, and Python), got "
                    f"{_megabytes(limit)}"
                )

    def check_alive(self, n_done: int, n_pieces: int) -> None:
        if self._client.status != "running":
            raise _lost(n_done, n_pieces)
        now = time.monotonic()
        if now - self._looked < _LOOK:
            return
        self._look()
        self._looked = now
        if self._workers:
            self._had_workers = now
        elif now - self._had_workers > _PATIENCE:
            raise _lost(n_done, n_pieces)

    def window(self) -> int:
        n_workers = sum(int(one["nthreads"]) for one in self._workers)
        return _TASKS_PER_WORKER * max(1, n_workers)

    def submit(self, *arguments: Any) -> Any:
        with _connected():
            future = self._client.submit(compute_piece, *arguments, pure=False)
            future.add_done_callback(lambda _: self._has_ended.set())
        return future

    def ended(self, futures: Iterable[Any]) -> list[Any]:
        self._has_ended.wait(_INTERVAL)
        self._has_ended.clear()  # before the look: what ends now is seen in the next one
        return [future for future in futures if future.done()]

    def error_of(self, future: Any) -> BaseException | None:
        if future.status == "finished":
            return None
        if future.status != "error":  # cancelled, or lost with the scheduler
            return RuntimeError(f"the task was {future.status}")
        with _connected():
            error: BaseException = future.exception(timeout=_PATIENCE)
        return error

    def abandon(self, futures: Iterable[Any]) -> None:
        """Release the futures: nobody wants them, so Dask drops their tasks."""
        for future in futures:  # to cancel them might wait
            future.release()

    def _look(self) -> None:
        """Ask the scheduler for its workers."""
        with _connected():
            about = self._client.sync(
                self._client.scheduler.identity, n_workers=-1, callback_timeout=_PATIENCE
            )
        self._workers = list(about["workers"].values())


def _pool_of(executor: ExecutorLike) -> _Pool | None:
    if executor is None:
        return None
    if isinstance(executor, Executor):
        return _Processes(executor)
    dask: Any = sys.modules.get("distributed")
    if dask is not None and isinstance(executor, dask.Client):
        return _Dask(executor)
    raise TypeError(
        "executor must be a distributed.Client, an executor of concurrent.futures or None, got "
        f"{type(executor).__name__}"
    )


def _maker_of(store: Store) -> Any:
    if store.kind not in _MAKERS:
        raise ValueError(f"{store.folder} holds {store.kind}, which cannot be computed")
    return importlib.import_module(f"kernelcore.distributed.{_MAKERS[store.kind]}")


@contextmanager
def _connected() -> Iterator[None]:
    """Turn what Dask raises when the scheduler does not answer into ClusterLostError."""
    try:
        yield
    except (OSError, RuntimeError) as error:  # a TimeoutError is an OSError
        raise _lost() from error
    except Exception as error:
        if type(error).__name__ != "ClosedClientError":
            raise
        raise _lost() from error


def _lost(
    n_done: int | None = None, n_pieces: int = 0, numbers: Sequence[int] = ()
) -> ClusterLostError:
    done = "" if n_done is None else f" after {n_done} of {n_pieces} pieces"
    had = ", ".join(map(str, numbers[:5])) + (", ..." if len(numbers) > 5 else "")
    return ClusterLostError(
        f"the workers are gone{done}{f'; they had the pieces {had}' if had else ''}; what they "
        "computed is in the store, and the same call goes on from there"
    )


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _megabytes(n_bytes: float) -> str:
    return f"{n_bytes / 2**20:,.0f} MiB"
