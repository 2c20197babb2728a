"""Measure image annotation and image search, from scores or from embeddings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, Unpack, overload

import numpy as np
import numpy.typing as npt

from kernelcore._check import (
    as_integer_array,
    as_list,
    check_callable,
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
from kernelcore.evaluation.labels import PoolLabels, checked_labels
from kernelcore.evaluation.metrics import RankingMetrics
from kernelcore.evaluation.places import GoldPlaces, count_places
from kernelcore.evaluation.ranks import TIE_RULES, Ties
from kernelcore.evaluation.retrieval import FoldedMetrics, FoldedResult, RetrievalResult
from kernelcore.evaluation.streaming import VectorSimilarity, as_vectors, streamed_places

_Positions: TypeAlias = npt.NDArray[np.intp]
BlockScorer: TypeAlias = Callable[[_Positions, _Positions], npt.ArrayLike]
"""Takes positions of images and of captions and returns the scores of each with each."""


class _Scores(NamedTuple):
    """Scores of images by captions, for either task."""

    by_image: Rows
    by_caption: Rows

    @property
    def shape(self) -> tuple[int, int]:
        return self.by_image.shape

    def places(self, owner: _Positions, ties: str, n_threads: int | None) -> list[GoldPlaces]:
        gold: dict[str, Any] = {"rows": captions_by_image(owner), "columns": one_each(owner)}
        if self.by_image is self.by_caption:
            return count_places(self.by_image, **gold, ties=ties, n_threads=n_threads)
        return [
            *count_places(self.by_image, rows=gold["rows"], ties=ties, n_threads=n_threads),
            *count_places(
                self.by_caption, columns=gold["columns"], ties=ties, n_threads=n_threads
            ),
        ]

    def block(self, images: _Positions, captions: _Positions) -> _Scores:
        tables = [
            Rows(table.name, [table.take(images)[:, captions]]) for table in dict.fromkeys(self)
        ]
        return _Scores(tables[0], tables[-1])


class _Scorers(NamedTuple):
    """Functions that score blocks of images and captions, for either task."""

    by_image: BlockScorer
    by_caption: BlockScorer
    shape: tuple[int, int]

    def places(self, owner: _Positions, ties: str, n_threads: int | None) -> list[GoldPlaces]:
        whole = self.block(*map(np.arange, self.shape))
        return whole.places(owner, ties, n_threads)

    def block(self, images: _Positions, captions: _Positions) -> _Scores:
        by_image = _scored("annotation_scores", self.by_image, images, captions)
        if self.by_caption is self.by_image:
            return _Scores(by_image, by_image)
        return _Scores(by_image, _scored("search_scores", self.by_caption, images, captions))


class _Embeddings(NamedTuple):
    """Vectors of images and of captions, and their similarity."""

    images: Rows
    captions: Rows
    similarity: str

    @property
    def shape(self) -> tuple[int, int]:
        return self.images.shape[0], self.captions.shape[0]

    def places(
        self, owner: _Positions, ties: str, n_threads: int | None
    ) -> tuple[GoldPlaces, GoldPlaces]:
        return streamed_places(
            self.images,
            self.captions,
            owner,
            similarity=self.similarity,
            ties=ties,
            n_threads=n_threads,
        )

    def block(self, images: _Positions, captions: _Positions) -> _Embeddings:
        return _Embeddings(
            Rows(self.images.name, [self.images.take(images)]),
            Rows(self.captions.name, [self.captions.take(captions)]),
            self.similarity,
        )


@overload
def evaluate(
    annotation_scores: MatrixLike | BlockScorer | None = None,
    search_scores: MatrixLike | BlockScorer | None = None,
    *,
    image_vectors: MatrixLike | None = None,
    caption_vectors: MatrixLike | None = None,
    similarity: VectorSimilarity | None = None,
    caption_image: npt.ArrayLike | None = None,
    captions_per_image: int | None = None,
    n_folds: None = None,
    ties: Ties = "mean",
    ks: Sequence[int] = (1, 5, 10),
    n_threads: int | None = None,
    **labels: Unpack[PoolLabels],
) -> RetrievalResult: ...


@overload
def evaluate(
    annotation_scores: MatrixLike | BlockScorer | None = None,
    search_scores: MatrixLike | BlockScorer | None = None,
    *,
    image_vectors: MatrixLike | None = None,
    caption_vectors: MatrixLike | None = None,
    similarity: VectorSimilarity | None = None,
    caption_image: npt.ArrayLike | None = None,
    captions_per_image: int | None = None,
    n_folds: int,
    ties: Ties = "mean",
    ks: Sequence[int] = (1, 5, 10),
    n_threads: int | None = None,
    **labels: Unpack[PoolLabels],
) -> FoldedResult: ...


def evaluate(
    annotation_scores: MatrixLike | BlockScorer | None = None,
    search_scores: MatrixLike | BlockScorer | None = None,
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
    **labels: Unpack[PoolLabels],
) -> RetrievalResult | FoldedResult:
    r"""Measure image annotation and image search, from scores or from embeddings.

    In annotation, every image is a query and the captions are the candidates. In search,
    every caption is a query and the images are the candidates. The rank of a query is the rank
    of its best gold candidate, see `gold_ranks`: :math:`g + (t + 1) / (m + 1)` if ties are
    broken at random. Here :math:`g` candidates have a higher score than the best gold
    candidate, :math:`t` candidates have its score, and :math:`m` of these :math:`t` are gold.

    Parameters
    ----------
    annotation_scores : array_like of shape (n_images, n_captions), or callable, optional
        Score of every caption for every image; higher is better. This matrix and the vectors
        may be arrays, tensors on the CPU, paths of ``.npy`` files, which are mapped and not
        read, or lists of these, whose rows follow each other. float16 and bfloat16 are read
        as float32. Or a function that takes positions of images and of captions and returns
        the scores of each of these images with each of these captions. It is called once per
        fold: pairs across folds have no score.
    search_scores : array_like of shape (n_images, n_captions), or callable, optional
        Scores for image search where a model has others for that task, in the same
        orientation: rows are images. A function where `annotation_scores` is one.
    image_vectors, caption_vectors : array_like of shape (n, n_dimensions), optional
        Embeddings of the images and of the captions, in place of scores. The matrix of their
        scores is never made.
    similarity : {"cosine", "dot"}, optional
        How vectors are compared, by default by their cosine; see `streamed_ranks`. Omit it
        where scores are given.
    caption_image : array_like of int, shape (n_captions,), optional
        Row of the image that each caption belongs to; every image has at least one. Omit it
        where caption i belongs to image i and scores or vectors are given as matrices.
    captions_per_image : int, optional
        In place of `caption_image` where each image has as many captions, one image after
        the other: caption j belongs to image ``j // captions_per_image``.
    n_folds : int, optional
        Take the means over this many folds of consecutive images, each with their captions:
        5 for COCO 1K. It divides the number of images. Without it, all is one pool: COCO 5K.
    ties : {"mean", "min", "max", "ordinal"}, default="mean"
        The tie rule of `gold_ranks`.
    ks : sequence of int, default=(1, 5, 10)
        The k of the recalls that are reported.
    n_threads : int, optional
        Threads to use; the default is every core this process may run on. The result is the
        same for every value.
    **labels : str or mapping, optional
        `system`, `protocol`, `dataset`, `split` and `pool`, one line of text each, and
        `settings`, a mapping of anything JSON can hold: they are stored in the result. The
        similarity of vectors is added to the settings.

    Returns
    -------
    RetrievalResult or FoldedResult
        It prints recalls, median ranks, the pool, chance and how much ties change; its
        `summary` has mean ranks, MRR, MAP, nDCG and bootstrap intervals as well. FoldedResult
        with `n_folds`.

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
    tie_groups : Which of several models differ.

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
            ---- annotation ----  ------ search -----
    system    R@1    R@2  median   R@1    R@2  median
    toy     100.0  100.0     1.0  66.7  100.0     1.0
    R@k in percent; 2 images, 3 captions, ties mean, kernelcore ...

    From embeddings, two captions of each image:

    >>> images, captions = [[1.0, 0.0], [0.0, 1.0]], [[3, 1], [1, 2], [0, 1], [1, 2]]
    >>> result = evaluate(image_vectors=images, caption_vectors=captions, captions_per_image=2)
    >>> result.search.ranks, round(result.annotation.mean_average_precision, 3)
    (array([1., 2., 1., 1.]), 0.917)
    """
    checked = checked_labels(labels)
    check_choice("ties", ties, TIE_RULES)
    source = _source_of(
        {"annotation_scores": annotation_scores, "search_scores": search_scores},
        {"image_vectors": image_vectors, "caption_vectors": caption_vectors},
        similarity,
        caption_image,
    )
    owner = as_owner(caption_image, captions_per_image, source.shape)
    cutoffs = tuple(as_list("ks", ks))
    if isinstance(source, _Embeddings) and isinstance(checked["settings"], Mapping):
        checked["settings"] = {"similarity": source.similarity, **checked["settings"]}

    def measure(images: _Positions, captions: _Positions) -> RetrievalResult:
        part, own = source.block(images, captions), owner[captions] - images[0]
        return _measure(part, own, ties, cutoffs, n_threads)

    if n_folds is None:
        return _measure(source, owner, ties, cutoffs, n_threads, **checked)
    return _over_folds(measure, owner, n_folds, **checked)


def _over_folds(
    measure: Callable[[npt.NDArray[np.intp], npt.NDArray[np.intp]], RetrievalResult],
    owner: npt.NDArray[np.intp],
    n_folds: int,
    **labels: Any,
) -> FoldedResult:
    """Measure each fold of consecutive images, given positions of images and captions."""
    n_folds = check_integer("n_folds", n_folds, minimum=1)
    n_images = int(owner.max()) + 1
    if n_images % n_folds:
        raise ValueError(
            f"n_folds must divide the number of images ({n_images}), got {n_folds}"
        )
    results = []
    for images in np.split(np.arange(n_images), n_folds):
        captions = np.flatnonzero((owner >= images[0]) & (owner <= images[-1]))
        results.append(measure(images, captions))
    return FoldedResult(
        annotation=FoldedMetrics(tuple(result.annotation for result in results)),
        search=FoldedMetrics(tuple(result.search for result in results)),
        **labels,
    )


def _source_of(
    scores: Mapping[str, Any],
    vectors: Mapping[str, Any],
    similarity: str | None,
    caption_image: Any,
) -> _Scores | _Scorers | _Embeddings:
    """Return the scores, the functions or the vectors, whichever were given."""
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
    if similarity is not None:
        raise ValueError(
            f"similarity must be omitted unless vectors are given, got {similarity!r}"
        )
    annotation_scores, search_scores = scores.values()
    if annotation_scores is None:
        raise ValueError("annotation_scores must be given beside search_scores, got None")
    if callable(annotation_scores):
        by_caption = annotation_scores if search_scores is None else search_scores
        check_callable("search_scores", by_caption)
        return _Scorers(annotation_scores, by_caption, _shape_of(caption_image))
    by_image = as_rows("annotation_scores", annotation_scores)
    if search_scores is None:
        return _Scores(by_image, by_image)
    by_caption = as_rows("search_scores", search_scores)
    if by_caption.shape != by_image.shape:
        raise ValueError(
            f"search_scores must have the shape of annotation_scores, {by_image.shape}, "
            f"got {by_caption.shape}; vectors are given by name, image_vectors= and "
            "caption_vectors="
        )
    return _Scores(by_image, by_caption)


def _measure(
    source: _Scores | _Scorers | _Embeddings,
    owner: _Positions,
    ties: str,
    ks: tuple[int, ...],
    n_threads: int | None,
    **labels: Any,
) -> RetrievalResult:
    n_images, n_captions = source.shape
    for_images, for_captions = source.places(owner, ties, n_threads)
    return RetrievalResult(
        annotation=RankingMetrics.of(for_images, n_candidates=n_captions, ties=ties, ks=ks),
        search=RankingMetrics.of(for_captions, n_candidates=n_images, ties=ties, ks=ks),
        **labels,
    )


def _shape_of(caption_image: Any) -> tuple[int, int]:
    """Return the numbers of images and captions, which functions do not tell."""
    if caption_image is None:
        raise ValueError("caption_image must be given where annotation_scores is a function")
    owner = as_integer_array("caption_image", caption_image, ndim=1, dtype=np.intp)
    if not owner.size:
        raise ValueError("caption_image must have at least one caption, got none")
    return int(owner.max()) + 1, len(owner)


def _scored(name: str, score: BlockScorer, images: _Positions, captions: _Positions) -> Rows:
    """Scores of some images and captions."""
    block = as_rows(name, score(images, captions))
    if block.shape != (len(images), len(captions)):
        raise ValueError(
            f"{name} must return one row per image and one column per caption, "
            f"{(len(images), len(captions))}, got shape {block.shape}"
        )
    return block
