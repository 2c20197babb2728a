"""Photos of a collection: files that captions name, bytes, arrays and Pillow images."""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._check import check_choice
from kernelcore._store import is_file, is_folder

if TYPE_CHECKING:
    from PIL.Image import Image


Source: TypeAlias = "bytes | npt.NDArray[np.uint8] | Image"
"""A photo without a file of its own."""

_KINDS = "a path, bytes, an array of uint8 or an image of Pillow"
_DIRECT_MODES = frozenset({"L", "RGB", "RGBA"})  # without a palette

IMAGE_SUFFIXES = {
    ".avif", ".bmp", ".gif", ".heic", ".heif", ".jpeg", ".jpg", ".png", ".tif", ".tiff",
    ".webp",
}  # fmt: skip
Outside: TypeAlias = Literal["refuse", "allow"]
"""Whether a name may lead out of the folder of photos."""
# Absolute, on another drive, or up, on any system.
_LEADS_OUT = re.compile(r"[/\\]|[A-Za-z]:|(?:.*[/\\])?\.\.(?:[/\\]|\Z)", re.DOTALL)
_N_SAMPLES = 50


def leads_out(name: str) -> bool:
    """Whether a name may lead out of the folder of photos, on any system."""
    return _LEADS_OUT.match(name) is not None


def as_photo(name: str, value: Any) -> Any:
    """Return a photo as a ranker takes it, or None for none; `name` is its name in errors.

    A mapping with ``bytes`` or ``path``, as Hugging Face stores images, is one of the two.
    """
    if isinstance(value, Mapping):
        content = value.get("bytes")
        value = value.get("path") if content is None else content
    if is_missing(value):
        return None
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    is_pixels = isinstance(value, np.ndarray) and value.dtype == np.uint8 and value.ndim > 1
    is_file_or_bytes = isinstance(value, (str, os.PathLike, bytes))
    if is_pixels or is_file_or_bytes or _extras.is_pillow(value):
        return value
    kind = f"type {type(value).__name__}"
    if isinstance(value, np.ndarray):
        kind = f"an array of {value.dtype} of shape {value.shape}"
    raise TypeError(f"{name} must have a photo that is {_KINDS}, got {kind}")


def is_missing(value: Any) -> bool:
    """Whether a cell of a table is empty: None, NaN, or a missing value of pandas."""
    is_nan = isinstance(value, float) and math.isnan(value)
    return value is None or is_nan or type(value).__name__ in {"NAType", "NaTType"}


def digest(name: str, photo: Any) -> str:
    """SHA-256 of the bytes of a file, or of the shape and the pixels of a decoded photo."""
    if isinstance(photo, (str, os.PathLike)):
        with Path(photo).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    if not isinstance(photo, bytes):
        pixels = _pixels(name, photo)
        photo = f"pixels {pixels.shape} {pixels.dtype}".encode() + pixels.tobytes()
    return hashlib.sha256(photo).hexdigest()


def _pixels(name: str, photo: Any) -> npt.NDArray[Any]:
    if isinstance(photo, np.ndarray):
        return photo
    try:
        return np.asarray(photo if photo.mode in _DIRECT_MODES else photo.convert("RGBA"))
    except (OSError, SyntaxError, ValueError) as error:  # Pillow reads files when first asked
        raise ValueError(f"{name} must have a photo that can be read: {error}") from None


class Photos(NamedTuple):
    """Files of a folder: those of the images that were asked for, and the rest."""

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
        if outside == "refuse" and leads_out(photo.name):
            raise _outside(source, photo)
    folder = _best_folder(files, root) if images is None else Path(images)
    if folder is None:
        return None
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
    """Whether a name is not hidden, and no by-product of an archive."""
    return not name.startswith(".") and name != "__MACOSX"


def folders_within(root: Path, depth: int) -> list[Path]:
    """`root` and the visible folders down to `depth` below it, the nearest first."""
    level = found = [root]
    for _ in range(depth):
        level = [child for folder in level for child in child_folders(folder)]
        found = found + level
    return found


def _best_folder(files: Mapping[str, NamedPhoto], root: Path) -> Path | None:
    """Folder at, below or beside `root` that holds most of a sample of the files."""
    names = [photo.name for photo in files.values()]
    names = names[:: max(1, len(names) // _N_SAMPLES)]
    for top, start in ((root, 0), (root.resolve().parent, 1)):
        folders = folders_within(top, 2)[start:]
        counts = [sum(is_file(_file_in(folder, name)) for name in names) for folder in folders]
        if any(counts):
            return folders[counts.index(max(counts))]
    return None


def _file_in(folder: Path, name: str) -> Path:
    """Where `folder` would hold the file, which a corpus may list under a folder of its own."""
    nested = folder / name
    return nested if is_folder(nested.parent) else folder / nested.name


def _locate(
    source: Path | str, folder: Path, files: Mapping[str, NamedPhoto], outside: Outside
) -> Photos:
    home = os.path.realpath(folder)
    listings: dict[Path, dict[str, bool]] = {}
    paths = {}
    for image_id, photo in files.items():
        path = _file_in(folder, photo.name)
        if path.parent not in listings:
            listings[path.parent] = _listing(path.parent, home)
        is_outside = listings[path.parent].get(path.name)
        if is_outside and outside == "refuse":
            raise _outside(source, photo)
        if is_outside is not None:
            paths[image_id] = path
    named = set(paths.values())
    others = sorted(
        path.name
        for place, names in listings.items()
        for path in map(place.joinpath, names)
        if path not in named and is_visible(path.name) and path.suffix.lower() in IMAGE_SUFFIXES
    )
    return Photos(paths, tuple(others))


def is_within(path: Path, home: str) -> bool:
    """Whether a path leads to a place below `home` when all links are followed."""
    return Path(os.path.realpath(path)).is_relative_to(home)


def _listing(folder: Path, home: str) -> dict[str, bool]:
    """Name of each file, no pipe or device, and whether it is outside of `home`."""
    is_outside = not is_within(folder, home)
    with os.scandir(folder) as entries:
        return {
            entry.name: is_outside
            or (entry.is_symlink() and not is_within(folder / entry.name, home))
            for entry in entries
            if entry.is_file()
        }
