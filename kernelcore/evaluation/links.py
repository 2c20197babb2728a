"""Evaluation of links between the sentences and the images of documents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Unpack

import numpy as np
import numpy.typing as npt

from kernelcore._check import (
    Array,
    as_integer_array,
    as_list,
    check_integer,
)
from kernelcore.evaluation._inputs import as_rows
from kernelcore.evaluation.overlap import as_items
from kernelcore.evaluation.result import Labels, Result, checked_labels

Links = Iterable[tuple[int, int]]
"""True links of a document as (sentence, image) positions."""


def evaluate_links(
    scores: Sequence[npt.ArrayLike],
    links: Sequence[Links],
    *,
    cutoffs: Sequence[int] = (1, 5),
    images: Sequence[Sequence[str]] | None = None,
    **labels: Unpack[Labels],
) -> Result:
    r"""Evaluate the links between sentences and images within documents.

    For a document with P true links among its pairs of a sentence and an image and N other
    pairs,

    .. math:: \mathrm{AUC} = \frac{1}{P N} \sum_{p, n} [M_p > M_n] + \tfrac12 [M_p = M_n]

    over true links p and other pairs n; p@C is the share of true links among the C pairs of
    highest score.

    Parameters
    ----------
    scores : sequence of array_like of shape (n_sentences, n_images)
        One matrix per document, each of its own size; higher is better.
    links : sequence of collections of (int, int)
        True links of each document as (sentence, image) positions: `Document.links`.
    cutoffs : sequence of int, default=(1, 5)
        The C of p@C. A document of fewer pairs counts all it has.
    images : sequence of sequence of str, optional
        Images of each document. Give them if documents share images: standard errors then
        take it into account.
    **labels : str or mapping, optional
        `system`, `protocol`, `dataset`, `split` and `pool`, one line of text each, and
        `settings`, a mapping of anything JSON can hold: they are stored in the result.

    Returns
    -------
    Result
        Of the task ``links``: ``AUC`` and each ``p@C``. A document without a true link, or
        with true links only, has no value.

    Raises
    ------
    TypeError
        If a matrix does not hold real numbers, or links are not pairs of integers.
    ValueError
        If the numbers of matrices and of documents differ, a matrix is empty or holds NaN, a
        link leads out of it or is unknown, or every document would be skipped.

    See Also
    --------
    ResultTable : Puts results side by side, with published ones.
    kernelcore.datasets.Document : Where the links come from.

    Notes
    -----
    p@C of tied scores is its expected value if ties are broken at random, so that constant
    scores reach the density P / (P + N) at any C, and no order of sentences or images helps.
    Documents are ranked together, in one sort of all their pairs.

    References
    ----------
    .. [1] J. Hessel, L. Lee and D. Mimno, "Unsupervised discovery of multimodal links in
       multi-image, multi-sentence documents", EMNLP-IJCNLP 2019, section 2.

    Examples
    --------
    >>> from kernelcore.evaluation import evaluate_links
    >>> scores = [[[0.9, 0.1], [0.2, 0.8]], [[0.3, 0.6, 0.5]]]
    >>> result = evaluate_links(scores, [{(0, 0), (1, 1)}, {(0, 2)}], cutoffs=(1, 2))
    >>> result.values["links"]["AUC"]
    array([1. , 0.5])
    >>> result.mean["links"]
    {'AUC': 0.75, 'p@1': 0.5, 'p@2': 0.75}

    Beside a published row:

    >>> from kernelcore.evaluation import Published, ResultTable
    >>> scores, links = [[[0.9, 0.3], [0.4, 0.2]]] * 2, [{(0, 0)}, {(0, 1)}]
    >>> ours = evaluate_links(scores, links, cutoffs=(1,), system="ours", dataset="toy")
    >>> theirs = Published("theirs", "Doe 2019", {"AUC": 0.875})
    >>> print(ResultTable([ours, theirs], uncertainty="standard_error"))
    ... # doctest: +ELLIPSIS
    system                     AUC          p@1
    ours               66.7 ± 33.3  50.0 ± 50.0
    theirs (Doe 2019)         87.5          n/a
    shares in percent; toy, 2 documents, kernelcore ...; ± standard error
    """
    checked = checked_labels(labels)
    cutoffs = sorted(
        {check_integer("cutoffs", c, minimum=1) for c in as_list("cutoffs", cutoffs)}
    )
    ranked = _rank(scores, links)
    if not ranked.is_judged.any():
        raise ValueError(
            "links must hold a true link and another pair for one document at least"
        )
    values = {"AUC": _auc(ranked), **{f"p@{c}": _precision(ranked, c) for c in cutoffs}}
    n_documents = len(ranked.n_pairs)
    items = None if images is None else as_items("images", images, n_documents)
    facts = {"n_documents": n_documents}
    return Result({"links": values}, facts=facts, items=items, **checked)


class _Ranked(NamedTuple):
    """Runs of equal scores, best first within each document; counts are of pairs."""

    n_pairs: npt.NDArray[np.int64]  # of each document
    n_links: npt.NDArray[np.int64]
    document: npt.NDArray[np.intp]  # of each run
    n_before: npt.NDArray[np.int64]  # pairs of the document with greater scores
    n_tied: npt.NDArray[np.int64]
    n_links_before: npt.NDArray[np.int64]
    n_links_tied: npt.NDArray[np.int64]

    @property
    def is_judged(self) -> npt.NDArray[np.bool_]:
        """Documents that have a true link and another pair."""
        return (self.n_links > 0) & (self.n_links < self.n_pairs)


def _rank(scores: Sequence[npt.ArrayLike], links: Sequence[Links]) -> _Ranked:
    scores, links = as_list("scores", scores), as_list("links", links)
    if len(scores) != len(links) or not scores:
        raise ValueError(
            "scores and links must have one entry for each of the same documents, at least "
            f"one, got {len(scores)} and {len(links)}"
        )
    matrices = [_as_matrix(f"scores[{i}]", matrix) for i, matrix in enumerate(scores)]
    truths = [
        _as_truth(f"links[{i}]", pairs, matrix.shape)
        for i, (pairs, matrix) in enumerate(zip(links, matrices, strict=True))
    ]
    n_pairs = np.array([matrix.size for matrix in matrices])
    owner = np.repeat(np.arange(len(matrices)), n_pairs)
    values = np.concatenate([matrix.ravel() for matrix in matrices])
    order = np.lexsort((-values, owner))
    values, is_link = values[order], np.concatenate([truth.ravel() for truth in truths])[order]
    starts = np.flatnonzero(np.r_[True, (np.diff(owner) > 0) | (values[1:] != values[:-1])])
    document = owner[starts]
    links_before = np.r_[0, np.cumsum(is_link)]
    first = np.r_[0, np.cumsum(n_pairs)[:-1]]
    return _Ranked(
        n_pairs=n_pairs,
        n_links=np.add.reduceat(is_link.astype(np.int64), first),
        document=document,
        n_before=starts - first[document],
        n_tied=np.diff(np.r_[starts, len(values)]),
        n_links_before=links_before[starts] - links_before[first][document],
        n_links_tied=np.diff(links_before[np.r_[starts, len(values)]]),
    )


def _auc(ranked: _Ranked) -> npt.NDArray[np.float64]:
    n_others = ranked.n_pairs - ranked.n_links
    others_tied = ranked.n_tied - ranked.n_links_tied
    others_before = ranked.n_before - ranked.n_links_before
    # Twice the other pairs that a true link of the run beats, so that counts stay integers.
    beaten = 2 * (n_others[ranked.document] - others_before - others_tied) + others_tied
    return _share_of_judged(ranked, ranked.n_links_tied * beaten, 2 * ranked.n_links * n_others)


def _precision(ranked: _Ranked, cutoff: int) -> npt.NDArray[np.float64]:
    n_shown = np.clip(cutoff - ranked.n_before, 0, ranked.n_tied)
    hits = ranked.n_links_tied * n_shown / ranked.n_tied
    return _share_of_judged(ranked, hits, np.minimum(cutoff, ranked.n_pairs))


def _share_of_judged(ranked: _Ranked, parts: Array, whole: Array) -> npt.NDArray[np.float64]:
    """Sum the parts of each document's runs and divide by its whole; NaN where skipped."""
    total = np.bincount(ranked.document, weights=parts, minlength=len(whole))
    shares = np.full(len(whole), np.nan)
    np.divide(total, whole, out=shares, where=ranked.is_judged)
    return shares


def _as_matrix(name: str, scores: npt.ArrayLike) -> Array:
    matrix = as_rows(name, scores).matrix()
    if np.isnan(matrix).any():
        row, column = np.argwhere(np.isnan(matrix))[0].tolist()
        raise ValueError(f"{name} must not hold NaN, got NaN at [{row}, {column}]")
    return matrix


def _as_truth(name: str, links: Any, shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    if links is None:
        raise ValueError(f"{name} must be known, got None")
    if not isinstance(links, Iterable):
        raise TypeError(f"{name} must be a collection of (sentence, image), got {links!r}")
    truth = np.zeros(shape, np.bool_)
    pairs = list(links)
    if pairs:
        positions = as_integer_array(name, pairs, ndim=2, dtype=np.intp)
        if positions.shape[1] != 2:
            raise ValueError(f"{name} must be pairs (sentence, image), got {pairs[0]!r}")
        outside = ((positions < 0) | (positions >= shape)).any(axis=1)
        if outside.any():
            raise ValueError(
                f"{name} must lie within {shape[0]} sentences and {shape[1]} images, "
                f"got {tuple(positions[outside][0].tolist())}"
            )
        truth[positions[:, 0], positions[:, 1]] = True
    return truth
