"""Facts about the files of photos, by which an index notices changes and near duplicates."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._check import Array
from kernelcore.datasets._photos import is_within
from kernelcore.images.read import DEFAULT_MAX_PIXELS, Photo
from kernelcore.models import PhotoFile
from kernelcore.models.kcca_ranker import products

_WIDTH, _HEIGHT = 9, 8


def photo_file(path: str | os.PathLike[str]) -> PhotoFile:
    """Read the facts about the file of a photo.

    Parameters
    ----------
    path : path

    Returns
    -------
    PhotoFile

    Raises
    ------
    UnreadableImageError
        If the file is no photo that can be read.

    Notes
    -----
    The 64 bits of `look` say where a grey thumbnail of 9 x 8 pixels becomes brighter from one
    pixel to its right neighbour. Copies of another size or compression share almost all.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kernelcore.datasets import make_scenes
    >>> from kernelcore.search import photo_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     make_scenes(1).write(folder)
    ...     photo_file(next(Path(folder, "images").iterdir())).size > 0
    True
    """
    source = Path(path)
    photo = Photo(source, "path", DEFAULT_MAX_PIXELS)
    photo.check_there()
    status = source.stat()  # of before it is read: a later change is then noticed
    digest = hashlib.blake2b(photo.content(), digest_size=16).hexdigest()
    return PhotoFile(status.st_size, status.st_mtime_ns, digest, look_of(photo.pixels()))


def leading_out(path: Path, folder: Path) -> str:
    """Say that links lead a photo out of its folder; the text is empty if they do not."""
    if is_within(path, os.path.realpath(folder)):
        return ""
    return (
        f"{path} leads out of {folder} by a link (to allow that: outside='allow', of commands "
        "--allow-outside)"
    )


def look_of(pixels: npt.NDArray[np.uint8]) -> int:
    """Return 64 bits about the look of a photo, as a signed integer.

    Parameters
    ----------
    pixels : ndarray of uint8, shape (height, width, 3)

    Returns
    -------
    int
    """
    cv2 = _extras.require("cv2")
    grey = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    small: Array = cv2.resize(grey, (_WIDTH, _HEIGHT), interpolation=cv2.INTER_AREA)
    rises = small[:, 1:] > small[:, :-1]
    return int(np.packbits(rises).view(">i8")[0])


def alike(looks: npt.NDArray[np.int64], n_bits: int) -> npt.NDArray[np.intp]:
    """Find the pairs of looks that differ in at most `n_bits` of 64 bits.

    Parameters
    ----------
    looks : ndarray of int64, shape (n_photos,)
    n_bits : int

    Returns
    -------
    ndarray of intp, shape (n_pairs, 2)
        Positions, the first of each pair before the second, sorted.
    """
    bits = np.unpackbits(looks.view(np.uint8).reshape(len(looks), 8), axis=1)
    signs = bits.astype(np.float32) * 2 - 1
    is_alike = products(signs, signs) >= 64 - 2 * n_bits
    # Few are alike: positions in the whole matrix are found faster than rows and columns.
    pairs = np.stack(np.divmod(np.flatnonzero(is_alike), max(1, len(looks))), axis=1)
    ordered: npt.NDArray[np.intp] = pairs[pairs[:, 0] < pairs[:, 1]]
    return ordered
