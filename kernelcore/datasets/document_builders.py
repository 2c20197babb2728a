"""Builds documents from captioned photos."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, cycle

import numpy as np
import numpy.typing as npt

from kernelcore._check import (
    Array,
    as_real_array,
    check_finite,
    check_integer,
    check_real,
    check_rng,
)
from kernelcore.datasets.documents import Document, DocumentCollection
from kernelcore.datasets.records import CaptionedImages

_SEEDS_PER_BLOCK = 256


def build_documents(
    captioned: CaptionedImages,
    *,
    n_pairs: int = 5,
    n_distractor_images: int = 5,
    n_distractor_captions: int = 5,
    documents_per_image: int = 5,
    features: npt.ArrayLike | None = None,
    neighbourhood: float = 0.02,
    rng: np.random.Generator | int | None = None,
) -> DocumentCollection:
    r"""Put captioned pictures together to documents whose true links are known.

    A document has `n_pairs` pictures with one caption each, which are its true links, further
    pictures without a caption and further captions without their picture. By default it has
    10 sentences and 10 images, of whose 100 pairs 5 are true.

    Parameters
    ----------
    captioned : CaptionedImages
        Pictures with the splits ``train``, ``dev`` (or ``val``) and ``test``, or some of
        them. Pictures without captions are left out.
    n_pairs : int, default=5
        Pictures with a caption, at least one.
    n_distractor_images : int, default=5
        Pictures without a caption.
    n_distractor_captions : int, default=5
        Captions of pictures that are not in the document, each of another picture.
    documents_per_image : int, default=5
        How many documents a picture is in. The pictures of a split are shuffled and dealt out
        this many times; a rest that is too small for a document is not used.
    features : array_like of shape (n_images, n_features), optional
        Features of the pictures in the order of `captioned`. With them documents are topical:
        each takes one picture in turn and draws the others from those most similar to it by
        cosine. `documents_per_image` then holds on average. Distractor captions come from
        anywhere in the split all the same.
    neighbourhood : float, default=0.02
        Share of the pictures of a split that count as most similar, in (0, 1], never fewer
        than a document needs. A share makes documents of a small split as topical as those of
        a large one.
    rng : Generator or int, optional
        Source of randomness. The same number gives the same documents.

    Returns
    -------
    DocumentCollection
        With splits ``train``, ``val`` and ``test`` of disjoint pictures. Within a document no
        picture and no picture's caption comes twice, and both sides are shuffled. A picture's
        captions are used in turn, in an order drawn for each. Ids are ``"test-17"`` and so on.

    Raises
    ------
    TypeError
        If an argument is not of its kind.
    ValueError
        If there is no such split, splits share a picture, a split is too small for one
        document, `features` does not fit, or a number is out of range.

    See Also
    --------
    DocumentCollection.without_links : What training may see.
    kernelcore.datasets.random_splits : Makes the splits.

    Notes
    -----
    Settings for collections like those of [1]_, from pictures with features ``X``:

    ============================= ===================================================
    MSCOCO, n = m = 10, 5 %       the default
    Story-DII, n = m = 5, 20 %    ``n_distractor_images=0, n_distractor_captions=0,
                                  features=X``
    DII-Stress, 50 x 5, 2 %       ``n_distractor_images=0, n_distractor_captions=45,
                                  features=X``
    ============================= ===================================================

    There a picture is in 3.5 documents on average. Finding neighbours takes
    O(n_images * n_features) per document, everything else time in the size of the documents.

    References
    ----------
    .. [1] J. Hessel, L. Lee and D. Mimno, "Unsupervised discovery of multimodal links in
       multi-image, multi-sentence documents", EMNLP-IJCNLP 2019, section 4.

    Examples
    --------
    >>> from kernelcore.datasets import build_documents, make_scenes
    >>> documents = build_documents(make_scenes(100, rng=0).dataset, rng=0)
    >>> documents
    DocumentCollection('scenes documents', 100 images, train 30, val 10, test 10)
    >>> documents.split("test")[0]
    Document('test-0', 10 sentences, 10 images, 5 links)
    """
    if not isinstance(captioned, CaptionedImages):
        raise TypeError(f"captioned must be CaptionedImages, got {type(captioned).__name__}")
    n_pairs = check_integer("n_pairs", n_pairs, minimum=1)
    n_images = n_pairs + check_integer("n_distractor_images", n_distractor_images, minimum=0)
    n_captions = check_integer("n_distractor_captions", n_distractor_captions, minimum=0)
    n_deals = check_integer("documents_per_image", documents_per_image, minimum=1)
    share = check_real("neighbourhood", neighbourhood, minimum=0, maximum=1, exclusive=True)
    directions = None if features is None else _as_directions(features, len(captioned))
    generator = check_rng("rng", rng)
    documents = {}
    for split, members in _splits(captioned).items():
        if len(members) < n_images + n_captions:
            raise ValueError(
                f"split {split!r} must have at least {n_images + n_captions} pictures with "
                f"captions for one document, got {len(members)}"
            )
        groups = (
            _dealt(len(members), n_images, n_deals, generator)
            if directions is None
            else _topical(directions[members], n_images, n_deals, share, generator)
        )
        captions = []  # of each picture, all in random order before any comes again
        for i in members.tolist():
            order = generator.permutation(len(captioned.captions[i]))
            captions.append(cycle([captioned.captions[i][j] for j in order.tolist()]))
        built: list[Document] = []
        for group in groups:
            outside = _outside(group, len(members), n_captions, generator)
            images = [captioned.image_ids[members[i]] for i in group]
            sentences = [next(captions[i]) for i in chain(group[:n_pairs], outside)]
            image_order = generator.permutation(len(images))
            sentence_order = generator.permutation(len(sentences))
            image_of, sentence_of = np.argsort(image_order), np.argsort(sentence_order)
            linked = sentence_of[:n_pairs].tolist(), image_of[:n_pairs].tolist()
            built.append(
                Document(
                    f"{split}-{len(built)}",
                    tuple(sentences[i] for i in sentence_order),
                    tuple(images[i] for i in image_order),
                    frozenset(zip(*linked, strict=True)),
                )
            )
        documents[split] = tuple(built)
    return DocumentCollection(f"{captioned.name} documents", documents)


def _splits(captioned: CaptionedImages) -> dict[str, npt.NDArray[np.intp]]:
    """Pictures with captions of each split that there is, under the names of documents."""
    names = [name for name in ("train", "dev", "val", "test") if name in captioned.splits]
    if {"dev", "val"} <= set(names):
        raise ValueError("splits must have one of 'dev' and 'val', got both")
    captioned.split_sets(*names)  # it raises if there is none, or two share a picture
    has_captions = np.array([bool(texts) for texts in captioned.captions], np.bool_)
    splits = {name: captioned.split(name) for name in names}
    return {
        "val" if name == "dev" else name: members[has_captions[members]]
        for name, members in splits.items()
    }


def _dealt(
    n_members: int, size: int, n_deals: int, generator: np.random.Generator
) -> Iterator[npt.NDArray[np.intp]]:
    """Deal groups of `size` members out of shuffled decks, one after the other."""
    for _ in range(n_deals):
        deck = generator.permutation(n_members)
        for start in range(0, n_members - size + 1, size):
            yield deck[start : start + size]


def _topical(
    directions: Array, size: int, n_deals: int, share: float, generator: np.random.Generator
) -> Iterator[npt.NDArray[np.intp]]:
    """Give as many groups as `_dealt`, each a member in turn and some of those near it."""
    n_members = len(directions)
    n_groups = n_deals * (n_members // size)
    decks = chain.from_iterable(
        generator.permutation(n_members).tolist() for _ in range(-(-n_groups // n_members))
    )
    seeds = np.fromiter(decks, np.intp)[:n_groups]
    n_near = min(max(round(share * n_members), size - 1, 1), n_members - 1)
    for start in range(0, n_groups, _SEEDS_PER_BLOCK):
        block = seeds[start : start + _SEEDS_PER_BLOCK]
        similarities = directions[block] @ directions.T
        similarities[np.arange(len(block)), block] = -np.inf
        nearest = np.argpartition(-similarities, n_near - 1, axis=1)[:, :n_near]
        nearest.sort(axis=1)  # the last bits of the similarities have no say in the draw
        for seed, near in zip(block, nearest, strict=True):
            yield np.append(seed, generator.choice(near, size - 1, replace=False))


def _outside(
    group: npt.NDArray[np.intp], n_members: int, size: int, generator: np.random.Generator
) -> npt.NDArray[np.intp]:
    """Draw `size` members that are not in `group`."""
    drawn = generator.choice(n_members - len(group), size, replace=False)
    for member in np.sort(group):  # make room for the members that were not to be drawn
        drawn += drawn >= member
    return drawn


def _as_directions(features: npt.ArrayLike, n_images: int) -> Array:
    """Return features of unit length."""
    matrix = check_finite("features", as_real_array("features", features, ndim=2))
    if len(matrix) != n_images or not matrix.shape[1]:
        raise ValueError(
            f"features must have one row per picture ({n_images}) and a column at least, "
            f"got shape {matrix.shape}"
        )
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    directions: Array = matrix / np.where(lengths > 0, lengths, 1)
    return directions
