"""Difficulty of documents: AUC explained by spread and content, and agreement of systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kernelcore._validation import (
    Array,
    as_list,
    as_real_array,
    check_finite,
    check_integer,
    no_overflow,
)
from kernelcore.evaluation.links import LinkResult
from kernelcore.evaluation.overlap import effective_number
from kernelcore.evaluation.table import Table

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class AucRegression:
    """What a linear regression on properties of documents explains of their AUC.

    Attributes
    ----------
    coefficients : mapping of str to float
        Change of the AUC per standard deviation of each regressor, the others held fixed.
    r2 : float
        Share of the variance of the AUC that is explained, in [0, 1].
    p_value : float
        Of the F-test that all coefficients are zero.
    n_documents : int
        Documents in the regression.
    """

    coefficients: Mapping[str, float]
    r2: float
    p_value: float
    n_documents: int


@dataclass(frozen=True)
class AucExplanation:
    """What spread and content of documents explain of their AUC, each alone and together.

    Attributes
    ----------
    spread, content, spread_and_content : AucRegression

    See Also
    --------
    explain_auc : Makes one.
    """

    spread: AucRegression
    content: AucRegression
    spread_and_content: AucRegression

    def __str__(self) -> str:
        return str(self.to_table())

    def _repr_html_(self) -> str:
        """Show the table in a notebook."""
        return self.to_table().to_html()

    def to_frame(self) -> pandas.DataFrame:
        """Return the table as a pandas DataFrame of text; see `Table.to_frame`."""
        return self.to_table().to_frame()

    def to_table(self) -> Table:
        """Return a table of the explained variance, in percent."""
        rows = {
            "spread": self.spread,
            "content": self.content,
            "spread and content": self.spread_and_content,
        }
        return Table(
            columns=("regressors", "number", "variance", "p-value"),
            rows=tuple(
                (name, str(len(row.coefficients)), f"{100 * row.r2:.1f}", f"{row.p_value:.2g}")
                for name, row in rows.items()
            ),
            caption=(
                f"Explained variance of the AUC of {self.spread.n_documents} documents in "
                "percent"
            ),
        )


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
    matrix = _as_vectors("vectors", vectors)
    with no_overflow("vectors", "have lengths that float64 holds"):
        return _spread(matrix)


def explain_auc(
    auc: npt.ArrayLike,
    image_vectors: Sequence[npt.ArrayLike],
    sentence_vectors: Sequence[npt.ArrayLike],
    *,
    n_components: int = 20,
    image_ids: Sequence[Sequence[str]] | None = None,
) -> AucExplanation:
    """Regress the AUC of documents on their spread and their content.

    Documents may be hard because their images or sentences are alike (small `spread`) or for
    what they are about (content: the mean image vector and the mean sentence vector, each
    reduced to its first principal components over the documents).

    Parameters
    ----------
    auc : array_like of shape (n_documents,)
        `LinkResult.auc`; documents of NaN are left out.
    image_vectors : sequence of array_like of shape (n_images, n_features)
        Features of the images of each document, which the systems need not have seen: the
        regression is about the documents.
    sentence_vectors : sequence of array_like of shape (n_sentences, n_dimensions)
        The same of the sentences, mean word vectors for example.
    n_components : int, default=20
        Principal components of either content.
    image_ids : sequence of sequence of str, optional
        Ids of the images of each document. If they are given, the F-tests have the
        `effective_number` of documents of the mean AUC, because documents that share images
        are not independent. This is approximate.

    Returns
    -------
    AucExplanation
        Least-squares regressions on the two spreads, on the content, and on both. ``r2`` and
        ``p_value`` are NaN where all documents have the same AUC. ``p_value`` is also NaN
        if there are too few independent documents.

    Raises
    ------
    TypeError, ValueError
        If the input is not finite or does not fit together, or there are too few documents
        for the regressors.

    References
    ----------
    .. [1] J. Hessel, L. Lee and D. Mimno, "Unsupervised discovery of multimodal links in
       multi-image, multi-sentence documents", EMNLP-IJCNLP 2019, section 4.1.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.experiments.document_difficulty import explain_auc, spread
    >>> rng = np.random.default_rng(0)
    >>> images = [rng.normal(size=(5, 3)) + 2 * rng.random() for _ in range(50)]
    >>> sentences = [rng.normal(size=(5, 3)) for _ in range(50)]
    >>> auc = [spread(vectors) for vectors in images]
    >>> explanation = explain_auc(auc, images, sentences, n_components=2)
    >>> round(explanation.spread.r2, 6)
    1.0
    >>> explanation.content.r2 < 0.9
    True
    """
    every = as_real_array("auc", auc, ndim=1)
    n_components = check_integer("n_components", n_components, minimum=1)
    judged = np.flatnonzero(~np.isnan(every)).tolist()
    values = check_finite("auc", every[judged]).astype(np.float64)
    spreads: dict[str, Array] = {}
    contents: dict[str, Array] = {}
    for part, given in (("image", image_vectors), ("sentence", sentence_vectors)):
        name = f"{part}_vectors"
        vectors = as_list(name, given)
        if len(vectors) != len(every):
            raise ValueError(
                f"{name} must have one entry per document ({len(every)}), got {len(vectors)}"
            )
        matrices = [_as_vectors(f"{name}[{i}]", vectors[i]) for i in judged]
        widths = sorted({matrix.shape[1] for matrix in matrices})
        if len(widths) > 1:
            raise ValueError(f"{name} must have vectors of one length, got {widths}")
        spreads[f"{part} spread"] = np.array([_spread(matrix) for matrix in matrices])
        means = np.array([matrix.mean(axis=0) for matrix in matrices])
        for i, component in enumerate(_principal_components(means, n_components), start=1):
            contents[f"{part} content {i}"] = component
    n_needed = len(spreads) + len(contents) + 2
    if len(values) < n_needed:
        raise ValueError(
            f"auc must have values of {n_needed} documents at least for this many regressors, "
            f"got {len(values)}; fewer n_components need fewer"
        )
    n_independent = float(len(values))
    if image_ids is not None:
        shown = as_list("image_ids", image_ids)
        if len(shown) != len(every):
            raise ValueError(
                f"image_ids must have one entry per document ({len(every)}), got {len(shown)}"
            )
        n_independent = effective_number(values, [shown[i] for i in judged])
    return AucExplanation(
        spread=_regress(values, spreads, n_independent),
        content=_regress(values, contents, n_independent),
        spread_and_content=_regress(values, spreads | contents, n_independent),
    )


def auc_correlation(results: Sequence[LinkResult]) -> npt.NDArray[np.float64]:
    r"""Spearman's correlation of the systems' AUC over the documents, pair by pair.

    Parameters
    ----------
    results : sequence of LinkResult
        Systems measured on the same documents, of which two at least are judged.

    Returns
    -------
    ndarray of float64, shape (n_systems, n_systems)
        In [-1, 1], ties at their mean rank; NaN for a system whose AUC is the same
        everywhere, which puts the documents in no order.

    Raises
    ------
    TypeError, ValueError
        If there are no results, something else is among them, or they are of other documents.

    See Also
    --------
    rank_correlation : Of two metrics over systems.

    Examples
    --------
    >>> from kernelcore.evaluation import LinkResult
    >>> from kernelcore.experiments.document_difficulty import auc_correlation
    >>> systems = [LinkResult(auc, {}) for auc in ([0.7, 0.8, 0.9], [0.6, 0.5, 1])]
    >>> auc_correlation(systems)
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    from scipy.stats import rankdata

    results = as_list("results", results)
    for result in results:
        if not isinstance(result, LinkResult):
            raise TypeError(
                f"results must hold LinkResult objects, got {type(result).__name__}"
            )
    if not results:
        raise ValueError("results must hold at least one result, got none")
    skipped = np.isnan(results[0].auc)
    for result in results[1:]:
        if not np.array_equal(np.isnan(result.auc), skipped):
            raise ValueError(
                "results must be of the same documents, and those of "
                f"{results[0].system!r} and {result.system!r} are not"
            )
    if np.count_nonzero(~skipped) < 2:
        raise ValueError("results must have two judged documents at least, got one")
    ranks = rankdata(np.stack([result.auc[~skipped] for result in results]), axis=1)
    ranks -= ranks.mean(axis=1, keepdims=True)
    lengths = np.linalg.norm(ranks, axis=1, keepdims=True)
    directions = ranks / np.where(lengths > 0, lengths, np.nan)
    correlations: npt.NDArray[np.float64] = np.clip(directions @ directions.T, -1, 1)
    return correlations


def _spread(vectors: Array) -> float:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    directions = vectors / np.where(lengths > 0, lengths, 1)
    return float(np.mean(np.sum((directions - directions.mean(axis=0)) ** 2, axis=1)))


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
) -> AucRegression:
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
    return AucRegression(
        dict(zip(regressors, coefficients.tolist(), strict=True)), r2, p_value, len(values)
    )


def _standardized(column: Array) -> Array:
    """Return deviations from the mean over the standard deviation, 0 if that is rounding."""
    deviations = column - column.mean()
    scale = column.std()
    if scale <= np.finfo(np.float64).eps * len(column):
        return np.zeros_like(column)
    standardized: Array = deviations / scale
    return standardized


def _as_vectors(name: str, vectors: npt.ArrayLike) -> Array:
    matrix = check_finite(name, as_real_array(name, vectors, ndim=2))
    if not matrix.size:
        raise ValueError(f"{name} must hold at least one vector, got shape {matrix.shape}")
    return matrix.astype(np.float64, copy=False)
