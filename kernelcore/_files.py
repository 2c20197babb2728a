"""Atomic writes of files and folders, digests, and tensors in safetensors files.

A file or folder that is replaced is the old or the new one at every instant. While it is
written it has a hidden name beside its target, ``.<target>.<32 hex digits>.tmp``, and its
writer holds a lock on it. The system drops the lock when the writer dies. So the next writer
of the same target can tell leftovers from files that are still being written, and removes
leftovers. On Windows, which locks no folders, leftovers stay.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import json
import os
import re
import shutil
import sys
import uuid
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from kernelcore._locks import held
from kernelcore._reading import (
    Contents,
    check_is_file,
    check_mapping,
    is_inside,
    json_value,
    read_text,
    reading,
)
from kernelcore._validation import Array

_HIDDEN = re.compile(r"\.(?P<target>.+)\.[0-9a-f]{32}\.(?P<end>tmp|old)", re.DOTALL)
_NO_SYNC = {errno.EINVAL, errno.EOPNOTSUPP, errno.EBADF}
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # of Linux


@contextmanager
def replacing(
    path: str | os.PathLike[str], *, one_of_many: bool = False, forced: bool | None = None
) -> Iterator[Path]:
    """Yield a temporary path beside `path` that replaces it if the block ends without error.

    Parameters
    ----------
    path : path
        The file to write or replace; its folder must exist.
    one_of_many : bool, default False
        True for one of thousands of files in a folder. Leftovers stay until
        `remove_leftovers` is called for the folder.
    forced : bool, optional
        Whether the file is forced to the disk. Otherwise a power cut may leave it damaged. By
        default a file is forced unless it is one of many.

    Yields
    ------
    Path
        An empty file to write into.

    Raises
    ------
    OSError
        If anything cannot be written: it names `path`.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"no such folder to write {target.name} into: {target.parent}")
    if not one_of_many:
        remove_leftovers(target.parent, target.name)
    # The files of a folder that `replacing_folder` gave are synced with it.
    wanted = not one_of_many if forced is None else forced
    synced = wanted and _HIDDEN.fullmatch(target.parent.name) is None
    with _temporary(target, lambda new: new.touch(exist_ok=False)) as temporary:
        yield temporary
        if synced:
            sync(temporary)
        temporary.replace(target)
        if synced:
            sync(target.parent)


@contextmanager
def replacing_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary folder beside `path` that replaces it if the block ends without error.

    Where the system can exchange two names at once (Linux, most file systems), `path` has
    the old folder or the new one at every instant. Elsewhere a writer that dies between two
    renames leaves `path` without a folder until `recover_folder` is called.
    """
    target = Path(path).absolute()
    make_folder(target.parent)
    recover_folder(target)
    remove_leftovers(target.parent, target.name)
    with _temporary(target, Path.mkdir) as temporary:
        yield temporary
        for folder, _, files in os.walk(temporary):
            for place in (*(Path(folder, file) for file in files), Path(folder)):
                sync(place)
        if not os.path.lexists(target):
            temporary.rename(target)
        elif not _exchange(temporary, target):
            _exchange_in_steps(temporary, target)
        sync(target.parent)


def recover_folder(path: str | os.PathLike[str]) -> None:
    """Restore the name of a folder whose writer died between two renames."""
    target = Path(path).absolute()
    if os.path.lexists(target):
        return
    for former in _hidden(target.parent, target.name, "old"):
        with suppress(OSError), held(former, wait=True):
            if not os.path.lexists(target):
                former.rename(target)
                sync(target.parent)


def create_once(path: Path, content: bytes) -> bool:
    """Write a file unless there is one; return whether this call has written it.

    Of several writers one succeeds, and readers find the whole file or none.
    """
    make_folder(path.parent)
    with _temporary(path, lambda new: new.touch(exist_ok=False)) as temporary:
        temporary.write_bytes(content)
        sync(temporary)
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
        sync(path.parent)
        return True


def remove_leftovers(folder: Path, name: str | None = None) -> None:
    """Remove leftovers of dead writers of the file or folder `name`, or of all in `folder`."""
    for place in _hidden(folder, name, "tmp", "old"):
        match = _HIDDEN.fullmatch(place.name)
        named = folder / match["target"] if match else place
        if place.suffix == ".tmp" or os.path.lexists(named):  # else it is the only copy
            with suppress(OSError), held(place):
                _remove(place)


def make_folder(path: Path) -> None:
    """Make a folder and its parents, and force them to the disk."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        sync(path.parent)


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    if os.name == "nt" and path.is_dir():  # Windows opens no folders
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise OSError(error.errno, error.strerror, os.fspath(path)) from None
    finally:
        os.close(descriptor)


