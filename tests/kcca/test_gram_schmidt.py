import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcore.kcca import partial_gram_schmidt
from kernelcore.reference.matching import (
    partial_gram_schmidt as reference_gram_schmidt,
)

DTYPES = [np.float32, np.float64]


def random_gram(seed, n, d, dtype=np.float64):
    features = np.random.default_rng(seed).normal(size=(n, d)) * np.linspace(1.0, 0.2, d)
    return (features @ features.T).astype(dtype)


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 30),
    d=st.integers(1, 12),
    dtype=st.sampled_from(DTYPES),
    stop=st.tuples(st.sampled_from([0.0, 1e-6, 0.05, 0.5]), st.integers(1, 35)),
)
@settings(max_examples=120, deadline=None)
def test_equals_the_reference(seed, n, d, dtype, stop):
    tolerance, max_rank = stop
    K = random_gram(seed, n, d, dtype)
    R, pivots, _ = reference_gram_schmidt(K, tolerance=tolerance, max_rank=min(max_rank, n))
    result = partial_gram_schmidt(K, tolerance=tolerance, max_rank=max_rank)
    assert result.features.dtype == dtype
    assert len(result.pivots) == result.features.shape[1] == len(result.pivots)
    # Whether a residual near the rounding still counts may differ, the others may not.
    rank = min(len(pivots), len(result.pivots), d - 1)
    assert result.pivots[:rank].tolist() == pivots[:rank].tolist()
    slack = 1e4 * np.finfo(dtype).eps
    np.testing.assert_allclose(result.features[:, :rank], R[:, :rank], atol=slack)
    np.testing.assert_allclose(
        result.features @ result.features.T, R @ R.T, atol=slack * max(1.0, K.max())
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_full_rank_is_a_pivoted_cholesky_decomposition(dtype):
    K = random_gram(1, 40, 60, dtype)
    result = partial_gram_schmidt(K, tolerance=0.0)
    assert sorted(result.pivots) == list(range(40))
    triangle = result.features[result.pivots]
    np.testing.assert_array_equal(triangle, np.tril(triangle))
    np.testing.assert_allclose(
        triangle,
        scipy.linalg.cholesky(K[np.ix_(result.pivots, result.pivots)], lower=True),
        atol=1e3 * np.finfo(dtype).eps,
    )
    assert (np.diff(triangle.diagonal()) <= 0).all()
    np.testing.assert_array_equal(result.residual, 0.0)


def test_pivot_is_the_largest_residual_and_ties_take_the_first():
    result = partial_gram_schmidt(np.diag([1.0, 3.0, 2.0, 3.0]), tolerance=0.0)
    assert result.pivots.tolist() == [1, 3, 2, 0]


def test_tolerance_is_the_share_of_the_trace_left():
    K = np.diag([8.0, 1.0, 0.75, 0.25])
    for tolerance, rank in [(0.2, 1), (0.19, 2), (0.1, 2), (0.099, 3), (0.0, 4), (1.0, 0)]:
        result = partial_gram_schmidt(K, tolerance=tolerance)
        assert len(result.pivots) == rank
        assert result.residual.sum() <= tolerance * K.trace()


def test_rank_of_a_degenerate_kernel_is_found():
    assert partial_gram_schmidt(random_gram(2, 50, 7), tolerance=0.0).pivots.size == 7
    assert (
        partial_gram_schmidt(random_gram(2, 50, 7, np.float32), tolerance=0.0).pivots.size == 7
    )
    assert partial_gram_schmidt(np.zeros((3, 3)), tolerance=0.0).pivots.size == 0


def test_residual_is_the_diagonal_left():
    K = random_gram(3, 30, 20)
    result = partial_gram_schmidt(K, max_rank=8)
    np.testing.assert_allclose(
        result.residual, (K - result.features @ result.features.T).diagonal(), atol=1e-12
    )


def test_an_indefinite_kernel_is_taken_from_its_positive_part():
    result = partial_gram_schmidt(np.diag([2.0, -1.0]), tolerance=0.0)
    np.testing.assert_array_equal(result.features, [[np.sqrt(2.0)], [0.0]])
    assert np.isfinite(result.features).all()


@pytest.mark.parametrize(
    "layout",
    [
        np.asfortranarray,
        lambda K: K.astype(">f8"),
        lambda K: np.repeat(K, 2, axis=0)[::2],
        lambda K: K.tolist(),
    ],
    ids=["fortran", "byte-swapped", "strided", "lists"],
)
def test_every_layout_gives_the_same(layout):
    K = random_gram(7, 20, 5)
    expected = partial_gram_schmidt(K)
    given_K = layout(K)
    if isinstance(given_K, np.ndarray):
        given_K.flags.writeable = False
    np.testing.assert_array_equal(partial_gram_schmidt(given_K).features, expected.features)


def asymmetric(change=1e-3):
    K = random_gram(8, 300, 5)
    K[270, 3] += change
    return K


@pytest.mark.parametrize(
    ("K", "options", "error", "message"),
    [
        (np.ones((2, 3)), {}, ValueError, r"K must be square and not empty"),
        (np.empty((0, 0)), {}, ValueError, r"K must be square and not empty"),
        ([[1.0, np.nan], [np.nan, 1.0]], {}, ValueError, r"K must be finite, got nan at"),
        ([["a"]], {}, TypeError, "K must hold real numbers"),
        (
            np.array([[1, 1.7e308], [-1.7e308, 1]]),
            {},
            ValueError,
            "K must be symmetric, got elements that differ by inf from",
        ),
        *(
            (asymmetric(by), {}, ValueError, "K must be symmetric, got elements that differ by")
            for by in (1e-3, -1e-3)
        ),
        (np.eye(2), {"tolerance": -0.1}, ValueError, "tolerance must be a number >= 0.0"),
        (np.eye(2), {"tolerance": 1.1}, ValueError, "tolerance must be a number <= 1.0"),
        (np.eye(2), {"max_rank": 0}, ValueError, "max_rank must be an integer >= 1, got 0"),
        (np.eye(2), {"max_rank": 1.5}, TypeError, "max_rank must be an integer"),
    ],
)
def test_bad_input(K, options, error, message):
    with pytest.raises(error, match=message):
        partial_gram_schmidt(K, **options)


def test_same_bits_for_every_number_of_blas_threads():
    program = textwrap.dedent("""
        import hashlib, numpy as np
        from kernelcore.kcca import KCCA, partial_gram_schmidt
        A, B = np.random.default_rng(0).integers(-3, 4, (2, 500, 400)).astype("f4")
        K, L = A @ A.T, (A + B) @ (A + B).T  # exact
        digest = hashlib.sha256(partial_gram_schmidt(K, max_rank=300).features.tobytes())
        for decomposition in ("gram_schmidt", "eigen"):
            kcca = KCCA(decomposition=decomposition).fit(K, L)
            digest.update(kcca.x_scores_.tobytes() + kcca.transform_y(L[:50]).tobytes())
        print(digest.hexdigest())
    """)
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "OPENBLAS_NUM_THREADS": n, "KERNELCORE_NUM_THREADS": n},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for n in ("1", "2", "4")
    }
    assert len(digests) == 1
