"""The base of all rankers that learn by gradients: fit, scores, save and load."""

from __future__ import annotations

import json
import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from kernelcore._estimator import Estimator, params_to_json
from kernelcore._files import digest, load_tensors, save_tensors
from kernelcore._progress import Progress
from kernelcore._reading import Contents, reading
from kernelcore._validation import Array
from kernelcore.deep.randomness import seeded_generator
from kernelcore.deep.region_tables import Regions, RegionTable
from kernelcore.deep.restoring import fill, unfilled
from kernelcore.deep.schedules import Schedule
from kernelcore.deep.threads import torch_threads
from kernelcore.deep.training import History, MakeOptimizer, Objective, train
from kernelcore.lexical import WordVectors
from kernelcore.lexical.word_vectors import check_word_vectors
from kernelcore.models.base import Task, check_task
from kernelcore.models.pairs import Pairs, about_dev, dev_parts, is_nested

_Ranker = TypeVar("_Ranker", bound="TorchRanker")


class Space(Protocol):
    """The module that a ranker trains, with what is asked of it afterwards."""

    def standardize(
        self, mean: npt.NDArray[np.float32], spread: npt.NDArray[np.float32]
    ) -> None:
        """Take these from the features of images, and divide by these, from now on."""
        ...

    def scores(self, table: RegionTable, captions: Any) -> npt.NDArray[np.float32]:
        """Compare every image with every caption."""
        ...

    def image_vectors(self, table: RegionTable) -> Tensor:
        """Encode images of one vector each, shape (n_images, n_components)."""
        ...

    def caption_vectors(self, captions: Any) -> Tensor:
        """Encode captions of one vector each, shape (n_captions, n_components)."""
        ...


