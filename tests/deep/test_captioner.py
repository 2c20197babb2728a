"""The captioner: its probabilities, what it writes, how it ranks, what is kept and refused."""

from functools import cache, partial

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from drawn import ALL, WORDS, region_features  # noqa: E402
from refusals import refuses, refuses_each  # noqa: E402

from kernelcore.deep import Captioner, captioner  # noqa: E402
from kernelcore.deep.training import seeded_generator  # noqa: E402
from kernelcore.models.base import Pairs  # noqa: E402
from kernelcore.reference.language import (  # noqa: E402
    best_caption,
    log_likelihood,
)

SCORES = ("ratio", "likelihood", "per word")


def photos():
    """The whole of each photo, and a second region that shows nothing."""
    whole = np.array([[float(word in words) for word in WORDS] for words in ALL])
    features = np.stack([whole, np.zeros_like(whole)], axis=1).reshape(40, -1)
    return region_features(features, [2] * 20)


def captions():
    """One for each photo, of three to six words."""
    field = {thing: " in the field" * (thing in {"dog", "rose"}) for _, thing in ALL}
    return [f"a {colour} {thing}{field[thing]}" for colour, thing in ALL]


def unfitted(**options):
    settings = {"n_components": 24, "n_embedding": 12, "min_count": 1, "dropout": 0.0}
    settings |= {"learning_rate": 0.02, "batch_size": 10, "n_epochs": 2, "rng": 0}
    return Captioner(**{**settings, **options})


def fitted(**options):
    items = photos(), captions()
    return unfitted(**options).fit(*items, dev=items, n_threads=1)


@cache
def brief():
    return fitted(n_epochs=3, score="likelihood", n_prior=7)


def tiny(max_tokens=4, seed=3):
    """A captioner of three words and random weights, which has seen nothing."""
    items = np.eye(3), ["one", "two", "three"]
    sizes = {"n_components": 5, "n_embedding": 4, "max_tokens": max_tokens}
    model = unfitted(**sizes, score="likelihood", n_epochs=1)
    model.fit(*items, dev=items, n_threads=1)
    generator = seeded_generator(seed)
    with torch.no_grad():
        for parameter in model.space_.parameters():
            parameter.copy_(1.5 * torch.randn(parameter.shape, generator=generator))
    return model


def weights_of(model):
    """The weights under the names of the reference, in float64."""
    state = {name: w.double().numpy() for name, w in model.space_.state_dict().items()}
    names = {"image_weight": "images.affine.weight", "image_bias": "images.affine.bias"}
    names |= {"words": "words.weight", "input": "lstm.weight_ih_l0"}
    names |= {"recurrent": "lstm.weight_hh_l0", "input_bias": "lstm.bias_ih_l0"}
    names |= {"recurrent_bias": "lstm.bias_hh_l0", "decoder_weight": "decoder.weight"}
    names |= {"decoder_bias": "decoder.bias"}
    return {name: state[own] for name, own in names.items()}


def standardized(model, rows):
    mean, scale = (getattr(model.space_.images, n).double().numpy() for n in ("mean", "scale"))
    return (rows - mean) / scale


def ids_of(model, text):
    """Symbols of a text, as the reference takes them."""
    index = model.vocabulary_.index
    return [index[word] + 1 if word in index else 0 for word in text.split()]


def text_of(model, symbols):
    words = ("zzz", *model.vocabulary_.words)
    return " ".join(words[i] for i in symbols)


# Probabilities


@pytest.mark.parametrize("max_tokens", [3, 4, 9])
def test_log_likelihoods_are_those_of_the_reference(max_tokens):
    model = tiny(max_tokens)
    texts = ["one", "three one two", "two zzz", "zzz", "one two three one two", "one two"]
    rows = np.random.default_rng(0).normal(size=(4, 3))
    likelihood = partial(log_likelihood, weights=weights_of(model), max_tokens=max_tokens)
    symbols = [ids_of(model, text)[:max_tokens] for text in texts]
    expected = [[likelihood(x, own) for own in symbols] for x in standardized(model, rows)]
    np.testing.assert_allclose(model.scores(rows, texts, n_threads=1), expected, atol=2e-5)
    own = np.repeat(np.arange(4), len(texts))
    pairs = model.log_likelihoods(rows, texts * 4, caption_image=own, n_threads=1)
    np.testing.assert_allclose(pairs, np.ravel(expected), atol=2e-5)


