"""Long calls of ``kernelcore.matching``."""

from functools import partial

import numpy as np
from table import table

from kernelcore import matching

CALLS, call = table()
RNG = np.random.default_rng(0)


@call("matching.linear_assignments", 2000, 30)
def linear_assignments(n):
    costs = RNG.integers(0, n, (12, n, n)).astype(np.float32)
    return partial(matching.linear_assignments, list(costs))


@call("matching.linear_assignments[one is large]", 6000, 30)
def one_large(n):
    costs = [RNG.integers(0, n, (n, n)).astype(np.float64), RNG.random((3, 3))]
    return partial(matching.linear_assignments, costs)


@call("matching.linear_assignment", 4000, 30, fast=True)
def linear_assignment(n):
    costs = np.add.outer(RNG.random(n), RNG.random(n)) + RNG.random((n, n)) / 100
    return partial(matching.linear_assignment, costs)


@call("matching.k_cardinality_assignments", 1500, 30)
def k_cardinality(n):
    return partial(matching.k_cardinality_assignments, RNG.random((n, n)))


@call("matching.set_similarity", 1000, 10)
def set_similarity(n):
    offsets = np.arange(n + 1) * 8
    return partial(matching.set_similarity, RNG.random((8 * n, 8 * n)), offsets, offsets)


@call("matching.set_similarity[one set of rows]", 1000, 10)
def one_set(n):
    rows, columns = np.array([0, 8 * n]), np.arange(n + 1) * 8
    return partial(matching.set_similarity, RNG.random((8 * n, 8 * n)), rows, columns)
