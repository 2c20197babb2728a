"""Documents of several sentences and several images, and their JSON files."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._check import check_choice, check_integer
from kernelcore._store import is_utf8, replacing
from kernelcore.datasets._collect import parse_json

SPLITS = ("train", "val", "test")

_NO_LINK = -1


@dataclass(frozen=True)
class Document:
    """Sentences and images that occur together.

    Attributes
    ----------
    doc_id : str
        Id of the document in its source. It need not be unique.
    sentences : tuple of str
        Raw text, at least one sentence.
    images : tuple of str
        Image ids, at least one: file names, or other ids of the source.
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
        documents = chain.from_iterable(self.documents.values())
        images = chain.from_iterable(document.images for document in documents)
        return tuple(dict.fromkeys(images))

    def split(self, name: str) -> tuple[Document, ...]:
        """Return the documents of split `name`: ``train``, ``val`` or ``test``."""
        return self.documents[check_choice("split", name, SPLITS)]

    def without_links(self) -> DocumentCollection:
        """Return the collection as training may see it, with all links unknown."""
        documents = {
            split: tuple(document.without_links() for document in members)
            for split, members in self.documents.items()
        }
        return DocumentCollection(self.name, documents)


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


def load_documents(
    path: str | os.PathLike[str], *, name: str | None = None
) -> DocumentCollection:
    r"""Load documents from the JSON form of Hessel et al.

    The file holds ``{"train": [...], "val": [...], "test": [...]}``; each document is
    ``[images, sentences, id]`` with ::

        images     [[image id, position of its sentence], ...]
        sentences  [[text, position of its image], ...]

    A position counts from 0 in the other list. -1 means that there is no link, or that the
    other side names it; ``null`` means that links are unknown. Links have no direction: the
    result has every link that an image or a sentence names.

    Parameters
    ----------
    path : path
        UTF-8 JSON file.
    name : str, optional
        Name of the collection; by default that of the file without its ending.

    Returns
    -------
    DocumentCollection
        Splits that the file lacks are empty. If every position of a document is null, its
        links are None. Ids that are not strings are kept as their JSON text, and a document
        without an id is called after its split and position, as in ``"test-17"``.

    Raises
    ------
    FileNotFoundError
        If the file is not there.
    ValueError
        If it is damaged, truncated or of another form; the error says where.

    See Also
    --------
    save_documents : Writes the form.
    build_documents : Makes documents from captioned pictures.

    References
    ----------
    .. [1] J. Hessel, L. Lee and D. Mimno, "Unsupervised discovery of multimodal links in
       multi-image, multi-sentence documents", EMNLP-IJCNLP 2019.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kernelcore.datasets import load_documents
    >>> text = '''{"test": [[[["dog.jpg", 1], ["tree.jpg", -1]],
    ...                      [["It was May.", -1], ["A dog digs.", -1]], "garden"]]}'''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "year.json"
    ...     _ = file.write_text(text)
    ...     documents = load_documents(file)
    >>> documents
    DocumentCollection('year', 2 images, train 0, val 0, test 1)
    >>> documents.split("test")[0].links
    frozenset({(1, 0)})
    """
    source = Path(path)
    content = parse_json(source)
    if not isinstance(content, dict) or not content or not set(content) <= set(SPLITS):
        found = ", ".join(map(repr, content)) if isinstance(content, dict) else ""
        raise ValueError(
            f"{source} must hold a JSON object of {', '.join(map(repr, SPLITS))}, "
            f"got {found or type(content).__name__}"
        )
    documents = {}
    for split, entries in content.items():
        if not isinstance(entries, list):
            raise ValueError(f"{source}: {split} must be a list of documents, got {entries!r}")
        documents[split] = tuple(
            _read_document(source, split, number, entry) for number, entry in enumerate(entries)
        )
    return DocumentCollection(source.stem if name is None else name, documents)