@pytest.mark.parametrize("score", SCORES)
def test_each_score_is_made_of_likelihoods(score):
    model = fitted(n_epochs=3, score=score, n_prior=7)
    texts = ["a red dog", "a boat", "zzz in the field of a cat", "a red dog", "red " * 30]
    found = model.scores(photos(), texts, n_threads=1)
    likelihoods = brief().scores(photos(), texts, n_threads=1)
    n_predictions = np.array([4, 3, 8, 4, model.max_tokens])  # no end after the last word
    of_training = model.space_.prior.numpy()
    assert of_training.shape == (7, 9)
    assert (of_training.sum(axis=1) == 2).all()  # whole photos: a colour and a thing
    prior = np.log(np.exp(brief().scores(of_training, texts, n_threads=1)).mean(axis=0))
    expected = {"likelihood": likelihoods, "ratio": likelihoods - prior}
    expected["per word"] = likelihoods / n_predictions
    np.testing.assert_allclose(found, expected[score], atol=1e-5)
    np.testing.assert_array_equal(found[:, 0], found[:, 3])
    assert (likelihoods < 0).all()
    # a caption ranks images alike by every score
    np.testing.assert_array_equal(found.argmax(axis=0), likelihoods.argmax(axis=0))


def test_beginnings_are_shared_and_company_does_not_matter(monkeypatch):
    model = brief()
    texts = [*captions(), "a", "a a a", *captions()[:3], "red " * 30]
    whole = model.scores(photos(), texts, n_threads=1)
    levels = model.space_.encode_captions(model._encode(texts)).levels
    assert [len(level.words) for level in levels[:3]] == [2, 7, 22]
    assert len(levels) == model.max_tokens
    for name, value in (("STATES", 30), ("LOGITS", 90), ("PAIRS", 3)):
        monkeypatch.setattr(captioner, f"_{name}_AT_ONCE", value)
    monkeypatch.setattr(model.space_, "block", (3, 2))
    again = model.scores(photos(), texts, n_threads=1)
    np.testing.assert_allclose(again, whole, atol=1e-4)
    alone = model.scores(photos().select([4]), texts[7:8], n_threads=1)
    np.testing.assert_allclose(alone, whole[4:5, 7:8], atol=1e-5)
    owners = np.arange(len(texts)) % 20
    pairs = model.log_likelihoods(photos(), texts, caption_image=owners, n_threads=1)
    np.testing.assert_allclose(pairs, whole[owners, np.arange(len(texts))], atol=1e-4)
    assert model.generate(photos(), n_threads=1) == brief().generate(photos(), n_threads=1)


def test_losses_are_means_over_words_and_the_end():
    model = brief()
    found = model.log_likelihoods(photos(), captions(), n_threads=1)
    n_predictions = sum(len(text.split()) + 1 for text in captions())
    best = model.history_.epochs[model.history_.best_epoch]
    assert best["dev_loss"] == pytest.approx(-found.sum() / n_predictions, rel=1e-5)
    assert best["perplexity"] == pytest.approx(np.exp(best["dev_loss"]))
    table = model._table("images", photos())
    pairs = Pairs(table, model._encode(captions()), np.arange(20))
    loss = model._loss(pairs, list(range(20)), 0, None)
    assert float(loss.detach()) == pytest.approx(best["dev_loss"], rel=1e-5)


# Written captions


