"""Documents of several sentences and several images, and their JSON files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from kernelcore._check import as_list, check_choice, check_integer
from kernelcore._store import check_is_file, is_file
from kernelcore.datasets._collect import OddRows, parse_json

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
    >>> garden
    Document('garden', 2 sentences, 1 images, 1 links)
    """

    doc_id: str
    sentences: tuple[str, ...]
    images: tuple[str, ...]
    links: frozenset[tuple[int, int]] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.doc_id, str):
            raise TypeError(f"doc_id must be a string, got {self.doc_id!r}")
        for name in ("sentences", "images"):
            texts = as_list(name, getattr(self, name), "be a sequence of strings")
            if not texts:
                raise ValueError(f"{name} must hold at least one, got none")
            if not all(isinstance(text, str) for text in texts):
                raise TypeError(f"{name} must hold strings, got {texts!r:.80}")
            object.__setattr__(self, name, tuple(texts))
        if self.links is not None:
            links = as_list("links", self.links, "be a collection of pairs")
            object.__setattr__(self, "links", frozenset(map(self._as_link, links)))

    def __repr__(self) -> str:
        links = "links unknown" if self.links is None else f"{len(self.links)} links"
        return (
            f"Document({self.doc_id!r}, {len(self.sentences)} sentences, "
            f"{len(self.images)} images, {links})"
        )

    def _as_link(self, link: Any) -> tuple[int, int]:
        try:
            sentence, image = link
        except (TypeError, ValueError):
            raise TypeError(
                f"links must be (sentence, image) positions, got {link!r:.80}"
            ) from None
        last = len(self.sentences) - 1, len(self.images) - 1
        return (
            check_integer("sentence of a link", sentence, minimum=0, maximum=last[0]),
            check_integer("image of a link", image, minimum=0, maximum=last[1]),
        )


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
            split: tuple(replace(document, links=None) for document in members)
            for split, members in self.documents.items()
        }
        return DocumentCollection(self.name, documents)


def documents_of_splits(
    name: str, folder: Path, ending: str, read: Callable[[Path, OddRows], Iterable[Document]]
) -> DocumentCollection:
    """Read the files ``train<ending>``, ``val<ending>`` and ``test<ending>`` that are there."""
    paths = {split: folder / f"{split}{ending}" for split in SPLITS}
    odd = OddRows(folder)
    documents = {
        split: tuple(read(path, odd)) for split, path in paths.items() if is_file(path)
    }
    if not documents:
        check_is_file(paths["train"])
    odd.warn(depth=2)
    return DocumentCollection(name, documents)


def load_documents(path: str | os.PathLike[str]) -> DocumentCollection:
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

    Returns
    -------
    DocumentCollection
        Named like the file without its ending. Splits that the file lacks are empty. If every
        position of a document is null, its links are None. Ids that are not strings are kept
        as their JSON text, and a document without an id is called after its split and
        position, as in ``"test-17"``.

    Raises
    ------
    FileNotFoundError
        If the file is not there.
    ValueError
        If it is damaged, truncated or of another form; the error says where.

    See Also
    --------
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
        raise ValueError(
            f"{source} must hold a JSON object of 'train', 'val', 'test', got {content!r:.80}"
        )
    documents = {}
    for split, entries in content.items():
        if not isinstance(entries, list):
            raise ValueError(
                f"{source}: {split} must be a list of documents, got {entries!r:.80}"
            )
        documents[split] = tuple(
            _read_document(source, split, number, entry) for number, entry in enumerate(entries)
        )
    return DocumentCollection(source.stem, documents)


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
        match entry:
            case [str(), None]:
                continue
            case [str(), int(told)] if not isinstance(told, bool):
                continue
        raise ValueError(
            f"{path}: {where}[{i}] must be a string and an integer or null, got {entry!r:.80}"
        )
    return tuple(name for name, _ in entries), [told for _, told in entries]
