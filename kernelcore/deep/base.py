"""Base classes of the models: training, scores, embeddings, saved files."""

from __future__ import annotations

import json
import os
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from kernelcore._check import Array, check_flag, check_integer, check_real
from kernelcore._estimator import Estimator, params_to_json
from kernelcore._store import Contents, digest, load_tensors, reading, save_tensors
from kernelcore._threads import Progress
from kernelcore.deep.checkpoints import fill, unfilled
from kernelcore.deep.encoders import Space
from kernelcore.deep.items import Regions, RegionTable, arrays_of, as_texts
from kernelcore.deep.layers import seeded_generator, torch_threads
from kernelcore.deep.training import History, Objective, Schedule, adam, train
from kernelcore.lexical import WordVectors
from kernelcore.lexical.vectors import check_word_vectors
from kernelcore.models.base import Pairs, Task, about_dev, check_task, dev_parts, is_nested


class TorchModel(Estimator):
    """Base class of all models: parameters, and files that hold them with the weights."""

    kind: ClassVar[str]
    """Type of the file that `save` writes."""

    n_components: int
    dropout: float
    margin: float
    learning_rate: float
    n_epochs: int
    patience: int | None = None
    rng: np.random.Generator | int | None
    device: str
    mixed_precision: bool = False
    network: nn.Module | None = None
    history_: History
    space_: Any
    _built_with: dict[str, Any]
    """The parameters that the space was made with, as far as a file can hold them."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write parameters and weights to a safetensors file, atomically.

        Parameters are saved as they were at `fit`: a later `set_params` does not change the
        file. A generator as `rng`, and the class of a `network`, are not saved.
        """
        self._check_fitted("space_")
        tensors, about = self._parts()
        params = params_to_json(self._built_with)
        metadata = {"params": params, "epochs": self.history_.epochs, **about}
        save_tensors(path, self.kind, tensors, metadata)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, device: str = "cpu", **params: Any) -> Self:
        """Read a model from a file that `save` wrote.

        Parameters
        ----------
        path : path
        device : str, default "cpu"
            Torch device to load the model onto.
        **params
            Parameters that files do not hold: a `network` with the structure of the trained
            one.

        Returns
        -------
        model
            Fitted.

        Raises
        ------
        ValueError
            If the file is damaged, or holds another type of model.
        """
        with reading(path):
            arrays, metadata = load_tensors(path, cls.kind)
            model = cls.from_json(metadata["params"]).set_params(device=device, **params)
            model.history_ = History.of(metadata["epochs"])
            with unfilled():
                weights = model._rebuild(arrays, metadata)
            model.space_ = fill(model.space_, weights, path, cls.__name__).to(device)
            return model

    @abstractmethod
    def _parts(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Return the arrays and the JSON that a file holds beside parameters and history."""

    @abstractmethod
    def _rebuild(self, arrays: Contents, metadata: Contents) -> Mapping[str, Array]:
        """Make the space of a file without weights, and return its weights."""

    def _plain_params(self) -> dict[str, Any]:
        """Return the parameters that a file can hold. The others are None."""
        return {
            name: None if isinstance(value, (np.random.Generator, nn.Module)) else value
            for name, value in self.get_params().items()
        }

    def _check_params(self) -> None:
        """Raise unless every parameter is valid."""
        for name in ("n_components", "n_epochs"):
            check_integer(name, getattr(self, name), minimum=1)
        if self.patience is not None:
            check_integer("patience", self.patience, minimum=1)
        check_real("margin", self.margin, minimum=0)
        check_real("learning_rate", self.learning_rate, minimum=0, exclusive=True)
        if check_real("dropout", self.dropout, minimum=0) >= 1:
            raise ValueError(f"dropout must be a number < 1, got {self.dropout}")


class TorchRanker(TorchModel):
    """Base class of rankers of images and captions that are trained by gradient descent.

    A subclass reads captions, makes the space that compares both sides, and defines the
    objective and the schedule of the training.
    """

    regions: Regions
    batch_size: int
    n_drawn: int | None = None
    square_root: bool = False
    n_features_: int
    space_: Space
    max_gradient_norm: ClassVar[float | None] = None

    def fit(
        self,
        images: Any,
        captions: Any,
        *,
        caption_image: npt.ArrayLike | None = None,
        word_vectors: WordVectors | None = None,
        dev: tuple[Any, ...] | None = None,
        folder: str | os.PathLike[str] | None = None,
        n_threads: int | None = None,
        progress: Progress = False,
    ) -> Self:
        """Train on images and their captions.

        Parameters
        ----------
        images : RegionFeatures or array_like of shape (n_images, n_features)
            Features of the regions of each image, or of whole images. Features of regions
            may be in a mapped file: each minibatch reads the rows of its own images.
        captions : sequence of sequence of str, or sequence of str
            Raw captions, nested by image or in one flat sequence. `FragmentRanker` also takes
            captions that are cut into fragments or parsed.
        caption_image : array_like of int, shape (n_captions,), optional
            Position in `images` of the image of each caption. Omit it if captions are
            nested, or if caption i belongs to image i. Images without captions are not used.
        word_vectors : WordVectors, optional
            Pretrained word vectors. The default is random initial embeddings. For captions
            that are cut already: one vector for each word of their vocabulary, in its order.
        dev : (images, captions) or (images, captions, caption_image), optional
            Development items, on which the best epoch is chosen. By default a fifth of the
            images is held out; the same fifth for the same number of images.
        folder : path, optional
            Folder for ``log.csv`` and a checkpoint after each epoch. The same call resumes
            from the checkpoint.
        n_threads : int, optional
            Threads to use; the default is every core this process may run on. The last
            bits of the result may depend on it, as matrix products are summed by thread.
        progress : bool or callable, default False
            Show a progress bar, or call this with (minibatches done, maximum of minibatches).

        Returns
        -------
        ranker
            This object.

        Raises
        ------
        TypeError, ValueError
            If a parameter is out of range, images and captions do not agree, features are not
            finite, there are fewer than two images, or the checkpoint belongs to another run.
        """
        self._check_params()
        check_word_vectors(word_vectors)
        training = self._pairs("images", images, captions, caption_image)
        if dev is None:
            training, held_out = training.hold_out()
        else:
            of_dev = dev_parts(dev)
            with about_dev():
                held_out = self._pairs("dev", *of_dev)
        used = np.unique(training.caption_image)
        if len(used) < 2:
            raise ValueError(f"images must hold at least two with captions, got {len(used)}")
        generator = seeded_generator(self.rng, self.device)
        training = replace(training, captions=self._learn(training, word_vectors, generator))
        self._check_width("dev", held_out.images)
        held_out = replace(held_out, captions=self._encode(held_out.captions))
        if self.network is None:
            self.space_.standardize(*training.images.moments(used))
        with torch_threads(n_threads):
            self.history_ = train(
                self.space_,
                self._objective(training, held_out),
                schedule=self._schedule(),
                n_epochs=self.n_epochs,
                generator=generator,
                make_optimizer=self._make_optimizer,
                patience=self.patience,
                max_gradient_norm=self.max_gradient_norm,
                mixed_precision=self.mixed_precision,
                folder=folder,
                fingerprint=self._fingerprint(generator, training, held_out),
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
            Raw captions, or other captions that `fit` takes.
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
        table, own = self._new_images(images), self._new_captions(captions)
        with torch_threads(n_threads):
            return self.space_.scores(table, own)

    @abstractmethod
    def _learn(
        self, training: Pairs, word_vectors: WordVectors | None, generator: torch.Generator
    ) -> Any:
        """Learn the words, make the space, and return the training captions encoded."""

    @abstractmethod
    def _encode(self, captions: Any) -> Any:
        """Convert captions to the input of the space."""

    @abstractmethod
    def _objective(self, training: Pairs, dev: Pairs) -> Objective:
        """Return the objective of the training."""

    @abstractmethod
    def _schedule(self) -> Schedule:
        """Return the schedule of learning rate and batch size."""

    def _make_optimizer(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        return adam(parameters)

    def _pairs(self, name: str, images: Any, captions: Any, caption_image: Any) -> Pairs:
        """Check images, captions and their owners. Errors mention `name`."""
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

    def _new_images(self, images: Any) -> RegionTable:
        """Check images to score, and make a table of them."""
        self._check_fitted("space_")
        table = self._table("images", images)
        self._check_width("images", table)
        return table

    def _new_captions(self, captions: Any) -> Any:
        """Check captions to score, and encode them."""
        self._check_fitted("space_")
        return self._encode(as_texts(captions))

    def _check_width(self, name: str, table: RegionTable) -> None:
        if self.network is None:
            table.check_width(name, self.n_features_)

    def _check_params(self) -> None:
        super()._check_params()
        check_integer("batch_size", self.batch_size, minimum=2)
        if self.n_drawn is not None:
            check_integer("n_drawn", self.n_drawn, minimum=1)
        check_flag("square_root", self.square_root)

    def _fingerprint(self, generator: torch.Generator, *parts: Pairs) -> str:
        """Return a digest of settings, captions, owners, offsets and initial weights.

        Features may be larger than the memory. They are represented by mean and standard
        deviation.
        """
        params = {**self._plain_params(), "rng": generator.initial_seed()}
        arrays = [value.cpu().numpy() for value in self.space_.state_dict().values()]
        for part in parts:
            arrays += [part.caption_image, part.images.offsets, *arrays_of(part.captions)]
            if self.network is None:
                arrays += part.images.moments(np.unique(part.caption_image))
        return digest(
            json.dumps(params_to_json(params)).encode(), *(array.tobytes() for array in arrays)
        )


class VectorRanker(TorchRanker):
    """Base class of rankers that have one vector for an image and one for a caption."""

    def embed_images(
        self, images: Any, *, n_threads: int | None = None
    ) -> npt.NDArray[np.float32]:
        """Embed images in the learned space, for example for a vector index.

        Parameters
        ----------
        images : RegionFeatures or array_like of shape (n_images, n_features)
        n_threads : int, optional
            Threads to use; the default is every core this process may run on.

        Returns
        -------
        ndarray of float32, shape (n_images, n_components)
            Where the class compares by products, the scores are
            ``embed_images(images) @ embed_captions(captions).T``.
        """
        table = self._new_images(images)
        self._check_vectors()
        with torch_threads(n_threads), torch.no_grad():
            vectors: npt.NDArray[np.float32] = self.space_.image_vectors(table).cpu().numpy()
        return vectors

    def embed_captions(
        self, captions: Any, *, n_threads: int | None = None
    ) -> npt.NDArray[np.float32]:
        """Embed captions in the learned space, see `embed_images`.

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
        own = self._new_captions(captions)
        self._check_vectors()
        with torch_threads(n_threads), torch.no_grad():
            vectors: npt.NDArray[np.float32] = self.space_.caption_vectors(own).cpu().numpy()
        return vectors

    def _check_vectors(self) -> None:
        """Raise if these parameters give an image or a caption more than one vector."""
