"""Order embeddings: what is learned, in which order, and of which texts."""

import functools
from itertools import product

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import drawn  # noqa: E402
from drawn import WORDS, photos, ranker, texts  # noqa: E402
from refusals import refuses, refuses_each  # noqa: E402
from torch.nn.utils.rnn import pack_padded_sequence  # noqa: E402

from kernelcore.deep import join_captions  # noqa: E402
from kernelcore.deep.items import RegionTable, Sentences  # noqa: E402
from kernelcore.deep.order import TextEncoder, stem_vectors  # noqa: E402
from kernelcore.deep.training import seeded_generator  # noqa: E402
from kernelcore.lexical import WordVectors  # noqa: E402
from kernelcore.models.base import Pairs  # noqa: E402

fitted = functools.partial(drawn.fitted, "texts below")


@pytest.mark.parametrize(
    ("similarity", "reverse"), [("texts below", False), ("images below", True)]
)
def test_what_is_below_pays_little_in_its_order_alone(similarity, reverse):
    model = fitted(n_epochs=120, similarity=similarity, margin=0.2)
    penalties = functools.partial(model.penalties, photos(), texts(), n_threads=1)
    own, other = (penalties(reverse=way) for way in (reverse, not reverse))
    true, mismatched = np.diag(own), own[~np.eye(20, dtype=bool)]
    assert true.mean() < 0.2 * mismatched.mean()
    assert true.mean() < 0.2 * np.diag(other).mean()
    assert (true < mismatched.reshape(20, 19).min(axis=1)).all()
    np.testing.assert_allclose(-model.scores(photos(), texts(), n_threads=1), own, atol=1e-5)


def test_penalties_are_those_of_the_vectors():
    refuses(ValueError, "fitted", ranker("texts below").penalties, photos(), texts())
    model = fitted()
    table = RegionTable.of("images", photos(), "first")
    with torch.no_grad():
        images = model.space_.encode_images(*table.take(np.arange(20), torch.device("cpu")))
        words = model.space_.encode_captions(model._encode(texts()))
    assert (images >= 0).all()
    assert (words >= 0).all()
    torch.testing.assert_close(images.norm(dim=1), torch.ones(20))
    lengths = words.norm(dim=1)
    assert (lengths - 1).abs().max() > 0.01  # the lower side is free
    excess = (images.unsqueeze(1) - words).numpy()
    for block, (reverse, sign) in product(((999, 999), (3, 2)), ((False, 1), (True, -1))):
        model.space_.block = block
        found = model.penalties(photos(), texts(), reverse=reverse, n_threads=1)
        expected = (np.maximum(sign * excess, 0) ** 2).sum(-1)
        np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("similarity", "unit_length", "sides"),
    [
        ("texts below", "upper", ("images",)), ("images below", "upper", ("texts",)),
        ("texts below", "both", ("images", "texts")), ("images below", "none", ()),
        ("cosine", "none", ("images", "texts")),
    ]
)  # fmt: skip
def test_unit_length_names_the_sides_of_length_one(similarity, unit_length, sides):
    model = fitted(n_epochs=1, similarity=similarity, unit_length=unit_length)
    images, own_texts = model.embed_images(photos()), model.embed_captions(texts())
    vectors = {"images": images, "texts": own_texts}
    for side, own in vectors.items():
        assert np.allclose(np.linalg.norm(own, axis=1), 1, atol=1e-5) == (side in sides)


def test_captions_are_joined_before_anything_is_learned():
    joined = fitted()
    plain, items = ranker("texts below", joined=False), (photos(), texts())
    plain.fit(*items, dev=items, n_threads=1)
    for name, weight in joined.space_.state_dict().items():
        assert torch.equal(weight, plain.space_.state_dict()[name]), name


def test_texts_are_stems_of_content_words():
    model = fitted()
    assert set(model.vocabulary_.words) == set(WORDS)
    first, second = ("the red dog", "RED dogs, and they are"), ("dog red",)
    scores = model.scores(photos(), [*first, *second], n_threads=1)
    np.testing.assert_array_equal(scores[:, 0], scores[:, 1])
    assert not np.allclose(scores[:, 0], scores[:, 2])


def test_the_variance_is_taken_off_the_loss():
    model = fitted()
    table = RegionTable.of("images", photos(), "first")
    items = Pairs(table, model._encode(texts()), np.arange(20))
    both = model.embed_images(photos()), model.embed_captions(texts())
    shares = [float(x.var(axis=0).sum() / np.square(x).sum(axis=1).mean()) for x in both]
    plain, varied = (
        model.set_params(variance_weight=weight)._loss(items, list(range(20)), 0, None)
        for weight in (0.0, 2.0)
    )
    assert varied.item() == pytest.approx(plain.item() - 2 * sum(shares), rel=1e-5)


def test_the_text_vector_of_the_thesis_is_the_last_state():
    model = fitted(n_states=None, n_components=7, unit_length="none")
    found = model.embed_captions(texts(), n_threads=1)
    encoder, sentences = model.space_.sentences, model._encode(texts())
    with torch.no_grad():
        states, _ = encoder.lstm(encoder.embedding(sentences.word_ids))
    expected = states[torch.arange(20), sentences.lengths - 1]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert found.shape == (20, 7)
    assert found.min() < 0


def test_penalties_of_what_cannot_be_compared_are_refused():
    odd = {"images": [np.ones((2, 8))], "captions": ["a dog", [], [3]], "reverse": ["yes"]}
    usual = {"images": photos(), "captions": texts(), "reverse": False}
    refuses_each(fitted(n_epochs=1).penalties, odd, **usual)


@torch.no_grad()
@pytest.mark.parametrize("lengths", [[3, 5, 1, 2], [1], [4, 4], [2, 2, 2], [7, 1]])
def test_texts_are_last_states_without_their_padding(lengths):
    generator = seeded_generator(0)
    encoder = TextEncoder(torch.randn(9, 4), 5, 6, generator=generator)
    ids = torch.randint(1, 9, (len(lengths), max(lengths)), generator=generator)
    found = encoder(Sentences(ids, torch.tensor(lengths)))
    layout = {"batch_first": True, "enforce_sorted": False}
    packed = pack_padded_sequence(encoder.embedding(ids), lengths, **layout)
    _, (last, _) = encoder.lstm(packed)
    torch.testing.assert_close(found, encoder.dense(last[0]).abs(), atol=1e-6, rtol=0)


def test_captions_are_joined_in_their_order():
    texts, images = join_captions(["one", "two", "three", "four", "five"], [3, 0, 3, 7, 0])
    assert texts == ["two five", "one three", "four"]
    assert images.tolist() == [0, 3, 7]
    assert images.dtype == np.intp
    assert join_captions([], np.zeros(0, int))[0] == []
    for owners in ([0], [0, -1], [0.5, 1.0], [[0, 1]]):
        refuses((TypeError, ValueError), "caption_image", join_captions, ["a", "b"], owners)


def test_a_stem_has_the_vector_of_its_most_frequent_word():
    words = ["run", "running", "runs", "dogs", "dog", "the"]
    vectors = WordVectors(words, np.eye(6, dtype=np.float32))
    texts = ["The running runs running", "runs runner dog dogs", "runners run"]
    found = stem_vectors(texts, vectors)
    # "running" and "runs" come twice each; neither "runner" nor the stop word has a part
    assert found.words == ("dog", "run")
    np.testing.assert_array_equal(found["run"], vectors["running"])
    np.testing.assert_array_equal(found["dog"], vectors["dog"])
    empty = stem_vectors(["nothing known"], vectors)
    assert (len(empty.words), empty.n_dimensions) == (0, 6)
