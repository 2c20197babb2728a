"""A folder of generated photos and a small model of other ones."""

from functools import cache

import pytest

pytest.importorskip("cv2")

from kernelcore.datasets import make_scenes
from kernelcore.images import VisualWords
from kernelcore.models import PhotoRanker

N_TRAINING, N_NEW = 40, 12


@pytest.fixture(scope="session")
def scenes():
    return make_scenes(N_TRAINING + N_NEW, size=(32, 40))


@pytest.fixture(scope="session")
def folder(scenes, tmp_path_factory):
    """All scenes as files."""
    place = tmp_path_factory.mktemp("scenes")
    scenes.write(place)
    return place / "images"


@pytest.fixture(scope="session")
def files(folder, scenes):
    return [folder / name for name in scenes.dataset.image_ids]


@pytest.fixture(scope="session")
def train(scenes):
    """Train a small model by its kernel of captions, once."""

    @cache
    def train(kernel):
        words = VisualWords(n_words={"colour": 16, "sift": 16}, n_sample_images=10)
        ranker = PhotoRanker(words, caption_kernel=kernel, n_components_grid=(8,))
        return ranker.fit(scenes.images[:N_TRAINING], scenes.dataset.captions[:N_TRAINING])

    return train


@pytest.fixture(scope="session")
def ranker(train):
    return train("similar_words")
