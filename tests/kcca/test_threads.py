"""The same bits for every number of threads: ours, and those of BLAS."""

import numpy as np
import pytest
from programs import output_of

from kernelcore import kcca


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_threads", [2, 5])
def test_same_bits_for_every_number_of_threads(monkeypatch, dtype, n_threads):
    # Products of Gram-Schmidt in several pieces, the last one short
    monkeypatch.setattr(kcca.gram_schmidt, "_PANEL", 64)
    F = np.random.default_rng(0).integers(-4, 5, (300, 80)).astype(dtype)
    K, L = F @ F.T, F[:, :50] @ F[:, :50].T

    def results(n):
        options = {"tolerance": 0.0, "n_threads": n}
        columns = kcca.KernelColumns(lambda indices: F @ F[indices].T, K.diagonal())
        landmarks = kcca.LandmarkFeatures(lambda A, B: A @ B.T, n_landmarks=40, n_threads=n)
        yield kcca.partial_gram_schmidt(columns, max_rank=70, **options).features
        yield kcca.kernel_basis(K, **options).vectors
        yield kcca.kernel_basis(K, decomposition="eigen", **options).vectors
        yield landmarks.fit_transform(F)
        yield landmarks.transform(F[:7])
        for decomposition in ("gram_schmidt", "eigen"):
            yield kcca.KCCA(3, decomposition=decomposition, n_threads=n).fit(K, L).x_scores_

    for one, several in zip(results(1), results(n_threads), strict=True):
        assert one.tobytes() == several.tobytes()


def test_same_bits_for_every_number_of_blas_threads():
    program = """
        import hashlib, numpy as np
        from kernelcore.kcca import KCCA, partial_gram_schmidt
        A, B = np.random.default_rng(0).integers(-3, 4, (2, 500, 400)).astype("f4")
        K, L = A @ A.T, (A + B) @ (A + B).T  # exact
        digest = hashlib.sha256(partial_gram_schmidt(K, max_rank=300).features.tobytes())
        for decomposition in ("gram_schmidt", "eigen"):
            kcca = KCCA(decomposition=decomposition).fit(K, L)
            digest.update(kcca.x_scores_.tobytes() + kcca.transform_y(L[:50]).tobytes())
        print(digest.hexdigest())
    """
    threads = ("OPENBLAS_NUM_THREADS", "KERNELCORE_NUM_THREADS")
    assert len({output_of(program, **dict.fromkeys(threads, n)) for n in "124"}) == 1
