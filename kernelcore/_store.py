"""Files: checked reading, atomic writing, checksums, and tensors in safetensors files."""

from __future__ import annotations

import errno
import gzip
import hashlib
import json
import math
import os
import re
import shutil
import time
import tokenize
import uuid
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np

from kernelcore._check import Array, check_finite

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

_Value = TypeVar("_Value")

# Controls (ESC, CSI, line ends, ...), marks that change the direction of writing, line and
# paragraph separators, and what stands for bytes that are no text.
_CONTROLS = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb\ufeff"
    "\ud800-\udfff]"
)


def printable(text: str | os.PathLike[str], *, keep: str = "") -> str:
    r"""Escape control characters, except those in `keep`, as Python does in a string.

    Examples
    --------
    >>> from kernelcore._store import printable
    >>> print(printable("a dog\x1b[2J\nError: none"))
    a dog\x1b[2J\nError: none
    """

    def escaped(found: re.Match[str]) -> str:
        control = found[0]
        return control if control in keep else control.encode("unicode_escape").decode()

    return _CONTROLS.sub(escaped, os.fspath(text))


def counted(number: int, what: str) -> str:
    """Return a number of things in words.

    Examples
    --------
    >>> from kernelcore._store import counted
    >>> counted(1, "photo"), counted(1200, "photo")
    ('1 photo', '1,200 photos')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


# Errors of decoding changed bytes, or of rebuilding an object from them.
_DAMAGE = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    RecursionError,
    SyntaxError,
    TypeError,
    ValueError,
    gzip.BadGzipFile,
    tokenize.TokenError,
    zlib.error,
)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


@contextmanager
def reading(
    path: str | os.PathLike[str], fault: str = "is damaged or truncated"
) -> Iterator[None]:
    """Turn errors of reading a damaged file into one ValueError.

    Its message is the name of the file, the `fault` and the reason. A ValueError that names
    the file already is left alone. An OSError stays an OSError and names the file too.
    """
    name = os.fspath(path)
    try:
        yield
    except _DAMAGE as error:
        if type(error) is ValueError and name in str(error):
            raise
        raise ValueError(f"{name} {fault}: {_reason(error)}") from error
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = name
        raise


def is_file(path: Path) -> bool:
    """Whether there is a file; False if the name is too long for the system."""
    return _answers(path.is_file)


def is_folder(path: Path) -> bool:
    """Whether there is a folder; False if the name is too long for the system."""
    return _answers(path.is_dir)


def check_is_file(path: Path) -> None:
    """Raise FileNotFoundError if nothing is there, ValueError if it is no regular file."""
    if is_file(path):
        return
    if _answers(path.exists) and not is_folder(path):  # opening a pipe might wait for ever
        raise ValueError(f"{path} must be a regular file, and it is not")
    raise FileNotFoundError(f"no such file: {path}")


def read_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a UTF-8 file without its byte order mark."""
    source = Path(path)
    check_is_file(source)
    with reading(source):
        content = source.read_bytes()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{source} must be UTF-8 text, got byte 0x{content[error.start]:02x} in line {line}"
        ) from None


def lines_of(text: str) -> list[str]:
    """Lines of a text; a carriage return before a line feed is left at the end.

    Only line feeds end a line, or carriage returns where there is no line feed, as old Macs
    wrote: ``str.splitlines`` would also cut sentences at the rarer separators of Unicode.
    """
    return text.split("\n" if "\n" in text else "\r")


def json_value(text: str) -> Any:
    """Return the value of a JSON text; refuse unpaired surrogates, which no file can hold.

    Raises
    ------
    ValueError, RecursionError
        If the text is not JSON, or is nested too deeply.
    """
    value = json.loads(text)
    if _SURROGATE.search(text):
        json.dumps(value, ensure_ascii=False).encode()
    return value


def as_read_back(value: Any) -> Any:
    """Return a value as its JSON is read; ValueError for text that `json_value` refuses."""
    try:
        return json_value(json.dumps(value))
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        raise ValueError(
            f"text to save must have no unpaired surrogate, got {half!r}"
        ) from None