class TorchRanker(Estimator):
    """A ranker of images and captions that is trained epoch by epoch.

    A subclass has the parameters. It says how captions are read, makes the space in which
    both sides are compared, and names the objective and the schedule of its training.
    """

    kind: ClassVar[str]
    """What a file says that it holds."""

    regions: Regions
    n_epochs: int
    rng: np.random.Generator | int | None
    device: str
    square_root: bool = False
    mixed_precision: bool = False
    network: nn.Module | None = None
    history_: History
    space_: Any  # a torch module that is a `Space`

    def fit(
        self: _Ranker,
        images: Any,
        captions: Any,
        *,
        caption_image: npt.ArrayLike | None = None,
        word_vectors: WordVectors | None = None,
        dev: tuple[Any, ...] | None = None,
        folder: str | os.PathLike[str] | None = None,
        n_threads: int | None = None,
        progress: Progress = False,
    ) -> _Ranker:
        """Learn from images and their captions.

        Parameters
        ----------
        images : RegionFeatures or array_like of shape (n_images, n_features)
            Features of the regions of each image, or of the whole images. Those of regions
            may be mapped from a file: a step reads the images of its captions alone.
        captions : sequence of sequence of str, or sequence of str
            Raw captions: those of each image, or one after another. `FragmentRanker` also
            takes them cut into fragments or parsed.
        caption_image : array_like of int, shape (n_captions,), optional
            Position in `images` of the image that each caption belongs to. Omit it where
            captions are nested, or where caption i belongs to image i. Images without
            captions are not used.
        word_vectors : WordVectors, optional
            Vectors of words, trained elsewhere. By default they are drawn at random. Where
            captions are cut already, one for each word of their vocabulary, in its order.
        dev : (images, captions) or (images, captions, caption_image), optional
            Other items, by which the epoch to keep is chosen. Without them a fifth of the
            images is held out for that, always the same of equally many images.
        folder : path, optional
            Keeps a checkpoint after each epoch, from which the same call goes on, and
            ``log.csv``.
        n_threads : int, optional
            Threads to use; the default is every core this process may run on. Sums of
            matrix products, and so the last bits of the result, may depend on it.
        progress : bool or callable, default False
            Show a bar, or call this with (minibatches done, minibatches at most).

        Returns
        -------
        ranker
            This object.

        Raises
        ------
        TypeError, ValueError
            If a parameter is out of its range, images and captions do not fit together or
            features are not finite, there are fewer than two images, or the checkpoint is of
            another run.
        """
        self._check_params()
        check_word_vectors(word_vectors)
        training = self._pairs("images", images, captions, caption_image)
        if dev is None:
            training, judges = training.hold_out()
        else:
            of_dev = dev_parts(dev)
            with about_dev():
                judges = self._pairs("dev", *of_dev)
        own = np.unique(training.caption_image)
        if len(own) < 2:
            raise ValueError("images must hold at least two with captions")
        generator = seeded_generator(self.rng, self.device)
        training = replace(training, captions=self._learn(training, word_vectors, generator))
        self._check_width("dev", judges.images)
        judges = replace(judges, captions=self._encode(judges.captions))
        if self.network is None:
            self.space_.standardize(*training.images.moments(own))
        with torch_threads(n_threads):
            self.history_ = train(
                self.space_,
                self._objective(training, judges),
                schedule=self._schedule(),
                n_epochs=self.n_epochs,
                generator=generator,
                make_optimizer=self._make_optimizer(),
                max_gradient_norm=self._max_gradient_norm,
                mixed_precision=self.mixed_precision,
                folder=folder,
                fingerprint=self._fingerprint(generator, training, judges),
                progress=progress,
                description=f"train {type(self).__name__}",
            )
        return self

    def scores(
        self,
        images: Any,
        captions: Any,
        *,
        task: Task = "annotation",
        n_threads: int | None = None,
    ) -> npt.NDArray[np.float32]:
        """Score every image against every caption.

        Parameters
        ----------
        images : RegionFeatures or array_like of shape (n_images, n_features)
        captions : sequence of str
            Raw captions, or what else `fit` takes for them.
        task : {"annotation", "search"}, default "annotation"
            The scores are the same for both.
        n_threads : int, optional
            Threads to use; the default is every core this process may run on.

        Returns
        -------
        ndarray of float32, shape (n_images, n_captions)
            Higher is better.
        """
        check_task(task)
        table, own = self._asked_images(images), self._asked_captions(captions)
        with torch_threads(n_threads):
            scores: npt.NDArray[np.float32] = self.space_.scores(table, own)
        return scores

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write parameters and weights as a safetensors file, whole or not at all.

        A generator as `rng`, and the class of a `network`, are not kept.
        """
        self._check_fitted("space_")
        tensors, about = self._parts()
        metadata = {
            "params": params_to_json(self._plain_params()),
            "epochs": self.history_.epochs,
            **about,
        }
        save_tensors(path, self.kind, tensors, metadata)

    @classmethod
    def load(
        cls: type[_Ranker], path: str | os.PathLike[str], *, device: str = "cpu", **params: Any
    ) -> _Ranker:
        """Read what `save` wrote, onto any device; a damaged file is a ValueError.

        Parameters
        ----------
        path : path
        device : str, default "cpu"
            Any of torch's.
        **params
            Parameters that no file holds: a `network` of the structure that was trained.

        Returns
        -------
        ranker
            Fitted.
        """
        with reading(path):
            arrays, metadata = load_tensors(path, cls.kind)
            ranker = cls.from_json(metadata["params"]).set_params(device=device, **params)
            ranker.history_ = History.of(metadata["epochs"])
            with unfilled():
                weights = ranker._rebuild(arrays, metadata)
            ranker.space_ = fill(ranker.space_, weights, path, cls.__name__).to(device)
            return ranker

    @abstractmethod
    def _learn(
        self, training: Pairs, word_vectors: WordVectors | None, generator: torch.Generator
    ) -> Any:
        """Learn words from captions, make the space, and return the captions encoded."""

    @abstractmethod
    def _encode(self, captions: Any) -> Any:
        """Lay captions out as the space reads them."""

    @abstractmethod
    def _objective(self, training: Pairs, dev: Pairs) -> Objective:
        """Return what the space is trained for."""

    @abstractmethod
    def _schedule(self) -> Schedule:
        """Return the learning rate and batch size of each epoch."""

    @abstractmethod
    def _parts(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Return what a file keeps beside parameters and history: arrays, and JSON."""

    @abstractmethod
    def _rebuild(self, arrays: Contents, metadata: Contents) -> Mapping[str, Array]:
        """Make the space that `_parts` took apart, still empty, and return its weights."""

    @property
    def _max_gradient_norm(self) -> float | None:
        return None

    def _make_optimizer(self) -> MakeOptimizer | None:
        return None

    def _pairs(self, name: str, images: Any, captions: Any, caption_image: Any) -> Pairs:
        """Check images, captions and what belongs to what; `name` stands in errors."""
        table = self._table(name, images)
        return Pairs.of(table, self._checked_captions(captions), caption_image)

    def _checked_captions(self, captions: Any) -> Any:
        return captions if is_nested(captions) else as_texts(captions)

    def _table(self, name: str, images: Any) -> RegionTable:
        table = RegionTable.of(name, images, self.regions)
        if self.network is None and table.rows.ndim != 2:
            raise ValueError(
                f"{name} must have features in a row, got regions of shape "
                f"{table.rows.shape[1:]}: pixels need a network"
            )
        return replace(table, rooted=self.square_root)

    def _asked_images(self, images: Any) -> RegionTable:
        """Check images that are to be compared, and lay them out."""
        self._check_fitted("space_")
        table = self._table("images", images)
        self._check_width("images", table)
        return table

    def _asked_captions(self, captions: Any) -> Any:
        """Check captions that are to be compared, and lay them out."""
        self._check_fitted("space_")
        return self._encode(as_texts(captions))

    @property
    @abstractmethod
    def _n_features(self) -> int:
        """Length of the features that the space was made for."""

    def _check_width(self, name: str, table: RegionTable) -> None:
        if self.network is None and table.rows.shape[1] != self._n_features:
            raise ValueError(
                f"{name} must have {self._n_features} features, "
                f"got shape {table.rows.shape[1:]}"
            )

    def _plain_params(self) -> dict[str, Any]:
        """Return the parameters that a file can hold; the others are None."""
        return {
            name: None if isinstance(value, (np.random.Generator, nn.Module)) else value
            for name, value in self.get_params().items()
        }

    def _fingerprint(self, generator: torch.Generator, *parts: Pairs) -> str:
        """Digest of settings, captions, what belongs to what, and the weights at the start.

        Features, which may be more than memory holds, count by their means and spreads.
        """
        params = {**self._plain_params(), "rng": generator.initial_seed()}
        arrays = [value.cpu().numpy() for value in self.space_.state_dict().values()]
        for part in parts:
            arrays += [part.caption_image, part.images.offsets, *_arrays_of(part.captions)]
            if self.network is None:
                arrays += part.images.moments(np.unique(part.caption_image))
        return digest(
            json.dumps(params_to_json(params)).encode(), *(array.tobytes() for array in arrays)
        )


