"""Photos with features, class probabilities and word vectors, and documents made of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from kernelcore._validation import Array
from kernelcore.captions.tokens import tokenize
from kernelcore.datasets import CaptionedImages, DocumentCollection, build_documents
from kernelcore.experiments.corpus import Corpus
from kernelcore.experiments.hessel2019.systems import Variant
from kernelcore.lexical import WordVectors
from kernelcore.models import imagenet_labels


@dataclass(frozen=True)
class Photos:
    """Captioned photos with the output of a classifier.

    Attributes
    ----------
    dataset : CaptionedImages
    files : mapping of str to Path
        File of each photo.
    features, probabilities : mapping of str to ndarray
        Features and class probabilities of each photo.
    word_vectors : WordVectors
        Of the words in captions and labels.
    """

    dataset: CaptionedImages
    files: Mapping[str, Path]
    features: Mapping[str, Array]
    probabilities: Mapping[str, Array]
    word_vectors: WordVectors

    @classmethod
    def of(
        cls,
        corpus: Corpus,
        *,
        word_vectors_file: str | os.PathLike[str] | None,
        **described: Any,
    ) -> Photos:
        """Run the network on the photos of a corpus and read the word vectors."""
        dataset = corpus.dataset
        files = {
            name: path
            for name, path in zip(dataset.image_ids, dataset.paths, strict=True)
            if path is not None
        }
        seen = corpus.whole_photos(list(files.values()), **described)
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
            corpus.word_vectors(word_vectors_file, words=words),
        )

    def documents(self, variant: Variant, rng: int) -> DocumentCollection:
        """Combine photos and captions to documents."""
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