def read_npy(path: str | os.PathLike[str]) -> Array:
    """Return the array of a ``.npy`` file; it takes no more memory than the file."""
    source = Path(path)
    check_is_file(source)
    fault = "must be an array of NumPy, got a damaged file"
    with reading(source, fault), source.open("rb") as file:
        shape, is_fortran, dtype = npy_header(file)
        content = file.read()
        n_bytes = math.prod(shape) * dtype.itemsize
        if len(content) != n_bytes:
            raise ValueError(f"it must hold {n_bytes} bytes of numbers, got {len(content)}")
        array = np.frombuffer(content, dtype)
        return array.reshape(shape, order="F" if is_fortran else "C")


def npy_header(file: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read shape, order (True for Fortran) and dtype in the header of a ``.npy`` file."""
    version = np.lib.format.read_magic(file)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    with warnings.catch_warnings():  # of headers of Python 2, and of old names of types
        warnings.simplefilter("ignore")
        shape, is_fortran, dtype = readers[version](file)
    if dtype.hasobject or min(shape, default=0) < 0:
        raise ValueError(f"it must hold an array of numbers, got {dtype} of shape {shape}")
    return shape, is_fortran, dtype


class Contents(dict[str, Any]):
    """Entries of a file by name; a missing name is an error about the file."""

    def __init__(self, path: str | os.PathLike[str], values: Any) -> None:
        if not isinstance(values, dict):
            raise ValueError(f"it must hold a JSON object, got a {type(values).__name__}")
        super().__init__(values)
        self._path = os.fspath(path)

    def __missing__(self, key: str) -> Any:
        raise ValueError(f"{self._path} is damaged or truncated: it does not tell its {key}")

    def exactly(self, *names: str) -> dict[str, Any]:
        """Return the entries of these names; raise if there are others."""
        others = self.keys() - set(names)
        if others:
            raise ValueError(
                f"{self._path} is damaged or truncated: it must hold "
                f"{', '.join(names) or 'nothing'}, got {min(others)!r:.80} too"
            )
        return {name: self[name] for name in names}


def check_tensor(
    name: str,
    array: Array,
    shape: tuple[int | None, ...],
    dtype: Any = (np.float32, np.float64),
) -> Array:
    """Return an array from a file if it has this shape, None for any length, and this dtype.

    `dtype` is one or several. Floats must be finite.
    """
    allowed = [np.dtype(kind) for kind in (dtype if isinstance(dtype, tuple) else (dtype,))]
    if array.dtype not in allowed:
        raise ValueError(
            f"{name} must be of dtype {' or '.join(map(str, allowed))}, got {array.dtype}"
        )
    if array.ndim != len(shape) or any(
        wanted not in (None, length) for wanted, length in zip(shape, array.shape, strict=True)
    ):
        wanted_shape = ", ".join("any" if n is None else str(n) for n in shape)
        raise ValueError(f"{name} must have shape ({wanted_shape}), got {array.shape}")
    return check_finite(name, array)


def check_mapping(name: str, value: Any) -> Mapping[str, Any]:
    """Return `value` if it is a mapping, as a JSON object is."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} must be a JSON object, got {value!r:.80}")
    return value


def _answers(ask: Callable[[], bool]) -> bool:
    try:
        return ask()
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        return False


def _reason(error: BaseException) -> str:
    if isinstance(error, KeyError):
        return f"it does not hold {error}"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, (TypeError, ValueError)) and str(error):
        return str(error)
    return f"{type(error).__name__}: {error}"


_UNFINISHED = re.compile(r"\.(?P<target>.+)\.[0-9a-f]{32}\.tmp", re.DOTALL)
_PARTS = re.compile(r"[0-9a-f]{32}")
_ABANDONED = 24 * 3600.0  # seconds without a change after which a file has no writer
_NO_SYNC = {errno.EINVAL, errno.EOPNOTSUPP, errno.EBADF}
_NO_LOCKS = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EBADF}


