"""Evaluation of links between the sentences and the images of documents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, as_integer_array, as_list, check_integer
from kernelcore.evaluation._inputs import as_rows
from kernelcore.evaluation.metrics import Integers, ranked_by_counts
from kernelcore.evaluation.overlap import as_items
from kernelcore.evaluation.relevance import count_in_row
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
        link leads out of it, or every document would be skipped.

    See Also
    --------
    ResultTable : Puts results side by side, with published ones.
    kernelcore.datasets.Document : Where the links come from.

    Notes
    -----
    p@C of tied scores is its expected value if ties are broken at random, so that constant
    scores reach the density P / (P + N) at any C, and no order of sentences or images helps.

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
    scores, links = as_list("scores", scores), as_list("links", links)
    if len(scores) != len(links) or not scores:
        raise ValueError(
            "scores and links must have one entry for each of the same documents, at least "
            f"one, got {len(scores)} and {len(links)}"
        )
    matrices = [as_rows(f"scores[{i}]", own).matrix() for i, own in enumerate(scores)]
    counts = [
        _count(i, matrix, pairs)
        for i, (matrix, pairs) in enumerate(zip(matrices, links, strict=True))
    ]
    n_pairs = np.array([matrix.size for matrix in matrices])
    n_links = np.array([len(tied) for _, tied in counts])
    n_others = n_pairs - n_links
    is_judged = (n_links > 0) & (n_others > 0)
    if not is_judged.any():
        raise ValueError(
            "links must hold a true link and another pair for one document at least"
        )
    before, tied = (np.concatenate(parts) for parts in zip(*counts, strict=True))
    n_most = int(n_pairs.max())
    ranked = ranked_by_counts(n_links, before, tied, None, n_candidates=n_most, ties="mean")
    # Twice the other pairs that a true link beats, so that counts stay integers.
    others_tied = ranked.size - ranked.count
    worse = n_others[ranked.query] - (ranked.before - ranked.seen) - others_tied
    won = ranked.sum(ranked.count * (2 * worse + others_tied))
    values = {"AUC": won / np.where(is_judged, 2 * n_links * n_others, 1)}
    values |= {f"p@{c}": ranked.hits(c) / np.minimum(c, n_pairs) for c in cutoffs}
    return Result(
        {"links": {name: np.where(is_judged, of, np.nan) for name, of in values.items()}},
        facts={"n_documents": len(n_pairs)},
        items=None if images is None else as_items("images", images, len(n_pairs), str),
        **checked,
    )


def _count(document: int, matrix: Array, links: Any) -> tuple[Integers, Integers]:
    """Count the pairs of a document with a greater score than each true link, or the same."""
    if np.isnan(matrix).any():
        row, column = np.argwhere(np.isnan(matrix))[0].tolist()
        raise ValueError(f"scores[{document}] must not hold NaN, got NaN at [{row}, {column}]")
    name, n_images = f"links[{document}]", matrix.shape[1]
    pairs = as_list(name, links, "be a collection of (sentence, image)")
    positions = as_integer_array(name, pairs or np.empty((0, 2), int), ndim=2, dtype=np.intp)
    if positions.shape[1] != 2:
        raise ValueError(f"{name} must be pairs (sentence, image), got {pairs[0]!r}")
    outside = ((positions < 0) | (positions >= matrix.shape)).any(axis=1)
    if outside.any():
        raise ValueError(
            f"{name} must lie within {len(matrix)} sentences and {n_images} images, "
            f"got {tuple(positions[outside][0].tolist())}"
        )
    return count_in_row(matrix.ravel(), np.unique(positions @ (n_images, 1)))
