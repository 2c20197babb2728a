"""The model of a command, one of `train` or a pair of encoders, and indices by it."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from kernelcore._extras import named_function
from kernelcore._photos import leads_out
from kernelcore._store import counted, is_unused, read_npy
from kernelcore.cli.common import given_as, list_photos, on_terminal
from kernelcore.cli.features import name_in, vectors_of
from kernelcore.cli.options import PhotoOptions
from kernelcore.models import Encoders, PhotoIndex, PhotoRanker
from kernelcore.models.photo_features import PRECOMPUTED, as_vectors
from kernelcore.models.photo_search import PhotoSearch
from kernelcore.models.saving import INDEX, check_target
from kernelcore.search import update_index
from kernelcore.search.update import Changes


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """The model.

    Parameters
    ----------
    model : path, optional
        Folder of the model.
    encoders : str, optional
        In place of --model: sentence-transformers:FOLDER, a model such as CLIP on this disk
        (extra clip), or its name in the cache of that library. Nothing is fetched.
    caption_encoder : str, optional
        In place of --model: a function MODULE:FUNCTION that turns a list of sentences into
        vectors, such as that of CLIP. The folder of the command is searched for it.
    image_encoder : str, optional
        The function for photos beside it; it gets a list of paths.
    """

    model: Path | None = None
    encoders: str | None = None
    caption_encoder: str | None = None
    image_encoder: str | None = None

    @property
    def name(self) -> str:
        """What to call it in tables."""
        return Path(str(self.model or self.encoders or self.caption_encoder)).name

    def load(self, foreign_images: Any = None) -> PhotoSearch:
        """Read the model, or import the encoders."""
        if (self.model, self.encoders, self.caption_encoder).count(None) != 2:
            ways = "--model, --encoders and --caption-encoder"
            raise click.BadParameter(f"one of {ways} must say what ranks")
        if self.image_encoder is not None and self.caption_encoder is None:
            raise click.BadParameter("--image-encoder must be left out: no --caption-encoder")
        if self.model is not None:
            with given_as("--model"):
                return PhotoRanker.load(self.model)
        if self.encoders is not None:
            library, _, place = self.encoders.partition(":")
            if library != "sentence-transformers" or not place:
                raise click.BadParameter(
                    f"--encoders must be sentence-transformers:FOLDER, got {self.encoders!r}"
                )
            with given_as("--encoders"):
                return Encoders.from_sentence_transformers(place, foreign_images=foreign_images)
        if "" not in sys.path:
            sys.path.append("")  # modules of the folder are found, and hide no others
        captions = _function("--caption-encoder", self.caption_encoder)
        images = _function("--image-encoder", self.image_encoder)
        # An index is searched without the encoder of images, so this one is not in the name.
        return Encoders(
            captions, images, name=self.caption_encoder, foreign_images=foreign_images
        )


@dataclass(frozen=True, kw_only=True)
class CalibratedModelOptions(ModelOptions):
    """The model, and what calibrates encoders.

    Parameters
    ----------
    foreign_vectors : path, optional
        A .npy file of vectors of other photos: by them the encoders are calibrated.
    """

    foreign_vectors: Path | None = None

    def load(self, foreign_images: Any = None) -> PhotoSearch:
        """Read the model, or import the encoders."""
        if self.foreign_vectors is not None:
            if self.model is not None:
                raise click.BadParameter("--foreign-vectors must be left out beside --model")
            with given_as("--foreign-vectors"):
                rows = read_npy(self.foreign_vectors)
                foreign_images = as_vectors(str(self.foreign_vectors), rows)
        return super().load(foreign_images)


def _function(option: str, name: str | None) -> Any:
    """Import the function that an option names."""
    if name is None:
        return None
    module, colon, function = name.partition(":")
    if not colon:
        raise click.BadParameter(f"{option} must be MODULE:FUNCTION, got {name!r}")
    return named_function(option, module, function)


@dataclass(frozen=True)
class Indexer:
    """Indexing of photos by a model: of files, or of all photos of a folder.

    Parameters
    ----------
    model : PhotoSearch
    reading : PhotoOptions
    option : str
        What gives the folder, for errors.
    """

    model: PhotoSearch
    reading: PhotoOptions
    option: str = "--photos"

    def index(self, files: Sequence[Path], folder: Path | None) -> PhotoIndex:
        """Index photos for one command, under the paths of their files; see `vectors_of`."""
        options = self._options()
        if isinstance(self.model, PhotoRanker):
            options["on_error"] = self.reading.on_error
        elif self.reading.skip_damaged:
            raise click.BadParameter("--skip-damaged must be left out beside encoders")
        options |= {"names": [str(file) for file in files], "progress": on_terminal()}
        return self.model.index(self._described(files, folder), **options)

    def updated(
        self, index: Path | None, folder: Path, *, overwrite: bool = False
    ) -> tuple[PhotoIndex, Changes]:
        """Bring an index up to date and save it; warn of photos that cannot be read."""
        known = None if index is None else self._known(index, overwrite=overwrite)
        found, changes = self.follow(known, folder, progress=on_terminal())
        if changes.unreadable:
            listed = "".join(f"\n  {reason}" for reason in changes.unreadable)
            left_out = counted(len(changes.unreadable), "unreadable photo")
            warnings.warn(f"left out {left_out}:{listed}", stacklevel=1)
        if index is not None and found is not known:
            with given_as("--index"):
                found.save(index, overwrite=True)
        return found, changes

    def follow(
        self, known: PhotoIndex | None, folder: Path, *, progress: bool = False
    ) -> tuple[PhotoIndex, Changes]:
        """Bring an index up to date with a folder of photos."""
        with given_as(self.option):
            names = [name_in(folder, file) for file in list_photos(folder)]
        with self.reading.hinting():
            return update_index(
                known,
                self.model,
                folder,
                names,
                photos_for=lambda new: self._described(new, folder),
                on_error=self.reading.on_error,
                outside=self.reading.outside,
                progress=progress,
                **self._options(),
            )

    def _options(self) -> dict[str, Any]:
        """Return options of ``model.index``."""
        options: dict[str, Any] = {"n_threads": self.reading.threads}
        if isinstance(self.model, PhotoRanker):
            options["cache_dir"] = self.reading.cache
        elif self.reading.cache is not None:
            raise click.BadParameter("--cache must be left out beside encoders")
        return options

    def _described(self, files: Sequence[Path], folder: Path | None) -> Any:
        """Return photos in the form that the model takes: files, or their vectors."""
        vectors = self.reading.features
        if isinstance(self.model, PhotoRanker):
            needs_vectors = self.model.features == PRECOMPUTED
            if needs_vectors and vectors is None:
                trained = "the model was trained with vectors"
                raise click.BadParameter(
                    f"--features must name the vectors of the photos: {trained}"
                )
            if vectors is not None and not needs_vectors:
                own = "the model describes photos itself"
                raise click.BadParameter(f"--features must be left out: {own}")
        return list(map(str, files)) if vectors is None else vectors_of(vectors, files, folder)

    def _known(self, index: Path, *, overwrite: bool) -> PhotoIndex | None:
        """Return the index in a folder if the model has made it, None for a new one."""
        with given_as("--index"):
            check_target(index, INDEX, overwrite=True)
            if overwrite or is_unused(index):
                return None
            known = PhotoIndex.load(index)
            lack = "of another model" if known.model != self.model.fingerprint else ""
            if not lack and known.files is None and len(known):
                lack = "that knows nothing of files"
            if lack:
                raise FileExistsError(
                    f"{index} holds an index {lack}; index --overwrite would replace it"
                )
            return known


def load_index(index: Path, model: PhotoSearch) -> PhotoIndex:
    """Read an index that the model has made."""
    with given_as("--index"):
        found = PhotoIndex.load(index)
        if found.model != model.fingerprint:
            raise ValueError(
                f"{index} must be an index made by this model; this one was made by another"
            )
        if any(map(leads_out, found.names)):
            raise ValueError(f"{index} must have names of photos in a folder")
    return found
