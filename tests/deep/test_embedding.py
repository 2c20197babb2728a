"""Rankers of raw captions: what is learned, kept and refused."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from drawn_photos import ALL, WORDS, photos, region_features  # noqa: E402
from sklearn.base import clone  # noqa: E402

from kernelcore._files import load_tensors, save_tensors  # noqa: E402
from kernelcore.deep import (  # noqa: E402
    CrossAttentionRanker,
    EmbeddingRanker,
    hinge_loss,
    seeded_generator,
)
from kernelcore.deep.items import RegionTable  # noqa: E402
from kernelcore.deep.losses import RankingObjective  # noqa: E402
from kernelcore.evaluation import evaluate  # noqa: E402
from kernelcore.images import square_roots  # noqa: E402
from kernelcore.lexical import WordVectors  # noqa: E402
from kernelcore.models import Ranker  # noqa: E402
from kernelcore.models.base import Pairs  # noqa: E402

SYSTEMS = {
    "ConvNet+BoW": (EmbeddingRanker, {"sentence": "mean"}),
    "ConvNet+Bi-GRU": (EmbeddingRanker, {"image": "first"}),
    "Obj+Bi-GRU": (EmbeddingRanker, {"image": "gru"}),
    "SCAN t2i": (CrossAttentionRanker, {}),
    "SCAN i2t": (CrossAttentionRanker, {"attention": "i2t"}),
    "SCAN mean": (CrossAttentionRanker, {"pooling": "mean"}),
    "SCAN drawn": (CrossAttentionRanker, {"n_drawn": 2, "square_root": True}),
}


def sentences(things=ALL):
    return [f"A {colour} {thing}." for colour, thing in things]


def ranker(system, **options):
    kind, own = SYSTEMS[system]
    settings = {"n_components": 16, "min_count": 1, "dropout": 0.0, "learning_rate": 0.01}
    settings |= {"n_epochs": 4, "batch_size": 20, "rng": 0, **own}
    return kind(**{**settings, **options})


def fitted(system, *, folder=None, word_vectors=None, **options):
    items = photos(), sentences()
    return ranker(system, **options).fit(
        *items, dev=items, n_threads=1, folder=folder, word_vectors=word_vectors
    )


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_overfits_twenty_pairs(system):
    model = fitted(system, n_epochs=60, n_warm_up=10)
    result = evaluate(model.scores(photos(), sentences(), n_threads=1))
    assert result.annotation.recall[1] == result.search.recall[1] == 1.0
    assert model.history_.dev_losses[model.history_.best_epoch] == 0.0


@pytest.mark.parametrize("system", SYSTEMS)
def test_they_are_rankers_and_estimators(system):
    model = clone(ranker(system, margin=0.3))
    assert isinstance(model, Ranker)
    assert model.get_params()["margin"] == 0.3
    with pytest.raises(ValueError, match="must be fitted first"):
        model.scores(photos(), sentences())


@pytest.mark.parametrize("system", SYSTEMS)
def test_files_hold_all_that_is_needed(system, tmp_path):
    model = fitted(system, word_vectors=WordVectors(WORDS, np.eye(9, 7, dtype=np.float32)))
    model.save(tmp_path / "model")
    read = type(model).load(tmp_path / "model")
    assert read.get_params() == model.get_params()
    assert read.history_ == model.history_
    expected = model.scores(photos(), sentences(), n_threads=1)
    assert expected.dtype == np.float32
    np.testing.assert_array_equal(read.scores(photos(), sentences(), n_threads=1), expected)


def test_a_file_of_another_model_is_refused(tmp_path):
    fitted("SCAN t2i").save(tmp_path / "model")
    with pytest.raises(ValueError, match="EmbeddingRanker"):
        EmbeddingRanker.load(tmp_path / "model")
    (tmp_path / "cut").write_bytes((tmp_path / "model").read_bytes()[:1000])
    with pytest.raises(ValueError, match="cut"):
        CrossAttentionRanker.load(tmp_path / "cut")


@pytest.mark.parametrize("change", ["lacks", "of another shape"])
def test_weights_that_do_not_fit_are_an_error_of_the_file(change, tmp_path):
    fitted("SCAN t2i", n_epochs=1).save(tmp_path / "model")
    arrays, metadata = load_tensors(tmp_path / "model", "CrossAttentionRanker")
    name = "space.regions.whole.affine.weight"
    arrays[name] = arrays[name][:, :4]
    if change == "lacks":
        del arrays[name]
    save_tensors(tmp_path / "other", "CrossAttentionRanker", arrays, metadata)
    with pytest.raises(ValueError, match=r"(?s)other must hold the weights .*regions.whole"):
        CrossAttentionRanker.load(tmp_path / "other")


@pytest.mark.parametrize("system", ["Obj+Bi-GRU", "SCAN t2i"])
def test_the_same_seed_gives_the_same_bits_also_when_resumed(system, tmp_path):
    options = {"dropout": 0.2, "n_epochs": 4}
    whole = fitted(system, **options)

    class StoppedError(Exception):
        pass

    def stop(done, total):
        if done > total // 2:
            raise StoppedError

    items = photos(), sentences()
    with pytest.raises(StoppedError):
        ranker(system, **options).fit(
            *items, dev=items, n_threads=1, folder=tmp_path, progress=stop
        )
    resumed = fitted(system, folder=tmp_path, **options)
    for name, weight in whole.space_.state_dict().items():
        assert torch.equal(weight, resumed.space_.state_dict()[name]), name
    with pytest.raises(ValueError, match="same data and settings"):
        fitted(system, folder=tmp_path, **{**options, "margin": 0.4})


def test_captions_find_the_images_that_they_belong_to():
    order = [3, 3, 0, 17, 17, 9, 12, 5]
    things = [ALL[i] for i in order]
    items = photos(), sentences(things)
    model = ranker("ConvNet+Bi-GRU", n_epochs=60, batch_size=4).fit(
        *items, caption_image=order, dev=(*items, order), n_threads=1
    )
    scores = model.scores(photos(), sentences(things), n_threads=1)
    used = np.unique(order)
    assert list(used[scores[used].argmax(axis=0)]) == order


@pytest.mark.parametrize("system", ["ConvNet+BoW", "Obj+Bi-GRU", "SCAN t2i", "SCAN i2t"])
def test_blocks_and_company_do_not_matter(system):
    model = fitted(system)
    whole = model.scores(photos(), [*sentences(), "red " * 30], n_threads=1)
    model.space_.block = (3, 2)
    found = model.scores(photos(), [*sentences(), "red " * 30], n_threads=1)
    np.testing.assert_allclose(found, whole, atol=1e-6)
    alone = model.scores(photos(ALL[4:5]), sentences(ALL[7:8]), n_threads=1)
    np.testing.assert_allclose(alone, whole[4:5, 7:8], atol=1e-6)


def test_images_may_have_any_number_of_regions():
    model = fitted("SCAN t2i")
    ragged = photos().select([0, 1])
    few = region_features(ragged.features[:4], [3, 1])
    scores = model.scores(few, sentences(), n_threads=1)
    np.testing.assert_allclose(
        scores[:1], model.scores(photos(ALL[:1]), sentences(), n_threads=1), atol=1e-6
    )
    alone = model.scores(ragged.features[3:4], sentences(), n_threads=1)
    np.testing.assert_allclose(scores[1:], alone, atol=1e-6)


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


def fixed_objective(similarities, owners, **options):
    from kernelcore.deep import Sentences

    n_images, n_captions = similarities.shape
    table = RegionTable.of("images", np.arange(n_images)[:, np.newaxis] * 1.0, "all")
    texts = Sentences(torch.arange(n_captions).unsqueeze(1), torch.ones(n_captions).long())
    items = Pairs(table, texts, np.array(owners))
    return RankingObjective(Fixed(similarities), items, items, margin=0.2, **options)


def test_captions_of_the_same_image_are_no_negatives():
    similarities = torch.tensor([[0.5, 0.5, 0.1], [0.0, 0.0, 0.5]])
    objective = fixed_objective(similarities, [0, 0, 1], negatives="hardest")
    loss = objective.loss([0, 1, 2], 0, seeded_generator(0)).detach()
    assert float(loss) == 0.0  # the two of image 0 are as alike as each with its image
    similarities[0, 2] = 0.4  # caption 2 is nearly as alike to image 0 as to its own
    hinge = 0.2 - 0.5 + 0.4
    loss = fixed_objective(similarities, [0, 0, 1], negatives="hardest").loss(
        [0, 1, 2], 0, seeded_generator(0)
    )
    # caption 2 over images, and images of captions 0 and 1 over captions
    assert float(loss.detach()) == pytest.approx(3 * hinge / 3)


def test_the_sum_comes_before_the_hardest():
    similarities = torch.tensor([[0.5, 0.4, 0.45], [0.4, 0.5, 0.4], [0.3, 0.4, 0.5]])
    objective = fixed_objective(similarities, [0, 1, 2], negatives="hardest", n_warm_up=2)
    generator = seeded_generator(0)
    for epoch, negatives in ((0, "sum"), (1, "sum"), (2, "hardest")):
        expected = hinge_loss(similarities.T, margin=0.2, negatives=negatives)
        loss = objective.loss([0, 1, 2], epoch, generator).detach()
        assert float(loss) == pytest.approx(float(expected))


def test_every_caption_is_dealt_once():
    objective = fixed_objective(torch.eye(7), list(range(7)), negatives="sum")
    batches = objective.batches(3, seeded_generator(0))
    assert [len(batch) for batch in batches] == [3, 4]
    assert sorted(i for batch in batches for i in batch) == list(range(7))


def test_word_vectors_are_where_embeddings_start():
    vectors = WordVectors(WORDS, np.arange(27, dtype=np.float32).reshape(9, 3))
    model = fitted("ConvNet+BoW", word_vectors=vectors, learning_rate=1e-12, n_epochs=1)
    row = model.vocabulary_.index["blue"] + 1
    table = model.space_.sentences.embedding.weight
    np.testing.assert_allclose(table[row].detach(), vectors["blue"], atol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sentence": "lstm"}, "sentence must be one of"),
        ({"image": "all"}, "image must be one of"),
        ({"n_hidden": 0}, "n_hidden must be"),
        ({"n_components": 0}, "n_components must be"),
        ({"max_tokens": 0}, "max_tokens must be"),
        ({"dropout": 1.0}, "dropout must be a number < 1"),
        ({"margin": -1.0}, "margin must be"),
        ({"negatives": "all"}, "negatives must be one of"),
        ({"n_warm_up": -1}, "n_warm_up must be"),
        ({"n_drawn": 0}, "n_drawn must be"),
        ({"learning_rate": 0.0}, "learning_rate must be"),
        ({"batch_size": 1}, "batch_size must be"),
        ({"mixed_precision": True}, "mixed_precision must be False on a CPU"),
    ],
)
def test_parameters_out_of_range(options, message):
    items = photos(), sentences()
    with pytest.raises(ValueError, match=message):
        EmbeddingRanker(**options).fit(*items, dev=items)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attention": "both"}, "attention must be one of"),
        ({"pooling": "max"}, "pooling must be one of"),
        ({"temperature": 0.0}, "temperature must be"),
        ({"sharpness": -1.0}, "sharpness must be"),
    ],
)
def test_parameters_of_attention_out_of_range(options, message):
    items = photos(), sentences()
    with pytest.raises(ValueError, match=message):
        CrossAttentionRanker(**options).fit(*items, dev=items)


def test_items_that_do_not_fit_together():
    items = photos(), sentences()
    model = ranker("SCAN t2i")
    with pytest.raises(TypeError, match="captions must be a sequence of strings"):
        model.fit(items[0], "a dog", dev=items)
    with pytest.raises(TypeError, match="captions must hold strings, got 3"):
        model.fit(items[0], [3] * 20, dev=items)
    with pytest.raises(ValueError, match="captions must hold at least one"):
        model.fit(items[0], [], dev=items)
    with pytest.raises(ValueError, match=r"captions must be one per image \(20\)"):
        model.fit(items[0], items[1][:3], dev=items)
    with pytest.raises(ValueError, match="caption_image must lie in"):
        model.fit(*items, caption_image=[20] * 20, dev=items)
    with pytest.raises(ValueError, match="caption_image must have one entry"):
        model.fit(*items, caption_image=[0, 1], dev=items)
    with pytest.raises(ValueError, match="images must hold at least two with captions"):
        model.fit(*items, caption_image=[4] * 20, dev=items)
    with pytest.raises(TypeError, match="dev must be"):
        model.fit(*items, dev=items[0])
    with pytest.raises(ValueError, match="dev must have 9 features"):
        model.fit(*items, dev=(np.ones((20, 4)), items[1]))
    with pytest.raises(ValueError, match="images must have features in a row"):
        model.fit(np.ones((20, 3, 4, 4)), items[1], dev=items)
    broken = photos().features.copy()
    broken[3, 2] = np.nan
    with pytest.raises(ValueError, match="finite"):
        model.fit(broken[::3], items[1], dev=(broken[::3], items[1]))
    with pytest.raises(TypeError, match="word_vectors must be WordVectors or None, got nda"):
        model.fit(*items, dev=items, word_vectors=np.eye(9))
    with pytest.raises(ValueError, match="images must have 9 features"):
        fitted("SCAN t2i").scores(np.ones((2, 4)), ["a dog"])
    with pytest.raises(ValueError, match="task must be one of"):
        fitted("SCAN t2i").scores(photos(), ["a dog"], task="both")


def test_captions_without_a_known_word_are_scored():
    model = fitted("SCAN t2i")
    scores = model.scores(photos(), ["", "zzz", "!?"], n_threads=1)
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(scores[:, 0], scores[:, 2])


def test_square_roots_are_those_of_the_features():
    options = {"n_epochs": 2, "dropout": 0.1}
    items = photos(), sentences()
    features = items[0].features[::3]
    rooted = ranker("ConvNet+Bi-GRU", square_root=True, **options).fit(
        *items, dev=items, n_threads=1
    )
    ready = ranker("ConvNet+Bi-GRU", **options).fit(
        square_roots(features), items[1], dev=(square_roots(features), items[1]), n_threads=1
    )
    np.testing.assert_array_equal(
        rooted.scores(*items, n_threads=1),
        ready.scores(square_roots(features), items[1], n_threads=1),
    )


def test_some_regions_are_drawn_in_training_and_all_are_read_afterwards():
    seen = []

    class Recording(Fixed):
        def encode_images(self, rows, offsets, generator=None):
            seen.append((rows, offsets))
            return super().encode_images(rows[offsets[:-1]], offsets, generator)

    table = RegionTable(np.arange(12.0)[:, np.newaxis] // 4, np.array([0, 4, 8, 12]))
    rows = np.arange(12.0)[:, np.newaxis]
    texts = fixed_objective(torch.eye(3), [0, 1, 2], negatives="sum").training.captions
    space = Recording(torch.eye(3))
    objective = RankingObjective(
        space,
        Pairs(RegionTable(rows, table.offsets), texts, np.arange(3)),
        Pairs(table, texts, np.arange(3)),
        margin=0.2,
        negatives="sum",
        n_drawn=3,
    )
    generator = seeded_generator(0)
    drawn = set()
    for _ in range(20):
        space.values.data = torch.eye(12)[:, :3]
        objective.encoded([0, 2], generator)
        read, offsets = seen[-1]
        assert offsets.tolist() == [0, 3, 6]
        numbers = read[:, 0].int().tolist()
        assert numbers == sorted(numbers)
        assert (numbers[0], numbers[3]) == (0, 8)
        drawn |= set(numbers)
    assert drawn == {0, 1, 2, 3, 8, 9, 10, 11}
    objective.encoded([0, 2], None)
    assert seen[-1][1].tolist() == [0, 4, 8]


def test_an_image_is_its_first_region_or_the_mean_of_all():
    first, mean = (
        fitted("ConvNet+Bi-GRU", image=image, n_epochs=2) for image in ("first", "mean")
    )
    heads = photos().features[::3]
    means = photos().features.reshape(20, 3, -1).mean(axis=1)
    for model, rows in ((first, heads), (mean, means)):
        scores = model.scores(photos(), sentences(), n_threads=1)
        again = model.scores(rows, sentences(), n_threads=1)
        np.testing.assert_allclose(scores, again, atol=1e-6)
