"""Documents in the JSON form in which collections of them are published."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from kernelcore._files import replacing
from kernelcore.datasets._reading import parse_json
from kernelcore.datasets.documents import SPLITS, Document, DocumentCollection

_NO_LINK = -1


def load_documents(
    path: str | os.PathLike[str], *, name: str | None = None
) -> DocumentCollection:
    r"""Load documents from the JSON form of Hessel et al.

    The file holds ``{"train": [...], "val": [...], "test": [...]}``; each document is
    ``[images, sentences, id]`` with ::

        images     [[image id, position of its sentence], ...]
        sentences  [[text, position of its image], ...]

    A position counts from 0 in the other list; -1 says that there is no link, or that it is
    told on the other side, and ``null`` that links are unknown. Links have no direction: they
    are what the images and the sentences tell together.

    Parameters
    ----------
    path : path
        UTF-8 JSON file.
    name : str, optional
        Name of the collection; by default that of the file without its ending.

    Returns
    -------
    DocumentCollection
        Splits that the file lacks are empty. The links of a document of which every position
        is null are None. Ids that are not strings are kept as their JSON text, and a document
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
        sentence can tell of one link: n sentences and m images have room for n + m links.

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
        split: [_as_entry(document) for document in members]
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


def _as_entry(document: Document) -> list[Any]:
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
    """Return who tells of each link: an image, or a sentence counted on after the images.

    Images tell wherever they can, as in the published files.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    links = sorted(document.links or ())
    if not links:
        return {}
    n_images, n_sentences = len(document.images), len(document.sentences)
    columns = [(image, n_images + sentence) for sentence, image in links]
    costs = csr_array(
        (
            np.tile([1, 2], len(links)),
            np.ravel(columns),
            np.arange(0, 2 * len(links) + 1, 2),
        ),
        shape=(len(links), n_images + n_sentences),
    )
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
