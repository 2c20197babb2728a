"""The engine: attempts, failures, workers and schedulers that die, and bounds."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context

import hostile
import numpy as np
import pytest
from clusters import local_cluster

from kernelcore.distributed import (
    ClusterLostError,
    PiecesFailedError,
    gram_to_store,
    read_gram,
    tasks,
)
from kernelcore.distributed.store import Store

X = np.arange(60.0).reshape(30, 2)
EXPECTED = (X @ X.T).astype(np.float32)


def run(folder, kernel, executor=None, **options):
    options = {"tile": 5, "n_threads": 2} | options
    gram_to_store(kernel, X, None, folder, executor=executor, **options)
    return read_gram(folder)


def named(kernel, **options):
    return partial(kernel, **options) if options else kernel


@pytest.fixture
def processes():
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        yield executor


def test_all_executors_take_the_same_tasks(tmp_path, client, processes):
    with ThreadPoolExecutor(2) as threads:
        for k, executor in enumerate((None, client, client.get_executor(), processes, threads)):
            np.testing.assert_array_equal(
                run(tmp_path / str(k), hostile.plain, executor), EXPECTED
            )


@pytest.mark.parametrize("where", ["here", "dask", "executor of dask", "processes"])
def test_two_failures_of_a_piece_are_forgiven(tmp_path, where, client, processes):
    executor = {
        "here": None,
        "dask": client,
        "executor of dask": client.get_executor(),
        "processes": processes,
    }[where]
    kernel = partial(hostile.fails_at_first, folder=str(tmp_path))
    np.testing.assert_array_equal(run(tmp_path / "s", kernel, executor), EXPECTED)


@pytest.mark.parametrize("where", ["here", "dask", "processes"])
def test_a_piece_that_fails_is_named_and_the_rest_is_done(tmp_path, where, client, processes):
    executor = {"here": None, "dask": client, "processes": processes}[where]
    with pytest.raises(PiecesFailedError, match="failed 3 times") as caught:
        run(tmp_path, hostile.fails_for_large, executor)
    store = Store.open(tmp_path)
    assert sorted(caught.value.reasons) == store.missing()
    assert 0 < len(store.missing()) < store.n_pieces
    assert all("too large" in reason for reason in caught.value.reasons.values())
    with pytest.raises(ValueError, match="must be complete"):
        read_gram(tmp_path)
    assert not (tmp_path / "gram.zarr" / "zarr.json").exists()


def test_a_worker_that_dies_is_replaced(tmp_path, client):
    kernel = partial(hostile.kills_once, folder=str(tmp_path))
    np.testing.assert_array_equal(run(tmp_path / "s", kernel, client), EXPECTED)
    assert (tmp_path / "killed").exists()


def test_a_broken_executor_is_an_error_and_the_next_run_goes_on(tmp_path, processes):
    kernel = partial(hostile.kills_once, folder=str(tmp_path))
    with pytest.raises(
        ClusterLostError, match=r"they had the pieces \d.*the same call goes on"
    ):
        run(tmp_path / "s", kernel, processes)
    np.testing.assert_array_equal(run(tmp_path / "s", kernel), EXPECTED)


@pytest.mark.filterwarnings("ignore")
def test_a_scheduler_that_is_gone_is_an_error_soon(tmp_path):
    distributed = pytest.importorskip("distributed")
    cluster = local_cluster(1)
    client = distributed.Client(cluster)
    kernel = partial(hostile.waits, folder=str(tmp_path))
    errors = []

    def work():
        try:
            run(tmp_path / "s", kernel, client)
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    end = time.monotonic() + 60
    while not list(tmp_path.glob("waiting-*")):
        assert thread.is_alive()
        assert time.monotonic() < end
        time.sleep(0.05)
    cluster.close()
    (tmp_path / "go").touch()
    thread.join(90)
    assert not thread.is_alive()
    client.close()
    assert [type(error) for error in errors] == [ClusterLostError]
    np.testing.assert_array_equal(run(tmp_path / "s", kernel), EXPECTED)


def test_few_tasks_are_submitted_at_once(tmp_path):
    class Counting(Executor):
        _max_workers = 2
        most = held = 0

        def __init__(self):
            self.inner = ThreadPoolExecutor(2)

        def submit(self, *arguments):
            self.held += 1
            self.most = max(self.most, self.held)
            future = self.inner.submit(*arguments)
            future.add_done_callback(lambda _: setattr(self, "held", self.held - 1))
            return future

    executor = Counting()
    run(tmp_path, hostile.plain, executor, tile=2)
    assert 2 <= executor.most <= 6
    executor.inner.shutdown()


def test_cancelled_tasks_are_tried_again(tmp_path):
    class Cancelling(Executor):
        n_cancelled = 0

        def submit(self, function, *arguments):
            future = Future()
            if self.n_cancelled < 2:
                self.n_cancelled += 1
                future.cancel()
                future.set_running_or_notify_cancel()
            else:
                function(*arguments)
                future.set_result(None)
            return future

    np.testing.assert_array_equal(run(tmp_path, hostile.plain, Cancelling()), EXPECTED)


_FORKED = """
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
import numpy as np
from kernelcore.distributed import gram_to_store
with ProcessPoolExecutor(2, mp_context=get_context("fork")) as executor:
    for _ in range(2):
        gram_to_store(
            "histogram_intersection", np.eye(9), None, sys.argv[1], tile=3, executor=executor
        )
    print("done", flush=True)
    sys.stdin.read()
