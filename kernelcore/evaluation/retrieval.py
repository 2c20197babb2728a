"""Evaluation of image annotation and image search, from scores or from embeddings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, Unpack

import numpy as np
import numpy.typing as npt

from kernelcore._check import (
    check_choice,
    check_integer,
)
from kernelcore.evaluation._inputs import (
    MatrixLike,
    Rows,
    as_owner,
    as_rows,
    captions_by_image,
    one_each,
)
from kernelcore.evaluation.metrics import as_ks, ranked_by_counts
from kernelcore.evaluation.ranks import (
    TIE_RULES,
    GoldPlaces,
    Ties,
    check_same_shape,
    count_gold,
    every_gold,
    places_of,
)
from kernelcore.evaluation.result import TASKS, Labels, Result, checked_labels
from kernelcore.evaluation.streaming import VectorSimilarity, as_vectors, streamed_places

Positions: TypeAlias = npt.NDArray[np.intp]


class _Scores(NamedTuple):
    """Scores of images by captions, for either task."""

    by_image: Rows
    by_caption: Rows

    @property
    def shape(self) -> tuple[int, int]:
        return self.by_image.shape

    def places(self, owner: Positions, ties: str, n_threads: int | None) -> list[GoldPlaces]:
        images, captions = captions_by_image(owner), one_each(owner)
        both = {"rows": images, "columns": captions}
        if self.by_image is self.by_caption:
            counted = count_gold(self.by_image, every_gold, ties, n_threads, **both)
        else:
            counted = [
                *count_gold(self.by_image, every_gold, ties, n_threads, rows=images),
                *count_gold(self.by_caption, every_gold, ties, n_threads, columns=captions),
            ]
        return [
            places_of(counts, gold)
            for (counts, _), gold in zip(counted, both.values(), strict=True)
        ]

    def block(self, images: Positions, captions: Positions) -> _Scores:
        tables = [
            Rows(table.name, [table.take(images)[:, captions]]) for table in dict.fromkeys(self)
        ]
        return _Scores(tables[0], tables[-1])


class _Embeddings(NamedTuple):
    """Vectors of images and of captions, and their similarity."""

    images: Rows
    captions: Rows
    similarity: str

    @property
    def shape(self) -> tuple[int, int]:
        return self.images.shape[0], self.captions.shape[0]

    def places(self, owner: Positions, ties: str, n_threads: int | None) -> list[GoldPlaces]:
        options: Any = {"similarity": self.similarity, "ties": ties, "n_threads": n_threads}
        return list(streamed_places(self.images, self.captions, owner, **options))

    def block(self, images: Positions, captions: Positions) -> _Embeddings:
        return _Embeddings(
            Rows(self.images.name, [self.images.take(images)]),
            Rows(self.captions.name, [self.captions.take(captions)]),
            self.similarity,
        )


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
    check_choice("ties", ties, TIE_RULES)
    source = _source_of(
        {"annotation_scores": annotation_scores, "search_scores": search_scores},
        {"image_vectors": image_vectors, "caption_vectors": caption_vectors},
        similarity,
    )
    if isinstance(source, _Scores) and source.by_image is not source.by_caption:
        _check_not_vectors(source.shape, caption_image, captions_per_image)
    owner = as_owner(caption_image, captions_per_image, source.shape)
    if isinstance(source, _Embeddings) and isinstance(checked["settings"], Mapping):
        checked["settings"] = {"similarity": source.similarity, **checked["settings"]}
    folds = [np.arange(source.shape[0])]
    if n_folds is not None:
        n_folds = check_integer("n_folds", n_folds, minimum=1)
        if source.shape[0] % n_folds:
            raise ValueError(
                f"n_folds must divide the number of images ({source.shape[0]}), got {n_folds}"
            )
        folds = np.split(folds[0], n_folds)
    parts = []
    for images in folds:
        captions = np.flatnonzero((owner >= images[0]) & (owner <= images[-1]))
        part = source if n_folds is None else source.block(images, captions)
        places = part.places(owner[captions] - images[0], ties, n_threads)
        parts.append({"annotation": (images, places[0]), "search": (captions, places[1])})
    return result_of_places(parts, ties, ks, is_folded=n_folds is not None, **checked)


def result_of_places(
    folds: Sequence[Mapping[str, tuple[Positions, GoldPlaces]]],
    ties: str,
    ks: Sequence[int],
    *,
    is_folded: bool = False,
    **labels: Any,
) -> Result:
    """Compute all metrics from the places of the gold items, by fold and task.

    Each comes with the positions of its queries among all queries of the task.
    """
    ks = as_ks(ks)
    values: dict[str, Any] = {}
    by_query: dict[str, Any] = {"n_relevant": {}, "n_candidates": {}, "fold": {}}
    tie_effect: dict[str, dict[str, float]] = {}
    for task, other in zip(TASKS, TASKS[::-1], strict=True):
        sizes = [len(fold[task][0]) for fold in folds]
        n_candidates = [len(fold[other][0]) for fold in folds]
        places = [fold[task][1] for fold in folds]
        order = np.argsort(np.concatenate([fold[task][0] for fold in folds]))
        parts, effects = zip(
            *(_metrics(own, n, ties, ks) for own, n in zip(places, n_candidates, strict=True)),
            strict=True,
        )
        values[task] = {
            name: np.concatenate([part[name] for part in parts])[order] for name in parts[0]
        }
        by_query["n_relevant"][task] = np.concatenate([own.n_gold for own in places])[order]
        by_query["n_candidates"][task] = np.repeat(n_candidates, sizes)[order]
        by_query["fold"][task] = np.repeat(np.arange(len(folds)), sizes)[order]
        tie_effect[task] = {
            name: float(np.mean([part[name].mean() for part in effects])) for name in effects[0]
        }
    n_images, n_captions = (len(of["mean_rank"]) for of in values.values())
    facts: dict[str, Any] = {"n_images": n_images, "n_captions": n_captions, "ties": ties}
    if is_folded:
        facts["n_folds"] = len(folds)
    else:
        del by_query["fold"]
    return Result(
        values,
        facts=facts,
        shown=(*(f"R@{k}" for k in ks), "median_rank"),
        tie_effect=tie_effect,
        **by_query,
        **labels,
    )


def _metrics(
    places: GoldPlaces, n_candidates: int, ties: str, ks: Sequence[int]
) -> tuple[dict[str, npt.NDArray[Any]], dict[str, npt.NDArray[Any]]]:
    """Return values of each query by the name of their mean, and what ties make of recalls."""
    ranks, best, worst = places.ranks(ties, "min", "max")
    ranked = ranked_by_counts(*places, n_candidates=n_candidates, ties=ties)
    values = {
        **{f"R@{k}": (ranks <= k).astype(np.float64) for k in ks},
        "median_rank": ranks,
        "mean_rank": ranks,
        "mean_reciprocal_rank": 1 / ranks,
        "mean_average_precision": ranked.average_precision(),
        **{f"nDCG@{k}": ranked.ndcg_at_k(k) for k in ks},
    }
    return values, {f"R@{k}": (best <= k).astype(float) - (worst <= k) for k in ks}


def _source_of(
    scores: Mapping[str, Any],
    vectors: Mapping[str, Any],
    similarity: str | None,
) -> _Scores | _Embeddings:
    """Return the scores or the vectors, whichever were given."""
    if similarity is not None:
        check_choice("similarity", similarity, ("cosine", "dot"))
    given = [name for name, value in {**scores, **vectors}.items() if value is not None]
    if not given:
        raise ValueError(
            "annotation_scores must be given, or image_vectors and caption_vectors, got neither"
        )
    if set(given) <= vectors.keys():
        missing = vectors.keys() - set(given)
        if missing:
            raise ValueError(f"{missing.pop()} must be given beside {given[0]}, got None")
        return _Embeddings(*as_vectors(*vectors.values()), similarity or "cosine")
    both = [name for name in given if name in vectors]
    if both:
        raise ValueError(f"{both[0]} must not be given beside {given[0]}")
    annotation_scores, search_scores = scores.values()
    if annotation_scores is None:
        raise ValueError("annotation_scores must be given beside search_scores, got None")
    by_image = as_rows("annotation_scores", annotation_scores)
    by_caption = by_image if search_scores is None else as_rows("search_scores", search_scores)
    if by_caption.shape != by_image.shape and by_caption.shape[1] == by_image.shape[1]:
        by_image.name, by_caption.name = vectors
        return _Embeddings(by_image, by_caption, similarity or "cosine")
    if similarity is not None:
        raise ValueError(
            f"similarity must be omitted unless vectors are given, got {similarity!r}"
        )
    check_same_shape(by_caption, by_image)
    return _Scores(by_image, by_caption)


def _check_not_vectors(shape: tuple[int, int], *captions: Any) -> None:
    """Refuse two matrices that may be vectors of as many images as captions."""
    if shape[0] != shape[1] and all(given is None for given in captions):
        raise ValueError(
            "caption_image must be given beside scores of different numbers of images and "
            f"captions, got shape {shape}; vectors of as many images as captions are given as "
            "image_vectors= and caption_vectors="
        )
