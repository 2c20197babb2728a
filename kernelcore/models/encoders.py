"""Search with the vectors of a pair of functions: one for photos, one for sentences."""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, as_array, as_strings, check_callable
from kernelcore._extras import named_function, require
from kernelcore._ragged import n_items, take
from kernelcore._threads import Progress, check_stopped, reporting
from kernelcore.images import CNNFeatures, read_image
from kernelcore.images._extractor import of_length_one
from kernelcore.models.calibration import Foreign
from kernelcore.models.photo_features import as_vectors, checked_names
from kernelcore.models.photo_index import PhotoIndex
from kernelcore.models.photo_search import PhotoSearch

Encoder: TypeAlias = "Callable[[Any], Any] | str"
"""A function of a list that returns one row per item, or its name "module:function"."""

_BATCH = 64  # photos or sentences in a call of a function
_one_call = threading.Lock()


class Encoders(PhotoSearch):
    """Search photos by sentences with vectors of other models, such as CLIP.

    Parameters
    ----------
    captions : callable or str
        Function that is called with a list of at most 64 sentences and returns an array of
        shape (n_sentences, n_dimensions); or its name, ``"module:function"``.
    images : callable or str, optional
        The same for photos: it is called with a list of at most 64 photos, in the form that
        `index` is given. Without it `index` takes vectors of photos alone.
    name : str, optional
        What an index stores to recognise its encoders. The default are the names of the
        functions, if each can be imported by its name.
    foreign_captions : sequence of str, optional
        Sentences about other photos than those that are annotated, the more the better: by
        them `chance_lines` estimates what a photo reaches by chance.
    foreign_images : collection of photos, or array_like, optional
        Other photos than those that are searched, or their vectors: by them `chance_lines`
        estimates what a sentence reaches by chance.

    Raises
    ------
    TypeError, ValueError
        If a function cannot be imported by the name that is given, a function such as a
        lambda comes without `name`, or sentences are not strings.

    See Also
    --------
    PhotoRanker : Learns from captioned photos.

    Notes
    -----
    Vectors are scaled to length 1; scores are cosines. A vector of zeros has cosine 0 with all.
    No two calls of functions run at the same time. An index belongs to encoders of the same
    `name`: other weights need another name.

    Examples
    --------
    A toy in place of a network: photos are files, whose names are compared with sentences.

    >>> from kernelcore.models import Encoders
    >>> def letters(texts):
    ...     return [[str(text).count(letter) for letter in "abcdeghot"] for text in texts]
    >>> encoders = Encoders(letters, letters, name="letters")
    >>> index = encoders.index(["dog.jpg", "cat.jpg"])
    >>> [[best, _]] = encoders.search(["a cat"], index)
    >>> best.name
    'cat.jpg'
    """

    def __init__(
        self,
        captions: Encoder,
        images: Encoder | None = None,
        *,
        name: str | None = None,
        foreign_captions: Sequence[str] = (),
        foreign_images: Any = None,
    ) -> None:
        self.foreign_captions = as_strings("foreign_captions", foreign_captions)
        self.foreign_images = foreign_images
        self._captions = _function("captions", captions)
        self._images = None if images is None else _function("images", images)
        if name is not None and not isinstance(name, str):
            raise TypeError(f"name must be a string, got {name!r:.80}")
        given = [captions] if images is None else [captions, images]
        self.name = name or " ".join(map(_name_of, given))
        self._foreign: Foreign | None = None

    @classmethod
    def from_sentence_transformers(
        cls, model: Any, *, name: str | None = None, **options: Any
    ) -> Encoders:
        """Search by a model of sentence-transformers such as CLIP (extra ``clip``).

        Parameters
        ----------
        model : path, str or SentenceTransformer
            Folder of the model, or the name of one in the cache of sentence-transformers:
            nothing is fetched. A model that is loaded already needs a `name`.
        name : str, optional
            See `Encoders`. The default for a folder is a digest of its files.
        **options
            Other parameters of `Encoders`.

        Returns
        -------
        Encoders
            Photos are files or pixels, as `kernelcore.images.read_image` takes them.

        Raises
        ------
        MissingExtraError
            If sentence-transformers is not installed.
        OSError
            If there is no such model on this machine.

        Examples
        --------
        A toy in place of a model:

        >>> from kernelcore.models import Encoders
        >>> class Toy:
        ...     def encode(self, items, **options):
        ...         return [[len(str(item)), 1.0] for item in items]
        >>> Encoders.from_sentence_transformers(Toy(), name="toy")
        Encoders(toy)
        """
        if isinstance(model, (str, os.PathLike)):
            name = name or f"sentence-transformers {_digest_or_name(model)}"
            library = require("sentence_transformers")
            model = library.SentenceTransformer(os.fspath(model), local_files_only=True)
        elif not callable(getattr(model, "encode", None)):
            raise TypeError(f"model must be a folder, a name or a model, got {model!r:.80}")
        elif name is None:
            raise ValueError("name must be given beside a model that is loaded already")
        encode = partial(model.encode, convert_to_numpy=True, show_progress_bar=False)
        from_pixels = require("PIL.Image").fromarray

        def images(photos: Any) -> Any:
            return encode([from_pixels(read_image(photo)) for photo in photos])

        return cls(encode, images, name=name, **options)

    def __repr__(self) -> str:
        return f"Encoders({self.name})"

    @property
    def fingerprint(self) -> str:
        """Its name; an index stores it to recognise its model."""
        return self.name

    def index(
        self,
        photos: Any,
        *,
        names: Sequence[str] | None = None,
        n_threads: int | None = None,
        progress: Progress = False,
    ) -> PhotoIndex:
        """Place photos, to be searched many times.

        Parameters
        ----------
        photos : collection of photos, or array_like of shape (n_photos, n_dimensions)
            What the function of images takes, or vectors of photos.
        names : sequence of str, optional
            Name of each photo; the default is its path, or its number where it has none.
        n_threads : int, optional
            See `PhotoRanker.index`. The functions run as they are, whatever it is.
        progress : bool or callable, default False
            True shows a bar; a callable is called with the photos done and in all.

        Returns
        -------
        PhotoIndex

        Raises
        ------
        TypeError, ValueError
            If `names` or vectors do not fit the photos, or photos are given and there is no
            function of images.
        """
        named = checked_names(photos, names)
        return PhotoIndex(named, self._embed(photos, progress), self.fingerprint)

    def embed_captions(
        self, captions: Sequence[str], *, n_threads: int | None = None
    ) -> npt.NDArray[Any]:
        """Return the vectors of sentences, of length 1.

        Parameters
        ----------
        captions : sequence of str
        n_threads : int, optional
            See `index`.

        Returns
        -------
        ndarray of float32, shape (n_captions, n_dimensions)
        """
        texts = as_strings("captions", captions)
        return _in_batches("captions", self._captions, texts, False)

    def foreign(self, *, n_threads: int | None = None) -> Foreign:
        """Return vectors of the foreign sentences and photos, see `chance_lines`.

        Parameters
        ----------
        n_threads : int, optional
            See `index`.

        Returns
        -------
        Foreign
        """
        if self._foreign is None:
            photos = np.empty((0, 0), np.float32)
            if self.foreign_images is not None:
                photos = self._embed(self.foreign_images, False)
            self._foreign = Foreign(self.embed_captions(self.foreign_captions), photos)
        return self._foreign

    def _embed_photos(
        self, photos: Any, n_threads: int | None, name: str
    ) -> tuple[list[str], Array]:
        return checked_names(photos, None), self._embed(photos, False)

    def _embed(self, photos: Any, progress: Progress) -> npt.NDArray[np.float32]:
        if isinstance(photos, CNNFeatures) or getattr(photos, "ndim", None) == 2:
            return of_length_one(as_vectors("photos", photos))
        if self._images is None:
            raise ValueError("photos must be vectors, because there is no function of images")
        return _in_batches("images", self._images, photos, progress)


