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
                f"caption, split, image id), got {pair!r:.80}"
            )
        photo, caption, split, own_id = (*pair, None, None)[:4]
        photo = as_photo(where, photo)
        if photo is None:
            odd.add("rows without a photo (left out)", where)
            continue
        image_id = _image_id(where, photo, own_id)
        if image_id not in image_ids:
            image_ids[image_id] = None
            if isinstance(photo, (str, os.PathLike)):
                files[image_id] = NamedPhoto(os.fspath(photo), where)
            else:
                sources[image_id] = photo
        rows += [
            CaptionRow(image_id, text, where=where) for text in _texts(where, caption, odd)
        ]
        if not is_missing(split):
            if not isinstance(split, str) or not split:
                raise TypeError(f"{where} must have a split that is a name, got {split!r:.80}")
            split = "dev" if split in _NAMES_OF_DEV else split
            splits.setdefault(split, {})[image_id] = None
    photos: Photos | None
    if images_dir is None:
        paths = {image_id: Path(photo.name) for image_id, photo in files.items()}
        photos = Photos({name: path for name, path in paths.items() if is_file(path)}, ())
    else:
        photos = find_photos(
            "pairs", files, Path(images_dir), images_dir, outside=outside, argument="images_dir"
        )
    return collect(name, image_ids, rows, photos, odd, splits=splits, sources=sources, depth=2)


def _image_id(where: str, photo: Any, own_id: Any) -> str:
    """Return the id as given, the path of a file, or the digest of a photo in memory."""
    if not is_missing(own_id):
        return str(own_id)
    if isinstance(photo, (str, os.PathLike)):
        return str(os.fspath(photo))
    return digest(where, photo)[:_DIGEST_LENGTH]


def _texts(where: str, value: Any, odd: OddRows) -> list[str]:
    """Captions of a pair without missing ones."""
    cells = [value] if isinstance(value, str) or is_missing(value) else value
    texts = []
    for text in as_list(f"{where} captions", cells, "be text or a list of texts"):
        if is_missing(text):
            odd.add("rows without a caption (left out)", where)
        elif isinstance(text, str):
            texts.append(text)
        else:
            raise TypeError(f"{where} must have captions that are text, got {text!r:.80}")
    return texts