@pytest.mark.parametrize("max_tokens", [1, 3])
def test_a_beam_of_full_width_finds_the_best_caption(max_tokens):
    for seed in range(4):
        model = tiny(max_tokens, seed)
        rows = np.random.default_rng(seed).normal(size=(5, 3))
        texts = model.generate(rows, beam_size=5**max_tokens)
        limits = {"max_length": max_tokens, "max_tokens": max_tokens}
        best = [best_caption(x, weights_of(model), **limits) for x in standardized(model, rows)]
        assert texts == [text_of(model, symbols) for symbols, _ in best]


def test_a_beam_of_one_takes_the_most_probable_word():
    model = tiny(max_tokens=6)
    rows = np.random.default_rng(2).normal(size=(6, 3))
    found, weights = model.generate(rows, beam_size=1), weights_of(model)
    for x, text in zip(standardized(model, rows), found, strict=True):
        expected = []
        while len(expected) < 6 and 4 not in expected:
            ways = [[*expected, symbol] for symbol in range(1, 5 if expected else 4)]
            limit = {"max_tokens": len(expected) + 1}
            expected = max(ways, key=lambda own: log_likelihood(x, own, weights, **limit))
        assert ids_of(model, text) == [symbol for symbol in expected if symbol != 4]


# Files, settings and errors


def test_the_limit_of_the_fit_goes_on_holding(tmp_path):
    model = tiny(max_tokens=3)
    rows, texts = np.eye(3), ["one two three one two", "two", "one two three"]
    owners = np.arange(3)
    scores, written = model.scores(rows, texts, n_threads=1), model.generate(rows)
    likelihoods = model.log_likelihoods(rows, texts, caption_image=owners, n_threads=1)
    for limit in (10, 1):
        model.set_params(max_tokens=limit)
        np.testing.assert_array_equal(model.scores(rows, texts, n_threads=1), scores)
        again = model.log_likelihoods(rows, texts, caption_image=owners, n_threads=1)
        np.testing.assert_array_equal(again, likelihoods)
        assert model.generate(rows) == written
        model.save(tmp_path / "model")
        read = Captioner.load(tmp_path / "model")
        assert read.max_tokens == 3
        np.testing.assert_array_equal(read.scores(rows, texts, n_threads=1), scores)


def test_the_score_can_be_changed_after_the_fit(tmp_path):
    model, texts = fitted(n_epochs=1), ["a red dog", "a boat", "a red dog in the field"]
    model.save(tmp_path / "model")
    for score in (*SCORES, *SCORES[::-1]):
        expected = fitted(n_epochs=1, score=score).scores(photos(), texts, n_threads=1)
        model.set_params(score=score)
        np.testing.assert_array_equal(model.scores(photos(), texts, n_threads=1), expected)
        read = Captioner.load(tmp_path / "model", score=score)
        np.testing.assert_array_equal(read.scores(photos(), texts, n_threads=1), expected)
    refuses(ValueError, "score", model.set_params(score="nonsense").scores, photos(), texts)


def test_features_that_overflow_are_refused():
    likelihoods = partial(brief().log_likelihoods, captions=["a dog"] * 2)
    for ask in (brief().generate, partial(brief().scores, captions=["a dog"]), likelihoods):
        refuses(ValueError, "features of images", ask, np.full((2, 9), 3e38))
        refuses(ValueError, "images", ask, np.full((2, 9), np.nan))
        refuses(ValueError, "images must have 9 features", ask, np.ones((2, 8)))
    large = brief().scores(np.full((2, 9), 1e30), ["a dog", "zzz"], n_threads=1)
    assert np.isfinite(large).all()


def test_what_does_not_fit_the_model_is_refused():
    refuses_each(brief().generate, {"beam_size": [0, 1.5]}, images=photos(), beam_size=1)
    for ask in (unfitted().generate, partial(unfitted().log_likelihoods, captions=["a dog"])):
        refuses(ValueError, "must be fitted first", ask, photos())
    refuses(ValueError, "captions", brief().log_likelihoods, photos(), ["a dog"])
