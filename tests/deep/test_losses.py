"""Losses, similarities and encoders of fragments as torch functions: values and gradients."""

from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from hypothesis.extra import numpy as hnp  # noqa: E402
from refusals import refuses  # noqa: E402

from kernelcore import deep  # noqa: E402
from kernelcore.captions import SentenceFragments, SentenceTrees  # noqa: E402
from kernelcore.deep.fragment_space import (  # noqa: E402
    FragmentEncoder,
    MeanEncoder,
    TreeEncoder,
)
from kernelcore.deep.losses import relative_variance  # noqa: E402
from kernelcore.deep.training import seeded_generator  # noqa: E402
from kernelcore.matching import set_similarity  # noqa: E402
from kernelcore.reference.matching import (  # noqa: E402
    order_similarities as slow_similarities,
)

ROWS, COLS = [0, 3, 4, 8], [0, 2, 7]
METHODS = [("DC", None), ("TK", None), ("TK", "half"), ("TK", 2)]
METHODS += [("AP", None), ("AP", "half"), ("AP", 1)]


def matrix(seed=0, dtype=torch.float64, shape=(8, 7)):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(shape, generator=generator, dtype=dtype) * 2 - 1


@pytest.mark.parametrize(("method", "k"), METHODS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_values_are_those_of_the_matching(method, k, dtype):
    S = matrix(dtype=dtype)
    values = deep.set_similarities(S, ROWS, COLS, method=method, k=k)
    expected = set_similarity(S.numpy(), ROWS, COLS, method=method, k=k)
    assert values.dtype == dtype
    np.testing.assert_array_equal(values.numpy(), expected)


@pytest.mark.parametrize(("method", "k"), METHODS)
def test_gradients_agree_with_finite_differences(method, k):
    S = matrix(1).requires_grad_()
    options = {"row_offsets": ROWS, "col_offsets": COLS, "method": method, "k": k}
    assert torch.autograd.gradcheck(partial(deep.set_similarities, **options), (S,))


def test_bad_input_is_refused():
    S = matrix()
    refuses(ValueError, "row_offsets", deep.set_similarities, S, [0, 3], COLS)
    refuses(ValueError, "S", deep.set_similarities, S * float("nan"), ROWS, COLS)
    refuses(ValueError, "method", deep.set_similarities, S, ROWS, COLS, method="OT")
    square, mask = torch.zeros(2, 2), torch.zeros(3, 3, dtype=torch.bool)
    refuses(ValueError, "similarities", deep.hinge_loss, torch.zeros(2, 3))
    refuses(ValueError, "excluded", deep.hinge_loss, square, excluded=mask)
    refuses(ValueError, "negatives", deep.hinge_loss, square, negatives="easiest")
    for odd in (torch.zeros(2, 4), torch.zeros(3), torch.zeros(1, 2, 3)):
        refuses(ValueError, "images and texts", deep.order_similarities, torch.zeros(2, 3), odd)
        refuses(ValueError, "images and texts", deep.order_similarities, odd, torch.zeros(2, 3))


@pytest.mark.parametrize("negatives", ["hardest", "mean", "sum"])
@pytest.mark.parametrize("with_mask", [False, True])
def test_hinge_loss_is_its_formula(negatives, with_mask):
    S = matrix(3, shape=(6, 6))
    mask = np.zeros((6, 6), bool)
    if with_mask:
        mask[0, 1] = mask[4, 2] = True
        mask[5] = True
    excluded = torch.from_numpy(mask) if with_mask else None
    loss = deep.hinge_loss(S, margin=0.3, negatives=negatives, excluded=excluded)
    total = 0.0
    values = S.numpy()
    choose = {"hardest": max, "sum": sum, "mean": np.mean}[negatives]
    for i in range(6):
        for own, masked in ((values[i], mask[i]), (values[:, i], mask[:, i])):
            others = [j for j in range(6) if j != i and not masked[j]]
            if others:
                total += choose([max(0.0, 0.3 - values[i, i] + own[j]) for j in others])
    assert float(loss) == pytest.approx(total / 6, rel=1e-12)


def test_a_loss_without_violations_is_zero():
    S = torch.eye(4)
    assert float(deep.hinge_loss(S, margin=0.5)) == 0
    assert float(deep.hinge_loss(torch.ones(1, 1))) == 0  # nothing to compare with
    assert float(deep.hinge_loss(torch.zeros(2, 2), margin=0.25)) == 0.5  # both directions


# Order


@settings(max_examples=30)
@given(data=st.data(), n_images=st.integers(0, 5), n_texts=st.integers(0, 5))
def test_it_is_the_reference(data, n_images, n_texts):
    numbers = st.floats(-4, 4, width=32)
    n_components = data.draw(st.integers(1, 6))
    shapes = (n_images, n_components), (n_texts, n_components)
    images, texts = (data.draw(hnp.arrays(np.float32, s, elements=numbers)) for s in shapes)
    found = deep.order_similarities(torch.from_numpy(images), torch.from_numpy(texts))
    assert found.dtype == torch.float32
    np.testing.assert_allclose(found, slow_similarities(images, texts), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("entries", [1, 40, 1 << 19])
def test_gradients_are_those_of_the_broadcast_and_of_finite_differences(monkeypatch, entries):
    monkeypatch.setattr("kernelcore.deep.order._ENTRIES_AT_ONCE", {"cpu": entries})
    images, texts = (matrix(i, shape=(n, 6)).requires_grad_() for i, n in ((0, 5), (1, 4)))
    assert torch.autograd.gradcheck(deep.order_similarities, (images, texts))
    plain = -(images.unsqueeze(1) - texts).clamp(min=0).square().sum(-1)
    found = deep.order_similarities(images, texts)
    torch.testing.assert_close(found, plain)
    weights = matrix(2, shape=(5, 4))
    sums = [(own * weights).sum() for own in (found, plain)]
    ours, theirs = (torch.autograd.grad(own, [images, texts]) for own in sums)
    torch.testing.assert_close(ours, theirs)


def test_the_variance_is_a_share():
    vectors = matrix(shape=(50, 7)).abs()
    expected = vectors.var(0, correction=0).sum() / vectors.square().sum(1).mean()
    torch.testing.assert_close(relative_variance(vectors), expected)
    torch.testing.assert_close(relative_variance(9 * vectors), expected)
    assert float(relative_variance(torch.ones(4, 3))) == 0.0
    assert float(relative_variance(torch.tensor([[1.0], [-1.0]]))) == 1.0
    assert float(relative_variance(torch.zeros(4, 3))) == 0.0


# Fragments


REGIONS = np.array([0, 3, 4, 6])
FRAGMENTS = np.array([0, 2, 2, 5])


def drawn(seed=0):
    """Products that stay away from where the losses have corners: 0, 1 and -1."""
    rng = np.random.default_rng(seed)
    values = rng.choice([-1.6, -0.5, 0.4, 1.5], (6, 5)) + rng.uniform(-0.2, 0.2, (6, 5))
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def slow_similarity(products, k, l_, n):
    rows = range(REGIONS[k], REGIONS[k + 1])
    columns = range(FRAGMENTS[l_], FRAGMENTS[l_ + 1])
    total = sum(max(0.0, float(products.detach()[i, j])) for i in rows for j in columns)
    return total / (len(rows) * (len(columns) + n))


def slow_labels(products, multiple_instance):
    labels = -np.ones(products.shape)
    for k in range(3):
        rows = np.arange(REGIONS[k], REGIONS[k + 1])
        for j in range(FRAGMENTS[k], FRAGMENTS[k + 1]):
            own = products[rows, j].detach().numpy()
            if not multiple_instance:
                labels[rows, j] = 1
            elif (own > 0).any():
                labels[rows[own > 0], j] = 1
            else:
                labels[rows[own.argmax()], j] = 1
    return labels


@pytest.mark.parametrize("seed", range(3))
def test_similarities_are_the_formula(seed):
    products = drawn(seed)
    found = deep.fragment_similarities(products.detach(), REGIONS, FRAGMENTS, smoothing=5.0)
    expected = [[slow_similarity(products, k, c, 5.0) for c in range(3)] for k in range(3)]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert (found[:, 1] == 0).all()  # a sentence without fragments
    bare = deep.fragment_similarities(products.detach(), REGIONS, FRAGMENTS, smoothing=0.0)
    assert (bare[:, 1] == 0).all()


@pytest.mark.parametrize("multiple_instance", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_alignment_is_the_formula(seed, multiple_instance):
    products = drawn(seed)
    labels = slow_labels(products, multiple_instance)
    hinges = np.maximum(0, 1 - labels * products.detach().numpy())
    loss = partial(deep.alignment_loss, products, multiple_instance=multiple_instance)
    found = loss(REGIONS, FRAGMENTS)
    np.testing.assert_allclose(found.item(), hinges.sum() / 3, rtol=1e-12)
    balanced = loss(REGIONS, FRAGMENTS, balanced=True).item()
    of_sides = [((labels == s) * hinges).sum(0) / (labels == s).sum(0) for s in (1, -1)]
    np.testing.assert_allclose(balanced, np.mean(sum(of_sides)), rtol=1e-12)


def test_the_best_region_counts_where_none_is_positive():
    loss = partial(deep.alignment_loss, multiple_instance=True)
    products = torch.tensor([[-2.0], [-0.5], [-3.0]])
    assert loss(products, np.array([0, 3]), np.array([0, 1])).item() == pytest.approx(1.5)
    outside = torch.tensor([[-0.5], [4.0]])  # the second region is of another image
    found = loss(outside, np.array([0, 1, 2]), np.array([0, 1, 1]))
    assert found.item() == pytest.approx((1.5 + 5.0) / 2)


def captions():
    return SentenceFragments([0, 2, 0], [1, 0, 2], [0, 3, 2], [0, 2, 2, 3], 3, 4)


def trees():
    relations, heads = [0, 1, 2, 2, 0, 0], [1, 2, -1, 2, -1, 0]
    return SentenceTrees([0, 1, 2, -7, 3, 0], relations, heads, [0, 4, 4, 6], 3, 4)


def vectors():
    return torch.from_numpy(np.random.default_rng(0).normal(size=(4, 2)))


def test_fragments_are_the_formula():
    encoder = FragmentEncoder(vectors(), 3, 4, generator=seeded_generator(0)).double()
    found, offsets = encoder(captions())
    np.testing.assert_array_equal(offsets, [0, 2, 2, 3])
    for row, (relation, first, second) in enumerate([(0, 1, 0), (2, 0, 3), (0, 2, 2)]):
        both = torch.cat([vectors()[first], vectors()[second]])
        layer = encoder.layers[relation]
        expected = (layer.weight @ both + layer.bias).clamp(min=0)
        torch.testing.assert_close(found[row], expected)


def test_a_mean_is_of_words_of_length_one():
    encoder = MeanEncoder(vectors(), 3, generator=seeded_generator(0)).double()
    found, offsets = encoder(captions())
    words = vectors() / vectors().norm(dim=1, keepdim=True)
    means = [(words[1] + words[0]) / 2, torch.zeros(2, dtype=torch.float64), words[2]]
    np.testing.assert_array_equal(offsets, [0, 1, 2, 3])
    torch.testing.assert_close(found, encoder.layer(torch.stack(means)).relu())


def slow_tree(encoder, words, relations, heads, i):
    """Vector of word i by recursion, and the number of words at and below it."""
    x = vectors()[words[i]] if words[i] >= 0 else torch.zeros(2, dtype=torch.float64)
    total, size = encoder.leaf(x), 1
    for j in np.flatnonzero(np.array(heads) == i):
        h, n = slow_tree(encoder, words, relations, heads, j)
        total, size = total + n * (h @ encoder.relations[relations[j]]), size + n
    return torch.tanh(total / size), size


def test_trees_are_the_recursion():
    encoder = TreeEncoder(vectors(), 3, 5, generator=seeded_generator(0)).double()
    found, _ = encoder(trees())
    first, _ = slow_tree(encoder, [0, 1, 2, -7], [0, 1, 2, 2], [1, 2, -1, 2], 2)
    last, _ = slow_tree(encoder, [3, 0], [0, 0], [-1, 0], 0)
    torch.testing.assert_close(found[0], first)
    torch.testing.assert_close(found[2], last)
    assert (found[1] == 0).all()
