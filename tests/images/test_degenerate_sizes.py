"""Photos of odd sizes and kinds go through every feature: finite numbers for each of them."""

import cv2
import numpy as np
import pytest

from kernelcore.images import (
    CNN,
    RegionCNN,
    VisualWords,
    cielab,
    dense_sift,
    oriented_energy,
    read_image,
)

RNG = np.random.default_rng(0)
SHAPES = [
    (1, 1), (1, 1, 1), (1, 1, 4), (2, 2), (2, 3, 3), (1, 10000), (10000, 1, 3), (1, 9, 4),
    (3, 5000, 4),
]  # fmt: skip
NAMES = ("colour", "texture", "sift")
PHOTOS = [RNG.integers(0, 256, shape, np.uint8) for shape in SHAPES]


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """Arrays, and files of the same sizes with 16 bits."""
    folder = tmp_path_factory.mktemp("odd")
    files = [folder / f"{i}.png" for i in range(len(PHOTOS))]
    for file, photo in zip(files, PHOTOS, strict=True):
        deep = np.atleast_3d(photo).astype(np.uint16) * 257
        assert cv2.imwrite(str(file), deep)
    return [*PHOTOS, *files]


@pytest.mark.parametrize("feature", [cielab, oriented_energy, dense_sift])
def test_dense_features(sources, feature):
    for source in sources:
        image = read_image(source)
        features = feature(image)
        assert len(features.points) > 0
        assert np.isfinite(features.points).all()


def test_visual_words(sources):
    words = VisualWords(n_words=dict.fromkeys(NAMES, 4), rng=0).fit(sources)
    for histograms in words.transform(sources).values():
        assert len(histograms) == len(sources)
        assert (histograms.totals > 0).all()


def test_networks_of_photos_and_of_regions(sources):
    nn = pytest.importorskip("torch").nn
    cnn = CNN(nn.AvgPool2d(4), input_size=48)
    features = cnn.transform(sources).features
    assert len(features) == len(sources)
    assert np.isfinite(features).all()
    regions = RegionCNN(cnn, max_regions=5).transform(sources)
    assert np.isfinite(regions.features).all()
    sizes = [read_image(source).shape[:2] for source in sources]
    np.testing.assert_array_equal(regions.sizes, sizes)
