"""What the systems read: documents, features of photos, and word vectors."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from kernelcore._progress import Progress
from kernelcore._validation import Array
from kernelcore.captions.tokens import tokenize
from kernelcore.datasets import (
    CaptionedImages,
    DocumentCollection,
    build_documents,
    load_flickr,
)
from kernelcore.experiments.hessel2019.systems import Variant
from kernelcore.images import CNN
from kernelcore.lexical import WordVectors, load_installed_glove, load_word_vectors
from kernelcore.models import imagenet_labels


@dataclass(frozen=True)
class Photos:
    """Captioned photos with what a network says of them.

    Attributes
    ----------
    dataset : CaptionedImages
    files : mapping of str to Path
        File of each photo.
    features, probabilities : mapping of str to ndarray
        Features and probabilities of classes of each photo.
    word_vectors : WordVectors
        Of the words in captions and labels.
    """

    dataset: CaptionedImages
    files: Mapping[str, Path]
    features: Mapping[str, Array]
    probabilities: Mapping[str, Array]
    word_vectors: WordVectors

    @classmethod
    def read(
        cls,
        data: str | os.PathLike[str],
        *,
        word_vectors_file: str | os.PathLike[str] | None,
        cache_dir: str | os.PathLike[str] | None,
        device: str,
        n_threads: int | None,
        progress: Progress,
    ) -> Photos:
        """Read the corpus and run the network on its photos."""
        dataset = load_flickr(data)
        files = {
            name: path
            for name, path in zip(dataset.image_ids, dataset.paths, strict=True)
            if path is not None
        }
        seen = CNN(device=device).transform(
            list(files.values()), cache_dir=cache_dir, n_threads=n_threads, progress=progress
        )
        if seen.probabilities is None:
            raise ValueError("the network must be a classifier")
        words = {
            word
            for texts in (*dataset.captions, imagenet_labels())
            for text in texts
            for word in tokenize(text)
        }
        return cls(
            dataset,
            files,
            dict(zip(files, seen.features, strict=True)),
            dict(zip(files, seen.probabilities, strict=True)),
            load_installed_glove(words=words)
            if word_vectors_file is None
            else load_word_vectors(word_vectors_file, words=words),
        )

    def documents(self, variant: Variant, rng: int) -> DocumentCollection:
        """Put the photos and captions together to documents."""
        build = partial(
            build_documents,
            self.dataset,
            features=np.array(list(self.features.values())) if variant.is_topical else None,
            **variant.options,
        )
        judged = build(rng=rng)
        training = build(rng=rng, documents_per_image=variant.documents_per_image)
        return DocumentCollection(
            judged.name, {**judged.documents, "train": training.split("train")}
        )
