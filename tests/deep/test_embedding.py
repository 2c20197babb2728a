"""Rankers of raw captions: what stands for an image, what starts where, what is no negative."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from drawn import ALL, fitted, photos, ranker, sentences  # noqa: E402

from kernelcore.deep import EmbeddingRanker, hinge_loss  # noqa: E402
from kernelcore.deep.items import RegionTable, Sentences  # noqa: E402
from kernelcore.images import square_roots  # noqa: E402
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
    model = EmbeddingRanker(margin=0.2, **options)
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
    summed, hardest = (
        pytest.approx(float(hinge_loss(similarities.T, margin=0.2, negatives=negatives)))
        for negatives in ("sum", "hardest")
    )
    found = losses(similarities, [0, 1, 2], epochs=range(3), n_warm_up=2)
    assert found == [summed, summed, hardest]
    # by default as long as the learning rate is high
    found = losses(similarities, [0, 1, 2], epochs=range(4), n_epochs=4)
    assert found == [summed, summed, summed, hardest]


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
