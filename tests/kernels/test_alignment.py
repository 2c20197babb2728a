"""Weights by centred alignment: the optimum, and what changes nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refuses

from kernelcore.kernels import average, centred_alignment_weights
from kernelcore.reference.kernels import centred_alignment
from kernelcore.reference.kernels import centred_alignment_weights as by_definition

RNG = np.random.default_rng(0)


def gram(n=12, rank=3, rng=RNG):
    features = rng.normal(size=(n, rank))
    return features @ features.T


@given(n=st.integers(5, 10), m=st.integers(1, 4), seed=st.integers(0, 2**16))
@settings(max_examples=60, deadline=None)
def test_is_the_best_of_all_sets_of_kernels(n, m, seed):
    rng = np.random.default_rng(seed)
    kernels, target = [gram(n, rng=rng) for _ in range(m)], gram(n, rng=rng)
    weights = centred_alignment_weights(kernels, target)
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(), 1.0)
    expected = centred_alignment(
        average(kernels, weights=by_definition(kernels, target)), target
    )
    ours = centred_alignment(average(kernels, weights=weights), target)
    np.testing.assert_allclose(ours, expected, rtol=1e-9)


def test_no_other_weights_align_better():
    kernels, target = [gram() for _ in range(4)], gram()
    best = centred_alignment(
        average(kernels, weights=centred_alignment_weights(kernels, target)), target
    )
    for weights in RNG.dirichlet(np.ones(4), size=300):
        assert centred_alignment(average(kernels, weights=weights), target) <= best + 1e-12


def test_the_target_itself_has_all_the_weight():
    target = gram()
    weights = centred_alignment_weights([gram(), 7.0 * target, gram()], target)
    np.testing.assert_allclose(weights, [0.0, 1.0, 0.0], atol=1e-7)


def test_constants_and_scales_change_nothing():
    kernels, target = [gram() for _ in range(3)], gram()
    weights = centred_alignment_weights(kernels, target)
    moved = centred_alignment_weights([K + 5.0 for K in kernels], 3.0 * target - 2.0)
    np.testing.assert_allclose(moved, weights, atol=1e-9)
    scales = np.array([1e-3, 1.0, 1e4])
    scaled = centred_alignment_weights(
        [s * K for s, K in zip(scales, kernels, strict=True)], target
    )
    np.testing.assert_allclose(scaled, weights / scales / (weights / scales).sum(), atol=1e-9)


def test_a_constant_kernel_and_a_repeated_one_are_harmless():
    kernel, target = gram(), gram()
    for dtype in (np.float32, np.float64):
        K, T = (matrix.astype(dtype) for matrix in (kernel + 20.0, target))
        constant = np.full_like(K, 0.1)
        weights = centred_alignment_weights([K, constant, np.zeros_like(K), K], T)
        assert weights[1] == weights[2] == 0.0
        np.testing.assert_allclose(weights.sum(), 1.0)


def test_float32_is_summed_in_float64():
    rng = np.random.default_rng(2)
    kernels, target = [gram(300, rng=rng) for _ in range(3)], gram(300, rng=rng)
    narrow = centred_alignment_weights([K.astype("f4") for K in kernels], target.astype("f4"))
    np.testing.assert_allclose(
        narrow, centred_alignment_weights(kernels, target), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize(
    ("matrices", "target", "message"),
    [
        ([], np.eye(3), "matrices must hold at least one Gram matrix"),
        ([np.ones((3, 2))], np.eye(3), r"matrices\[0\] must be square"),
        ([np.eye(3), np.eye(4)], np.eye(3), r"matrices\[1\] must have the shape of target"),
        ([np.eye(3)], np.full((3, 3), np.nan), "target must be finite"),
        ([np.eye(3)], np.ones((3, 3)), "matrices must hold a kernel that agrees with target"),
        ([np.eye(3)], -np.eye(3), "matrices must hold a kernel that agrees with target"),
    ],
)
def test_bad_input_is_named(matrices, target, message):
    refuses(ValueError, message, centred_alignment_weights, matrices, target)
