"""The losses of fragment embeddings, against their formulas and finite differences."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from kernelcore.captions import SentenceFragments, SentenceTrees  # noqa: E402
from kernelcore.deep import alignment_loss, fragment_similarities  # noqa: E402
from kernelcore.deep.fragment_space import (  # noqa: E402
    FragmentEncoder,
    MeanEncoder,
    TreeEncoder,
)
from kernelcore.deep.training import seeded_generator  # noqa: E402

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
    found = fragment_similarities(products.detach(), REGIONS, FRAGMENTS, smoothing=5.0)
    expected = [[slow_similarity(products, k, c, 5.0) for c in range(3)] for k in range(3)]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert (found[:, 1] == 0).all()  # a sentence without fragments
    bare = fragment_similarities(products.detach(), REGIONS, FRAGMENTS, smoothing=0.0)
    assert (bare[:, 1] == 0).all()


@pytest.mark.parametrize("multiple_instance", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_alignment_is_the_formula(seed, multiple_instance):
    products = drawn(seed)
    labels = slow_labels(products, multiple_instance)
    hinges = np.maximum(0, 1 - labels * products.detach().numpy())
    found = alignment_loss(products, REGIONS, FRAGMENTS, multiple_instance=multiple_instance)
    np.testing.assert_allclose(found.item(), hinges.sum() / 3, rtol=1e-12)
    balanced = alignment_loss(
        products, REGIONS, FRAGMENTS, multiple_instance=multiple_instance, balanced=True
    )
    sides = [
        np.where(labels == side, hinges, 0).sum(0) / (labels == side).sum(0) for side in (1, -1)
    ]
    np.testing.assert_allclose(balanced.item(), np.mean(sides[0] + sides[1]), rtol=1e-12)


def test_the_best_region_counts_where_none_is_positive():
    products = torch.tensor([[-2.0], [-0.5], [-3.0]])
    loss = alignment_loss(products, np.array([0, 3]), np.array([0, 1]), multiple_instance=True)
    assert loss.item() == pytest.approx(1.5 + 0.0 + 0.0)
    outside = torch.tensor([[-0.5], [4.0]])  # the second region is of another image
    found = alignment_loss(
        outside, np.array([0, 1, 2]), np.array([0, 1, 1]), multiple_instance=True
    )
    assert found.item() == pytest.approx((1.5 + 5.0) / 2)


def captions():
    return SentenceFragments([0, 2, 0], [1, 0, 2], [0, 3, 2], [0, 2, 2, 3], 3, 4)


def trees():
    return SentenceTrees(
        [0, 1, 2, -7, 3, 0], [0, 1, 2, 2, 0, 0], [1, 2, -1, 2, -1, 0], [0, 4, 4, 6], 3, 4
    )


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
