"""The basis of one view: what it remembers, and its files."""

import dataclasses

import numpy as np
import pytest

from kernelcore.kcca import KCCA, KCCAFactorization, KernelBasis, factorize, kernel_basis
from kernelcore.kernels import ridge

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 5))
K, K_NEW = np.exp(X @ X.T / 5), np.exp(RNG.normal(size=(4, 5)) @ X.T / 5)
OPTIONS = [
    {"decomposition": "gram_schmidt", "tolerance": 0.01, "max_rank": None},
    {"decomposition": "eigen", "tolerance": 0.0, "max_rank": 7},
]
each_option = pytest.mark.parametrize("options", OPTIONS, ids=lambda o: o["decomposition"])


@each_option
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_saved_and_loaded(options, dtype, tmp_path):
    basis = kernel_basis(K.astype(dtype), **options)
    basis.save(tmp_path / "basis")
    again = KernelBasis.load(tmp_path / "basis")
    for name in ("vectors", "eigenvalues", "columns", "expansion"):
        array = getattr(again, name)
        np.testing.assert_array_equal(array, getattr(basis, name))
        assert array.dtype == getattr(basis, name).dtype
    assert again.options == basis.options == options
    new = K_NEW.astype(dtype)
    assert again.coordinates(new).tobytes() == basis.coordinates(new).tobytes()
    assert [path.name for path in tmp_path.iterdir()] == ["basis"]


@pytest.mark.parametrize("diagonal", [None, 2.5])
def test_a_loaded_basis_knows_whether_a_ridge_is_possible(diagonal, tmp_path):
    scale = np.sqrt(K.diagonal())
    matrix = K if diagonal is None else diagonal * K / np.outer(scale, scale)
    kernel_basis(matrix).save(tmp_path / "basis")
    again = KernelBasis.load(tmp_path / "basis")
    assert again.diagonal == (None if diagonal is None else pytest.approx(diagonal))
    if diagonal is None:
        with pytest.raises(ValueError, match="ridge must be 1 unless"):
            again.lifted(2.0)
    else:
        np.testing.assert_allclose(again.lifted(2.0).spectrum(), again.eigenvalues + diagonal)


def test_eigenvectors_are_written_once(tmp_path):
    basis = kernel_basis(K, decomposition="eigen")
    basis.save(tmp_path / "basis")
    assert (tmp_path / "basis").stat().st_size < 1.5 * basis.vectors.nbytes
    again = KernelBasis.load(tmp_path / "basis")
    assert again.all_expansion is again.all_vectors


def test_files_that_hold_no_basis(tmp_path):
    path = tmp_path / "basis"
    with pytest.raises(FileNotFoundError, match="no such file"):
        KernelBasis.load(path)
    KCCA(2).fit(K, K).save(path)
    with pytest.raises(ValueError, match="must hold kernel basis"):
        KernelBasis.load(path)


@each_option
def test_an_estimator_of_a_factorization_tells_how_it_was_made(options):
    factorization = factorize(K, ridge(K, 2.0), **options)
    kcca = KCCA.from_factorization(factorization, 3, regularization=(0.5, 0.25))
    assert kcca.get_params() == {
        "n_components": 3,
        "regularization": (0.5, 0.25),
        "n_threads": None,
        **options,
    }
    fitted = KCCA(**kcca.get_params()).fit(K, ridge(K, 2.0))
    np.testing.assert_array_equal(fitted.x_scores_, kcca.x_scores_)


def test_options_of_the_first_view_stand_for_both():
    factorization = KCCAFactorization(kernel_basis(K, **OPTIONS[1]), kernel_basis(K))
    assert KCCA.from_factorization(factorization, 2).max_rank == 7
    other_way = dataclasses.replace(factorization, x=factorization.y, y=factorization.x)
    assert KCCA.from_factorization(other_way, 2).max_rank is None
