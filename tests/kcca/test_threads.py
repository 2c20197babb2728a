"""The same bits for every number of threads, and Ctrl-C within half a second."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

from kernelcore._threads import one_blas_thread
from kernelcore.kcca import (
    KCCA,
    KernelColumns,
    LandmarkFeatures,
    gram_schmidt,
    kernel_basis,
    partial_gram_schmidt,
)

DTYPES = [np.float32, np.float64]


@pytest.fixture
def small_pieces(monkeypatch):
    """Products of Gram-Schmidt in several pieces, the last one short."""
    monkeypatch.setattr(gram_schmidt, "_PANEL", 64)


def linear(A, B):
    return A @ B.T


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_threads", [2, 5])
def test_same_bits_for_every_number_of_threads(small_pieces, dtype, n_threads):
    F = np.random.default_rng(0).integers(-4, 5, (300, 80)).astype(dtype)
    K, L = F @ F.T, F[:, :50] @ F[:, :50].T

    def results(n):
        options = {"tolerance": 0.0, "n_threads": n}
        columns = KernelColumns(lambda indices: F @ F[indices].T, K.diagonal())
        landmarks = LandmarkFeatures(linear, n_landmarks=40, n_threads=n)
        yield partial_gram_schmidt(columns, max_rank=70, **options).features
        yield kernel_basis(K, **options).vectors
        yield kernel_basis(K, decomposition="eigen", **options).vectors
        yield landmarks.fit_transform(F)
        yield landmarks.transform(F[:7])
        yield KCCA(3, n_threads=n).fit(K, L).x_scores_

    for one, several in zip(results(1), results(n_threads), strict=True):
        assert one.tobytes() == several.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_pieces_of_a_product_have_the_bits_of_the_whole(dtype):
    """At the width that is used: nothing that was computed before has changed."""
    rng = np.random.default_rng(1)
    features = rng.normal(size=(130, 2 * gram_schmidt._PANEL + 77)).astype(dtype)
    block = rng.normal(size=(64, features.shape[1])).astype(dtype)
    candidates = rng.permutation(features.shape[1])[:64]
    with one_blas_thread():
        whole = block - features[:, candidates].T @ features
    for n_threads in (1, 3):
        pieces = block.copy()
        with one_blas_thread():
            gram_schmidt._subtract_product(pieces, features, candidates, n_threads)
        assert pieces.tobytes() == whole.tobytes()


@pytest.mark.parametrize("values", ["distinct", "equal", "few"])
def test_candidates_are_those_of_a_stable_sort(values):
    rng = np.random.default_rng(2)
    residual = {
        "distinct": rng.random(500),
        "equal": np.ones(500),
        "few": rng.integers(0, 4, 500).astype(float),
    }[values]
    for count in (1, 2, 64, 499, 500):
        expected = np.argsort(-residual, kind="stable")[:count]
        np.testing.assert_array_equal(gram_schmidt._largest(residual, count), expected)


@pytest.mark.parametrize("name", ["Kx", "Ky"])
def test_errors_of_threads_name_the_argument(name):
    bad = np.full((3, 3), 0.3)
    views = [bad if name == view else np.eye(3) for view in ("Kx", "Ky")]
    with pytest.raises(ValueError, match=f"^{name} must not be constant"):
        KCCA(n_threads=2).fit(*views)


LONG_CALLS = {
    "partial_gram_schmidt": "partial_gram_schmidt(LAZY, max_rank=1500, n_threads=N)",
    "landmarks": "LandmarkFeatures(linear, n_landmarks=1500, n_threads=N).fit(F)",
    "transform": "FITTED.transform(np.arange(10**7))",
    "kernel_basis": "kernel_basis(K, tolerance=0.0, n_threads=N)",
    "factorize": "factorize(K, K, tolerance=0.0, n_threads=N)",
    "KCCA": "KCCA(tolerance=0.0, n_threads=N).fit(K, K)",
}
IN_EVERY_RUN = [("partial_gram_schmidt", 2), ("KCCA", 2), ("transform", 1)]


@pytest.mark.parametrize(
    ("name", "n_threads"),
    [
        pytest.param(
            name,
            n,
            marks=() if (name, n) in IN_EVERY_RUN else pytest.mark.slow,
            id=f"{name}-{n}",
        )
        for name in LONG_CALLS
        for n in (1, 2)
    ],
)
def test_ctrl_c_ends_a_long_call(name, n_threads):
    """Each call takes many seconds; the signal comes a moment after it has begun."""
    program = textwrap.dedent(f"""
        import os, signal, sys, threading, time
        import numpy as np
        from kernelcore.kcca import *
        N = {n_threads}
        rng = np.random.default_rng(0)

        def linear(A, B):
            return A @ B.T

        if {name!r} in ("kernel_basis", "factorize", "KCCA"):
            F = rng.random((5000, 200), dtype=np.float32) - 0.5
            K = F @ F.T + 1e3 * np.eye(5000, dtype=np.float32)
        else:
            F = rng.random((60000, 1500), dtype=np.float32) - 0.5
            LAZY = KernelColumns(lambda i: F @ F[i].T, np.einsum("ij,ij->i", F, F))
            looked_up = lambda A, B: F[A % 60000] @ F[B % 60000].T
            FITTED = LandmarkFeatures(looked_up, n_landmarks=100).fit(np.arange(200))
        at = []

        def interrupt():
            time.sleep(0.7)
            at.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt, daemon=True).start()
        try:
            {LONG_CALLS[name]}
        except KeyboardInterrupt:
            print(time.monotonic() - at[0])
        else:
            print("finished", time.monotonic() - at[0] if at else "before")
    """)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True
    )
    assert float(done.stdout) < 2.0, done.stderr  # a busy machine; some 0.1 s on an idle one
