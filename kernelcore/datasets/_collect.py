"""Shared by all readers of corpora: JSON, caption rows, and reports of unusable rows.

`collect` makes `CaptionedImages` of rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore._photos import NamedPhoto, Photos, Source
from kernelcore._store import json_value, printable, read_text, reading
from kernelcore.datasets.records import CaptionedImages, DatasetWarning

_N_NAMED = 3


def parse_json(path: Path) -> Any:
    """Value of a JSON file; a damaged file is an error that names the place."""
    with reading(path, "must be JSON and is damaged or truncated"):
        return json_value(read_text(path))


def field(path: Path, where: str, entry: Any, key: str, *kinds: type) -> Any:
    """Value of `key` in a JSON object; errors name `where` it is missing."""
    value = entry.get(key) if isinstance(entry, dict) else None
    if not isinstance(value, kinds) or isinstance(value, bool):
        names = " or ".join(kind.__name__ for kind in kinds)
        raise ValueError(
            f"{path}: {where} must have {key!r} of type {names}, got {value!r:.80}"
        )
    return value


class CaptionRow(NamedTuple):
    """One caption as the source gives it; None where the source gives no number or id.

    `where` is its place in the source for messages, such as ``line 7``.
    """

    image_id: str
    text: str
    number: int | None = None
    caption_id: str | None = None
    where: str = ""


class OddRows:
    """Rows that cannot be used as given, by the kind of oddity."""

    def __init__(self, source: Path | str) -> None:
        self.source = source
        self._names: dict[str, list[str]] = {}

    def add(self, oddity: str, name: str) -> None:
        """Add a row to an oddity; `name` is its name in the warning."""
        self._names.setdefault(oddity, []).append(printable(name))

    def __str__(self) -> str:
        return "; ".join(
            f"{len(names)} {oddity}: {', '.join(names[:_N_NAMED])}"
            + (f" and {len(names) - _N_NAMED} more" if len(names) > _N_NAMED else "")
            for oddity, names in self._names.items()
        )

    def warn(self, *, depth: int = 1) -> None:
        """Name all odd rows in one warning that points at the caller of the loader.

        `depth` counts the functions of this package from there to here.
        """
        if self._names:
            warnings.warn(f"{self.source}: {self}", DatasetWarning, stacklevel=depth + 2)


def named_in(rows: Iterable[CaptionRow]) -> dict[str, NamedPhoto]:
    """Photos of rows whose image ids are file names."""
    photos: dict[str, NamedPhoto] = {}
    for row in rows:
        photos.setdefault(row.image_id, NamedPhoto(row.image_id, row.where))
    return photos


def collect(
    name: str,
    image_ids: Iterable[str],
    rows: Iterable[CaptionRow],
    photos: Photos | None,
    odd: OddRows,
    *,
    splits: Mapping[str, Iterable[str]] = MappingProxyType({}),
    sources: Mapping[str, Source] = MappingProxyType({}),
    depth: int = 1,
) -> CaptionedImages:
    """Gather the rows by image, in the order of `image_ids`, and look up the splits.

    Rows and names that cannot be used are added to `odd`, which then warns: `depth` counts
    the functions of this package from the user's call to here. Photos in `sources` need no
    file.
    """
    paths, others = ({}, ()) if photos is None else photos
    rows_of: dict[str, dict[int, CaptionRow]] = {image_id: {} for image_id in image_ids}
    absent = set() if photos is None else rows_of.keys() - paths.keys() - sources.keys()
    lost: set[str] = set()
    for row in rows:
        own = rows_of.get(row.image_id, {})
        number = len(own) if row.number is None else row.number
        if row.image_id not in rows_of:
            odd.add("captions of images that are not listed (left out)", _label(row))
        elif not row.text.strip():
            odd.add("empty captions (left out)", _label(row))
        elif row.image_id in absent:
            odd.add("captions of photos that are not there (left out)", _label(row))
            lost.add(row.image_id)
        elif number in own:
            odd.add("captions whose number came before (kept the first)", _label(row))
        else:
            own[number] = row
    captions = {image_id: own for image_id, own in rows_of.items() if own}
    uncaptioned = [name for name, own in rows_of.items() if not own and name not in lost]
    for file in (*uncaptioned, *others):
        odd.add("photos without captions (left out)", file)
    if not captions:
        why = f"; {odd}" if str(odd) else ""
        raise ValueError(f"{odd.source} must hold captions of photos, got none to use{why}")
    dataset = CaptionedImages(
        name=name,
        image_ids=tuple(captions),
        paths=tuple(map(paths.get, captions)),
        captions=tuple(
            tuple(row.text.strip() for row in own.values()) for own in captions.values()
        ),
        caption_ids=tuple(
            tuple(row.caption_id or f"{image_id}#{number}" for number, row in own.items())
            for image_id, own in captions.items()
        ),
        caption_numbers=tuple(tuple(own) for own in captions.values()),
        splits=_look_up(splits, captions, odd),
        sources=tuple(map(sources.get, captions)),
    )
    odd.warn(depth=depth + 1)
    return dataset


def _label(row: CaptionRow) -> str:
    number = "" if row.number is None else f"#{row.number}"
    return row.caption_id or f"{row.image_id}{number}"


def _look_up(
    splits: Mapping[str, Iterable[str]], image_ids: Iterable[str], odd: OddRows
) -> dict[str, npt.NDArray[np.intp]]:
    """Positions of the images of each split: train, dev, test, and then any others."""
    position = {image_id: place for place, image_id in enumerate(image_ids)}
    order = dict.fromkeys(("train", "dev", "test", *splits))
    split_of: dict[str, str] = {}
    result = {}
    for split in filter(splits.__contains__, order):
        names, members = tuple(splits[split]), []
        for name in names:
            if split_of.get(name, split) != split:
                raise ValueError(
                    f"{odd.source}: an image must be in one split only, got {name!r} in "
                    f"{split_of[name]!r} and {split!r}"
                )
            if name in split_of:
                odd.add(f"names repeated in split {split!r} (kept the first)", name)
            elif name not in position:
                odd.add(f"names in split {split!r} that no captioned photo has", name)
            else:
                members.append(position[name])
            split_of[name] = split
        if names and not members:
            raise ValueError(
                f"{odd.source}: split {split!r} must name photos of the collection, got "
                f"{len(names)} names of others, such as {names[0]!r}"
            )
        result[split] = np.array(members, np.intp)
    return result
