"""Collections of pairs of a photo and a caption: `CaptionedImages.from_pairs`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from kernelcore._check import as_list
from kernelcore._store import is_file
from kernelcore.datasets._collect import CaptionRow, OddRows, collect
from kernelcore.datasets._photos import (
    NamedPhoto,
    Outside,
    Photos,
    Source,
    as_photo,
    digest,
    find_photos,
    is_missing,
)
from kernelcore.datasets.records import CaptionedImages

_DIGEST_LENGTH = 16
_NAMES_OF_DEV = frozenset({"val", "valid", "validation"})


def collect_pairs(
    pairs: Any, name: str, images_dir: str | os.PathLike[str] | None, outside: Outside
) -> CaptionedImages:
    """Gather the captions of each photo; warn once about rows that cannot be used."""
    odd = OddRows("pairs")
    files: dict[str, NamedPhoto] = {}
    sources: dict[str, Source] = {}
    image_ids: dict[str, None] = {}
    splits: dict[str, dict[str, None]] = {}
    rows: list[CaptionRow] = []
    for i, pair in enumerate(as_list("pairs", pairs, "be an iterable of pairs")):
        where = f"pairs[{i}]"
        if not isinstance(pair, (tuple, list)) or not 2 <= len(pair) <= 4:
            raise TypeError(
                f"{where} must be (photo, caption), (photo, caption, split) or (photo, "
                f"caption, split, image id), got {_shown(pair)}"
            )
        photo, caption, split, own_id = (*pair, None, None)[:4]
        image_id = _image_id(where, photo := as_photo(where, photo), own_id)
        if image_id is None:
            odd.add("rows without a photo (left out)", where)
            continue
        if image_id not in image_ids:
            image_ids[image_id] = None
            if isinstance(photo, (str, os.PathLike)):
                files[image_id] = NamedPhoto(os.fspath(photo), where)
            else:
                sources[image_id] = photo
        texts = _texts(where, caption)
        rows += [CaptionRow(image_id, text, where=where) for text in texts if text is not None]
        for _ in range(texts.count(None)):
            odd.add("rows without a caption (left out)", where)
        if not is_missing(split):
            splits.setdefault(_split_name(where, split), {})[image_id] = None
    photos: Photos | None
    if images_dir is None:
        paths = {
            image_id: Path(photo.name)
            for image_id, photo in files.items()
            if "\0" not in photo.name and is_file(Path(photo.name))
        }
        photos = Photos(Path(), paths, ())
        absent = files.keys() - paths.keys()
        for row in rows:
            if row.image_id in absent:
                odd.add("captions of photos that are not there (left out)", row.image_id)
        rows = [row for row in rows if row.image_id not in absent]
        image_ids = {name: None for name in image_ids if name not in absent}
    else:
        folder = Path(images_dir)
        photos = find_photos(
            "pairs", files, folder, folder, outside=outside, argument="images_dir"
        )
    return collect(name, image_ids, rows, photos, odd, splits=splits, sources=sources, depth=2)


def _image_id(where: str, photo: Any, own_id: Any) -> str | None:
    """Return the id as given, the path of a file, or the digest of a photo in memory."""
    if photo is None:
        return None
    if not is_missing(own_id):
        return str(own_id)
    if isinstance(photo, (str, os.PathLike)):
        return str(os.fspath(photo))
    if callable(photo):
        raise ValueError(f"{where} must have an image id, as its photo is a function")
    return digest(where, photo)[:_DIGEST_LENGTH]


def _texts(where: str, value: Any) -> list[str | None]:
    """Captions of a pair, None for missing ones."""
    cells = [value] if isinstance(value, str) or is_missing(value) else value
    texts = as_list(f"{where} captions", cells, "be text or a list of texts")
    for text in texts:
        if not isinstance(text, str) and not is_missing(text):
            raise TypeError(f"{where} must have captions that are text, got {_shown(text)}")
    return [None if is_missing(text) else text for text in texts]


def _split_name(where: str, split: Any) -> str:
    if not isinstance(split, str) or not split:
        raise TypeError(f"{where} must have a split that is a name, got {_shown(split)}")
    return "dev" if split in _NAMES_OF_DEV else split


def _shown(value: Any) -> str:
    return " ".join(f"{value!r:.80}".split())
