"""Rankers of raw captions: what stands for an image, what starts where, what is no negative."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from drawn import ALL, WORDS, fitted, photos, ranker, region_features, sentences  # noqa: E402

from kernelcore.deep import EmbeddingRanker, hinge_loss  # noqa: E402
from kernelcore.deep.items import RegionTable, Sentences  # noqa: E402
from kernelcore.deep.losses import RankingObjective  # noqa: E402
from kernelcore.deep.training import seeded_generator  # noqa: E402
from kernelcore.images import square_roots  # noqa: E402
from kernelcore.lexical import WordVectors  # noqa: E402
from kernelcore.models.base import Pairs  # noqa: E402


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


def test_word_vectors_are_where_embeddings_start(tmp_path):
    vectors = WordVectors(WORDS, np.arange(27, dtype=np.float32).reshape(9, 3))
    model = fitted("ConvNet+BoW", word_vectors=vectors, learning_rate=1e-12, n_epochs=1)
    row = model.vocabulary_.index["blue"] + 1
    table = model.space_.sentences.embedding.weight
    np.testing.assert_allclose(table[row].detach(), vectors["blue"], atol=1e-6)
    model.save(tmp_path / "model")
    read = EmbeddingRanker.load(tmp_path / "model")
    assert torch.equal(read.space_.sentences.embedding.weight, table)


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


def test_some_regions_are_drawn_in_training_alone():
    seen = []

    class Recording(Fixed):
        def encode_images(self, rows, offsets, generator=None):
            seen.append(np.diff(offsets).tolist())
            return torch.arange(len(offsets) - 1)

    base = fixed_objective(torch.eye(3), [0, 1, 2], negatives="sum")
    table = RegionTable(np.arange(12.0)[:, np.newaxis], np.array([0, 4, 8, 12]))
    items = Pairs(table, base.training.captions, np.arange(3))
    for n_drawn, counts in ((3, [3, 3]), (None, [4, 4])):
        objective = RankingObjective(
            Recording(torch.eye(3)), items, items, margin=0.2, negatives="sum", n_drawn=n_drawn
        )
        objective.loss([0, 2], 0, seeded_generator(0))
        assert seen[-1] == counts


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
