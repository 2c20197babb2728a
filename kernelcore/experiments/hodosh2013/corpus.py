"""The data set in the forms that kernels read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from kernelcore._extras import installed_versions
from kernelcore._files import digest
from kernelcore._progress import Progress
from kernelcore.captions import CaptionNormalizer, EncodedCaptions, Vocabulary
from kernelcore.datasets import CaptionedImages, load_flickr
from kernelcore.experiments.store import Store, key_of
from kernelcore.images import SpatialHistograms, VisualWords

SPLITS = ("train", "dev", "test")


@dataclass(frozen=True, eq=False)
class Texts:
    """Captions of all splits.

    Attributes
    ----------
    dataset : CaptionedImages
        The images of the three splits.
    normalizer : CaptionNormalizer
        Fitted to the training captions.
    vocabulary : Vocabulary
        Words of the training captions.
    captions : EncodedCaptions
        All captions, image by image.
    """

    dataset: CaptionedImages
    normalizer: CaptionNormalizer
    vocabulary: Vocabulary
    captions: EncodedCaptions

    @classmethod
    def read(cls, data: Path | str, *, spacy_model: str, progress: Progress) -> Texts:
        """Read the corpus and learn from its training captions."""
        dataset = load_flickr(data)
        dataset = dataset.subset(np.concatenate([dataset.split(name) for name in SPLITS]))
        missing = sum(path is None for path in dataset.paths)
        if missing:
            raise FileNotFoundError(
                f"{data} must hold the photos of its captions, "
                f"{missing} of {len(dataset)} are missing"
            )
        train = dataset.split("train")
        normalizer = CaptionNormalizer(spacy_model=spacy_model)
        normalizer.fit([dataset.captions[i] for i in train])
        tokens = normalizer.normalize_images(dataset.captions, progress=progress)
        vocabulary = Vocabulary.from_captions([tokens[i] for i in train])
        captions = vocabulary.encode(tokens, caption_numbers=dataset.caption_numbers)
        return cls(dataset, normalizer, vocabulary, captions)

    @property
    def train_captions(self) -> list[tuple[str, ...]]:
        """Raw captions of the training images."""
        return [self.dataset.captions[i] for i in self.dataset.split("train")]

    def of_split(self, split: str) -> EncodedCaptions:
        """Captions of the images of a split."""
        return self.captions.select(self.dataset.split(split))

    def check_pool(self, split: str, number: int) -> None:
        """Raise unless every image of the split has a caption of this number."""
        for i in self.dataset.split(split):
            if number not in self.dataset.caption_numbers[i]:
                raise ValueError(
                    f"every image of the split {split} must have a caption number {number}, "
                    f"and {self.dataset.image_ids[i]} has none"
                )


def describe_photos(
    dataset: CaptionedImages,
    recipes: Sequence[Mapping[str, Any]],
    store: Store,
    *,
    cache_dir: Path | str | None,
    n_threads: int | None,
    progress: Progress,
) -> list[SpatialHistograms]:
    """Histograms of visual words of all photos, one for each feature of each recipe."""
    run: dict[str, Any] = {"n_threads": n_threads, "progress": progress}
    paths = [path for path in dataset.paths if path is not None]
    training = [paths[i] for i in dataset.split("train")]
    contents = digest(*(path.read_bytes() for path in training))
    features: list[SpatialHistograms] = []
    for recipe in recipes:
        words = VisualWords(**recipe, rng=0)
        fitted = store.value(
            "codebooks",
            key_of(
                words.get_params(), contents, installed_versions()["opencv-python-headless"]
            ),
            partial(words.fit, training, **run),
            VisualWords.save,
            VisualWords.load,
        )
        features += fitted.transform(paths, cache_dir=cache_dir, **run).values()
    return features
