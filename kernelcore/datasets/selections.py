"""Binary image selection: a caption, an image that it describes and one that it does not."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, as_real_array, check_finite, check_real
from kernelcore._threads import one_blas_thread
from kernelcore.datasets.judgments import Indices, RelevanceJudgments, as_ids, grouped
from kernelcore.datasets.records import CaptionedImages, DatasetWarning, places_of

_BLOCK = 1024


@dataclass(frozen=True)
class SelectionTriple:
    """The question which of two images a caption describes.

    Attributes
    ----------
    triple_id : str
        Id of the question, BISON's ``bison_id``.
    caption : str
        The caption as it is shown.
    caption_id : str
        Its id in the collection it comes from.
    true_image_id : str
        The image that it describes.
    other_image_id : str
        The image that it does not describe.

    Raises
    ------
    TypeError
        If a part is not a string.
    ValueError
        If both images are the same.
    """

    triple_id: str
    caption: str
    caption_id: str
    true_image_id: str
    other_image_id: str

    def __post_init__(self) -> None:
        for part in fields(self):
            value = getattr(self, part.name)
            if not isinstance(value, str):
                raise TypeError(f"{part.name} must be a string, got {value!r}")
        if self.true_image_id == self.other_image_id:
            raise ValueError(
                f"other_image_id must differ from true_image_id, got {self.true_image_id!r} "
                f"twice in triple {self.triple_id!r}"
            )


class SelectionPositions(NamedTuple):
    """Where the parts of each triple stand in a matrix of images by captions.

    Attributes
    ----------
    true_images, other_images : ndarray of intp, shape (n_triples,)
        Rows.
    captions : ndarray of intp, shape (n_triples,)
        Columns.
    """

    true_images: Indices
    other_images: Indices
    captions: Indices


@dataclass(frozen=True, eq=False, repr=False)
class BinarySelections:
    """Questions of binary image selection.

    Attributes
    ----------
    name : str
        Name of the set of questions, as results will quote it.
    triples : tuple of SelectionTriple
        At least one. No id comes twice, and a caption id always has the same caption.

    Raises
    ------
    TypeError
        If a part is not of its kind.
    ValueError
        If there is no triple, an id comes twice, or a caption id has two captions.

    See Also
    --------
    kernelcore.datasets.load_bison : Reads them from a file.
    kernelcore.datasets.judged_selections : Makes them from the verdicts of people.
    kernelcore.datasets.neighbour_selections : Makes them from captions alone.
    kernelcore.evaluation.evaluate_selections : Asks a system.

    References
    ----------
    .. [1] H. Hu, I. Misra and L. van der Maaten, "Evaluating text-to-image matching using
       binary image selection (BISON)", ICCV workshops 2019.

    Examples
    --------
    >>> from kernelcore.datasets import BinarySelections, SelectionTriple
    >>> garden = BinarySelections(
    ...     "garden",
    ...     [
    ...         SelectionTriple("0", "A dog digs.", "dog#0", "dog.jpg", "fox.jpg"),
    ...         SelectionTriple("1", "A fox sleeps.", "fox#0", "fox.jpg", "dog.jpg"),
    ...     ],
    ... )
    >>> garden
    BinarySelections('garden', 2 triples of 2 images and 2 captions)
    >>> garden.positions(["dog.jpg", "fox.jpg"], ["fox#0", "dog#0"]).true_images
    array([0, 1])
    """

    name: str
    triples: Sequence[SelectionTriple]

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise TypeError(f"name must be a string, got {self.name!r}")
        triples = tuple(self.triples)
        if not triples:
            raise ValueError("triples must hold at least one triple, got none")
        captions: dict[str, str] = {}
        for triple in triples:
            if not isinstance(triple, SelectionTriple):
                raise TypeError(f"triples must hold SelectionTriple objects, got {triple!r}")
            if captions.setdefault(triple.caption_id, triple.caption) != triple.caption:
                raise ValueError(
                    f"caption_id must stand for one caption, got {triple.caption_id!r} with "
                    f"{captions[triple.caption_id]!r} and {triple.caption!r}"
                )
        as_ids("triple_id", [triple.triple_id for triple in triples])
        object.__setattr__(self, "triples", triples)

    def __len__(self) -> int:
        return len(self.triples)

    def __iter__(self) -> Iterator[SelectionTriple]:
        return iter(self.triples)

    def __repr__(self) -> str:
        return (
            f"BinarySelections({self.name!r}, {len(self)} triples of {len(self.image_ids)} "
            f"images and {len(self.captions)} captions)"
        )

    @property
    def triple_ids(self) -> tuple[str, ...]:
        """Id of each triple."""
        return tuple(triple.triple_id for triple in self)

    @property
    def image_ids(self) -> tuple[str, ...]:
        """Every image once, in the order in which they first come."""
        pairs = ((triple.true_image_id, triple.other_image_id) for triple in self)
        return tuple(dict.fromkeys(image for pair in pairs for image in pair))

    @property
    def captions(self) -> dict[str, str]:
        """Every caption by its id, in the order in which they first come."""
        return {triple.caption_id: triple.caption for triple in self}

    def select(self, image_ids: Collection[str]) -> BinarySelections:
        """Return the triples whose two images are both among `image_ids`.

        BISON asks about images that some systems were trained on: what remains of it for a
        system is ``selections.select(test.image_ids)``.
        """
        inside = set(image_ids)
        return BinarySelections(
            self.name, [t for t in self if {t.true_image_id, t.other_image_id} <= inside]
        )

    def positions(
        self, image_ids: Sequence[str], caption_ids: Sequence[str]
    ) -> SelectionPositions:
        """Look up the triples in a matrix of scores.

        Parameters
        ----------
        image_ids, caption_ids : sequence of str
            Ids of its rows and columns; all that the triples need are among them.

        Returns
        -------
        SelectionPositions

        Raises
        ------
        TypeError, ValueError
            If the ids are not strings, one comes twice, or a triple's is not there.
        """
        rows, columns = as_ids("image_ids", image_ids), as_ids("caption_ids", caption_ids)
        found = []
        for name, ids, wanted in (
            ("image_ids", rows, [triple.true_image_id for triple in self]),
            ("image_ids", rows, [triple.other_image_id for triple in self]),
            ("caption_ids", columns, [triple.caption_id for triple in self]),
        ):
            places = places_of(wanted, ids)
            absent = [wanted[i] for i in np.flatnonzero(places < 0)]
            if absent:
                raise ValueError(
                    f"{name} must hold those of every triple of {self.name}, and "
                    f"{len(set(absent))} are not there, the first is {absent[0]!r}"
                )
            found.append(places)
        return SelectionPositions(*found)


def judged_selections(
    judgments: RelevanceJudgments,
    dataset: CaptionedImages,
    *,
    right: float,
    wrong: float,
    similarity: npt.ArrayLike | None = None,
) -> BinarySelections:
    r"""Pair images that people judged right for a caption with ones that they judged wrong.

    Parameters
    ----------
    judgments : RelevanceJudgments
        Verdicts on pairs of an image and a caption.
    dataset : CaptionedImages
        The collection that has the judged captions.
    right : float
        A caption describes an image if the score of the pair is at least this.
    wrong : float
        A caption does not describe an image if the score of the pair is at most this; below
        `right`. Pairs with a score between the two thresholds are not used.
    similarity : array_like of shape (n_images, n_images), optional
        How similar the images of ``judgments.image_ids`` are, higher is more. Each right
        image is then paired with one wrong image of its caption, the most similar one (of
        equals, the first). By default it is paired with every wrong image of its caption.

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
        judged images, a caption is not in `dataset`, or no triple is found.

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
    alike = None
    if similarity is not None:
        alike = check_finite("similarity", as_real_array("similarity", similarity, ndim=2))
        n_images = len(judgments.image_ids)
        if alike.shape != (n_images, n_images):
            raise ValueError(
                f"similarity must be a square matrix of the {n_images} judged images, "
                f"got shape {alike.shape}"
            )
    pool = dataset.pool()
    texts = dict(zip(pool.caption_ids, pool.captions, strict=True))
    n_captions = len(judgments.caption_ids)
    of_caption = grouped(judgments.captions, np.arange(len(judgments)), n_captions)
    triples = []
    for caption_id, pairs in zip(judgments.caption_ids, of_caption, strict=True):
        images, scores = judgments.images[pairs], judgments.scores[pairs]
        describes, misses = images[scores >= right], images[scores <= wrong]
        if describes.size and misses.size and caption_id not in texts:
            raise ValueError(
                f"dataset must have every judged caption, and {caption_id!r} is not there"
            )
        for true in describes.tolist():
            others = misses
            if alike is not None and misses.size:
                others = misses[[alike[true, misses].argmax()]]
            for other in others.tolist():
                ids = caption_id, judgments.image_ids[true], judgments.image_ids[other]
                triples.append(SelectionTriple(" ".join(ids), texts[caption_id], *ids))
    if not triples:
        raise ValueError(
            f"judgments must hold captions with a score >= {right:g} for one image and "
            f"<= {wrong:g} for another, got none in {judgments!r}"
        )
    name = f"{judgments.name}, right >= {right:g}, wrong <= {wrong:g}"
    return BinarySelections(name, triples)


