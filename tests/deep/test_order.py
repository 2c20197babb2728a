"""Order embeddings: what is learned, in which order, kept and refused."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from drawn_photos import ALL, WORDS, region_features  # noqa: E402
from sklearn.base import clone  # noqa: E402
from torch.nn.utils.rnn import pack_padded_sequence  # noqa: E402

from kernelcore.deep import OrderRanker, join_captions, seeded_generator  # noqa: E402
from kernelcore.deep.items import RegionTable, Sentences  # noqa: E402
from kernelcore.deep.losses import RankingObjective  # noqa: E402
from kernelcore.deep.order import OrderObjective, TextEncoder, stem_vectors  # noqa: E402
from kernelcore.evaluation import evaluate  # noqa: E402
from kernelcore.lexical import WordVectors  # noqa: E402
from kernelcore.models import Ranker  # noqa: E402
from kernelcore.models.base import Pairs  # noqa: E402

OWNERS = np.repeat(np.arange(20), 2)
SIMILARITIES = ("texts below", "images below", "cosine")


def photos():
    """The whole of each photo, and a second region that shows nothing."""
    whole = np.array([[float(word in words) for word in WORDS] for words in ALL])
    features = np.stack([whole, np.zeros_like(whole)], axis=1).reshape(40, -1)
    return region_features(features, [2] * 20)


def captions():
    """Two for each photo: one of its colour, and one of the thing."""
    return [text for colour, thing in ALL for text in (f"It is {colour}.", f"some {thing}s")]


def texts():
    return join_captions(captions(), OWNERS)[0]


def ranker(**options):
    settings = {"n_components": 24, "n_hidden": 24, "n_states": 16, "min_count": 1}
    settings |= {"dropout": 0.0, "learning_rate": 0.01, "min_learning_rate": 0.01}
    settings |= {"batch_size": 20, "n_epochs": 4, "rng": 0}
    return OrderRanker(**{**settings, **options})


def fitted(*, folder=None, word_vectors=None, progress=False, **options):
    return ranker(**options).fit(
        photos(),
        captions(),
        caption_image=OWNERS,
        dev=(photos(), captions(), OWNERS),
        n_threads=1,
        folder=folder,
        word_vectors=word_vectors,
        progress=progress,
    )


@pytest.mark.parametrize(
    "options",
    [*({"similarity": name} for name in SIMILARITIES), {"variance_weight": 1.0}],
    ids=[*SIMILARITIES, "variance"],
)
def test_every_system_overfits_twenty_pairs(options):
    model = fitted(n_epochs=60, **options)
    result = evaluate(model.scores(photos(), texts(), n_threads=1))
    assert result.annotation.recall[1] == result.search.recall[1] == 1.0
    assert model.history_.dev_losses[model.history_.best_epoch] == 0.0


@pytest.mark.parametrize(
    ("similarity", "reverse"), [("texts below", False), ("images below", True)]
)
def test_what_is_below_pays_little_in_its_order_alone(similarity, reverse):
    model = fitted(n_epochs=120, similarity=similarity, margin=0.2)
    own, other = (
        model.penalties(photos(), texts(), reverse=way, n_threads=1)
        for way in (reverse, not reverse)
    )
    true, mismatched = np.diag(own), own[~np.eye(20, dtype=bool)]
    assert true.mean() < 0.2 * mismatched.mean()
    assert true.mean() < 0.2 * np.diag(other).mean()
    assert (true < mismatched.reshape(20, 19).min(axis=1)).all()
    np.testing.assert_allclose(-model.scores(photos(), texts(), n_threads=1), own, atol=1e-5)


def test_penalties_are_those_of_the_vectors():
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
    for reverse, sign in ((False, 1), (True, -1)):
        found = model.penalties(photos(), texts(), reverse=reverse, n_threads=1)
        expected = (np.maximum(sign * excess, 0) ** 2).sum(-1)
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_it_is_a_ranker_and_an_estimator():
    model = clone(ranker(margin=0.3))
    assert isinstance(model, Ranker)
    assert model.get_params()["margin"] == 0.3
    for ask in (model.scores, model.penalties):
        with pytest.raises(ValueError, match="must be fitted first"):
            ask(photos(), texts())


def test_captions_are_joined_before_anything_is_learned():
    joined = fitted()
    plain = ranker(joined=False).fit(photos(), texts(), dev=(photos(), texts()), n_threads=1)
    for name, weight in joined.space_.state_dict().items():
        assert torch.equal(weight, plain.space_.state_dict()[name]), name
    single = fitted(joined=False, n_epochs=80)
    scores = single.scores(photos(), captions(), n_threads=1)
    # each of the captions tells of several photos, and its own are the best
    assert (scores[OWNERS, np.arange(40)] >= np.sort(scores, axis=0)[-5]).mean() > 0.9


def test_images_without_captions_are_not_used():
    model = ranker().fit(
        photos(),
        captions()[:10],
        caption_image=OWNERS[:10] + 3,
        dev=(photos(), captions(), OWNERS),
        n_threads=1,
    )
    assert set(model.vocabulary_.words) == {"dog", "cat", "boat", "rose", "red", "blue"}


def test_texts_are_stems_of_content_words():
    model = fitted()
    assert set(model.vocabulary_.words) == set(WORDS)
    first, second = ("the red dog", "RED dogs, and they are"), ("dog red",)
    scores = model.scores(photos(), [*first, *second], n_threads=1)
    np.testing.assert_array_equal(scores[:, 0], scores[:, 1])
    assert not np.allclose(scores[:, 0], scores[:, 2])


def test_longer_texts_are_cut():
    model = fitted(max_tokens=2)
    scores = model.scores(photos(), ["red dog", "red dog boats"], n_threads=1)
    np.testing.assert_array_equal(scores[:, 0], scores[:, 1])


def test_word_vectors_are_where_stems_start():
    vectors = WordVectors(["dogs", "dog", "red"], np.eye(3, 5, dtype=np.float32))
    model = fitted(word_vectors=vectors, learning_rate=1e-12, min_learning_rate=1e-12)
    table = model.space_.sentences.embedding.weight.detach()
    index = model.vocabulary_.index
    np.testing.assert_allclose(table[index["dog"] + 1], vectors["dogs"], atol=1e-6)
    np.testing.assert_allclose(table[index["red"] + 1], vectors["red"], atol=1e-6)


def test_blocks_and_company_do_not_matter():
    model = fitted()
    whole = model.scores(photos(), [*texts(), "red " * 30], n_threads=1)
    penalties = model.penalties(photos(), texts(), n_threads=1)
    model.space_.block = (3, 2)
    found = model.scores(photos(), [*texts(), "red " * 30], n_threads=1)
    np.testing.assert_allclose(found, whole, atol=1e-6)
    again = model.penalties(photos(), texts(), n_threads=1)
    np.testing.assert_allclose(again, penalties, atol=1e-6)
    alone = model.scores(photos().select([4]), texts()[7:8], n_threads=1)
    np.testing.assert_allclose(alone, whole[4:5, 7:8], atol=1e-6)


def test_the_first_region_or_the_mean_of_all():
    first, mean = (
        fitted(regions=regions).scores(photos(), texts(), n_threads=1)
        for regions in ("first", "mean")
    )
    # the second region is empty: after standardising, half of a photo is as good as all of it
    np.testing.assert_allclose(first, mean, atol=1e-4)
    rows = ranker().fit(
        photos().features[::2], texts(), dev=(photos().features[::2], texts()), n_threads=1
    )
    np.testing.assert_allclose(
        rows.scores(photos().features[::2], texts(), n_threads=1), first, atol=1e-6
    )


def test_the_file_holds_all_that_is_needed(tmp_path):
    model = fitted(word_vectors=WordVectors(WORDS, np.eye(9, 7, dtype=np.float32)))
    model.save(tmp_path / "model")
    read = OrderRanker.load(tmp_path / "model")
    assert read.get_params() == model.get_params()
    assert read.history_ == model.history_
    expected = model.scores(photos(), texts(), n_threads=1)
    assert expected.dtype == np.float32
    np.testing.assert_array_equal(read.scores(photos(), texts(), n_threads=1), expected)
    (tmp_path / "cut").write_bytes((tmp_path / "model").read_bytes()[:1000])
    with pytest.raises(ValueError, match="cut"):
        OrderRanker.load(tmp_path / "cut")


def test_the_same_seed_gives_the_same_bits_also_when_resumed(tmp_path):
    options = {"dropout": 0.2, "min_learning_rate": 0.005, "variance_weight": 0.1}
    options |= {"batch_size": 6}
    whole = fitted(**options)

    class StoppedError(Exception):
        pass

    def stop(done, total):
        if done > total // 2:
            raise StoppedError

    with pytest.raises(StoppedError):
        fitted(folder=tmp_path, progress=stop, **options)
    resumed = fitted(folder=tmp_path, **options)
    for name, weight in whole.space_.state_dict().items():
        assert torch.equal(weight, resumed.space_.state_dict()[name]), name
    with pytest.raises(ValueError, match="same data and settings"):
        fitted(folder=tmp_path, **{**options, "margin": 0.4})


def test_batches_are_doubled_where_training_makes_no_progress():
    model = fitted(n_epochs=60, batch_size=5)
    assert {epoch["batch_size"] for epoch in model.history_.epochs} >= {5, 10}


def test_the_variance_is_taken_off_the_loss():
    model = fitted()
    sentences = model._encode(texts())
    items = Pairs(RegionTable.of("images", photos(), "first"), sentences, np.arange(20))
    batch, generator = list(range(20)), seeded_generator(0)
    shared = {"margin": 0.1, "negatives": "sum"}
    plain = RankingObjective(model.space_, items, items, **shared)
    images, words, _ = plain.encoded(batch, None)
    shares = [
        float((x.var(0, correction=0).sum() / x.square().sum(1).mean()).detach())
        for x in (images, words)
    ]
    losses = [
        float(objective.loss(batch, 0, generator).detach())
        for objective in (
            plain,
            OrderObjective(model.space_, items, items, variance_weight=0.0, **shared),
            OrderObjective(model.space_, items, items, variance_weight=2.0, **shared),
        )
    ]
    assert losses[0] == losses[1]
    assert losses[2] == pytest.approx(losses[0] - 2 * sum(shares), rel=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"joined": "yes"}, "joined must be True or False"),
        ({"similarity": "below"}, "similarity must be one of"),
        ({"regions": "all"}, "regions must be one of"),
        ({"n_hidden": 0}, "n_hidden must be"),
        ({"n_states": 0}, "n_states must be"),
        ({"n_components": 0}, "n_components must be"),
        ({"max_tokens": 0}, "max_tokens must be"),
        ({"dropout": 1.0}, "dropout must be a number < 1"),
        ({"margin": -0.1}, "margin must be a number >= 0"),
        ({"variance_weight": -1.0}, "variance_weight must be a number >= 0"),
        ({"variance_weight": float("nan")}, "variance_weight must be finite"),
        ({"learning_rate": 0.0}, "learning_rate must be a number > 0"),
        ({"min_learning_rate": 0.0}, "min_learning_rate must be a number > 0"),
        ({"min_learning_rate": 0.1}, "floor must be at most the learning rate"),
        ({"batch_size": 1}, "batch_size must be"),
        ({"n_epochs": 0}, "n_epochs must be"),
    ],
)
def test_parameters_out_of_range_are_refused(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        fitted(**options)


@pytest.mark.parametrize(
    ("captions", "error", "message"),
    [
        ("a dog", TypeError, "captions must be a sequence of strings"),
        ([], ValueError, "captions must hold at least one"),
        ([3], TypeError, "captions must hold strings"),
    ],
)
def test_penalties_are_of_texts(captions, error, message):
    with pytest.raises(error, match=message):
        fitted(n_epochs=1).penalties(photos(), captions)


def test_penalties_have_two_ways():
    with pytest.raises(TypeError, match="reverse must be True or False"):
        fitted(n_epochs=1).penalties(photos(), texts(), reverse="yes")
    with pytest.raises(ValueError, match="images must have 9 features"):
        fitted(n_epochs=1).penalties(np.ones((2, 8)), texts())


@torch.no_grad()
@pytest.mark.parametrize("lengths", [[3, 5, 1, 2], [1], [4, 4], [2, 2, 2], [7, 1]])
def test_texts_are_last_states_without_their_padding(lengths):
    generator = seeded_generator(0)
    encoder = TextEncoder(torch.randn(9, 4), 5, 6, dropout=0.0, generator=generator)
    ids = torch.randint(1, 9, (len(lengths), max(lengths)), generator=generator)
    found = encoder(Sentences(ids, torch.tensor(lengths)))
    packed = pack_padded_sequence(
        encoder.embedding(ids), lengths, batch_first=True, enforce_sorted=False
    )
    _, (last, _) = encoder.lstm(packed)
    torch.testing.assert_close(found, encoder.dense(last[0]).abs(), atol=1e-6, rtol=0)


def test_captions_are_joined_in_their_order():
    texts, images = join_captions(["one", "two", "three", "four", "five"], [3, 0, 3, 7, 0])
    assert texts == ["two five", "one three", "four"]
    assert images.tolist() == [0, 3, 7]
    assert images.dtype == np.intp


def test_nothing_is_joined_of_nothing():
    texts, images = join_captions([], np.zeros(0, int))
    assert texts == []
    assert images.shape == (0,)


@pytest.mark.parametrize(
    ("owners", "error", "message"),
    [
        ([0], ValueError, "caption_image must have one entry per caption"),
        ([0, -1], ValueError, "caption_image must be non-negative"),
        ([0.5, 1.0], TypeError, "caption_image must"),
        (["a", "b"], TypeError, "caption_image must"),
        ([[0, 1]], ValueError, "caption_image must"),
    ],
)
def test_owners_that_are_none_are_refused(owners, error, message):
    with pytest.raises(error, match=message):
        join_captions(["a", "b"], owners)


def test_a_stem_has_the_vector_of_its_most_frequent_word():
    vectors = WordVectors(
        ["run", "running", "runs", "dogs", "dog", "the"], np.eye(6, dtype=np.float32)
    )
    texts = ["The running runs running", "runs runner dog dogs", "runners run"]
    found = stem_vectors(texts, vectors)
    # "running" and "runs" come twice each; neither "runner" nor the stop word has a part
    assert found.words == ("dog", "run")
    np.testing.assert_array_equal(found["run"], vectors["running"])
    np.testing.assert_array_equal(found["dog"], vectors["dog"])
    empty = stem_vectors(["nothing known"], vectors)
    assert (len(empty.words), empty.n_dimensions) == (0, 6)