"""


def test_forked_processes_keep_no_lock(tmp_path):
    """Neither for a second call with the same executor, nor when their parent is killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", _FORKED, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout.readline() == "done\n"
        process.kill()
        process.wait()
        gram_to_store("histogram_intersection", np.eye(9), None, tmp_path, tile=3)
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # the processes that it has forked
        process.stdin.close()
        process.stdout.close()


def test_the_tasks_of_a_call_that_ends_early_are_dropped(tmp_path, client):
    def stop(*_):
        raise InterruptedError("enough")

    with pytest.raises(InterruptedError):
        run(tmp_path, hostile.takes_a_moment, client, tile=2, progress=stop)
    end = time.monotonic() + 10
    while any(client.processing().values()):
        assert time.monotonic() < end
        time.sleep(0.05)
    assert len(Store.open(tmp_path).done()) < 20  # of 120, after one and those at work


def test_the_end_of_a_task_is_noticed_before_the_next_look(tmp_path, client, monkeypatch):
    monkeypatch.setattr(tasks, "_INTERVAL", 4.0)
    start = time.monotonic()
    run(tmp_path, hostile.plain, client, tile=3)  # 55 tasks, six at once
    assert time.monotonic() - start < 20


def test_a_closed_client_is_refused(tmp_path):
    distributed = pytest.importorskip("distributed")
    with local_cluster(1) as cluster:
        client = distributed.Client(cluster)
        client.close()
        with pytest.raises(ValueError, match="executor must be connected"):
            run(tmp_path, hostile.plain, client)


def test_values_that_do_not_fit_are_a_fault(tmp_path):
    with pytest.raises(PiecesFailedError, match=r"kernel\(X, Y\) must fit into float32"):
        gram_to_store(hostile.plain, np.array([[1e25, 1.0]]), None, tmp_path)


def test_workers_with_too_little_memory_are_refused(tmp_path, monkeypatch, client):
    monkeypatch.setattr(tasks, "needed_bytes", lambda store: 5 << 30)
    with pytest.raises(ValueError, match=r"at least 6,650 MiB \(5,120 MiB for each"):
        run(tmp_path, hostile.plain, client)
    assert len(Store.open(tmp_path).missing()) == 21


def test_another_version_is_refused(tmp_path):
    run(tmp_path, hostile.plain)
    store = Store.open(tmp_path)
    with pytest.raises(RuntimeError, match="workers must have kernelcore 9"):
        tasks.compute_piece(str(tmp_path), 0, store.identity, "9")


def test_another_store_is_refused_by_a_task(tmp_path):
    run(tmp_path, hostile.plain)
    with pytest.raises(ValueError, match="another store"):
        tasks.compute_piece(str(tmp_path), 0, "x", tasks.kernelcore.__version__)


@pytest.mark.parametrize("executor", [3, "tcp://host", object()])
def test_other_executors_are_refused(tmp_path, executor):
    with pytest.raises(TypeError, match=r"executor must be a distributed\.Client"):
        run(tmp_path, hostile.plain, executor)


def test_progress_counts_what_is_there(tmp_path):
    seen = []
    with pytest.raises(PiecesFailedError):
        run(tmp_path, hostile.fails_for_large, progress=lambda *step: seen.append(step))
    assert seen[-1] == (21, 21)
    run(tmp_path / "t", hostile.plain)
    Store.open(tmp_path / "t").remove_mark(3)
    seen.clear()
    run(tmp_path / "t", hostile.plain, progress=lambda *step: seen.append(step))
    assert seen == [(21, 21)]


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (hostile.wrong_shape, r"must have shape \(5, 5\)"),
        (hostile.not_finite, "must be finite"),
        (hostile.fails, "no value today"),
    ],
)
def test_faults_of_kernels_are_told(tmp_path, kernel, message):
    with pytest.raises(PiecesFailedError, match=message):
        run(tmp_path, kernel)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (lambda X, Y: X @ Y.T, "kernel must be a function that"),
        ("no_such_kernel", "kernel must be a function that can be imported"),
        ("no.such.module:kernel", "kernel must be a function that can be imported"),
        ("hostile:NOT_A_FUNCTION", "kernel must be a function"),
        (partial(hostile.plain, X), "options by name"),
        (partial(hostile.fails_at_first, folder=object()), "options that JSON"),
        (3, "kernel must be a function"),
    ],
)
def test_kernels_that_workers_cannot_have_are_refused(tmp_path, kernel, message):
    with pytest.raises((TypeError, ValueError), match=message):
        run(tmp_path, kernel)


def test_a_kernel_may_be_named(tmp_path):
    np.testing.assert_array_equal(run(tmp_path, "hostile:plain"), EXPECTED)