@contextmanager
def replacing(path: str | os.PathLike[str], *, one_of_many: bool = False) -> Iterator[Path]:
    """Yield a temporary path beside `path` that replaces it if the block ends without error.

    The file at `path` is the old or the new one at every instant.

    Parameters
    ----------
    path : path
        The file to write or replace; its folder must exist.
    one_of_many : bool, default False
        True for one of thousands of files in a folder. It is not forced to the disk, so that a
        power cut may leave it damaged. Leftovers stay until `remove_leftovers` is called for
        the folder.

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
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
    try:
        temporary.touch(exist_ok=False)
        yield temporary
        if not one_of_many:
            sync(temporary)
        temporary.replace(target)
        if not one_of_many:
            sync(target.parent)
    except OSError as error:
        raise _naming(error, target, temporary) from error
    finally:
        with suppress(OSError):  # the error of the block is the one to report
            temporary.unlink(missing_ok=True)


def remove_leftovers(folder: Path, name: str | None = None) -> None:
    """Remove unfinished files of killed writers of `name`, or of all files in `folder`.

    A file is a leftover if it was not changed for a day.
    """
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            match = _UNFINISHED.fullmatch(entry.name)
            if match and name in {None, match["target"]}:
                _remove_if_abandoned(Path(entry.path))


def _remove_if_abandoned(path: Path) -> None:
    with suppress(OSError):
        if time.time() - path.lstat().st_mtime < _ABANDONED:
            return
        shutil.rmtree(path) if path.is_dir() else path.unlink()


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


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock a file or folder during a block, where the system has locks.

    The system drops the lock of a process that dies.

    Raises
    ------
    BlockingIOError
        If another process holds the lock, or has just removed what it locked.
    """
    if fcntl is None:  # Windows
        yield
        return
    descriptor = os.open(path, os.O_RDONLY)
    _lock_descriptors.add(descriptor)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
        if not os.path.samestat(os.fstat(descriptor), path.lstat()):
            raise BlockingIOError(errno.EAGAIN, "another process replaced it", os.fspath(path))
        yield
    finally:
        if descriptor in _lock_descriptors:  # else this is a fork
            _lock_descriptors.remove(descriptor)
            os.close(descriptor)


_lock_descriptors: set[int] = set()


def _close_inherited_locks() -> None:
    """Close the locks of the parent in a fork, which would otherwise outlive it."""
    for descriptor in _lock_descriptors:
        os.close(descriptor)
    _lock_descriptors.clear()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_close_inherited_locks)


def write_folder(
    folder: str | os.PathLike[str],
    manifest: str,
    about: Mapping[str, Any],
    write_parts: Callable[[Path], None],
) -> None:
    """Write a folder of several files, so that readers find all of the old or all of the new.

    The files are written into a new folder inside. Then the manifest, a JSON file with their
    checksums and the name of that folder, is replaced. The former files are removed last.

    Parameters
    ----------
    folder : path
        Made if it is missing.
    manifest : str
        Name of the manifest in `folder`.
    about : mapping
        Content of the manifest, which must fit into JSON.
    write_parts : callable
        Writes the files into the folder that it is given.
    """
    home = Path(folder).absolute()
    is_new = not home.exists()
    parts = home / uuid.uuid4().hex
    try:
        make_folder(parts)
        write_parts(parts)
        for place in (*parts.rglob("*"), parts):
            sync(place)
        files = folder_checksums(parts)
        former = _parts_of(home / manifest)
        save_json(home / manifest, {**about, "parts": parts.name, "files": files})
    except OSError as error:
        raise _naming(error, home, parts) from error
    finally:
        if _parts_of(home / manifest) != parts.name:
            shutil.rmtree(parts, ignore_errors=True)
            if is_new:
                with suppress(OSError):
                    home.rmdir()
    for place in home.iterdir():
        if place.name == former:
            shutil.rmtree(place, ignore_errors=True)
        elif _PARTS.fullmatch(place.name) and place != parts:
            _remove_if_abandoned(place)


