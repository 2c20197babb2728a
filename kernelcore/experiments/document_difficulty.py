"""Difficulty of documents: AUC explained by spread and content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, as_real_array, check_finite, no_overflow
from kernelcore.evaluation.overlap import effective_number


class Regression(NamedTuple):
    """What a linear regression on properties of documents explains of their AUC.

    Attributes
    ----------
    coefficients : mapping of str to float
        Change of the AUC per standard deviation of each regressor, the others held fixed.
    r2 : float
        Share of the variance of the AUC that is explained, in [0, 1]; NaN if all documents
        have the same AUC.
    p_value : float
        Of the F-test that all coefficients are zero; NaN if too few documents are
        independent.
    """

    coefficients: Mapping[str, float]
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

    Raises
    ------
    TypeError, ValueError
        If `vectors` is not a matrix of finite numbers, or has no row.

    References
    ----------
    .. [1] J. Hessel, L. Lee and D. Mimno, "Unsupervised discovery of multimodal links in
       multi-image, multi-sentence documents", EMNLP-IJCNLP 2019, section 4.1.

    Examples
    --------
    >>> from kernelcore.experiments.document_difficulty import spread
    >>> spread([[2, 0], [0, 5]]), spread([[0, 1], [0, 3]])
    (0.5, 0.0)
    """
    matrix = check_finite("vectors", as_real_array("vectors", vectors, ndim=2))
    if not matrix.size:
        raise ValueError(f"vectors must hold at least one vector, got shape {matrix.shape}")
    matrix = matrix.astype(np.float64, copy=False)
    with no_overflow("vectors", "have lengths that float64 holds"):
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

    Raises
    ------
    ValueError
        If there are too few documents for the regressors.

    References
    ----------
    .. [1] J. Hessel, L. Lee and D. Mimno, "Unsupervised discovery of multimodal links in
       multi-image, multi-sentence documents", EMNLP-IJCNLP 2019, section 4.1.
    """
    judged = np.flatnonzero(~np.isnan(auc)).tolist()
    values = auc[judged]
    spreads: dict[str, Array] = {}
    contents: dict[str, Array] = {}
    for part, vectors in (("image", image_vectors), ("sentence", sentence_vectors)):
        spreads[f"{part} spread"] = np.array([spread(vectors[i]) for i in judged])
        means = np.array([np.mean(vectors[i], axis=0, dtype=np.float64) for i in judged])
        for i, component in enumerate(_principal_components(means, n_components), start=1):
            contents[f"{part} content {i}"] = component
    n_needed = len(spreads) + len(contents) + 2
    if len(values) < n_needed:
        raise ValueError(
            f"auc must have values of {n_needed} documents at least for this many regressors, "
            f"got {len(values)}; fewer n_components need fewer"
        )
    n_independent = effective_number(values, [image_ids[i] for i in judged])
    parts = {"spread": spreads, "content": contents, "spread and content": spreads | contents}
    return {name: _regress(values, own, n_independent) for name, own in parts.items()}


def _principal_components(vectors: Array, n_components: int) -> Array:
    """Return the first principal components that vary, one row of unit length each."""
    if len(vectors) < 2:
        return np.empty((0, len(vectors)))
    left, values, _ = np.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)
    varies = values > np.finfo(np.float64).eps * max(vectors.shape) * np.abs(vectors).max()
    components: Array = left[:, varies].T[:n_components]
    return components


def _regress(
    values: Array, regressors: Mapping[str, Array], n_independent: float
) -> Regression:
    from scipy.special import betainc

    columns = [_standardized(column) for column in regressors.values()]
    design = np.stack(columns, axis=1) if columns else np.empty((len(values), 0))
    centred = values - values.mean()
    coefficients, _, rank, _ = np.linalg.lstsq(design, centred, rcond=None)
    r2 = p_value = float("nan")
    if np.ptp(values) > 0:
        residual = centred - design @ coefficients
        unexplained = min(float(residual @ residual) / float(centred @ centred), 1.0)
        n_free = n_independent - int(rank) - 1
        r2 = 1 - unexplained
        # The tail of the F distribution, without dividing by what is unexplained.
        if n_free > 0:
            p_value = float(betainc(n_free / 2, rank / 2, unexplained)) if rank else 1.0
    return Regression(dict(zip(regressors, coefficients.tolist(), strict=True)), r2, p_value)


def _standardized(column: Array) -> Array:
    """Return deviations from the mean over the standard deviation, 0 if that is rounding."""
    deviations = column - column.mean()
    scale = column.std()
    if scale <= np.finfo(np.float64).eps * len(column):
        return np.zeros_like(column)
    standardized: Array = deviations / scale
    return standardized
