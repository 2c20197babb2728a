"""Penalties of pairs out of order, and their gradients, against the definition."""

from importlib import import_module

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from hypothesis.extra import numpy as hnp  # noqa: E402

from kernelcore.deep import order_similarities  # noqa: E402
from kernelcore.deep.losses import relative_variance  # noqa: E402
from kernelcore.deep.training import seeded_generator  # noqa: E402
from kernelcore.reference.matching import (  # noqa: E402
    order_similarities as slow_similarities,
)


def drawn(n_images, n_texts, n_components, seed=0):
    generator = seeded_generator(seed)
    return [
        torch.rand(n, n_components, generator=generator, dtype=torch.float64).requires_grad_()
        for n in (n_images, n_texts)
    ]


def blocks_of(monkeypatch, entries):
    module = import_module("kernelcore.deep.order")
    monkeypatch.setattr(module, "_ENTRIES_AT_ONCE", {"cpu": entries})


@settings(max_examples=30, deadline=None)
@given(data=st.data(), n_images=st.integers(0, 5), n_texts=st.integers(0, 5))
def test_it_is_the_reference(data, n_images, n_texts):
    numbers = st.floats(-4, 4, width=32)
    n_components = data.draw(st.integers(1, 6))
    images, texts = (
        data.draw(hnp.arrays(np.float32, (n, n_components), elements=numbers))
        for n in (n_images, n_texts)
    )
    found = order_similarities(torch.from_numpy(images), torch.from_numpy(texts))
    assert found.dtype == torch.float32
    np.testing.assert_allclose(found, slow_similarities(images, texts), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("entries", [1, 40, 1 << 19])
def test_gradients_are_those_of_the_broadcast_and_of_finite_differences(monkeypatch, entries):
    blocks_of(monkeypatch, entries)
    images, texts = drawn(5, 4, 6)
    assert torch.autograd.gradcheck(order_similarities, (images, texts))
    plain = -(images.unsqueeze(1) - texts).clamp(min=0).square().sum(-1)
    found = order_similarities(images, texts)
    torch.testing.assert_close(found, plain)
    weights = torch.rand(5, 4, generator=seeded_generator(1), dtype=torch.float64)
    for ours, theirs in zip(
        torch.autograd.grad((found * weights).sum(), [images, texts]),
        torch.autograd.grad((plain * weights).sum(), [images, texts]),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs)


def test_texts_below_pay_nothing_and_the_order_is_not_symmetric():
    images = torch.tensor([[1.0, 2.0]])
    texts = torch.tensor([[1.0, 5.0], [0.0, 2.0], [3.0, 0.0]])
    assert order_similarities(images, texts).tolist() == [[0.0, -1.0, -4.0]]
    assert order_similarities(texts, images).T.tolist() == [[-9.0, 0.0, -4.0]]


@pytest.mark.parametrize("shapes", [((2, 3), (2, 4)), ((3,), (2, 3)), ((2, 3), (1, 2, 3))])
def test_vectors_of_other_shapes_are_refused(shapes):
    with pytest.raises(ValueError, match="images and texts must be rows of one length"):
        order_similarities(*(torch.zeros(shape) for shape in shapes))


def test_the_variance_is_a_share():
    generator = seeded_generator(0)
    vectors = torch.rand(50, 7, generator=generator, dtype=torch.float64)
    expected = vectors.var(0, correction=0).sum() / vectors.square().sum(1).mean()
    torch.testing.assert_close(relative_variance(vectors), expected)
    torch.testing.assert_close(relative_variance(9 * vectors), expected)
    assert float(relative_variance(torch.ones(4, 3))) == 0.0
    assert float(relative_variance(torch.tensor([[1.0], [-1.0]]))) == 1.0
    assert float(relative_variance(torch.zeros(4, 3))) == 0.0
