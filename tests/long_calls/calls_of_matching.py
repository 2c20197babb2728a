"""Long calls of ``kernelcore.matching``."""

from functools import partial

import numpy as np
from table import table

from kernelcore import matching

CALLS, call = table()
RNG = np.random.default_rng(0)


@call("matching.linear_assignments", 3500, 30)
def linear_assignments(n):
    costs = RNG.integers(0, n, (12, n, n)).astype(np.float32)
    return partial(matching.linear_assignments, list(costs))


def hard(n):
    return np.add.outer(np.arange(float(n)), np.arange(float(n)) ** 2) ** 0.5


@call("matching.linear_assignments[one is large]", 4000, 30, fast=True)
def one_large(n):
    """The calling thread has the small problem, and then nothing to do but wait."""
    return partial(matching.linear_assignments, [hard(n), np.ones((2, 2))])


@call("matching.linear_assignments[below a threshold]", 4000, 30, fast=True)
def below_a_threshold(n):
    return partial(matching.linear_assignments, [hard(n), np.ones((2, 2))], threshold=1e9)


@call("matching.linear_assignment", 4000, 30)
def linear_assignment(n):
    costs = np.add.outer(RNG.random(n), RNG.random(n)) + RNG.random((n, n)) / 100
    return partial(matching.linear_assignment, costs)


@call("matching.k_cardinality_assignments", 4000, 30)
def k_cardinality(n):
    return partial(matching.k_cardinality_assignments, RNG.random((n, n)))


@call("matching.set_similarity", 1500, 10)
def set_similarity(n):
    offsets = np.arange(n + 1) * 8
    return partial(matching.set_similarity, RNG.random((8 * n, 8 * n)), offsets, offsets)


@call("matching.set_similarity[one set of rows]", 1000, 10)
def one_set(n):
    rows, columns = np.array([0, 8 * n]), np.arange(n + 1) * 8
    return partial(matching.set_similarity, RNG.random((8 * n, 8 * n)), rows, columns)


@call("matching.set_similarity[one pair]", 4000, 30, fast=True)
def one_pair(n):
    return partial(matching.set_similarity, -hard(n), [0, n], [0, n])
