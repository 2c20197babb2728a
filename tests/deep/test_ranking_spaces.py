"""Spaces of images and captions against the definitions of what they compute."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from kernelcore.deep import CrossAttentionRanker, EmbeddingRanker, seeded_generator  # noqa: E402
from kernelcore.deep.regions_in_context import RegionsInContext  # noqa: E402
from kernelcore.images import RegionFeatures  # noqa: E402
from kernelcore.reference.cross_attention import cross_attention  # noqa: E402

CAPTIONS = ["a red dog runs", "a blue boat", "the sea", "a boat at sea on a red day", "dog"]
COUNTS = [3, 1, 4, 2, 2]


def photos(seed=0):
    """Photos with regions of random features."""
    count = sum(COUNTS)
    return RegionFeatures(
        offsets=np.append(0, np.cumsum(COUNTS)),
        boxes=np.zeros((count, 4), np.float32),
        scores=np.full(count, np.nan, np.float32),
        labels=np.full(count, -1, np.int32),
        features=np.random.default_rng(seed).random((count, 6), np.float32),
        sizes=np.full((len(COUNTS), 2), 10, np.int32),
        rows=np.arange(len(COUNTS)),
        failures={},
    )


def fitted(kind, **options):
    settings = {"n_components": 8, "min_count": 1, "n_epochs": 2, "rng": 0, **options}
    items = photos(), CAPTIONS
    return kind(**settings).fit(*items, dev=items, n_threads=1)


def vectors_of(parts):
    """The vectors of each whole, without padding."""
    pairs = zip(parts.vectors.double().numpy(), parts.mask.numpy(), strict=True)
    return [vectors[mask] for vectors, mask in pairs]


@pytest.mark.parametrize("pooling", ["logsumexp", "mean"])
@pytest.mark.parametrize(
    ("attention", "temperature", "sharpness"), [("t2i", 9.0, 6.0), ("i2t", 4.0, 20.0)]
)
def test_words_look_at_regions_or_regions_at_words(attention, temperature, sharpness, pooling):
    model = fitted(CrossAttentionRanker, attention=attention, pooling=pooling)
    table, captions = model._asked_images(photos()), model._asked_captions(CAPTIONS)
    space = model.space_
    everything = np.arange(len(table))
    with torch.no_grad():
        regions = vectors_of(space.pictures(*table.take(everything, space.device)))
        words = vectors_of(space.texts(captions))
    assert [len(part) for part in regions] == COUNTS
    assert [len(part) for part in words] == [len(text.split()) for text in CAPTIONS]
    options = {"temperature": temperature, "pooling": pooling, "sharpness": sharpness}
    expected = (
        cross_attention(regions, words, **options)
        if attention == "t2i"
        else cross_attention(words, regions, **options).T
    )
    found = model.scores(photos(), CAPTIONS, n_threads=1)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@torch.no_grad()
def test_every_region_knows_the_first_of_its_image():
    encoder = RegionsInContext(6, 5, dropout=0.5, generator=seeded_generator(0)).double()
    features, offsets = photos().features.astype(np.float64), photos().offsets
    encoder.standardize(np.full(6, 0.5, np.float32), np.full(6, 2.0, np.float32))
    standard = (features - 0.5) / 2
    own, whole = (
        (part.affine.weight.numpy(), part.affine.bias.numpy())
        for part in (encoder.own, encoder.whole)
    )
    firsts = np.repeat(standard[offsets[:-1]], COUNTS, axis=0)
    expected = standard @ own[0].T + firsts @ whole[0].T + own[1] + whole[1]
    found = encoder(torch.from_numpy(features), offsets).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_an_image_is_its_first_region_or_the_mean_of_all():
    first, mean = (
        fitted(EmbeddingRanker, image=image, n_hidden=8) for image in ("first", "mean")
    )
    offsets = photos().offsets
    heads = photos(1).features[offsets[:-1]]
    means = np.array(
        [part.mean(axis=0) for part in np.split(photos(1).features, offsets[1:-1])]
    )
    for model, rows in ((first, heads), (mean, means)):
        scores = model.scores(photos(1), CAPTIONS, n_threads=1)
        np.testing.assert_allclose(scores, model.scores(rows, CAPTIONS, n_threads=1), atol=1e-6)


def test_regions_without_finite_features_are_refused_where_they_are_read():
    broken = photos()
    broken.features[1, 2] = np.inf  # not a first region
    model = fitted(CrossAttentionRanker, n_epochs=1)
    with pytest.raises(ValueError, match="features of images must be finite"):
        model.scores(broken, CAPTIONS, n_threads=1)
    with pytest.raises(ValueError, match="features of images must be finite"):
        CrossAttentionRanker(min_count=1, n_epochs=1, rng=0).fit(
            photos(), CAPTIONS, dev=(broken, CAPTIONS), n_threads=1
        )
    whole = fitted(EmbeddingRanker, image="first", n_epochs=1)
    np.testing.assert_array_equal(
        whole.scores(broken, CAPTIONS, n_threads=1),
        whole.scores(photos(), CAPTIONS, n_threads=1),
    )
