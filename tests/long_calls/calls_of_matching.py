"""Long calls of ``kernelcore.matching``."""

import numpy as np
from table import Table

CALLS = Table()
RNG = np.random.default_rng(0)


def hard(n):
    return np.add.outer(np.arange(float(n)), np.arange(float(n)) ** 2) ** 0.5


def one_large(n):
    """The calling thread has the small problem, and then nothing to do but wait."""
    return [[hard(n), np.ones((2, 2))]]


def easy(n):
    return [np.add.outer(RNG.random(n), RNG.random(n)) + RNG.random((n, n)) / 100]


def sets(n, n_rows=None):
    rows = np.arange(n + 1) * 8 if n_rows is None else np.array([0, n_rows])
    return RNG.random((8 * n, 8 * n)), rows, np.arange(n + 1) * 8


ALL, SETS = "matching.linear_assignments", "matching.set_similarity"
CALLS.add(ALL, 3500, 30, lambda n: [list(RNG.integers(0, n, (12, n, n)).astype(np.float32))])
CALLS.add(f"{ALL}[one is large]", 4000, 30, one_large, fast=True)
CALLS.add(f"{ALL}[below a threshold]", 4000, 30, one_large, threshold=1e9, fast=True)
CALLS.add("matching.linear_assignment", 4000, 30, easy)
CALLS.add("matching.k_cardinality_assignments", 4000, 30, lambda n: [RNG.random((n, n))])
CALLS.add(SETS, 1500, 10, sets)
CALLS.add(f"{SETS}[one set of rows]", 1000, 10, lambda n: sets(n, 8 * n))
CALLS.add(f"{SETS}[one pair]", 4000, 30, lambda n: [-hard(n), [0, n], [0, n]], fast=True)
