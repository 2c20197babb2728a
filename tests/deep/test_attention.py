"""Stacked cross attention against its definition, pair by pair."""

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from drawn import region_features  # noqa: E402
from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from refusals import refuses_each  # noqa: E402
from torch.nn.utils.rnn import pad_sequence  # noqa: E402

from kernelcore.deep import (  # noqa: E402
    CrossAttentionRanker,
    EmbeddingRanker,
    cross_attention,
)
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
    return cross_attention(products, c @ c.mT, q_mask, c_mask, **options)


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
    cross_attention(
        products, vectors @ vectors.mT, mask, mask, temperature=9.0
    ).sum().backward()
    assert torch.isfinite(vectors.grad).all()


def test_bad_arguments():
    ones = torch.ones(1, 2, dtype=torch.bool)
    products, gram = torch.zeros(1, 2, 1, 2), torch.zeros(1, 2, 2)
    odd = {
        "products": [gram[0]],
        "context_gram": [gram[0]],
        "query_mask": [ones[:, :1]],
        "context_mask": [ones[:, :1]],
    }
    usual = {"products": products, "context_gram": gram, "query_mask": ones}
    refuses_each(cross_attention, odd, **usual, context_mask=ones, temperature=9.0)


CAPTIONS = ["a red dog runs", "a blue boat", "the sea", "a boat at sea on a red day", "dog"]
COUNTS = [3, 1, 4, 2, 2]


def random_photos(seed=0):
    """Photos with regions of random features."""
    return region_features(np.random.default_rng(seed).random((sum(COUNTS), 6)), COUNTS)


def fitted(kind, **options):
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
    model = fitted(CrossAttentionRanker, attention=attention)
    table, captions = model._new_images(random_photos()), model._new_captions(CAPTIONS)
    space = model.space_
    everything = np.arange(len(table))
    with torch.no_grad():
        regions = vectors_of(space.encode_images(*table.take(everything, space.device)))
        words = vectors_of(space.encode_captions(captions))
    assert [len(part) for part in regions] == COUNTS
    assert [len(part) for part in words] == [len(text.split()) for text in CAPTIONS]
    options = {"temperature": temperature, "sharpness": sharpness}
    expected = (
        reference(regions, words, **options)
        if attention == "t2i"
        else reference(words, regions, **options).T
    )
    found = model.scores(random_photos(), CAPTIONS, n_threads=1)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_regions_without_finite_features_are_refused_where_they_are_read():
    features = random_photos().features.copy()
    features[1, 2] = np.inf  # not a first region
    broken = random_photos()._replaced(features=features)  # as a network may return them
    model = fitted(CrossAttentionRanker, n_epochs=1)
    with pytest.raises(ValueError, match="features of images must be finite"):
        model.scores(broken, CAPTIONS, n_threads=1)
    with pytest.raises(ValueError, match="features of images must be finite"):
        CrossAttentionRanker(min_count=1, n_epochs=1, rng=0).fit(
            random_photos(), CAPTIONS, dev=(broken, CAPTIONS), n_threads=1
        )
    whole = fitted(EmbeddingRanker, image="first", n_epochs=1)
    np.testing.assert_array_equal(
        whole.scores(broken, CAPTIONS, n_threads=1),
        whole.scores(random_photos(), CAPTIONS, n_threads=1),
    )


@pytest.mark.parametrize(
    ("kind", "options"), [(CrossAttentionRanker, {}), (EmbeddingRanker, {"image": "gru"})]
)
def test_without_the_whole_image_a_region_is_encoded_alone(kind, options, tmp_path):
    features = random_photos().features.copy()
    features[0] += 1  # the first region of the first of three
    changed = replace(random_photos(), features=features)

    def first_image(model, photos):
        space, table = model.space_, model._new_images(photos)
        encoder = space.regions if kind is CrossAttentionRanker else space.images.regions
        with torch.no_grad():
            return encoder(*table.take(np.arange(1), space.device)).numpy()

    for whole_image in (True, False):
        model = fitted(kind, whole_image=whole_image, **options)
        is_same = np.isclose(first_image(model, changed), first_image(model, random_photos()))
        assert not is_same[0].all()
        assert is_same[1:].all() == (not whole_image)
        model.save(tmp_path / "model")
        read = kind.load(tmp_path / "model")
        np.testing.assert_array_equal(
            read.scores(changed, CAPTIONS, n_threads=1),
            model.scores(changed, CAPTIONS, n_threads=1),
        )