class VectorRanker(TorchRanker):
    """A ranker that has one vector for an image and one for a caption."""

    def embed_images(
        self, images: Any, *, n_threads: int | None = None
    ) -> npt.NDArray[np.float32]:
        """Place images in the space that was learned, for an index of vectors say.

        Parameters
        ----------
        images : RegionFeatures or array_like of shape (n_images, n_features)
        n_threads : int, optional
            Threads to use; the default is every core this process may run on.

        Returns
        -------
        ndarray of float32, shape (n_images, n_components)
            What the class compares with the vectors of captions. Where it compares by
            products, ``embed_images(images) @ embed_captions(captions).T`` are the scores.
        """
        table = self._asked_images(images)
        self._check_vectors()
        with torch_threads(n_threads), torch.no_grad():
            return _as_numpy(self.space_.image_vectors(table))

    def embed_captions(
        self, captions: Any, *, n_threads: int | None = None
    ) -> npt.NDArray[np.float32]:
        """Place captions in the space that was learned; see `embed_images`.

        Parameters
        ----------
        captions : sequence of str
            As for `scores`.
        n_threads : int, optional
            Threads to use; the default is every core this process may run on.

        Returns
        -------
        ndarray of float32, shape (n_captions, n_components)
        """
        own = self._asked_captions(captions)
        self._check_vectors()
        with torch_threads(n_threads), torch.no_grad():
            return _as_numpy(self.space_.caption_vectors(own))

    def _check_vectors(self) -> None:
        """Raise unless either side has one vector with these parameters."""


def as_texts(captions: Any) -> Sequence[str]:
    """Return captions if they are at least one string, one after another."""
    if isinstance(captions, str) or not isinstance(captions, Sequence):
        raise TypeError(f"captions must be a sequence of strings, got {captions!r:.80}")
    for text in captions:
        if not isinstance(text, str):
            raise TypeError(f"captions must hold strings, got {text!r:.80}")
    if not captions:
        raise ValueError("captions must hold at least one caption")
    return captions


def _arrays_of(captions: Any) -> list[Array]:
    """Return the arrays of encoded captions: of a named tuple of tensors, or of a record."""
    values = captions if isinstance(captions, tuple) else vars(captions).values()
    arrays = [v.cpu().numpy() if isinstance(v, Tensor) else v for v in values]
    return [array for array in arrays if isinstance(array, np.ndarray)]


def _as_numpy(vectors: Tensor) -> npt.NDArray[np.float32]:
    array: npt.NDArray[np.float32] = vectors.cpu().numpy()
    return array
