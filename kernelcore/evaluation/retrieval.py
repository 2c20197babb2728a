"""Evaluation of image annotation and image search, from scores or from embeddings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple, Unpack

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, check_choice, check_integer
from kernelcore.evaluation._inputs import (
    MatrixLike,
    Positions,
    Rows,
    as_caption_image,
    as_ks,
    as_rows,
    captions_by_image,
    one_each,
)
from kernelcore.evaluation.metrics import RankedRelevance, mean_over_folds, ranked_by_counts
from kernelcore.evaluation.ranks import (
    GoldPlaces,
    Ties,
    by_gold,
    check_same_shape,
    count_gold,
    every_gold,
)
from kernelcore.evaluation.result import TASKS, Labels, Metrics, Result, checked_labels
from kernelcore.evaluation.streaming import VectorSimilarity, streamed_places


class _Source(NamedTuple):
    """Scores of images by captions for each task, or vectors of images and of captions."""

    left: Rows
    right: Rows
    similarity: str | None  # of vectors

    @property
    def shape(self) -> tuple[int, int]:
        """Number of images and of captions."""
        return (self.left.shape[0], self.right.shape[self.similarity is None])

    def block(self, images: Positions, captions: Positions) -> _Source:
        """Copy the part of some images and captions."""
        if self.similarity:
            left, right = self.left.block(images), self.right.block(captions)
        else:
            left = self.left.block(images, captions)
            right = left if self.right is self.left else self.right.block(images, captions)
        return _Source(left, right, self.similarity)

    def places(self, owner: Positions, ties: str, n_threads: int | None) -> list[GoldPlaces]:
        """Find the captions of every image and the image of every caption."""
        if self.similarity:
            return streamed_places(*self[:2], owner, self.similarity, ties, n_threads)
        sides = {"rows": captions_by_image(owner), "columns": one_each(owner)}
        if self.right is self.left:  # one pass
            counted = count_gold(self.left, every_gold, ties, n_threads, **sides)
        else:
            counted = [
                *count_gold(self.left, every_gold, ties, n_threads, rows=sides["rows"]),
                *count_gold(self.right, every_gold, ties, n_threads, columns=sides["columns"]),
            ]
        return [
            GoldPlaces(gold.n_gold, *by_gold(counts, gold))
            for (counts, _), gold in zip(counted, sides.values(), strict=True)
        ]


def evaluate(
    annotation_scores: MatrixLike | None = None,
    search_scores: MatrixLike | None = None,
    *,
    image_vectors: MatrixLike | None = None,
    caption_vectors: MatrixLike | None = None,
    similarity: VectorSimilarity | None = None,
    caption_image: npt.ArrayLike | None = None,
    captions_per_image: int | None = None,
    n_folds: int | None = None,
    ties: Ties = "mean",
    ks: Sequence[int] = (1, 5, 10),
    n_threads: int | None = None,
    **labels: Unpack[Labels],
) -> Result:
    r"""Evaluate image annotation and image search, from scores or from embeddings.

    In annotation, every image is a query and the captions are the candidates. In search,
    every caption is a query and the images are the candidates. The rank of a query is the rank
    of its best gold candidate, see `gold_ranks`: :math:`g + (t + 1) / (m + 1)` if ties are
    broken at random. Here :math:`g` candidates have a higher score than the best gold
    candidate, :math:`t` candidates have its score, and :math:`m` of these :math:`t` are gold.

    Parameters
    ----------
    annotation_scores : array_like of shape (n_images, n_captions), optional
        Score of every caption for every image; higher is better. This matrix and the vectors
        may be arrays, tensors on the CPU, paths of ``.npy`` files, which are mapped and not
        read, or lists of these, whose rows follow each other. float16 and bfloat16 are read
        as float32.
    search_scores : array_like of shape (n_images, n_captions), optional
        Scores for image search where a model has others for that task, in the same
        orientation: rows are images. Two matrices of different numbers of rows and as many
        columns are vectors of images and captions.
    image_vectors, caption_vectors : array_like of shape (n, n_dimensions), optional
        Embeddings of the images and of the captions, in place of scores. The matrix of their
        scores is never made.
    similarity : {"cosine", "dot"}, optional
        How vectors are compared, by default by their cosine; see `streamed_ranks`. Omit it
        where scores are given.
    caption_image : array_like of int, shape (n_captions,), optional
        Row of the image that each caption belongs to; every image has at least one. Omit it
        where caption i belongs to image i.
    captions_per_image : int, optional
        In place of `caption_image` where each image has as many captions, one image after
        the other: caption j belongs to image ``j // captions_per_image``.
    n_folds : int, optional
        Take the means over this many folds of consecutive images, each with their captions:
        5 for COCO 1K. It divides the number of images. Without it, all is one pool: COCO 5K.
    ties : {"mean", "min", "max", "ordinal"}, default="mean"
        The tie rule of `gold_ranks`.
    ks : sequence of int, default=(1, 5, 10)
        The k of recall and nDCG.
    n_threads : int, optional
        Threads to use; the default is every core this process may run on. The result is the
        same for every value.
    **labels : str or mapping, optional
        `system`, `protocol`, `dataset`, `split` and `pool`, one line of text each, and
        `settings`, a mapping of anything JSON can hold: they are stored in the result. The
        similarity of vectors is added to the settings.

    Returns
    -------
    Result
        Of the tasks ``annotation`` and ``search``: ``R@k``, ``median_rank``, ``mean_rank``,
        ``mean_reciprocal_rank``, ``mean_average_precision`` and ``nDCG@k``. It prints recalls,
        median ranks, the pool, chance and how much ties change; its `summary` has all metrics
        and their intervals.

    Raises
    ------
    TypeError, ValueError
        If the scores are not a matrix of numbers, hold NaN or differ in shape, if both scores
        and vectors are given or neither, or another argument does not fit them.
    OSError
        If a file cannot be read.

    See Also
    --------
    evaluate_relevance : Other relevant items than the captions of an image.
    compare : Which of several systems differ.

    Notes
    -----
    An image with several captions is ranked by the best of them in annotation; in search,
    each caption is a query of its own. MAP and nDCG look at all captions of an image. Takes
    one pass over the scores for each caption of an image, and O(n_images + n_captions) memory
    beyond matrices in memory. For vectors see `streamed_ranks`.

    References
    ----------
    .. [1] M. Hodosh, P. Young and J. Hockenmaier, "Framing image description as a ranking
       task: data, models and evaluation metrics", JAIR 47, 2013.
    .. [2] A. Karpathy and L. Fei-Fei, "Deep visual-semantic alignments for generating image
       descriptions", CVPR 2015: five folds of COCO.

    Examples
    --------
    >>> from kernelcore.evaluation import evaluate
    >>> scores = [[0.9, 0.8, 0.1], [0.2, 0.7, 0.3]]
    >>> result = evaluate(scores, caption_image=[0, 1, 1], ks=(1, 2), system="toy")
    >>> print(result)  # doctest: +ELLIPSIS
            ------- annotation ------  -------- search --------
    system    R@1    R@2  median_rank   R@1    R@2  median_rank
    toy     100.0  100.0          1.0  66.7  100.0          1.0
    shares in percent; 2 images, 3 captions, ties mean, kernelcore ...
    >>> result.mean["search"]["R@2"]
    1.0

    From embeddings, two captions of each image:

    >>> images, captions = [[1.0, 0.0], [0.0, 1.0]], [[3, 1], [1, 2], [0, 1], [1, 2]]
    >>> result = evaluate(images, captions, captions_per_image=2)
    >>> result.values["search"]["mean_rank"]
    array([1., 2., 1., 1.])
    """
    checked = checked_labels(labels)
    source = _source_of(
        {"annotation_scores": annotation_scores, "search_scores": search_scores},
        {"image_vectors": image_vectors, "caption_vectors": caption_vectors},
        similarity,
    )
    n_images, n_captions = source.shape
    if (
        source.similarity is None
        and source.left is not source.right
        and n_images != n_captions
        and caption_image is None
        and captions_per_image is None
    ):
        raise ValueError(
            "caption_image or captions_per_image must be given beside scores of different "
            f"numbers of images and captions, got shape {source.shape}; vectors of as many "
            "images as captions are given as image_vectors= and caption_vectors="
        )
    owner = as_caption_image(caption_image, source.shape, captions_per_image)
    if source.similarity and isinstance(checked["settings"], Mapping):
        checked["settings"] = {"similarity": source.similarity, **checked["settings"]}
    if n_folds is None:
        places = source.places(owner, ties, n_threads)
        return result_of_places([places], ties, ks, owner, **checked)
    n_folds = check_integer("n_folds", n_folds, minimum=1)
    if n_images % n_folds:
        raise ValueError(
            f"n_folds must divide the number of images ({n_images}), got {n_folds}"
        )
    queries, folds = [], []
    for images in np.split(np.arange(n_images), n_folds):
        captions = np.flatnonzero((owner >= images[0]) & (owner <= images[-1]))
        part = source.block(images, captions)
        queries.append((images, captions))
        folds.append(part.places(owner[captions] - images[0], ties, n_threads))
    return result_of_places(folds, ties, ks, owner, queries=queries, **checked)


def result_of_places(
    folds: Sequence[Sequence[GoldPlaces]],
    ties: str,
    ks: Sequence[int],
    owner: Positions,
    *,
    queries: Sequence[Sequence[Positions]] | None = None,
    **labels: Any,
) -> Result:
    """Compute all metrics from the gold items of images and of captions in a pool, or in folds.

    `owner` is the image of each caption. The `queries` are the images and captions of each
    fold, as positions among all.
    """
    ks = as_ks(ks)
    values, tie_effect, n_relevant, n_candidates, fold_of = {}, {}, {}, {}, {}
    for side, task in enumerate(TASKS):
        sizes, n_others = (
            [len(places[which].n_gold) for places in folds] for which in (side, 1 - side)
        )
        parts: Any = zip(*(places[side] for places in folds), strict=True)
        joined: Any = (None if part[0] is None else np.concatenate(part) for part in parts)
        places = GoldPlaces(*joined)
        order: Any = slice(None)
        if queries is not None:
            order = np.argsort(np.concatenate([own[side] for own in queries]))
            fold_of[task] = np.repeat(np.arange(len(folds)), sizes)[order]
        (ranks,) = places.ranks(ties)
        ranked = partial(ranked_by_counts, *places, n_candidates=max(n_others), ties=ties)
        values[task] = _metrics(ranks, cache(ranked), order, ks)
        tie_effect[task] = {f"R@{k}": 0.0 for k in ks}
        if (places.tied > 1).any():
            best, worst = places.ranks("min", "max")
            for name, k in zip(tie_effect[task], ks, strict=True):
                effect = ((best <= k).astype(float) - (worst <= k))[order]
                tie_effect[task][name] = mean_over_folds(name, effect, fold_of.get(task))
        n_relevant[task] = places.n_gold[order]
        n_candidates[task] = np.repeat(n_others, sizes)[order]
    n_images, n_captions = map(len, n_relevant.values())
    facts = {"n_images": n_images, "n_captions": n_captions, "ties": ties}
    return Result(
        values,
        facts=facts if queries is None else {**facts, "n_folds": len(folds)},
        shown=(*(f"R@{k}" for k in ks), "median_rank"),
        n_relevant=n_relevant,
        n_candidates=n_candidates,
        fold=fold_of,
        group={"search": owner} if n_captions > n_images else {},
        tie_effect=tie_effect,
        **labels,
    )


def _metrics(
    ranks: Array, ranked: Callable[[], RankedRelevance], order: Any, ks: Any
) -> Metrics:
    """Return all metrics; those of all gold items are computed when they are asked for."""
    own = ranks[order]

    def ndcg(k: int) -> Array:
        values: Array = ranked().ndcg_at_k(k)[order]
        return values

    return Metrics(
        {
            **{f"R@{k}": (own <= k).astype(np.float64) for k in ks},
            "median_rank": own,
            "mean_rank": own,
            "mean_reciprocal_rank": 1 / own,
            "mean_average_precision": lambda: ranked().average_precision()[order],
            **{f"nDCG@{k}": partial(ndcg, k) for k in ks},
        }
    )


def _source_of(
    scores: Mapping[str, Any], vectors: Mapping[str, Any], similarity: str | None
) -> _Source:
    """Return the scores or the vectors, whichever were given."""
    if similarity is not None:
        check_choice("similarity", similarity, ("cosine", "dot"))
    given = {n: value for n, value in {**scores, **vectors}.items() if value is not None}
    if tuple(given) not in {("annotation_scores",), tuple(scores), tuple(vectors)}:
        raise ValueError(
            "annotation_scores must be given, alone or beside search_scores, or image_vectors "
            f"and caption_vectors, got {' and '.join(given) or 'none of them'}"
        )
    left, *others = (as_rows(name, value) for name, value in given.items())
    right = others[0] if others else left
    if left.shape[0] != right.shape[0] and left.shape[1] == right.shape[1]:
        left.name, right.name = vectors  # given by position
        given = dict(vectors)
    if given.keys() == vectors.keys():
        return _Source(left, right, similarity or "cosine")
    if similarity is not None:
        raise ValueError(
            f"similarity must be omitted unless vectors are given, got {similarity!r}"
        )
    check_same_shape(right, left)
    return _Source(left, right, None)
