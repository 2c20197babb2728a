"""The model of a command: one of `train`, or a pair of encoders."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from kernelcore._extras import named_function
from kernelcore._store import is_unused, read_npy
from kernelcore.cli.common import MODEL, given_as, list_photos, on_terminal
from kernelcore.cli.features import (
    name_in,
    photos_for,
    single_photos_for,
    single_vectors,
    vectors_in,
)
from kernelcore.models import Encoders, PhotoIndex, PhotoRanker
from kernelcore.models.photo_index import check_index_folder
from kernelcore.models.photo_inputs import as_vectors
from kernelcore.models.photo_search import PhotoSearch
from kernelcore.search import Changes, update_index

Model = Annotated[Path | None, typer.Option(help=MODEL, show_default=False)]
CaptionEncoder = Annotated[
    str | None,
    typer.Option(
        help="In place of --model: a function MODULE:FUNCTION that turns a list of sentences "
        "into vectors, such as that of CLIP. The folder of the command is searched for it.",
        show_default=False,
    ),
]
ImageEncoder = Annotated[
    str | None,
    typer.Option(
        help="The function for photos beside it; it gets a list of paths.", show_default=False
    ),
]
ForeignVectors = Annotated[
    Path | None,
    typer.Option(
        help="A .npy file of vectors of other photos: by them the encoders are calibrated.",
        show_default=False,
    ),
]


def load_model(
    model: Path | None,
    caption_encoder: str | None,
    image_encoder: str | None,
    foreign_vectors: Path | None,
) -> PhotoSearch:
    """Return the model that the options name."""
    if (model is None) == (caption_encoder is None):
        raise typer.BadParameter("either --model or --caption-encoder must say what ranks")
    if model is not None:
        for option, value in (
            ("--image-encoder", image_encoder),
            ("--foreign-vectors", foreign_vectors),
        ):
            if value is not None:
                raise typer.BadParameter(f"{option} must be left out beside --model")
        with given_as("--model"):
            return PhotoRanker.load(model)
    if "" not in sys.path:
        sys.path.append("")  # modules of the folder are found, and hide no others
    foreign = None
    if foreign_vectors is not None:
        with given_as("--foreign-vectors"):
            foreign = as_vectors(str(foreign_vectors), read_npy(foreign_vectors))
    functions = [
        _function(option, name)
        for option, name in (
            ("--caption-encoder", caption_encoder),
            ("--image-encoder", image_encoder),
        )
    ]
    # An index is searched without the encoder of images, so this one is not in the name.
    return Encoders(functions[0], functions[1], name=caption_encoder, foreign_images=foreign)


def _function(option: str, name: str | None) -> Any:
    """Import the function that an option names."""
    if name is None:
        return None
    module, colon, function = name.partition(":")
    if not colon:
        raise typer.BadParameter(f"{option} must be MODULE:FUNCTION, got {name!r}")
    return named_function(option, module, function)


def photos_of(
    model: PhotoSearch, vectors: Path | None, folder: Path, files: Sequence[Path]
) -> Any:
    """Return photos of a folder in the form that the model takes."""
    if isinstance(model, PhotoRanker):
        return photos_for(model, vectors, folder, files)
    if vectors is not None:
        return vectors_in(vectors, folder, files)
    return [str(file) for file in files]


def single_photos_of(model: PhotoSearch, vectors: Path | None, files: Sequence[Path]) -> Any:
    """Return photos that are named one by one in the form that the model takes."""
    if isinstance(model, PhotoRanker):
        return single_photos_for(model, vectors, files)
    if vectors is not None:
        return single_vectors(vectors, files)
    return [str(file) for file in files]


def describing(model: PhotoSearch, *, cache: Path | None) -> dict[str, Any]:
    """Return the options of ``model.index`` about reading photos."""
    if isinstance(model, PhotoRanker):
        return {"cache_dir": cache}
    if cache is not None:
        raise typer.BadParameter("--cache must be left out beside --caption-encoder")
    return {}


def load_index(index: Path, model: PhotoSearch) -> PhotoIndex:
    """Read an index that the model has made."""
    with given_as("--index"):
        found = PhotoIndex.load(index)
        if found.model != model.fingerprint:
            raise ValueError(
                f"{index} must be an index made by this model; this one was made by another"
            )
        return found


def index_to_update(index: Path, model: PhotoSearch, *, overwrite: bool) -> PhotoIndex | None:
    """Return the index in a folder if the model has made it, None for a new one."""
    with given_as("--index"):
        check_index_folder(index, overwrite=True)
        if overwrite or is_unused(index):
            return None
        known = PhotoIndex.load(index)
        if known.model != model.fingerprint:
            raise FileExistsError(
                f"{index} holds an index of another model; index --overwrite would replace it"
            )
        if known.files is None and len(known):
            raise FileExistsError(
                f"{index} holds an index that knows nothing of files; index --overwrite would "
                "replace it"
            )
        return known


def save_index(index: PhotoIndex, known: PhotoIndex | None, folder: Path) -> None:
    """Write an index unless it is the one that is there."""
    if index is not known:
        with given_as("--index"):
            index.save(folder, overwrite=True)


def updated(
    known: PhotoIndex | None,
    model: PhotoSearch,
    photos: Path,
    vectors: Path | None,
    *,
    cache: Path | None,
    skip_damaged: bool,
    allow_outside: bool,
    threads: int | None,
) -> tuple[PhotoIndex, Changes]:
    """Bring an index up to date with a folder of photos, and warn of unreadable ones."""
    with given_as("PHOTOS"):
        names = names_in(photos)
    index, changes = update_index(
        known,
        model,
        photos,
        names,
        photos_for=lambda new: photos_of(model, vectors, photos, new),
        on_error="skip" if skip_damaged else "raise",
        outside="allow" if allow_outside else "refuse",
        n_threads=threads,
        progress=on_terminal(),
        **describing(model, cache=cache),
    )
    if changes.unreadable:
        listed = "".join(f"\n  {reason}" for reason in changes.unreadable)
        warnings.warn(f"{len(changes.unreadable)} photos were left out:{listed}", stacklevel=1)
    return index, changes


def names_in(folder: Path) -> list[str]:
    """Return the paths of all photos of a folder, in it."""
    return [name_in(folder, file) for file in list_photos(folder)]
