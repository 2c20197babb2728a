"""A checkpoint is of the captions, images and development items that it was made with."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from refusals import refuses  # noqa: E402

from kernelcore.deep import EmbeddingRanker  # noqa: E402

CAPTIONS = ["a red dog", "a blue cat", "a green boat", "a white rose"]
PHOTOS = np.eye(4)


def fit(folder, *, photos=PHOTOS, captions=CAPTIONS, dev_photos=PHOTOS, dev_captions=CAPTIONS):
    ranker = EmbeddingRanker(
        n_components=4, n_hidden=4, min_count=1, n_epochs=2, batch_size=4, rng=0
    )
    return ranker.fit(
        photos, captions, dev=(dev_photos, dev_captions), folder=folder, n_threads=1
    )


@pytest.mark.parametrize(
    "change",
    [
        {"photos": 2 * PHOTOS},
        {"captions": [*CAPTIONS[:3], "a white dog"]},
        {"dev_photos": PHOTOS[::-1] + 0.5},
        {"dev_captions": [*CAPTIONS[:3], "a white rose zzz"]},  # as padded ids the same
    ],
)
def test_a_checkpoint_of_other_items_is_refused(tmp_path, change):
    fit(tmp_path)
    refuses(ValueError, "data", fit, tmp_path, **change)


def test_the_same_items_go_on(tmp_path):
    first = fit(tmp_path)
    again = fit(
        tmp_path, photos=PHOTOS.astype(np.float32), dev_photos=np.asfortranarray(PHOTOS)
    )
    assert again.history_ == first.history_
