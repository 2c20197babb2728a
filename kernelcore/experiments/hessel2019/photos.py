"""Photos with descriptions, labels and word vectors, and documents made of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from kernelcore._check import Array
from kernelcore.captions.tokens import tokenize
from kernelcore.datasets import CaptionedImages, DocumentCollection, build_documents
from kernelcore.experiments.corpus import Corpus, joined, mean_of_regions
from kernelcore.experiments.hessel2019.labels import imagenet_synonyms
from kernelcore.experiments.hessel2019.systems import Variant
from kernelcore.images import RegionFeatures
from kernelcore.images.regions import Pooling
from kernelcore.lexical import WordVectors
from kernelcore.models import imagenet_labels


@dataclass(frozen=True)
class Photos:
    """Captioned photos, what networks see in them, and vectors of words.

    Attributes
    ----------
    dataset : CaptionedImages
    files : mapping of str to Path
        File of each photo.
    features : mapping of str to mapping of str to ndarray
        Features of each photo, by the name of the description: "whole" or "joined", see
        `kernelcore.experiments.hessel2019.Recipe`.
    probabilities : mapping of str to ndarray of shape (1000,)
        Class probabilities of each photo.
    objects : mapping of str to ndarray of shape (n_objects,)
        Highest confidence of each class of the detector in each photo.
    object_names : sequence of str
        Names of these classes; none if there is no detector.
    vectors : WordVectors
        Pretrained vectors of the words in captions and labels.
    """

    dataset: CaptionedImages
    files: Mapping[str, Path]
    features: Mapping[str, Mapping[str, Array]]
    probabilities: Mapping[str, Array]
    objects: Mapping[str, Array]
    object_names: Sequence[str]
    vectors: WordVectors

    @classmethod
    def of(
        cls,
        corpus: Corpus,
        *,
        word_vectors_file: str | os.PathLike[str] | None,
        pooling: Pooling,
        **described: Any,
    ) -> Photos:
        """Run the networks on the photos of a corpus and read the word vectors."""
        dataset = corpus.dataset
        names = dict(zip(dataset.paths, dataset.image_ids, strict=True))
        ids = [names[path] for path in corpus.files]
        seen = corpus.whole_photos(**described)
        if seen.probabilities is None:
            raise ValueError(
                "network must be a classifier, whose labels name what is in a photo, got "
                f"{described.get('network')}"
            )
        regions = corpus.regions(pooling=pooling, **described)
        both = joined([seen.features, mean_of_regions(regions)], n_photos=len(ids))
        texts = (*dataset.captions, imagenet_labels(), imagenet_synonyms(), corpus.object_names)
        words = {word for own in texts for text in own for word in tokenize(text)}
        return cls(
            dataset,
            dict(zip(ids, corpus.files, strict=True)),
            {
                "whole": dict(zip(ids, seen.features, strict=True)),
                "joined": dict(zip(ids, both, strict=True)),
            },
            dict(zip(ids, seen.probabilities, strict=True)),
            dict(zip(ids, _confidences(regions, len(corpus.object_names)), strict=True)),
            corpus.object_names,
            corpus.word_vectors(word_vectors_file, words=words),
        )

    def documents(self, variant: Variant, rng: int) -> DocumentCollection:
        """Combine photos and captions to documents."""
        whole = self.features["whole"]
        absent = np.zeros_like(next(iter(whole.values())))
        build = partial(
            build_documents,
            self.dataset,
            features=(
                # photos of no split may be missing; they are in no document
                np.array([whole.get(name, absent) for name in self.dataset.image_ids])
                if variant.is_topical
                else None
            ),
            **variant.options,
        )
        judged = build(rng=rng)
        training = build(rng=rng, documents_per_image=variant.documents_per_image)
        return DocumentCollection(
            judged.name, {**judged.documents, "train": training.split("train")}
        )


def _confidences(regions: RegionFeatures, n_objects: int) -> Array:
    """Return the highest confidence of each class in each photo, 0 where it is not seen."""
    confidences = np.zeros((len(regions), n_objects), np.float32)
    owners = np.repeat(np.arange(len(regions)), np.diff(regions.offsets))
    seen = regions.labels >= 0
    np.maximum.at(confidences, (owners[seen], regions.labels[seen]), regions.scores[seen])
    return confidences