def _in_batches(
    name: str, function: Callable[[Any], Any], items: Any, progress: Progress
) -> npt.NDArray[np.float32]:
    """Call a function with parts of a collection, and check what it returns."""
    n_all = n_items(items)
    found: list[Array] = []
    with reporting(progress, f"encode {name}") as report:
        for start in range(0, n_all, _BATCH):
            check_stopped()
            part = take(items, slice(start, start + _BATCH))
            with _one_call:
                result = function(part)
            label = f"result of {name}"
            rows = as_vectors(label, as_array(label, result, ndim=2))
            if len(rows) != n_items(part) or (found and rows.shape[1] != found[0].shape[1]):
                shape = f"({n_items(part)}, {found[0].shape[1] if found else 'any'})"
                raise ValueError(f"result of {name} must have shape {shape}, got {rows.shape}")
            found.append(rows)
            if report:
                report(min(start + _BATCH, n_all), n_all)
    if not found:
        return np.empty((0, 0), np.float32)
    return of_length_one(np.concatenate(found))


def _digest_or_name(model: str | os.PathLike[str]) -> str:
    """Return a digest of the files in the folder of a model; the name where it is none."""
    folder = Path(model)
    if not folder.is_dir():
        return os.fspath(model)
    found = hashlib.blake2b(digest_size=16)
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        with path.open("rb") as file:
            own = hashlib.file_digest(file, "blake2b").digest()
        found.update(os.fsencode(path.relative_to(folder).as_posix()) + b"\0" + own)
    return found.hexdigest()


def _function(name: str, encoder: Any) -> Callable[[Any], Any]:
    """Return a function that may be given by its name."""
    if isinstance(encoder, str):
        module, _, function = encoder.partition(":")
        return named_function(name, module, function)
    return cast("Callable[[Any], Any]", check_callable(name, encoder))


def _name_of(encoder: Encoder) -> str:
    """Return "module:function", if the function can be imported by it."""
    if isinstance(encoder, str):
        return encoder
    module, name = (getattr(encoder, own, "") for own in ("__module__", "__qualname__"))
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not encoder:
        raise ValueError(
            "name must be given unless functions can be imported by their own names, "
            f"got {encoder!r:.80}"
        )
    return f"{module}:{name}"
