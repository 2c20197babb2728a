"""Rankers of raw captions: attention by its definition, what is no negative, what is read."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from drawn import ALL, fitted, photos, ranker, region_features, sentences  # noqa: E402
from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from refusals import refuses, refuses_each  # noqa: E402
from torch.nn.utils.rnn import pad_sequence  # noqa: E402

from kernelcore import deep  # noqa: E402
from kernelcore.deep.items import RegionTable, Sentences  # noqa: E402
from kernelcore.images import square_roots  # noqa: E402
from kernelcore.models.base import Pairs  # noqa: E402
from kernelcore.reference.matching import cross_attention as reference  # noqa: E402

N_COMPONENTS = 5


def sets(sizes, seed):
    rng = np.random.default_rng(seed)
    drawn = [rng.normal(size=(size, N_COMPONENTS)) for size in sizes]
    return [part / np.linalg.norm(part, axis=1, keepdims=True) for part in drawn]


def padded(parts, length=0):
    vectors = pad_sequence([torch.from_numpy(part) for part in parts], batch_first=True)
    more = max(0, length - vectors.shape[1])
    vectors = torch.nn.functional.pad(vectors, (0, 0, 0, more))
    sizes = torch.tensor([len(part) for part in parts])
    return vectors, torch.arange(vectors.shape[1]) < sizes.unsqueeze(1)


def similarities(contexts, queries, length=0, **options):
    (c, c_mask), (q, q_mask) = padded(contexts, length), padded(queries, length)
    products = torch.einsum("icd,jqd->icjq", c, q)
    return deep.cross_attention(products, c @ c.mT, q_mask, c_mask, **options)


sizes = st.lists(st.integers(1, 5), min_size=1, max_size=4)


options_of_attention = st.fixed_dictionaries(
    {"temperature": st.floats(0.5, 20), "sharpness": st.floats(0.5, 20)}
)


@given(sizes, sizes, st.integers(0, 2**16), st.integers(0, 7), options_of_attention)
def test_it_is_the_definition(n_contexts, n_queries, seed, length, options):
    contexts, queries = sets(n_contexts, seed), sets(n_queries, seed + 1)
    found = similarities(contexts, queries, length, **options).numpy()
    np.testing.assert_allclose(found, reference(contexts, queries, **options), atol=1e-9)


def test_vectors_without_length_have_finite_gradients():
    vectors = torch.zeros(1, 2, 3, dtype=torch.float64, requires_grad=True)
    products = (vectors.flatten(0, 1) @ vectors.flatten(0, 1).T).reshape(1, 2, 1, 2)
    mask = torch.ones(1, 2, dtype=torch.bool)
    found = deep.cross_attention(products, vectors @ vectors.mT, mask, mask, temperature=9.0)
    found.sum().backward()
    assert torch.isfinite(vectors.grad).all()


def test_bad_arguments():
    ones = torch.ones(1, 2, dtype=torch.bool)
    products, gram = torch.zeros(1, 2, 1, 2), torch.zeros(1, 2, 2)
    odd = {"products": [gram[0]], "context_gram": [gram[0]]}
    odd |= {name: [ones[:, :1]] for name in ("query_mask", "context_mask")}
    usual = {"products": products, "context_gram": gram, "query_mask": ones}
    refuses_each(deep.cross_attention, odd, **usual, context_mask=ones, temperature=9.0)


CAPTIONS = ["a red dog runs", "a blue boat", "the sea", "a boat at sea on a red day", "dog"]
COUNTS = [3, 1, 4, 2, 2]


def random_photos(seed=0):
    """Photos with regions of random features."""
    return region_features(np.random.default_rng(seed).random((sum(COUNTS), 6)), COUNTS)


def brief(kind, **options):
    settings = {"n_components": 8, "min_count": 1, "n_epochs": 2, "rng": 0, **options}
    items = random_photos(), CAPTIONS
    return kind(**settings).fit(*items, dev=items, n_threads=1)


def vectors_of(parts):
    """The vectors of each whole, without padding."""
    pairs = zip(parts.vectors.double().numpy(), parts.mask.numpy(), strict=True)
    return [vectors[mask] for vectors, mask in pairs]


@pytest.mark.parametrize(
    ("attention", "temperature", "sharpness"), [("t2i", 9.0, 6.0), ("i2t", 4.0, 20.0)]
)
def test_words_look_at_regions_or_regions_at_words(attention, temperature, sharpness):
    model = brief(deep.CrossAttentionRanker, attention=attention)
    table, space = model._new_images(random_photos()), model.space_
    with torch.no_grad():
        taken = table.take(np.arange(len(table)), space.device)
        regions = vectors_of(space.encode_images(*taken))
        words = vectors_of(space.encode_captions(model._new_captions(CAPTIONS)))
    assert [len(part) for part in regions] == COUNTS
    assert [len(part) for part in words] == [len(text.split()) for text in CAPTIONS]
    options = {"temperature": temperature, "sharpness": sharpness}
    is_t2i = attention == "t2i"
    sides = (regions, words) if is_t2i else (words, regions)
    expected = reference(*sides, **options)
    expected = expected if is_t2i else expected.T
    found = model.scores(random_photos(), CAPTIONS, n_threads=1)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_regions_without_finite_features_are_refused_where_they_are_read():
    features = random_photos().features.copy()
    features[1, 2] = np.inf  # not a first region
    broken = random_photos()._replaced(features=features)  # as a network may return them
    model = brief(deep.CrossAttentionRanker, n_epochs=1)
    refuses(ValueError, "features of images", model.scores, broken, CAPTIONS)
    new = deep.CrossAttentionRanker(min_count=1, n_epochs=1, rng=0)
    items = random_photos(), CAPTIONS
    refuses(ValueError, "features of images", new.fit, *items, dev=(broken, CAPTIONS))
    whole = brief(deep.EmbeddingRanker, image="first", n_epochs=1)
    found, expected = (whole.scores(own, CAPTIONS) for own in (broken, random_photos()))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("kind", "options"),
    [(deep.CrossAttentionRanker, {}), (deep.EmbeddingRanker, {"image": "gru"})],
)
def test_without_the_whole_image_a_region_is_encoded_alone(kind, options, tmp_path):
    features = random_photos().features.copy()
    features[0] += 1  # the first region of the first of three
    changed = replace(random_photos(), features=features)

    def first_image(model, photos):
        space, table = model.space_, model._new_images(photos)
        encoder = space.regions if kind is deep.CrossAttentionRanker else space.images.regions
        with torch.no_grad():
            return encoder(*table.take(np.arange(1), space.device)).numpy()

    for whole_image in (True, False):
        model = brief(kind, whole_image=whole_image, **options)
        is_same = np.isclose(first_image(model, changed), first_image(model, random_photos()))
        assert not is_same[0].all()
        assert is_same[1:].all() == (not whole_image)
        model.save(tmp_path / "model")
        read = kind.load(tmp_path / "model")
        found, expected = (own.scores(changed, CAPTIONS) for own in (read, model))
        np.testing.assert_array_equal(found, expected)


# What is learned from


def test_captions_find_the_images_that_they_belong_to():
    order = [3, 3, 0, 17, 17, 9, 12, 5]
    things = [ALL[i] for i in order]
    items = photos(), sentences(things)
    model = ranker("ConvNet+Bi-GRU", n_epochs=60, batch_size=4)
    model.fit(*items, caption_image=order, dev=(*items, order), n_threads=1)
    scores = model.scores(photos(), sentences(things), n_threads=1)
    used = np.unique(order)
    assert list(used[scores[used].argmax(axis=0)]) == order


class Fixed(torch.nn.Module):
    """A space that has the similarities that it is given."""

    def __init__(self, similarities):
        super().__init__()
        self.values = torch.nn.Parameter(similarities)

    @property
    def device(self):
        return torch.device("cpu")

    def encode_images(self, rows, offsets, generator=None):
        return rows[:, 0].long()

    def encode_captions(self, sentences, generator=None):
        return sentences.word_ids[:, 0]

    def similarities(self, images, captions):
        return self.values[images][:, captions]


def losses(similarities, owners, epochs=(0,), **options):
    """Losses of all captions, whose similarities with the images are given, in some epochs."""
    n_images, n_captions = similarities.shape
    table = RegionTable.of("images", np.arange(n_images)[:, np.newaxis] * 1.0, "all")
    texts = Sentences(torch.arange(n_captions).unsqueeze(1), torch.ones(n_captions).long())
    model = deep.EmbeddingRanker(margin=0.2, **options)
    model.space_ = Fixed(similarities)
    batch, training = list(range(n_captions)), Pairs(table, texts, np.array(owners))
    return [float(model._loss(training, batch, epoch, None).detach()) for epoch in epochs]


def test_captions_of_the_same_image_are_no_negatives():
    similarities = torch.tensor([[0.5, 0.5, 0.1], [0.0, 0.0, 0.5]])
    # the two of image 0 are as alike as each with its image
    assert losses(similarities, [0, 0, 1], n_warm_up=0) == [0.0]
    similarities[0, 2] = 0.4  # caption 2 is nearly as alike to image 0 as to its own
    hinge = 0.2 - 0.5 + 0.4
    # caption 2 over images, and images of captions 0 and 1 over captions
    assert losses(similarities, [0, 0, 1], n_warm_up=0) == [pytest.approx(3 * hinge / 3)]


def test_the_sum_comes_before_the_hardest():
    similarities = torch.tensor([[0.5, 0.4, 0.45], [0.4, 0.5, 0.4], [0.3, 0.4, 0.5]])
    loss = partial(deep.hinge_loss, similarities.T, margin=0.2)
    summed, hardest = (pytest.approx(float(loss(negatives=n))) for n in ("sum", "hardest"))
    found = losses(similarities, [0, 1, 2], epochs=range(3), n_warm_up=2)
    assert found == [summed, summed, hardest]
    # by default as long as the learning rate is high
    found = losses(similarities, [0, 1, 2], epochs=range(6), n_epochs=6)
    assert found == [*[summed] * 5, hardest]


def test_captions_without_a_known_word_are_scored():
    model = fitted("SCAN t2i")
    scores = model.scores(photos(), ["", "zzz", "!?"], n_threads=1)
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(scores[:, 0], scores[:, 2])


def test_square_roots_are_those_of_the_features():
    options = {"n_epochs": 2, "dropout": 0.1}
    items = photos(), sentences()
    roots = square_roots(items[0].features[::3]), items[1]
    rooted = ranker("ConvNet+Bi-GRU", square_root=True, **options)
    ready = ranker("ConvNet+Bi-GRU", **options)
    found = rooted.fit(*items, dev=items, n_threads=1).scores(*items, n_threads=1)
    expected = ready.fit(*roots, dev=roots, n_threads=1).scores(*roots, n_threads=1)
    np.testing.assert_array_equal(found, expected)