def _named(error: OSError, target: Path, temporary: Path) -> OSError:
    """Return the error with the name of the target instead of none or a hidden name."""
    if error.errno is None:
        return error
    path = temporary if error.filename is None else Path(os.fsdecode(error.filename))
    if path != temporary and temporary not in path.parents:
        return error
    return OSError(error.errno, error.strerror, os.fspath(target / path.relative_to(temporary)))


@contextmanager
def _temporary(target: Path, make: Callable[[Path], None]) -> Iterator[Path]:
    """Yield a new path with a hidden name that is locked during the block."""
    with ExitStack() as stack:
        temporary = target
        is_held = False
        try:
            while not is_held:
                temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
                stack.callback(_try_to_remove, temporary)
                make(temporary)
                # or else another writer took it for a leftover, and removed it
                with suppress(FileNotFoundError, BlockingIOError):
                    stack.enter_context(held(temporary, without_locks=True))
                    is_held = True
            yield temporary
        except OSError as error:
            raise _named(error, target, temporary) from error


def _hidden(folder: Path, name: str | None, *ends: str) -> list[Path]:
    """List hidden paths of the target `name`, the latest first."""
    found = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("." if name is None else f".{name}."):
                match = _HIDDEN.fullmatch(entry.name)
                if match and name in {None, match["target"]} and match["end"] in ends:
                    changed = entry.stat(follow_symlinks=False).st_mtime_ns
                    found.append((changed, Path(entry.path)))
    return [path for _, path in sorted(found, reverse=True)]


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _try_to_remove(path: Path) -> None:
    with suppress(OSError):  # what led here is the error to tell; the next writer removes it
        _remove(path)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two names in one step, where the system can."""
    if not sys.platform.startswith("linux"):
        return False
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        return False
    paths = (os.fsencode(one), os.fsencode(other))
    if renameat2(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in {errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP}:
        return False
    raise OSError(number, os.strerror(number), os.fspath(other))


def _exchange_in_steps(temporary: Path, target: Path) -> None:
    """Exchange two names by three renames, under a lock."""
    former = temporary.with_suffix(".old")
    with held(target, wait=True, without_locks=True):
        try:
            target.rename(former)
            temporary.rename(target)
        finally:
            if not os.path.lexists(target):  # stopped between the two
                former.rename(target)
        try:
            sync(target.parent)  # or a power cut could keep the next rename and lose the last
            former.rename(temporary)  # a half removed folder must not be taken for a whole one
        except OSError:
            _try_to_remove(former)


__all__ = [
    "cached_value",
    "check_files",
    "checksum",
    "digest",
    "folder_checksums",
    "load_json",
    "load_tensors",
    "replacing",
    "replacing_folder",
    "save_json",
    "save_tensors",
]

_METADATA_KEY, _CHECKSUM_KEY = "kernelcore", "crc32"
_READ_BYTES = 2**20
_Value = TypeVar("_Value")


def digest(*parts: bytes | memoryview) -> str:
    """Hexadecimal BLAKE2b digest of `parts`; it depends on the boundaries between them."""
    state = hashlib.blake2b(digest_size=20)
    for part in parts:
        state.update(len(part).to_bytes(8, "little"))
        state.update(part)
    return state.hexdigest()


def save_tensors(
    path: str | os.PathLike[str],
    kind: str,
    tensors: Mapping[str, Array],
    metadata: Mapping[str, Any] | None = None,
    *,
    one_of_many: bool = False,
) -> None:
    """Write arrays and JSON `metadata` as one safetensors file of this `kind`.

    `one_of_many` is that of `replacing`.
    """
    content = tensor_bytes(kind, tensors, metadata)
    with replacing(path, one_of_many=one_of_many) as temporary:
        temporary.write_bytes(content)


def tensor_bytes(
    kind: str, tensors: Mapping[str, Array], metadata: Mapping[str, Any] | None = None
) -> bytes:
    """Return the content of the file that `save_tensors` writes."""
    from safetensors.numpy import save

    about = json.loads(json.dumps({"kind": kind, **(metadata or {})}))  # as it is read back
    contiguous = {name: _plain(array) for name, array in tensors.items()}
    about[_CHECKSUM_KEY] = _checksum_of(about, contiguous)
    # Not `save_file`: it has a temporary file of its own, which would never be removed.
    text = json.dumps(about, sort_keys=True)
    content: bytes = save(contiguous, metadata={_METADATA_KEY: text})
    return content


def cached_value(
    path: Path,
    make: Callable[[], _Value],
    save: Callable[[_Value, Path], None],
    load: Callable[[Path], _Value],
) -> _Value:
    """Return the value that `load` reads from a file, or else `make` and `save` it.

    `load` must raise an error if the file is missing or damaged, even by one bit, as
    `load_tensors` does.
    """
    try:
        return load(path)
    except (OSError, ValueError, TypeError, KeyError):  # missing, damaged or lacks a part
        pass
    value = make()
    save(value, path)
    return value


def _plain(array: Array) -> Array:
    """C-contiguous and in this machine's byte order, a copy where it is not."""
    return array.astype(array.dtype.newbyteorder("="), order="C", copy=False)


