"""In other people's pipelines: the same bits in workers, threads and requests of theirs.

Threads of the package have run in the parent before any worker starts: what they leave behind
must not stop a child.
"""

import multiprocessing
import os
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from pipeline_work import CAPTIONS, EXPECTED, Vectors, X, check, digests, one_of_each, trained

from kernelcore.kernels import bag_of_words, histogram_intersection
from kernelcore.models import NearestNeighbourRanker


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_forked_workers():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(digests, range(3)) == [EXPECTED] * 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_while_another_thread_is_in_the_core():
    stop = threading.Event()

    def busy():
        while not stop.is_set():
            one_of_each()

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        for _ in range(3):
            with multiprocessing.get_context("fork").Pool(1) as pool:
                assert pool.apply_async(digests).get(timeout=60) == EXPECTED
    finally:
        stop.set()
        thread.join()


def test_spawned_workers():
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        assert list(pool.map(digests, range(2))) == [EXPECTED] * 2


def test_a_pool_of_threads():
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(check, range(12)))


def test_concurrent_requests_of_one_model():
    """As in a web server: threads that come and go, and share one fitted model."""
    ranker = NearestNeighbourRanker(bag_of_words, histogram_intersection)
    ranker.fit(X[:100], CAPTIONS.select(np.arange(100)))
    texts = CAPTIONS.select(np.arange(100, 120))
    expected = ranker.scores(X[100:], texts)
    start = threading.Barrier(6)
    answers = {}

    def request(number):
        start.wait(30)
        query = slice(100 + number, 101 + number)
        answers[number] = ranker.scores(X[query], texts)[0]

    threads = [threading.Thread(target=request, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, row in answers.items():
        np.testing.assert_array_equal(row, expected[number])
    assert len(answers) == 6


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_joblib(backend):
    joblib = pytest.importorskip("joblib")
    settings = (1, 3, 5)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        found = joblib.Parallel()(joblib.delayed(trained)(k) for k in settings)
    assert found == [trained(k) for k in settings]


@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*DataLoader will create 2 worker:UserWarning")  # one core
def test_workers_of_a_data_loader(start):
    torch = pytest.importorskip("torch")
    workers = {"num_workers": 1, "multiprocessing_context": start}
    loader = torch.utils.data.DataLoader(Vectors(), batch_size=2, **workers)
    batches = list(loader)
    rows = torch.cat([K for K, _ in batches]).numpy().reshape(120, 120)
    np.testing.assert_array_equal(rows, histogram_intersection(X))
    assert all(same.all() for _, same in batches)
