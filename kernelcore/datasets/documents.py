"""Documents of several sentences and several images, and the files of three such corpora."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

from kernelcore._check import as_list, as_strings, check_choice, check_integer
from kernelcore._store import check_is_file, is_file, is_folder, reading
from kernelcore.datasets._collect import OddRows, field, parse_json

SPLITS = ("train", "val", "test")

_NO_LINK = -1
_VIST_FILES = {
    "descriptions": ("dii", "description-in-isolation"),
    "stories": ("sis", "story-in-sequence"),
}


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
            texts = as_strings(name, getattr(self, name))
            if not texts:
                raise ValueError(f"{name} must hold at least one, got none")
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
    documents: Mapping[str, tuple[Document, ...]]

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


def _documents_of_splits(
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
    with reading(path, f"{where} must be a document"):
        return Document(doc_id, sentences, images, None if unknown else frozenset(links))


def _read_part(path: Path, where: str, entries: Any) -> tuple[tuple[str, ...], list[Any]]:
    """Return image ids or sentences, and the positions of their links, not yet checked."""
    if not isinstance(entries, list):
        raise ValueError(f"{path}: {where} must be a list, got {entries!r:.80}")
    for i, entry in enumerate(entries):
        match entry:
            case [str(), int() | None as told] if not isinstance(told, bool):
                continue
        raise ValueError(
            f"{path}: {where}[{i}] must be a string and an integer or null, got {entry!r:.80}"
        )
    return tuple(name for name, _ in entries), [told for _, told in entries]


def load_recipeqa(folder: str | os.PathLike[str]) -> DocumentCollection:
    r"""Load the recipes of RecipeQA [1]_ from its own files.

    The folder has ``train.json``, ``val.json`` and ``test.json``, or some of them. Each is an
    object with a list ``data`` of questions. A question has the id and the steps of a recipe::

        {"recipe_id": "...", "context": [{"body": "...", "images": ["..."], ...}, ...], ...}

    A document is a recipe. Its sentences are the bodies of the steps, its images those of all
    steps. A step is linked to its own images.

    Parameters
    ----------
    folder : path

    Returns
    -------
    DocumentCollection
        Splits without a file are empty. The id of a document is that of the recipe. The text
        of a step is one sentence, however long it is.

    Warns
    -----
    DatasetWarning
        Recipes without a photo or without text are left out and named.

    Raises
    ------
    FileNotFoundError
        If the folder has none of the files.
    ValueError
        If a file is damaged or of another form; the error says where.

    See Also
    --------
    load_documents : Reads the form of Hessel et al.

    Notes
    -----
    Several questions may be about one recipe, and the steps of some have no photos. Of these
    questions the first one with the most photos is read. A step without text gives no
    sentence; its photos have no link.

    References
    ----------
    .. [1] S. Yagcioglu, A. Erdem, E. Erdem and N. Ikizler-Cinbis, "RecipeQA: a challenge
       dataset for multimodal comprehension of cooking recipes", EMNLP 2018.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kernelcore.datasets import load_recipeqa
    >>> text = '''{"data": [{"recipe_id": "toast", "context": [
    ...     {"body": "Cut the bread.", "images": ["toast_0_0.jpg"]},
    ...     {"body": "Toast it.", "images": []}]}]}'''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "val.json").write_text(text)
    ...     recipes = load_recipeqa(folder)
    >>> recipes.split("val")
    (Document('toast', 2 sentences, 1 images, 1 links),)
    """
    return _documents_of_splits("RecipeQA", Path(folder), ".json", _recipes)


def _recipes(path: Path, odd: OddRows) -> Iterator[Document]:
    recipes: dict[str, list[tuple[str, list[str]]]] = {}
    n_images: dict[str, int] = {}
    questions = field(path, "the file", parse_json(path), "data", list)
    for number, question in enumerate(questions):
        where = f"data[{number}]"
        recipe = field(path, where, question, "recipe_id", str)
        steps = [
            _recipe_step(path, f"{where} context[{i}]", step)
            for i, step in enumerate(field(path, where, question, "context", list))
        ]
        n_shown = sum(len(shown) for _, shown in steps)
        if n_shown > n_images.get(recipe, -1):
            recipes[recipe], n_images[recipe] = steps, n_shown
    for recipe, steps in recipes.items():
        sentences: list[str] = []
        images: list[str] = []
        links: set[tuple[int, int]] = set()
        for text, shown in steps:
            if text:
                links |= {(len(sentences), len(images) + i) for i in range(len(shown))}
                sentences.append(text)
            images += shown
        if sentences and images:
            yield Document(recipe, tuple(sentences), tuple(images), frozenset(links))
        else:
            odd.add("recipes without a photo or without text (left out)", recipe)


def _recipe_step(path: Path, where: str, step: Any) -> tuple[str, list[str]]:
    """Return the text and the images of a step."""
    text = field(path, where, step, "body", str).strip()
    images = field(path, where, step, "images", list)
    for i, image in enumerate(images):
        if not isinstance(image, str):
            raise ValueError(f"{path}: {where} images[{i}] must be a string, got {image!r:.80}")
    return text, images


def load_vist(
    folder: str | os.PathLike[str],
    *,
    tier: Literal["descriptions", "stories"] = "descriptions",
    n_photos: int = 5,
) -> DocumentCollection:
    """Load documents from the annotations of VIST, the corpus of visual storytelling [1]_.

    The folder has a file for each split, or for some: ``train.description-in-isolation.json``
    or ``train.story-in-sequence.json``, in the folder itself or in its folder ``dii`` or
    ``sis``. Each has a list ``annotations``, in which every entry is a list of one object with
    ``album_id``, ``photo_flickr_id``, ``original_text``, the place of the photo in its
    sequence and, for stories, ``story_id``.

    A document is a sequence of photos of one album, with one sentence for each photo.

    Parameters
    ----------
    folder : path
    tier : {"descriptions", "stories"}, default "descriptions"
        Descriptions of photos in isolation (Story-DII of Hessel et al.), or sentences of
        stories (Story-SIS).
    n_photos : int, default 5
        Number of photos of a document.

    Returns
    -------
    DocumentCollection
        Named "Story-DII" or "Story-SIS". Splits without a file are empty. Image ids are those
        of Flickr, links are known. The id of a document is that of its story, or
        ``<album>-<number>`` for descriptions.

    Warns
    -----
    DatasetWarning
        Sequences of another length are left out and named.

    Raises
    ------
    FileNotFoundError
        If there is no file of the tier.
    ValueError
        If a file is damaged or of another form; the error says where.

    See Also
    --------
    build_documents : ``DII-Stress`` has captions of other documents besides.

    Notes
    -----
    Entries of a story belong together wherever they are in the file. Descriptions have no id
    of a sequence: entries follow each other in the order of the photos, and a new sequence
    begins with another album or with a place that is not higher than the one before.

    References
    ----------
    .. [1] T.-H. K. Huang et al., "Visual storytelling", NAACL 2016.

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> from kernelcore.datasets import load_vist
    >>> rows = [[{"album_id": "7", "photo_flickr_id": photo, "original_text": text,
    ...           "photo_order_in_story": place}]
    ...         for place, (photo, text) in enumerate([("11", "A dog."), ("12", "A cat.")])]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "val.description-in-isolation.json"
    ...     _ = file.write_text(json.dumps({"annotations": rows}))
    ...     albums = load_vist(folder, n_photos=2)
    >>> albums.split("val")
    (Document('7-0', 2 sentences, 2 images, 2 links),)
    """
    short, ending = _VIST_FILES[check_choice("tier", tier, tuple(_VIST_FILES))]
    n_photos = check_integer("n_photos", n_photos, minimum=1)
    root = Path(folder)
    home = root / short if is_folder(root / short) else root
    read = partial(_albums, tier == "stories", n_photos)
    return _documents_of_splits(f"Story-{short.upper()}", home, f".{ending}.json", read)


def _albums(is_story: bool, n_photos: int, path: Path, odd: OddRows) -> Iterator[Document]:
    for doc_id, sequence in _sequences(is_story, path).items():
        if len(sequence) != n_photos:
            odd.add(f"sequences that do not have {n_photos} photos (left out)", doc_id)
            continue
        _, photos, texts = zip(*sequence, strict=True)
        yield Document(doc_id, texts, photos, frozenset((i, i) for i in range(n_photos)))


def _sequences(is_story: bool, path: Path) -> dict[str, list[tuple[int, str, str]]]:
    """Place, photo and text of each entry, by the id of its sequence and in order."""
    sequences: dict[str, list[tuple[int, str, str]]] = {}
    counts: dict[str, int] = {}
    last: tuple[str, int] | None = None
    annotations = field(path, "the file", parse_json(path), "annotations", list)
    for number, entries in enumerate(annotations):
        where = f"annotations[{number}]"
        if not isinstance(entries, list) or len(entries) != 1:
            raise ValueError(
                f"{path}: {where} must be a list of one object, got {entries!r:.80}"
            )
        value = partial(field, path, where, entries[0])
        album, photo = (str(value(key, str, int)) for key in ("album_id", "photo_flickr_id"))
        text = value("original_text", str).strip()
        if is_story:
            place = value("worker_arranged_photo_order", int)
            doc_id = str(value("story_id", str, int))
        else:
            place = value("photo_order_in_story", int)
            if last is None or album != last[0] or place <= last[1]:
                counts[album] = counts.get(album, -1) + 1
            doc_id = f"{album}-{counts[album]}"
            last = album, place
        sequences.setdefault(doc_id, []).append((place, photo, text))
    return {doc_id: sorted(own, key=itemgetter(0)) for doc_id, own in sequences.items()}
