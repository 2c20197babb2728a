"""Evaluation of links between the sentences and the images of documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Unpack

import numpy as np
import numpy.typing as npt

from kernelcore._check import (
    Array,
    as_integer_array,
    as_list,
    as_real_array,
    check_integer,
)
from kernelcore.evaluation.labels import Labels, checked_labels
from kernelcore.evaluation.overlap import overlap_standard_error
from kernelcore.evaluation.ranks import as_scores
from kernelcore.evaluation.result import Column, Result, ResultTable

Links = Iterable[tuple[int, int]]
"""True links of a document as (sentence, image) positions."""

_SHARED = ", shared images taken into account"


@dataclass(frozen=True, eq=False, repr=False)
class LinkResult(Result):
    """How well one system finds the links within documents.

    Attributes
    ----------
    auc : ndarray of float64, shape (n_documents,)
        Area under the ROC curve of each document, in [0, 1]; NaN for a document that is
        skipped because it has no true link or no other pair.
    precision : mapping of int to ndarray of float64, shape (n_documents,)
        Share of true links among the C pairs of highest score, by C; NaN where `auc` is.
    images : sequence of tuple of str, or None
        Images of each document. If they are given, standard errors take into account that
        documents which share images depend on each other.
    system, protocol, dataset, split : str
        The system, the protocol, the dataset and its split. One line each.
    settings : mapping of str to Any
        Settings of the system: anything JSON can hold; NumPy scalars become plain numbers.
    version : str
        Version of kernelcore that computed the result.

    Raises
    ------
    TypeError, ValueError
        If a part does not fit the others, a value lies outside [0, 1], every document is
        skipped, a label is not one line of text, or the settings do not fit into JSON.

    See Also
    --------
    evaluate_links : Makes one from matrices of scores.
    ResultTable : Puts several side by side.

    Examples
    --------
    >>> from kernelcore.evaluation import LinkResult
    >>> result = LinkResult([0.9, 0.7, float("nan")], {1: [1, 0, float("nan")]}, system="toy")
    >>> result
    LinkResult('toy', AUC=0.8000, p@1=0.5000, 2 of 3 documents)
    >>> result.standard_error["AUC"]
    0.1
    >>> LinkResult.from_json(result.to_json()) == result
    True
    """

    auc: npt.NDArray[np.float64]
    precision: Mapping[int, npt.NDArray[np.float64]]
    images: Sequence[Sequence[str]] | None = None

    _kind = "link result"
    _options = ("standard_errors",)

    def __post_init__(self) -> None:
        super().__post_init__()
        auc = _as_shares("auc", self.auc)
        precision = {
            cutoff: _as_shares(f"precision[{cutoff}]", self.precision[cutoff])
            for cutoff in _as_cutoffs("precision", list(self.precision))
        }
        for cutoff, shares in precision.items():
            if not np.array_equal(np.isnan(shares), np.isnan(auc)):
                raise ValueError(
                    f"precision[{cutoff}] must be NaN where auc is, and nowhere else"
                )
        object.__setattr__(self, "auc", auc)
        object.__setattr__(self, "precision", precision)
        if self.images is not None:
            object.__setattr__(self, "images", _as_images(self.images, len(auc)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LinkResult) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        numbers = [f"{name}={value:.4f}" for name, value in self.mean.items()]
        count = f"{self.n_judged} of {self.n_documents} documents"
        return f"LinkResult({', '.join([repr(self.system), *numbers, count])})"

    @property
    def n_documents(self) -> int:
        """Number of documents, the skipped ones included."""
        return len(self.auc)

    @property
    def n_judged(self) -> int:
        """Number of documents that are not skipped: the means are over these."""
        return self.n_documents - int(np.count_nonzero(np.isnan(self.auc)))

    @property
    def per_document(self) -> dict[str, npt.NDArray[np.float64]]:
        """Values of each document by the name of their mean: ``AUC``, ``p@C``."""
        cuts = {f"p@{cutoff}": shares for cutoff, shares in self.precision.items()}
        return {"AUC": self.auc, **cuts}

    @property
    def mean(self) -> dict[str, float]:
        """Mean of ``AUC`` and each ``p@C`` over the judged documents, in [0, 1]."""
        return {name: float(np.nanmean(values)) for name, values in self.per_document.items()}

    @property
    def standard_error(self) -> dict[str, float]:
        """Standard error of each mean, NaN for a single document.

        With `images` it is the `kernelcore.evaluation.overlap.overlap_standard_error`.
        """
        judged = np.flatnonzero(~np.isnan(self.auc)).tolist()
        if len(judged) == 1:
            return dict.fromkeys(self.per_document, float("nan"))
        if self.images is None:
            return {
                name: float(np.nanstd(values, ddof=1) / np.sqrt(len(judged)))
                for name, values in self.per_document.items()
            }
        images = [self.images[i] for i in judged]
        return {
            name: overlap_standard_error(values[judged], images)
            for name, values in self.per_document.items()
        }

    def _columns(self, table: ResultTable) -> list[Column]:
        return [Column(name, name) for name in self.per_document]

    def _cell(self, column: Column, table: ResultTable) -> str:
        cell = super()._cell(column, table)
        if table.standard_errors:
            cell += f" ± {100 * self.standard_error[column.key]:.1f}"
        return cell

    @classmethod
    def _notes(cls, results: Sequence[Any], table: ResultTable) -> str:
        if not table.standard_errors:
            return ""
        knows = [result.images is not None for result in results]
        shared = _SHARED if all(knows) else f"{_SHARED}, where they are known"
        return f"; ± standard error{shared if any(knows) else ''}"

    def _numbers(self) -> dict[str, Any]:
        return {
            "n_documents": self.n_documents,
            "n_judged": self.n_judged,
            **self.mean,
            "cutoffs": list(self.precision),
            "per_document": {
                name: [None if np.isnan(value) else value for value in values.tolist()]
                for name, values in self.per_document.items()
            },
            **({} if self.images is None else {"images": [list(own) for own in self.images]}),
        }

    @classmethod
    def _as_fields(cls, document: Mapping[str, Any]) -> dict[str, Any]:
        values = {
            name: np.array(entries, np.float64)
            for name, entries in document["per_document"].items()
        }
        return {
            "auc": values["AUC"],
            "precision": {cutoff: values[f"p@{cutoff}"] for cutoff in document["cutoffs"]},
            "images": document.get("images"),
        }


def evaluate_links(
    scores: Sequence[npt.ArrayLike],
    links: Sequence[Links],
    *,
    cutoffs: Sequence[int] = (1, 5),
    images: Sequence[Sequence[str]] | None = None,
    **labels: Unpack[Labels],
) -> LinkResult:
    r"""Measure how well scores find the links within documents.

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
        `system`, `protocol`, `dataset` and `split`, one line of text each, and `settings`, a
        mapping of anything JSON can hold: they are stored in the result.

    Returns
    -------
    LinkResult
        Values of each document and their means. A document without a true link, or with true
        links only, has no AUC: it is skipped and counted.

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
    >>> result.auc
    array([1. , 0.5])
    >>> result.mean
    {'AUC': 0.75, 'p@1': 0.5, 'p@2': 0.75}

    Beside a published row:

    >>> from kernelcore.evaluation import Published, ResultTable
    >>> scores, links = [[[0.9, 0.3], [0.4, 0.2]]] * 2, [{(0, 0)}, {(0, 1)}]
    >>> ours = evaluate_links(scores, links, cutoffs=(1,), system="ours", dataset="toy")
    >>> theirs = Published("theirs", "Doe 2019", {"AUC": 0.875})
    >>> print(ResultTable([ours, theirs], standard_errors=True))  # doctest: +ELLIPSIS
    system                     AUC          p@1
    ours               66.7 ± 33.3  50.0 ± 50.0
    theirs (Doe 2019)         87.5          n/a
    In percent; toy, 2 documents, 2 judged, kernelcore ...; ± standard error
    """
    checked = checked_labels(labels, Labels)
    cutoffs = _as_cutoffs("cutoffs", cutoffs)
    ranked = _rank(scores, links)
    return LinkResult(
        auc=_auc(ranked),
        precision={cutoff: _precision(ranked, cutoff) for cutoff in cutoffs},
        images=images,
        **checked,
    )


def _as_cutoffs(name: str, cutoffs: Iterable[int]) -> tuple[int, ...]:
    """Return the C of p@C, ascending and each once."""
    return tuple(
        sorted({check_integer(name, cutoff, minimum=1) for cutoff in as_list(name, cutoffs)})
    )


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
    matrix = as_scores(name, scores)
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


def _as_images(images: Any, n_documents: int) -> tuple[tuple[str, ...], ...]:
    """Return the images of each document, checked."""
    given = as_list("images", images)
    if len(given) != n_documents:
        raise ValueError(
            f"images must have an entry for each of {n_documents} documents, got {len(given)}"
        )
    for own in given:
        if isinstance(own, str) or not isinstance(own, Iterable):
            raise TypeError(f"images must hold a sequence for each document, got {own!r}")
        if not all(isinstance(name, str) for name in own):
            raise TypeError(f"images must hold sequences of strings, got {own!r}")
    return tuple(map(tuple, given))


def _as_shares(name: str, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    shares = np.array(as_real_array(name, values, ndim=1), np.float64)
    judged = shares[~np.isnan(shares)]
    if not judged.size:
        raise ValueError(
            f"{name} must have a value for one document at least, and all of {len(shares)} "
            "are skipped"
        )
    if judged.min() < 0 or judged.max() > 1:
        raise ValueError(
            f"{name} must lie in [0, 1], got values from {judged.min()} to {judged.max()}"
        )
    shares.flags.writeable = False
    return shares
