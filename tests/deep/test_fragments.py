"""Fragment embeddings: which fragments and regions are compared, and what is kept."""

import functools

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import drawn  # noqa: E402
from drawn import ALL, SYSTEMS, extractor, fragments, vectors  # noqa: E402
from refusals import refuses  # noqa: E402

from kernelcore.captions import FragmentExtractor  # noqa: E402
from kernelcore.deep import FragmentRanker  # noqa: E402
from kernelcore.deep.items import RegionTable  # noqa: E402
from kernelcore.deep.training import seeded_generator  # noqa: E402
from kernelcore.models.base import Pairs  # noqa: E402

N_REGIONS = 3
photos = functools.partial(drawn.photos, noise=0.02)


def ranker(**options):
    return drawn.ranker("full", **options)


def fitted(kind="bigrams", things=ALL, **options):
    system = {"bigrams": "full"}.get(kind, kind)
    return drawn.fitted(system, things=things, **options)


def test_scores_depend_neither_on_company_nor_on_blocks(monkeypatch):
    model = fitted()
    images, captions = photos(ALL * 3), fragments(ALL * 40)
    everything = model.scores(images, captions, n_threads=1)
    assert everything.shape == (60, 800)
    part = model.scores(images.select([1, 59]), captions.select([799, 3]), n_threads=1)
    expected = everything[np.ix_([1, 59], [799, 3])]
    np.testing.assert_allclose(part, expected, rtol=1e-5, atol=1e-6)
    for name in ("_IMAGES_AT_ONCE", "_CAPTIONS_AT_ONCE", "_FRAGMENTS_AT_ONCE"):
        monkeypatch.setattr(f"kernelcore.deep.fragment_space.{name}", 7)
    found = model.scores(images, captions, n_threads=1)
    np.testing.assert_allclose(found, everything, rtol=1e-5, atol=1e-6)
    wordless = extractor().transform(["", "dog"])
    assert (model.scores(images, wordless) == 0).all()


def test_scores_are_those_of_the_alignment_to_the_words_given():
    model = fitted()
    assert np.array_equal(model.space_.captions.words.numpy(), vectors().vectors)
    images, captions = photos(ALL), fragments(ALL)
    scores = model.scores(images, captions)
    for i, products in enumerate(model.alignments(images, captions)):
        assert products.shape == (N_REGIONS, 1)
        expected = np.maximum(products, 0).sum() / (N_REGIONS * (1 + model.smoothing))
        np.testing.assert_allclose(scores[i, i], expected, rtol=1e-4, atol=1e-6)


def test_words_are_found_in_their_regions():
    model = fitted("words", n_epochs=60)
    images = photos(ALL)
    hits = 0
    for products in model.alignments(images, fragments(ALL, "words")):
        assert products.shape == (N_REGIONS, 2)
        hits += (products[1:].argmax(axis=0) == [0, 1]).sum()
    assert hits >= 36
    dog = extractor("words").transform(["dog"])
    found = model.search_regions(images, dog, k=5)
    assert [match.score for match in found] == sorted((m.score for m in found), reverse=True)
    assert all(ALL[match.image][1] == "dog" for match in found)
    products = model.alignments(images.select([found[0].image]), dog)
    assert products[0][found[0].region, 0] == pytest.approx(found[0].score, rel=1e-5)


def test_no_image_is_twice_in_a_batch_and_every_caption_comes_once():
    owners = np.random.default_rng(0).integers(0, 7, 40)
    table = RegionTable.of("images", np.eye(7), "all")
    pairs = Pairs(table, fragments(ALL * 2), owners)
    batches = ranker()._batches(pairs, 4, seeded_generator(0))
    assert all(1 < len(set(owners[batch])) == len(batch) <= 4 for batch in batches)
    used = [caption for batch in batches for caption in batch]
    assert len(used) == len(set(used)) >= 33  # what is left alone has no negatives