def neighbour_selections(
    dataset: CaptionedImages,
    image_vectors: npt.ArrayLike,
    words: Sequence[Sequence[Sequence[str]]],
    *,
    max_overlap: float = 0.25,
) -> BinarySelections:
    r"""Make triples of a caption, its image and the nearest neighbour of this image.

    The nearest neighbour is the image whose vector has the greatest cosine with that of the
    true image. The caption is the one with the least overlap among the captions of the true
    image. With W the set of words of a caption and N the set of words of all captions of the
    neighbour, the overlap is

    .. math:: |W \cap N| \,/\, |W|

    An image has a triple if the overlap of this caption is at most `max_overlap`.

    Parameters
    ----------
    dataset : CaptionedImages
        Images with their captions.
    image_vectors : array_like of shape (n_images, n_dimensions)
        One vector per image. The paper takes the mean of the word vectors of all words of
        all captions: ``vectors.mean([sum(image, []) for image in words])`` with the
        `kernelcore.lexical.WordVectors` at hand. An image whose vector is zero is in no
        triple.
    words : nested sequence of str
        Content words of each caption of each image, parallel to ``dataset.captions``, as
        `kernelcore.captions.CaptionNormalizer` gives them. A caption without words is in no
        triple.
    max_overlap : float, default=0.25
        Greatest overlap, in [0, 1]. At 1 every image with a neighbour has a triple.

    Returns
    -------
    BinarySelections
        At most one triple per image, in the order of the images.

    Raises
    ------
    TypeError
        If an argument is of the wrong kind.
    ValueError
        If `image_vectors` or `words` do not fit `dataset`, a value is not finite, or no
        triple is found.

    Warns
    -----
    DatasetWarning
        If vectors are zero.

    See Also
    --------
    judged_selections : Makes triples from human judgments.

    Notes
    -----
    COCO-BISON [1]_ was made in three stages, of which this is the first: there, people chose
    the caption, and two more had to select the right image by it. The overlap stands in for
    them. It does not know that *a man* and *a person* mean the same, nor what is to be seen
    in the neighbour but mentioned by none of its captions: some captions do describe both
    images. Of the captions of Flickr8k that the crowd judged with their image's nearest
    neighbour, one in ten describes it too where the overlap is at most a quarter, one in five
    from there up to a half, and one in two above.

    Products run on one thread of BLAS, so that neighbours do not depend on the number of
    threads. Takes O(n_images ** 2 * n_dimensions) time and O(n_images) memory.

    References
    ----------
    .. [1] H. Hu, I. Misra and L. van der Maaten, "Evaluating text-to-image matching using
       binary image selection (BISON)", ICCV workshops 2019, section 3.1.

    Examples
    --------
    >>> from kernelcore.datasets import CaptionedImages, neighbour_selections
    >>> photos = CaptionedImages(
    ...     name="garden",
    ...     image_ids=("dog", "fox", "rose"),
    ...     paths=(None,) * 3,
    ...     captions=(("A dog digs.", "A barking dog."), ("A fox digs.",), ("A rose.",)),
    ...     caption_ids=(("dog#0", "dog#1"), ("fox#0",), ("rose#0",)),
    ...     caption_numbers=((0, 1), (0,), (0,)),
    ... )
    >>> words = [[["dog", "dig"], ["bark", "dog"]], [["fox", "dig"]], [["rose"]]]
    >>> vectors = [[1, 0.1], [0.9, 0.2], [0, 1]]
    >>> selections = neighbour_selections(photos, vectors, words, max_overlap=0.5)
    >>> [(t.caption, t.other_image_id) for t in selections]
    [('A barking dog.', 'fox'), ('A fox digs.', 'dog'), ('A rose.', 'fox')]
    """
    if not isinstance(dataset, CaptionedImages):
        raise TypeError(f"dataset must be CaptionedImages, got {type(dataset).__name__}")
    max_overlap = check_real("max_overlap", max_overlap, minimum=0, maximum=1)
    vectors = check_finite(
        "image_vectors", as_real_array("image_vectors", image_vectors, ndim=2)
    )
    if len(vectors) != len(dataset):
        raise ValueError(
            f"image_vectors must have one row per image ({len(dataset)}), got {len(vectors)}"
        )
    sets = _as_sets(words, dataset)
    known = np.flatnonzero(vectors.any(axis=1))
    if len(known) < len(dataset):
        first = np.setdiff1d(np.arange(len(dataset)), known)[0]
        warnings.warn(
            f"{dataset.name}: {len(dataset) - len(known)} images without a vector (left out): "
            f"{dataset.image_ids[first]} first",
            DatasetWarning,
            stacklevel=2,
        )
    triples = []
    for image, neighbour in zip(known, known[_nearest(vectors[known])], strict=True):
        theirs = set().union(*sets[neighbour])
        overlaps = [len(own & theirs) / len(own) if own else np.inf for own in sets[image]]
        least = min(overlaps, default=np.inf)
        if least <= max_overlap:
            place = overlaps.index(least)
            ids = (
                dataset.caption_ids[image][place],
                dataset.image_ids[image],
                dataset.image_ids[neighbour],
            )
            triples.append(SelectionTriple(" ".join(ids), dataset.captions[image][place], *ids))
    if not triples:
        raise ValueError(
            f"dataset must have a caption with an overlap of at most {max_overlap:g} with the "
            f"captions of its image's nearest neighbour, got none in {dataset!r}"
        )
    name = f"neighbours in {dataset.name}, overlap <= {max_overlap:g}"
    return BinarySelections(name, triples)


