"""Binary image selection from the verdicts of people."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kernelcore._validation import Array, as_real_array, check_finite, check_integer, check_real
from kernelcore.datasets.judgments import Indices, RelevanceJudgments
from kernelcore.datasets.records import CaptionedImages
from kernelcore.datasets.selections import BinarySelections, SelectionTriple


def judged_selections(
    judgments: RelevanceJudgments,
    dataset: CaptionedImages,
    *,
    right: float,
    wrong: float,
    similarity: npt.ArrayLike | None = None,
    n_nearest: int | None = None,
    name: str | None = None,
) -> BinarySelections:
    r"""Pair images that people judged right for a caption with ones that they judged wrong.

    Parameters
    ----------
    judgments : RelevanceJudgments
        Verdicts on pairs of an image and a caption.
    dataset : CaptionedImages
        The collection that has the judged captions.
    right : float
        A caption describes an image from this score on.
    wrong : float
        It does not describe an image up to this score, which is below `right`. Pairs between
        the two are in doubt and ask nothing.
    similarity : array_like of shape (n_images, n_images), optional
        How similar the images of ``judgments.image_ids`` are, higher is more. Each right
        image is then paired with one wrong image of its caption, the most similar one (of
        equals, the first). By default it is paired with every wrong image of its caption.
    n_nearest : int, optional
        Leave out pairs whose other image is not among this many images that are most similar
        to the true one, judged or not.
    name : str, optional
        What asks; by default the name of `judgments` with both thresholds.

    Returns
    -------
    BinarySelections
        In the order of the judged captions, then of the right images. A triple's id is made
        of those of its parts, so that the same question has the same id in every set.

    Raises
    ------
    TypeError
        If an argument is of the wrong kind.
    ValueError
        If `wrong` is not below `right`, `similarity` is not a finite square matrix of the
        judged images, `n_nearest` comes without it, a caption is not in `dataset`, or no
        triple is found.

    See Also
    --------
    neighbour_selections : Makes triples where nobody judged.

    Notes
    -----
    For Flickr8k's files, these thresholds stay close to BISON's own rule that two people
    have to agree:

    - crowd (share of yes): ``right=0.5``, the rule of relevance of [2]_, and ``wrong=0``,
      nobody said yes;
    - experts (mean of three scores from 1 to 4): ``right=3``, at most minor errors, and
      ``wrong=2``, at best some aspects of the image.

    ``judgments.union(RelevanceJudgments.gold(dataset, score=best), both="first")`` adds the
    images that captions were written for as right ones, where nobody judged otherwise. What
    was judged had been ranked high by some system or shares words with the image's own
    captions: the wrong images are no random ones even without `similarity`.

    References
    ----------
    .. [1] H. Hu, I. Misra and L. van der Maaten, "Evaluating text-to-image matching using
       binary image selection (BISON)", ICCV workshops 2019.
    .. [2] M. Hodosh, P. Young and J. Hockenmaier, "Framing image description as a ranking
       task: data, models and evaluation metrics", JAIR 47, 2013, section 5.

    Examples
    --------
    >>> from kernelcore.datasets import CaptionedImages, RelevanceJudgments, judged_selections
    >>> photos = CaptionedImages(
    ...     name="garden",
    ...     image_ids=("dog", "fox", "rose"),
    ...     paths=(None,) * 3,
    ...     captions=(("A dog digs.",), ("A fox digs.",), ("A rose.",)),
    ...     caption_ids=(("dog#0",), ("fox#0",), ("rose#0",)),
    ...     caption_numbers=((0,), (0,), (0,)),
    ... )
    >>> crowd = RelevanceJudgments.from_pairs(
    ...     "crowd", [("dog", "dog#0"), ("fox", "dog#0"), ("rose", "dog#0")], [1, 0, 0]
    ... )
    >>> len(judged_selections(crowd, photos, right=0.5, wrong=0))
    2
    >>> alike = [[1, 0.9, 0.1], [0.9, 1, 0.2], [0.1, 0.2, 1]]
    >>> (triple,) = judged_selections(crowd, photos, right=0.5, wrong=0, similarity=alike)
    >>> triple.true_image_id, triple.other_image_id
    ('dog', 'fox')
    """
    if not isinstance(judgments, RelevanceJudgments):
        raise TypeError(f"judgments must be RelevanceJudgments, got {type(judgments).__name__}")
    if not isinstance(dataset, CaptionedImages):
        raise TypeError(f"dataset must be CaptionedImages, got {type(dataset).__name__}")
    right, wrong = check_real("right", right), check_real("wrong", wrong)
    if not wrong < right:
        raise ValueError(f"wrong must be below right ({right:g}), got {wrong:g}")
    alike = None if similarity is None else _as_similarity(similarity, judgments)
    if n_nearest is not None:
        n_nearest = check_integer("n_nearest", n_nearest, minimum=1)
        if alike is None:
            raise ValueError("n_nearest must be omitted where similarity is not given")
    pool = dataset.pool()
    texts = dict(zip(pool.caption_ids, pool.captions, strict=True))
    order = np.argsort(judgments.captions, kind="stable")
    ends = np.cumsum(np.bincount(judgments.captions, minlength=len(judgments.caption_ids)))
    triples = []
    for caption_id, pairs in zip(
        judgments.caption_ids, np.split(order, ends[:-1]), strict=True
    ):
        images, scores = judgments.images[pairs], judgments.scores[pairs]
        describes, misses = images[scores >= right], images[scores <= wrong]
        for true, other in _paired(describes, misses, alike, n_nearest):
            if caption_id not in texts:
                raise ValueError(
                    f"dataset must have every judged caption, and {caption_id!r} is not there"
                )
            true_id, other_id = judgments.image_ids[true], judgments.image_ids[other]
            triples.append(
                SelectionTriple(
                    f"{caption_id} {true_id} {other_id}",
                    texts[caption_id],
                    caption_id,
                    true_id,
                    other_id,
                )
            )
    if not triples:
        raise ValueError(
            f"judgments must hold captions with a score >= {right:g} for one image and "
            f"<= {wrong:g} for another, got none in {judgments!r}"
        )
    return BinarySelections(
        f"{judgments.name}, right >= {right:g}, wrong <= {wrong:g}" if name is None else name,
        triples,
    )


def _paired(
    describes: Indices, misses: Indices, alike: Array | None, n_nearest: int | None
) -> list[tuple[int, int]]:
    """Right and wrong images of one caption, paired."""
    if alike is None or not misses.size:
        return [(true, other) for true in describes.tolist() for other in misses.tolist()]
    pairs = []
    for true in describes.tolist():
        other = int(misses[np.argmax(alike[true, misses])])
        closer = np.count_nonzero(np.delete(alike[true], [true, other]) > alike[true, other])
        if n_nearest is None or closer < n_nearest:
            pairs.append((true, other))
    return pairs


def _as_similarity(similarity: npt.ArrayLike, judgments: RelevanceJudgments) -> Array:
    alike = check_finite("similarity", as_real_array("similarity", similarity, ndim=2))
    n_images = len(judgments.image_ids)
    if alike.shape != (n_images, n_images):
        raise ValueError(
            f"similarity must be a square matrix of the {n_images} judged images, "
            f"got shape {alike.shape}"
        )
    return alike
