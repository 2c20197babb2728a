"""An index that follows a folder of photos: new photos are added, missing ones removed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kernelcore._check import check_choice
from kernelcore._photos import Outside, is_within
from kernelcore._store import printable
from kernelcore._threads import (
    Progress,
    check_stopped,
    in_threads,
    one_opencv_thread,
    reporting,
    resolve_n_threads,
)
from kernelcore.images import UnreadableImageError, UnreadableImagesError
from kernelcore.images._describe import OnError
from kernelcore.images.read import DEFAULT_MAX_PIXELS, check_file, naming, pixels_of
from kernelcore.models import PhotoFile, PhotoIndex, PhotoRanker
from kernelcore.models.photo_search import PhotoSearch


class Changes(NamedTuple):
    """What an update of an index has changed.

    Attributes
    ----------
    added : int
        Photos that are new or whose content has changed.
    removed : int
        Photos whose content is not in the folder any more.
    unreadable : tuple of str
        Names of files that cannot be read and are left out, with the reasons.

    Examples
    --------
    >>> from kernelcore.search.update import Changes
    >>> Changes(added=3, removed=0)
    Changes(added=3, removed=0, unreadable=())
    """

    added: int
    removed: int
    unreadable: tuple[str, ...] = ()


def update_index(
    index: PhotoIndex | None,
    model: PhotoSearch,
    folder: str | os.PathLike[str],
    names: Sequence[str],
    *,
    photos_for: Callable[[Sequence[Path]], Any] | None = None,
    on_error: OnError = "raise",
    outside: Outside = "refuse",
    n_threads: int | None = None,
    progress: Progress = False,
    **options: Any,
) -> tuple[PhotoIndex, Changes]:
    """Bring an index up to date with the photos of a folder.

    Photos whose size and time of change are those of the index are not read. Of the others,
    those with the same content keep their vectors and numbers, under whatever name.

    Parameters
    ----------
    index : PhotoIndex or None
        None for a new one.
    model : PhotoRanker or Encoders
        Places the photos.
    folder : path
        Folder of the photos.
    names : sequence of str
        Their paths in the folder.
    photos_for : callable, optional
        Called with the files of new photos; returns what ``model.index`` takes. The default
        are the files.
    on_error : {"raise", "skip"}, default "raise"
        "skip" leaves out photos that cannot be read, whose name is no text in UTF-8, or that
        links lead out of the folder.
    outside : {"refuse", "allow"}, default "refuse"
        "allow" reads photos that symbolic links lead to, wherever they are.
    n_threads : int, optional
        Threads to use; the default is every core this process may run on.
    progress : bool or callable, default False
        True shows bars; a callable is called with the steps done and in all.
    **options
        Other options of ``model.index``.

    Returns
    -------
    index : PhotoIndex
        The same object where nothing has changed.
    changes : Changes

    Raises
    ------
    ValueError
        If the index is another model's, knows nothing about files, or no photo is left.
    UnreadableImagesError
        If photos must be left out and `on_error` is "raise".

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kernelcore.datasets import make_scenes
    >>> from kernelcore.models import Encoders
    >>> from kernelcore.search import update_index
    >>> def sizes(items):
    ...     return [[len(str(item)), 1.0] for item in items]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     make_scenes(2).write(folder)
    ...     photos = Path(folder, "images")
    ...     names = sorted(path.name for path in photos.iterdir())
    ...     update_index(None, Encoders(sizes, sizes, name="sizes"), photos, names)
    (PhotoIndex(2 photos), Changes(added=2, removed=0, unreadable=()))
    """
    check_choice("on_error", on_error, ("raise", "skip"))
    check_choice("outside", outside, ("refuse", "allow"))
    if index is not None and index.model != model.fingerprint:
        raise ValueError("index must be made by the model, and it was made by another one")
    if index is not None and len(index) and index.files is None:
        raise ValueError("index must know the files of its photos, and it does not")
    known = {} if index is None else dict(zip(index.names, index.files or (), strict=True))
    found, failures = _read_files(
        Path(folder), names, known, outside, n_threads=n_threads, progress=progress
    )
    if failures and on_error == "raise":
        raise UnreadableImagesError(failures, len(names))
    unreadable = tuple(failures.values())
    now = _present_names(known, found)
    gone = [name for name in known if name not in now]
    present = {name: found[name] for name in now.values()}
    new = [name for name in found if name not in present]
    if index is not None and not new and present == known:
        return index, Changes(0, 0, unreadable)
    if index is not None:
        index = index.without_photos(gone)
        renamed = [now[name] for name in index.names]
        index = index.with_names(renamed, [found[name] for name in renamed])
    if new:
        files = [Path(folder, name) for name in new]
        photos = files if photos_for is None else photos_for(files)
        run: dict[str, Any] = {"n_threads": n_threads, "progress": progress, **options}
        if isinstance(model, PhotoRanker):
            run["on_error"] = on_error
        placed = model.index(photos, names=new, **run)
        facts = [found[name] for name in placed.names]
        if index is None:
            index = placed.with_names(placed.names, facts)
        else:
            index = index.with_photos(placed.names, placed.projections, files=facts)
    if index is None or not len(index):
        raise ValueError(f"{folder} must hold photos that can be read, and it holds none")
    return index, Changes(len(index) - len(now), len(gone), unreadable)


def _present_names(
    known: Mapping[str, PhotoFile], found: Mapping[str, PhotoFile]
) -> dict[str, str]:
    """Return the name that each known photo has now, by its content; others are missing."""
    now = {n: n for n, own in known.items() if n in found and found[n].digest == own.digest}
    left: dict[str, list[str]] = {}
    for name, file in found.items():
        if name not in now:
            left.setdefault(file.digest, []).append(name)
    for name, file in known.items():
        if name not in now and left.get(file.digest):
            now[name] = left[file.digest].pop(0)
    return now


def _read_files(
    folder: Path,
    names: Sequence[str],
    known: Mapping[str, PhotoFile],
    outside: Outside,
    *,
    n_threads: int | None,
    progress: Progress,
) -> tuple[dict[str, PhotoFile], dict[int, str]]:
    """Read the facts about files that have changed; return reasons of failures by position."""

    def work(name: str) -> PhotoFile | str:
        check_stopped()
        try:
            name.encode()
        except UnicodeEncodeError:
            return f"{printable(folder / name)} must have a name that is text in UTF-8"
        if outside == "refuse" and (reason := leading_out(folder / name, folder)):
            return reason
        try:
            status, own = (folder / name).stat(), known.get(name)
            if own is not None and own[:2] == (status.st_size, status.st_mtime_ns):
                return own
            return photo_file(folder / name)
        except (UnreadableImageError, OSError) as error:
            return str(error)

    with reporting(progress, "look at photos") as report:
        facts = in_threads(
            work, names, resolve_n_threads(n_threads), setting=one_opencv_thread, report=report
        )
    found = {
        name: fact for name, fact in zip(names, facts, strict=True) if not isinstance(fact, str)
    }
    return found, {i: fact for i, fact in enumerate(facts) if isinstance(fact, str)}


def photo_file(path: Path) -> PhotoFile:
    """Read the facts about the file of a photo; UnreadableImageError if it is damaged."""
    with naming(path, "path"):
        check_file(path, DEFAULT_MAX_PIXELS)
        status = path.stat()  # before the content: a later change is then noticed
        content = path.read_bytes()
        pixels_of(content, DEFAULT_MAX_PIXELS)
    digest = hashlib.blake2b(content, digest_size=16).hexdigest()
    return PhotoFile(status.st_size, status.st_mtime_ns, digest)


def leading_out(path: Path, folder: Path) -> str:
    """Return an error message if links lead a photo out of its folder, else an empty text."""
    if is_within(path, os.path.realpath(folder)):
        return ""
    return (
        f"{path} leads out of {folder} by a link (to allow that: outside='allow', of commands "
        "--allow-outside)"
    )