def read_folder(
    folder: str | os.PathLike[str], manifest: str, load: Callable[[Contents, Path], _Value]
) -> _Value:
    """Return what `load` makes of a manifest and the folder of its files.

    If another process replaces the manifest meanwhile, the new one is read.

    Raises
    ------
    ValueError
        If a file is damaged, and what `load` raises.
    """
    path = Path(folder, manifest)
    while True:
        about = load_json(path)
        with reading(path):
            name, files = about.pop("parts"), check_mapping("files", about.pop("files"))
            if not isinstance(name, str) or not _PARTS.fullmatch(name):
                raise ValueError(f"parts must be 32 hexadecimal digits, got {name!r:.80}")
        try:
            _check_files(path, path.parent / name, files)
            return load(about, path.parent / name)
        except (OSError, ValueError):
            if _parts_of(path) in {None, name}:
                raise


def is_unused(folder: Path) -> bool:
    """Whether a folder is missing or empty but for the files of a writer that was killed."""
    if not folder.exists():
        return True
    return folder.is_dir() and all(
        _PARTS.fullmatch(place.name) or _UNFINISHED.fullmatch(place.name)
        for place in folder.iterdir()
    )


def _parts_of(manifest: Path) -> str | None:
    """Name of the folder of a manifest's files; None if it cannot be read."""
    try:
        name = load_json(manifest)["parts"]
    except (OSError, ValueError):
        return None
    return name if isinstance(name, str) else None


def _naming(error: OSError, target: Path, temporary: Path) -> OSError:
    """Return the error with the name of the target instead of none or a temporary name."""
    if error.errno is None:
        return error
    path = temporary if error.filename is None else Path(os.fsdecode(error.filename))
    if path != temporary and temporary not in path.parents:
        return error
    return OSError(error.errno, error.strerror, os.fspath(target / path.relative_to(temporary)))


_METADATA_KEY, _CHECKSUM_KEY = "kernelcore", "crc32"
_READ_BYTES = 2**20


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

    about = as_read_back({"kind": kind, **(metadata or {})})
    contiguous = {
        name: array.astype(array.dtype.newbyteorder("="), order="C", copy=False)
        for name, array in tensors.items()
    }
    about[_CHECKSUM_KEY] = _checksum_of(about, contiguous)
    # Not `save_file`: it has a temporary file of its own, which would never be removed.
    text = json.dumps(about, sort_keys=True)
    content: bytes = save(contiguous, metadata={_METADATA_KEY: text})
    return content


def file_checksum(path: Path) -> str:
    """Hexadecimal CRC-32 of a whole file."""
    state = 0
    with path.open("rb") as file:
        while part := file.read(_READ_BYTES):
            state = zlib.crc32(part, state)
    return f"{state:08x}"


def save_json(path: str | os.PathLike[str], content: Mapping[str, Any]) -> None:
    """Write a JSON object with its checksum."""
    about = as_read_back(content)
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


def _check_files(manifest: Path, folder: Path, checksums: Mapping[str, Any]) -> None:
    """Raise unless the files in a folder have the checksums that a manifest lists."""
    with reading(manifest):
        if any(Path(name).is_absolute() or ".." in Path(name).parts for name in checksums):
            raise ValueError("files must be in the folder")
    for name, written in checksums.items():
        with reading(folder / name):
            check_is_file(folder / name)
            if file_checksum(folder / name) != written:
                raise ValueError("its checksum is of other content")


def _checksum_of(about: Mapping[str, Any], tensors: Mapping[str, Array]) -> str:
    """Hexadecimal CRC-32, which notices damage at several gigabytes a second."""
    names = sorted(tensors)
    kinds = [f"{name} {tensors[name].dtype.str} {tensors[name].shape}" for name in names]
    state = zlib.crc32(json.dumps([about, *kinds], sort_keys=True).encode())
    for name in names:
        state = zlib.crc32(tensors[name].reshape(-1).view(np.uint8).data, state)
    return f"{state:08x}"


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