def save_documents(documents: DocumentCollection, path: str | os.PathLike[str]) -> None:
    """Write documents in the form that `load_documents` reads.

    Parameters
    ----------
    documents : DocumentCollection
    path : path
        File to write, whole or not at all.

    Raises
    ------
    TypeError
        If `documents` is something else.
    FileNotFoundError
        If the folder of the file is not there.
    ValueError
        If the links of a document do not fit into the form, in which every image and every
        sentence names at most one link: n sentences and m images have room for n + m links.
        Or if a text holds surrogates, which no file in UTF-8 can hold.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kernelcore.datasets import (
    ...     Document, DocumentCollection, load_documents, save_documents
    ... )
    >>> garden = Document("garden", ("A dog digs.", "It was May."), ("dog.jpg",), {(0, 0)})
    >>> collection = DocumentCollection("year", {"test": [garden]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_documents(collection, Path(folder) / "year.json")
    ...     load_documents(Path(folder) / "year.json") == collection
    True
    """
    if not isinstance(documents, DocumentCollection):
        raise TypeError(
            f"documents must be a DocumentCollection, got {type(documents).__name__}"
        )
    content = {
        split: [_as_entry(f"{split}[{i}]", document) for i, document in enumerate(members)]
        for split, members in documents.documents.items()
    }
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(content), encoding="utf-8")


def _read_document(path: Path, split: str, number: int, entry: Any) -> Document:
    where = f"{split}[{number}]"
    if not isinstance(entry, list) or len(entry) not in (2, 3):
        raise ValueError(f"{path}: {where} must be [images, sentences, id], got {entry!r:.80}")
    images, sentence_of = _read_part(path, f"{where} images", entry[0])
    sentences, image_of = _read_part(path, f"{where} sentences", entry[1])
    links = {(told, i) for i, told in enumerate(sentence_of) if told not in (None, _NO_LINK)}
    links |= {(i, told) for i, told in enumerate(image_of) if told not in (None, _NO_LINK)}
    unknown = all(told is None for told in (*sentence_of, *image_of))
    doc_id = entry[2] if len(entry) == 3 else None
    if doc_id is None:
        doc_id = f"{split}-{number}"
    elif not isinstance(doc_id, str):
        doc_id = json.dumps(doc_id)
    try:
        return Document(doc_id, sentences, images, None if unknown else frozenset(links))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {where} must be a document: {error}") from None


def _read_part(path: Path, where: str, entries: Any) -> tuple[tuple[str, ...], list[Any]]:
    """Return image ids or sentences, and the positions of their links, not yet checked."""
    if not isinstance(entries, list):
        raise ValueError(f"{path}: {where} must be a list, got {entries!r:.80}")
    for i, entry in enumerate(entries):
        if (
            not isinstance(entry, list)
            or len(entry) != 2
            or not isinstance(entry[0], str)
            or not (entry[1] is None or type(entry[1]) is int)
        ):
            raise ValueError(
                f"{path}: {where}[{i}] must be a string and an integer or null, "
                f"got {entry!r:.80}"
            )
    return tuple(name for name, _ in entries), [told for _, told in entries]


def _as_entry(place: str, document: Document) -> list[Any]:
    texts = {"the id": document.doc_id}
    texts |= {f"images[{i}]": image for i, image in enumerate(document.images)}
    texts |= {f"sentences[{i}]": text for i, text in enumerate(document.sentences)}
    for name, text in texts.items():
        if not is_utf8(text):
            raise ValueError(f"{name} of {place} must be text in UTF-8, got {text!r:.80}")
    blank = None if document.links is None else _NO_LINK
    images = [[image, blank] for image in document.images]
    sentences = [[sentence, blank] for sentence in document.sentences]
    for (sentence, image), teller in _tellers(document).items():
        if teller < len(images):
            images[image][1] = sentence
        else:
            sentences[sentence][1] = image
    return [images, sentences, document.doc_id]


def _tellers(document: Document) -> dict[tuple[int, int], int]:
    """Assign each link to an image that names it, or to a sentence (counted after the images).

    Images name as many as possible, as in the published files.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    links = sorted(document.links or ())
    if not links:
        return {}
    n_images, n_sentences = len(document.images), len(document.sentences)
    columns = [(image, n_images + sentence) for sentence, image in links]
    cells = np.tile([1, 2], len(links)), np.ravel(columns), 2 * np.arange(len(links) + 1)
    costs = csr_array(cells, shape=(len(links), n_images + n_sentences))
    try:
        if len(links) > n_images + n_sentences:
            raise ValueError("more links than images and sentences")
        _, tellers = min_weight_full_bipartite_matching(costs)
    except ValueError:
        raise ValueError(
            "links must fit one to every image and one to every sentence, "
            f"got {len(links)} in document {document.doc_id!r} that do not"
        ) from None
    return dict(zip(links, tellers.tolist(), strict=True))