def _nearest(vectors: Array) -> Indices:
    """Index of the other row with the greatest cosine, the first of equals."""
    if len(vectors) < 2:
        raise ValueError(
            f"image_vectors must have at least 2 rows that are not zero, got {len(vectors)}"
        )
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    nearest = np.empty(len(units), dtype=np.intp)
    with one_blas_thread():
        for start in range(0, len(units), _BLOCK):
            cosines = units[start : start + _BLOCK] @ units.T
            own = np.arange(len(cosines))
            cosines[own, start + own] = -np.inf
            nearest[start : start + _BLOCK] = np.argmax(cosines, axis=1)
    return nearest


def _as_sets(
    words: Sequence[Sequence[Sequence[str]]], dataset: CaptionedImages
) -> list[list[set[str]]]:
    """Words of each caption of each image, checked against the captions."""
    if len(words) != len(dataset):
        raise ValueError(
            f"words must have one entry per image ({len(dataset)}), got {len(words)}"
        )
    for i, image in enumerate(words):
        if len(image) != len(dataset.captions[i]) or isinstance(image, str):
            raise ValueError(
                f"words must have one list per caption of each image, got {image!r:.60} for "
                f"the {len(dataset.captions[i])} captions of {dataset.image_ids[i]!r}"
            )
        if any(isinstance(caption, str) for caption in image):
            raise TypeError(
                f"words must be nested as images, captions, words: words[{i}] holds a string"
            )
    return [[set(caption) for caption in image] for image in words]