def test_instances_are_chosen_after_the_dense_epochs():
    ways = {"multiple_instance": False}, {"n_dense": 6}, {"n_dense": 3}
    scores = [fitted(**options).scores(photos(), fragments()) for options in ways]
    np.testing.assert_array_equal(scores[0], scores[1])
    assert not np.array_equal(scores[1], scores[2])


class Tiny(torch.nn.Module):
    def __init__(self):
        super().__init__()
        with torch.no_grad():
            self.conv = torch.nn.Conv2d(3, 4, 2)
            for value, parameter in enumerate(self.conv.parameters()):
                drawn = np.random.default_rng(value).normal(size=parameter.shape)
                parameter.copy_(torch.from_numpy(drawn))

    def forward(self, pixels):
        return self.conv(pixels / 255).flatten(1)


def test_a_copy_of_a_network_is_trained_along_after_the_dense_epochs(tmp_path):
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (20, 3, 4, 4), np.uint8)
    captions, network = fragments(ALL), Tiny()
    items = pixels, captions
    for n_dense, is_trained in ((6, False), (3, True)):
        model = ranker(network=network, n_dense=n_dense)
        model.fit(*items, word_vectors=vectors(), dev=items, n_threads=1)
        assert model.network is network
        networks = model.space_.regions.network, network, Tiny()
        for mine, given, start in zip(*(own.parameters() for own in networks), strict=True):
            assert torch.equal(given, start)
            assert torch.equal(mine, start) is not is_trained
    model.save(tmp_path / "model")
    again = FragmentRanker.load(tmp_path / "model", network=network)
    assert np.array_equal(again.scores(pixels, captions), model.scores(pixels, captions))
    assert torch.equal(network.conv.weight, Tiny().conv.weight)
    said = refuses(ValueError, "network", FragmentRanker.load, tmp_path / "model")
    assert "damaged" not in said


def test_items_that_do_not_fit():
    images, captions, words = photos(), fragments(), vectors()
    given = {"images": images, "captions": captions, "word_vectors": words}
    for named, changes in (
        ("captions", {"captions": captions.select([0])}),
        ("captions", {"captions": fragments(kind="tree")}),
        ("word_vectors", {"word_vectors": words.restrict(words.words[1:])}),
        ("network", {"images": np.zeros((20, 2, 2))}),
    ):
        options = {**given, "dev": (images, captions), **changes}
        refuses((TypeError, ValueError), named, ranker().fit, **options)
    model = fitted(n_epochs=1)
    other = FragmentExtractor("bigrams").fit_transform(["a dog"])
    refuses(ValueError, "1 relations and 9 words", model.scores, images, other)
    refuses(ValueError, "captions", model.alignments, images, captions.select([0]))
    refuses(ValueError, "fragment", model.search_regions, images, captions)


RAW = [f"{colour} {thing}" for colour, thing in ALL]


@pytest.mark.parametrize("system", ["full", "words", "mean"])
def test_raw_captions_are_cut_as_a_caller_would_cut_them(tmp_path, system):
    _, options, kind = SYSTEMS[system]
    model, items = ranker(fragments=kind, **options), (photos(ALL), RAW)
    model.fit(*items, word_vectors=vectors(kind), dev=items, n_threads=1)
    expected = fitted(kind, **options).scores(photos(ALL), fragments(ALL, kind))
    np.testing.assert_array_equal(model.scores(photos(ALL), RAW), expected)
    np.testing.assert_array_equal(model.scores(photos(ALL), fragments(ALL, kind)), expected)
    model.save(tmp_path / "model")
    again = FragmentRanker.load(tmp_path / "model")
    odd = ["a red dog barks", "zzz"]
    found, expected = (own.scores(photos(ALL), odd) for own in (again, model))
    np.testing.assert_array_equal(found, expected)
    assert len(again.alignments(photos(ALL), RAW)) == 20


def test_what_stands_for_a_caption_must_be_what_was_learned():
    model = fitted(n_epochs=1)
    refuses(TypeError, "captions", model.scores, photos(ALL), RAW)
    refuses(ValueError, "one vector", model.embed_images, photos(ALL))
    refuses(ValueError, "one vector", model.embed_captions, fragments(ALL))
