"""Small work is not spread over threads: to start one takes longer than the work."""

from functools import partial
from unittest import mock

import numpy as np
import pytest

from kernelcore import _core, _threads
from kernelcore.captions import EncodedCaptions
from kernelcore.kernels import bag_of_words, histogram_intersection, tag_rank, word_sequence
from kernelcore.matching import linear_assignments, set_similarity

RNG = np.random.default_rng(0)
SMALL = EncodedCaptions.from_lists([[[0, 1, 2]], [[2, 1]]])
PLENTY = 1e6  # nanoseconds for each thread, as the package has it


@pytest.fixture(autouse=True)
def as_in_the_package(monkeypatch):
    monkeypatch.setattr(_threads, "_WORK_PER_THREAD", PLENTY)


def threads_given(function, made, *arguments):
    """Return the number of threads that a compiled function is called with."""
    call = getattr(_core, function)
    given = []

    def watched(*inputs):
        given.extend(value for value in inputs if type(value) is int)
        return call(*inputs)

    with mock.patch.object(_core, function, watched):
        made(*arguments)
    return given


def test_threads_by_work():
    assert _threads.threads_for(8, 0.0) == 1
    assert _threads.threads_for(8, 2.5 * PLENTY) == 3
    assert _threads.threads_for(2, 1e15) == 2
    assert _threads.threads_for(None, 1e15) == _threads.resolve_n_threads(None)


SMALL_CALLS = {
    "linear_assignments": lambda n: linear_assignments(RNG.random((256, 12, 12)), n_threads=n),
    "set_similarity": lambda n: set_similarity(np.eye(4), [0, 2, 4], [0, 4], n_threads=n),
    "histogram_intersection": lambda n: histogram_intersection(np.eye(20), n_threads=n),
    "bag_of_words": lambda n: bag_of_words(SMALL, n_threads=n),
    "tag_rank": lambda n: tag_rank(SMALL, training=SMALL, n_threads=n),
    "word_sequence_exact": lambda n: word_sequence(
        SMALL, max_length=2, gap_decay=0.5, n_threads=n
    ),
}


@pytest.mark.parametrize("function", SMALL_CALLS)
def test_small_calls_start_no_thread(function):
    given = threads_given(function, SMALL_CALLS[function], 7)
    assert given
    assert 7 not in given


def test_large_calls_get_what_they_ask_for():
    costs = RNG.random((4000, 20, 20))
    given = threads_given("linear_assignments", partial(linear_assignments, n_threads=3), costs)
    assert 3 in given
    X, compare = RNG.random((300, 2000)), partial(histogram_intersection, n_threads=3)
    assert 3 in threads_given("histogram_intersection", compare, X)
