"""Finding the image files that a caption file speaks of."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Literal, NamedTuple, TypeAlias

from kernelcore._reading import is_file, is_folder
from kernelcore._validation import check_choice

UNREAD_SUFFIXES = {".avif", ".heic", ".heif"}
"""What is a photo all the same, so that a message has to say how to convert it."""

IMAGE_SUFFIXES = UNREAD_SUFFIXES | {
    ".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"
}  # fmt: skip

Outside: TypeAlias = Literal["refuse", "allow"]
"""What to do where a name leads out of the folder of photos."""

# Absolute, on another drive, or up: on any system, wherever the file was written.
_LEADS_OUT = re.compile(r"[/\\]|[A-Za-z]:|(?:.*[/\\])?\.\.(?:[/\\]|\Z)", re.DOTALL)

_N_SAMPLES = 50
_DEPTH_BELOW = 2
_DEPTH_BESIDE = 1


@dataclass(frozen=True)
class Photos:
    """Files of a folder: those of the images that were asked for, and the rest."""

    folder: Path
    paths: Mapping[str, Path]
    others: tuple[str, ...]


class NamedPhoto(NamedTuple):
    """A photo as a file of annotations names it, and the place where it does."""

    name: str
    where: str


def find_photos(
    source: Path | str,
    files: Mapping[str, NamedPhoto],
    root: Path,
    images: str | os.PathLike[str] | None,
    *,
    outside: Outside,
    argument: str = "images",
) -> Photos | None:
    """Locate the image files ``image id -> relative name`` that `source` names.

    `images`, which the user calls `argument`, names the folder. Without it, the folder that
    holds most of a sample of the files is taken: `root`, one below it, or failing that one
    beside it. None if no folder holds any of them. Names that lead out of the folder are an
    error unless `outside` allows them.
    """
    check_choice("outside", outside, ("refuse", "allow"))
    for photo in files.values():
        if outside == "refuse" and _LEADS_OUT.match(photo.name):
            raise _outside(source, photo)
    if images is None:
        folder = _best_folder(_sample(files), root)
        return None if folder is None else _locate(source, folder, files, outside)
    folder = Path(images)
    if not folder.is_dir():
        kind = NotADirectoryError if folder.exists() else FileNotFoundError
        raise kind(f"{argument} must be a folder of photos, got {folder}")
    photos = _locate(source, folder, files, outside)
    if files and not photos.paths:
        raise ValueError(
            f"{argument} must hold the photos that the captions name, such as "
            f"{next(iter(files.values())).name!r}; {folder} holds none of them"
        )
    return photos


def _outside(source: Path | str, photo: NamedPhoto) -> ValueError:
    return ValueError(
        f"{source}: {photo.where} must name a photo within its folder, got {photo.name!r}, "
        "which leads out of it (to allow that: outside='allow', of commands --allow-outside)"
    )


def child_folders(folder: Path) -> list[Path]:
    """Visible folders in `folder`, sorted; none where it may not be read."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.is_dir()]
    except OSError:
        return []
    return [folder / name for name in sorted(names) if is_visible(name)]


def is_visible(name: str) -> bool:
    """Whether a name is the user's and not a system's by-product in an unpacked archive."""
    return not name.startswith(".") and name != "__MACOSX"


def _sample(files: Mapping[str, NamedPhoto]) -> list[str]:
    names = [photo.name for photo in files.values()]
    return names[:: max(1, len(names) // _N_SAMPLES)]


def _best_folder(names: list[str], root: Path) -> Path | None:
    for candidates in (_walk(root, _DEPTH_BELOW), _beside(root)):
        folders = {
            folder: sum(is_file(_file_in(folder, name)) for name in names)
            for folder in candidates
        }
        best = max(folders, key=folders.__getitem__, default=root)
        if folders.get(best):
            return best
    return None


def _walk(root: Path, depth: int) -> Iterator[Path]:
    """`root` and the folders down to `depth` below it, the nearest first."""
    level = [root]
    for _ in range(depth):
        yield from level
        level = [child for folder in level for child in child_folders(folder)]
    yield from level


def _beside(root: Path) -> Iterator[Path]:
    home = root.resolve()
    for sibling in child_folders(home.parent):
        if sibling != home:
            yield from _walk(sibling, _DEPTH_BESIDE)


def _file_in(folder: Path, name: str) -> Path:
    """Where `folder` would hold the file, which a corpus may list under a folder of its own."""
    nested = folder / name
    return nested if is_folder(nested.parent) else folder / nested.name


def _locate(
    source: Path | str, folder: Path, files: Mapping[str, NamedPhoto], outside: Outside
) -> Photos:
    parents = {str(PurePath(photo.name).parent) for photo in files.values()}
    places = {parent: _file_in(folder, f"{parent}/x").parent for parent in parents}
    listings = {place: _listing(place) for place in set(places.values())}
    home = os.path.realpath(folder)
    strange = {place for place in listings if not _is_within(place, home)}
    paths = {}
    for image_id, photo in files.items():
        pure = PurePath(photo.name)
        place = places[str(pure.parent)]
        if pure.name in listings[place]:
            path = place / pure.name
            is_link = listings[place][pure.name]
            if outside == "refuse" and (
                place in strange or (is_link and not _is_within(path, home))
            ):
                raise _outside(source, photo)
            paths[image_id] = path
    named = set(paths.values())
    others = sorted(
        name
        for place, names in listings.items()
        for name in names
        if place / name not in named and _is_image(name)
    )
    return Photos(folder, paths, tuple(others))


def _is_within(path: Path, home: str) -> bool:
    """Whether a path, when all links are followed, leads to what is below `home`."""
    return Path(os.path.realpath(path)).is_relative_to(home)


def _listing(folder: Path) -> dict[str, bool]:
    """Name of each file, and whether it is a symbolic link; pipes and devices are no files."""
    with os.scandir(folder) as entries:
        return {entry.name: entry.is_symlink() for entry in entries if entry.is_file()}


def _is_image(name: str) -> bool:
    return is_visible(name) and PurePath(name).suffix.lower() in IMAGE_SUFFIXES


def is_unread(name: str) -> bool:
    """Whether a name is that of a photo which has to be converted before it can be read."""
    return PurePath(name).suffix.lower() in UNREAD_SUFFIXES