def checksum(*parts: bytes | memoryview) -> str:
    """Hexadecimal CRC-32 of `parts`, to notice damage at several gigabytes a second."""
    state = 0
    for part in parts:
        state = zlib.crc32(part, state)
    return f"{state:08x}"


def file_checksum(path: Path) -> str:
    """Return the `checksum` of a whole file."""
    state = 0
    with path.open("rb") as file:
        while part := file.read(_READ_BYTES):
            state = zlib.crc32(part, state)
    return f"{state:08x}"


def save_json(path: str | os.PathLike[str], content: Mapping[str, Any]) -> None:
    """Write a JSON object with its checksum."""
    about = json.loads(json.dumps(content))  # as it is read back
    about[_CHECKSUM_KEY] = _checksum_of(about, {})
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def load_json(path: str | os.PathLike[str]) -> Contents:
    """Read a file of `save_json`; its checksum must be that of the content."""
    with reading(path):
        content = Contents(path, json_value(read_text(path)))
        if content.pop(_CHECKSUM_KEY, None) != _checksum_of(content, {}):
            raise ValueError("its checksum is of other content")
        return content


def folder_checksums(folder: Path) -> dict[str, str]:
    """Return the checksums of all files of a folder, by their paths in it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): file_checksum(path) for path in files}


def check_files(manifest: Path, checksums: Any) -> None:
    """Raise unless the files beside a manifest have the checksums that it lists."""
    with reading(manifest):
        expected = check_mapping("files", checksums)
        if not all(map(is_inside, expected)):
            raise ValueError("files must be in the folder")
    for name, written in expected.items():
        path = manifest.parent / name
        with reading(path):
            check_is_file(path)
            if file_checksum(path) != written:
                raise ValueError("its checksum is of other content")


def _checksum_of(about: Mapping[str, Any], tensors: Mapping[str, Array]) -> str:
    names = sorted(tensors)
    kinds = [f"{name} {tensors[name].dtype.str} {tensors[name].shape}" for name in names]
    return checksum(
        json.dumps([about, *kinds], sort_keys=True).encode(),
        *(tensors[name].reshape(-1).view(np.uint8).data for name in names),
    )


def load_tensors(path: str | os.PathLike[str], kind: str | None) -> tuple[Contents, Contents]:
    """Read the arrays and metadata of a file that `save_tensors` wrote for the same `kind`.

    None stands for any kind. Arrays take no more memory than the file is long: their shapes
    are checked against it. The checksum must be that of the content.
    """
    name = os.fspath(path)
    check_is_file(Path(path))
    metadata, tensors = _contents(path)
    if metadata.pop(_CHECKSUM_KEY, None) != _checksum_of(metadata, tensors):
        raise ValueError(f"{name} is damaged: its checksum is of other content")
    if metadata.pop("kind", None) != kind and kind is not None:
        raise ValueError(f"{name} must hold {kind}, and it does not say so")
    return tensors, metadata


def _contents(path: str | os.PathLike[str]) -> tuple[Contents, Contents]:
    """Read the metadata and the arrays of a file."""
    from safetensors import SafetensorError, safe_open

    with reading(path):
        try:
            with safe_open(os.fspath(path), framework="numpy") as file:
                text = (file.metadata() or {}).get(_METADATA_KEY, "{}")
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except SafetensorError as error:
            raise ValueError(error) from error
        for name, array in tensors.items():
            if array.dtype.kind not in "biuf":  # NumPy takes bfloat16 where a package adds it
                raise ValueError(f"{name} must hold numbers of NumPy, got {array.dtype}")
        return Contents(path, json_value(text)), Contents(path, tensors)
