"""Photo albums of VIST as documents: five photos and a sentence for each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Literal

from kernelcore._check import check_choice, check_integer
from kernelcore._store import is_folder
from kernelcore.datasets._collect import OddRows, field, parse_json
from kernelcore.datasets.documents import Document, DocumentCollection, documents_of_splits

_FILES = {
    "descriptions": ("dii", "description-in-isolation"),
    "stories": ("sis", "story-in-sequence"),
}


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
    short, ending = _FILES[check_choice("tier", tier, tuple(_FILES))]
    n_photos = check_integer("n_photos", n_photos, minimum=1)
    root = Path(folder)
    home = root / short if is_folder(root / short) else root
    read = partial(_documents, tier == "stories", n_photos)
    return documents_of_splits(f"Story-{short.upper()}", home, f".{ending}.json", read)


def _documents(is_story: bool, n_photos: int, path: Path, odd: OddRows) -> Iterator[Document]:
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
