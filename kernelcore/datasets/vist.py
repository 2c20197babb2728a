"""Photo albums of VIST as documents: five photos and a sentence for each."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple

from kernelcore._check import check_choice, check_integer
from kernelcore._store import check_is_file, is_file
from kernelcore.datasets._collect import OddRows, field, parse_json
from kernelcore.datasets.documents import SPLITS, Document, DocumentCollection


class _Tier(NamedTuple):
    """How a tier of the corpus is published."""

    folder: str
    file: str
    place: str  # of a photo in its sequence
    has_stories: bool


_TIERS: Mapping[str, _Tier] = {
    "descriptions": _Tier("dii", "description-in-isolation", "photo_order_in_story", False),
    "stories": _Tier("sis", "story-in-sequence", "worker_arranged_photo_order", True),
}


class _Row(NamedTuple):
    """A sentence about a photo."""

    album: str
    story: str | None
    place: int
    photo: str
    text: str

    def begins_after(self, last: _Row) -> bool:
        """Whether this row begins another sequence than that of the row before it."""
        if self.story is not None or last.story is not None:
            return self.story != last.story
        return self.album != last.album or self.place <= last.place


def load_vist(
    folder: str | os.PathLike[str],
    *,
    tier: Literal["descriptions", "stories"] = "descriptions",
    n_photos: int = 5,
    name: str | None = None,
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
    name : str, optional
        Name of the collection; by default "Story-DII" or "Story-SIS".

    Returns
    -------
    DocumentCollection
        Splits without a file are empty. Image ids are those of Flickr, links are known. The id
        of a document is that of its story, or ``<album>-<number>`` for descriptions.

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
    own = _TIERS[check_choice("tier", tier, tuple(_TIERS))]
    n_photos = check_integer("n_photos", n_photos, minimum=1)
    root = Path(folder)
    names = [f"{split}.{own.file}.json" for split in SPLITS]
    found = {
        split: path
        for split, file in zip(SPLITS, names, strict=True)
        for path in (root / own.folder / file, root / file)  # the latter wins
        if is_file(path)
    }
    if not found:
        check_is_file(root / names[0])
    odd = OddRows(root)
    documents = {}
    for split, path in found.items():
        documents[split] = tuple(_documents(_rows(path, own), n_photos, odd))
    odd.warn()
    return DocumentCollection(name or f"Story-{own.folder.upper()}", documents)


def _rows(path: Path, tier: _Tier) -> list[_Row]:
    """Read the rows of a file, those of a story together and in order."""
    rows = []
    for number, entries in enumerate(
        field(path, "the file", parse_json(path), "annotations", list)
    ):
        where = f"annotations[{number}]"
        if not isinstance(entries, list) or len(entries) != 1:
            raise ValueError(
                f"{path}: {where} must be a list of one object, got {entries!r:.80}"
            )
        keys = ["album_id", "photo_flickr_id", *["story_id"] * tier.has_stories]
        album, photo, *story = (
            str(field(path, where, entries[0], key, str, int)) for key in keys
        )
        place = field(path, where, entries[0], tier.place, int)
        text = field(path, where, entries[0], "original_text", str).strip()
        rows.append(_Row(album, story[0] if story else None, place, photo, text))
    if tier.has_stories:
        stories = {row.story: i for i, row in reversed(list(enumerate(rows)))}
        rows.sort(key=lambda row: (stories[row.story], row.place))
    return rows


def _documents(rows: list[_Row], n_photos: int, odd: OddRows) -> Iterator[Document]:
    begins = [i for i, (last, row) in enumerate(pairwise(rows), 1) if row.begins_after(last)]
    bounds = [0, *begins, len(rows)] if rows else []
    counts: dict[str, int] = {}
    for start, stop in pairwise(bounds):
        own = rows[start:stop]
        album = own[0].album
        number = counts[album] = counts.get(album, -1) + 1
        doc_id = own[0].story or f"{album}-{number}"
        if len(own) != n_photos:
            odd.add(f"sequences that do not have {n_photos} photos (left out)", doc_id)
            continue
        yield Document(
            doc_id,
            tuple(row.text for row in own),
            tuple(row.photo for row in own),
            frozenset((i, i) for i in range(n_photos)),
        )
