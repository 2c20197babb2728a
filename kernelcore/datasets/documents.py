"""Documents of several sentences and several images, and their published JSON form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._validation import check_choice, check_integer

SPLITS = ("train", "val", "test")


@dataclass(frozen=True)
class Document:
    """Sentences and images that occur together.

    Attributes
    ----------
    doc_id : str
        What the source calls the document. Not every source has names that are unique.
    sentences : tuple of str
        Raw text, at least one sentence.
    images : tuple of str
        Image ids, at least one: file names or whatever else the source uses.
    links : frozenset of (int, int) or None
        True links as (sentence, image) positions; None where they are unknown. An empty set
        says that there are none. Sentences and images may have any number of links.

    Raises
    ------
    TypeError
        If a part is not of its kind.
    ValueError
        If the document has no sentence or no image, or a link leads out of it.

    See Also
    --------
    DocumentCollection : Documents by split.

    Examples
    --------
    >>> from kernelcore.datasets import Document
    >>> garden = Document("garden", ("A dog digs.", "It was May."), ("dog.jpg",), {(0, 0)})
    >>> garden.link_matrix()
    array([[ True],
           [False]])
    >>> garden.without_links().links is None
    True
    """

    doc_id: str
    sentences: tuple[str, ...]
    images: tuple[str, ...]
    links: frozenset[tuple[int, int]] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.doc_id, str):
            raise TypeError(f"doc_id must be a string, got {self.doc_id!r}")
        for name in ("sentences", "images"):
            object.__setattr__(self, name, _as_strings(name, getattr(self, name)))
        if self.links is not None:
            object.__setattr__(self, "links", self._as_links(self.links))

    def __repr__(self) -> str:
        links = "links unknown" if self.links is None else f"{len(self.links)} links"
        return (
            f"Document({self.doc_id!r}, {len(self.sentences)} sentences, "
            f"{len(self.images)} images, {links})"
        )

    def link_matrix(self) -> npt.NDArray[np.bool_]:
        """Return the true links as a matrix.

        Returns
        -------
        ndarray of bool, shape (n_sentences, n_images)

        Raises
        ------
        ValueError
            If the links are unknown.
        """
        if self.links is None:
            raise ValueError(f"links must be known, got None for document {self.doc_id!r}")
        matrix = np.zeros((len(self.sentences), len(self.images)), np.bool_)
        for sentence, image in self.links:
            matrix[sentence, image] = True
        return matrix

    def without_links(self) -> Document:
        """Return the document as training may see it, with its links unknown."""
        return replace(self, links=None)

    def _as_links(self, links: Any) -> frozenset[tuple[int, int]]:
        bounds = {"sentence": len(self.sentences), "image": len(self.images)}
        if not isinstance(links, Iterable):
            raise TypeError(f"links must be a collection of pairs, got {links!r}")
        checked = set()
        for link in links:
            if not isinstance(link, Iterable) or len(pair := tuple(link)) != 2:
                raise TypeError(f"links must be (sentence, image) positions, got {link!r}")
            for position, (part, length) in zip(pair, bounds.items(), strict=True):
                number = check_integer(f"{part} of a link", position)
                if not 0 <= number < length:
                    raise ValueError(
                        f"{part} of a link must lie in [0, {length}), got {number} "
                        f"in document {self.doc_id!r}"
                    )
            checked.add((int(pair[0]), int(pair[1])))
        return frozenset(checked)


@dataclass(frozen=True, repr=False)
class DocumentCollection:
    """Documents by split.

    Attributes
    ----------
    name : str
        Name of the collection, as results will quote it.
    documents : mapping of str to tuple of Document
        Documents of the splits ``train``, ``val`` and ``test``; a split that is left out is
        empty.

    Raises
    ------
    TypeError
        If a split holds something else than documents.
    ValueError
        If a split has another name.

    See Also
    --------
    load_documents : Reads one of these.
    build_documents : Makes one from captioned pictures.

    Examples
    --------
    >>> from kernelcore.datasets import Document, DocumentCollection
    >>> garden = Document("garden", ("A dog digs.", "It was May."), ("dog.jpg",), {(0, 0)})
    >>> collection = DocumentCollection("year", {"test": [garden]})
    >>> collection
    DocumentCollection('year', 1 images, train 0, val 0, test 1)
    >>> collection.split("test")
    (Document('garden', 2 sentences, 1 images, 1 links),)
    >>> collection.without_links().split("test")
    (Document('garden', 2 sentences, 1 images, links unknown),)
    """

    name: str
    documents: Mapping[str, tuple[Document, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise TypeError(f"name must be a string, got {self.name!r}")
        for split, members in self.documents.items():
            check_choice("split", split, SPLITS)
            for member in members:
                if not isinstance(member, Document):
                    raise TypeError(f"split {split!r} must hold documents, got {member!r}")
        documents = {split: tuple(self.documents.get(split, ())) for split in SPLITS}
        object.__setattr__(self, "documents", documents)

    def __len__(self) -> int:
        return sum(map(len, self.documents.values()))

    def __repr__(self) -> str:
        parts = [repr(self.name), f"{len(self.image_ids)} images"]
        parts += [f"{split} {len(members)}" for split, members in self.documents.items()]
        return f"DocumentCollection({', '.join(parts)})"

    @property
    def image_ids(self) -> tuple[str, ...]:
        """Every image once, in the order of first use."""
        return tuple(
            dict.fromkeys(
                image
                for members in self.documents.values()
                for document in members
                for image in document.images
            )
        )

    def split(self, name: str) -> tuple[Document, ...]:
        """Return the documents of split `name`: ``train``, ``val`` or ``test``."""
        return self.documents[check_choice("split", name, SPLITS)]

    def without_links(self) -> DocumentCollection:
        """Return the collection as training may see it, with all links unknown."""
        return DocumentCollection(
            self.name,
            {
                split: tuple(document.without_links() for document in members)
                for split, members in self.documents.items()
            },
        )


def _as_strings(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(f"{name} must be a sequence of strings, got {value!r}")
    strings = tuple(value)
    for entry in strings:
        if not isinstance(entry, str):
            raise TypeError(f"{name} must hold strings, got {entry!r}")
    if not strings:
        raise ValueError(f"{name} must hold at least one, got none")
    return strings
