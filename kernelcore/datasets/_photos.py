"""Photos of a collection: files that captions name, bytes, arrays and Pillow images."""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._check import check_choice
from kernelcore._store import is_file, is_folder

if TYPE_CHECKING:
    from PIL.Image import Image


Source: TypeAlias = "bytes | npt.NDArray[np.uint8] | Image | Callable[[], Any]"
"""A photo without a file of its own, or a function without arguments that reads one."""

_KINDS = "a path, bytes, an array of uint8, an image of Pillow or a function"
_DIRECT_MODES = frozenset({"L", "RGB", "RGBA"})  # without a palette
_CHUNK = 1 << 20

UNREAD_SUFFIXES = {".avif", ".heic", ".heif"}
"""Photos that are not read here; messages say how to convert them."""
IMAGE_SUFFIXES = UNREAD_SUFFIXES | {
    ".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"
}  # fmt: skip
Outside: TypeAlias = Literal["refuse", "allow"]
"""Whether a name may lead out of the folder of photos."""
# Absolute, on another drive, or up, on any system.
_LEADS_OUT = re.compile(r"[/\\]|[A-Za-z]:|(?:.*[/\\])?\.\.(?:[/\\]|\Z)", re.DOTALL)
_N_SAMPLES = 50


def leads_out(name: str) -> bool:
    """Whether a name may lead out of the folder of photos, on any system."""
    return _LEADS_OUT.match(name) is not None


class Images(Sequence[Any]):
    """Sequence of photos as a ranker takes them; functions are called at each access.

    Examples
    --------
    >>> from kernelcore.datasets._photos import Images
    >>> images = Images(("a.jpg", None), (None, lambda: b"bytes of a file"))
    >>> list(images)
    ['a.jpg', b'bytes of a file']
    """

    def __init__(self, paths: Sequence[Path | None], sources: Sequence[Source | None]) -> None:
        self._paths, self._sources = paths, sources

    def __len__(self) -> int:
        return len(self._paths)

    @overload
    def __getitem__(self, i: int) -> Any: ...
    @overload
    def __getitem__(self, i: slice) -> Images: ...
    def __getitem__(self, i: int | slice) -> Any:
        if isinstance(i, slice):
            return Images(self._paths[i], self._sources[i])
        source = self._sources[i]
        if source is None:
            return self._paths[i]
        return source() if callable(source) else source


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
    if is_pixels or is_file_or_bytes or _extras.is_pillow(value) or callable(value):
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
    found = hashlib.sha256()
    if isinstance(photo, (str, os.PathLike)):
        with Path(photo).open("rb") as file:
            while chunk := file.read(_CHUNK):
                found.update(chunk)
    elif isinstance(photo, bytes):
        found.update(photo)
    else:
        pixels = _pixels(name, photo)
        found.update(f"pixels {pixels.shape} {pixels.dtype}".encode())
        found.update(np.ascontiguousarray(pixels).data)
    return found.hexdigest()


def _pixels(name: str, photo: Any) -> npt.NDArray[Any]:
    if isinstance(photo, np.ndarray):
        return photo
    try:
        return np.asarray(photo if photo.mode in _DIRECT_MODES else photo.convert("RGBA"))
    except (OSError, SyntaxError, ValueError) as error:  # Pillow reads files when first asked
        raise ValueError(f"{name} must have a photo that can be read: {error}") from None


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
        if outside == "refuse" and leads_out(photo.name):
            raise _outside(source, photo)
    if images is None:
        folder = _best_folder(files, root)
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
    home = root.resolve()
    siblings = (folder for folder in child_folders(home.parent) if folder != home)
    beside = (folder for sibling in siblings for folder in folders_within(sibling, 1))
    for candidates in (folders_within(root, 2), beside):
        folders = {
            folder: sum(is_file(_file_in(folder, name)) for name in names)
            for folder in candidates
        }
        best = max(folders, key=folders.__getitem__, default=root)
        if folders.get(best):
            return best
    return None


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
    strange = {place for place in listings if not is_within(place, home)}
    paths = {}
    for image_id, photo in files.items():
        pure = PurePath(photo.name)
        place = places[str(pure.parent)]
        if pure.name in listings[place]:
            path = place / pure.name
            is_link = listings[place][pure.name]
            if outside == "refuse" and (
                place in strange or (is_link and not is_within(path, home))
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


def is_within(path: Path, home: str) -> bool:
    """Whether a path leads to a place below `home` when all links are followed."""
    return Path(os.path.realpath(path)).is_relative_to(home)


def _listing(folder: Path) -> dict[str, bool]:
    """Name of each file, and whether it is a symbolic link; pipes and devices are no files."""
    with os.scandir(folder) as entries:
        return {entry.name: entry.is_symlink() for entry in entries if entry.is_file()}


def _is_image(name: str) -> bool:
    return is_visible(name) and PurePath(name).suffix.lower() in IMAGE_SUFFIXES


def is_unread(name: str) -> bool:
    """Whether the suffix is that of photos that must be converted before they can be read."""
    return PurePath(name).suffix.lower() in UNREAD_SUFFIXES
