"""What rankers of images and raw sentences share: how they are fitted, asked and kept."""

from __future__ import annotations

import json
import os
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from kernelcore._estimator import Estimator, params_to_json
from kernelcore._files import digest, load_tensors, save_tensors
from kernelcore._progress import Progress
from kernelcore._reading import reading
from kernelcore._validation import check_choice, check_flag, check_integer, check_real
from kernelcore.captions import Vocabulary
from kernelcore.captions._tokenize import tokenize
from kernelcore.deep.caption_tables import CaptionTable, owners_of
from kernelcore.deep.encoders import initial_embedding
from kernelcore.deep.losses import NEGATIVES
from kernelcore.deep.randomness import seeded_generator
from kernelcore.deep.ranking_objective import RankingObjective
from kernelcore.deep.ranking_space import RankingSpace
from kernelcore.deep.region_tables import Regions, RegionTable
from kernelcore.deep.restoring import fill, unfilled
from kernelcore.deep.schedules import Cooldown, Schedule
from kernelcore.deep.sentences import (
    Sentences,
    as_sentences,
    space_of,
    vocabulary_from,
    vocabulary_of,
    vocabulary_parts,
)
from kernelcore.deep.threads import torch_threads
from kernelcore.deep.training import History, train
from kernelcore.lexical import WordVectors

_Ranker = TypeVar("_Ranker", bound="SentenceRanker")


class SentenceRanker(Estimator):
    """The half that `EmbeddingRanker`, `CrossAttentionRanker` and `OrderRanker` share.

    A subclass has the parameters, and makes the space in which it compares.
    """

    regions: Regions
    n_components: int
    n_embedding: int
    min_count: int
    max_tokens: int
    dropout: float
    margin: float
    negatives: str
    n_warm_up: int | None
    learning_rate: float
    batch_size: int
    n_epochs: int
    rng: np.random.Generator | int | None
    device: str
    mixed_precision: bool
    square_root: bool = False
    n_drawn: int | None = None
    history_: History
    vocabulary_: Vocabulary
    space_: RankingSpace

    def fit(
        self: _Ranker,
        images: Any,
        captions: Sequence[str],
        *,
        caption_image: npt.ArrayLike | None = None,
        word_vectors: WordVectors | None = None,
        dev: tuple[Any, ...],
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
        captions : sequence of str
        caption_image : array_like of int, shape (n_captions,), optional
            Position in `images` of the image that each caption belongs to. Omit it where
            caption i belongs to image i. Images without captions are not used.
        word_vectors : WordVectors, optional
            Where the word embeddings start; the default is at random.
        dev : (images, captions) or (images, captions, caption_image)
            Other items, by which the epoch to keep is chosen.
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
        self._check()
        if not isinstance(word_vectors, WordVectors | None):
            raise TypeError(
                f"word_vectors must be WordVectors or None, got {type(word_vectors).__name__}"
            )
        if not isinstance(dev, tuple) or len(dev) not in (2, 3):
            raise TypeError("dev must be (images, captions) or with caption_image as third")
        members = self._items("images", images, captions, caption_image)
        judges = self._items("dev", *dev)
        if len(np.unique(members[2])) < 2:
            raise ValueError("images must hold at least two with captions")
        self.vocabulary_ = vocabulary_of(
            members[1], min_count=self.min_count, tokenize=self._tokenize
        )
        generator = seeded_generator(self.rng, self.device)
        embedding = initial_embedding(
            self.vocabulary_,
            self._start(word_vectors, members[1]),
            self.n_embedding,
            generator=generator,
        )
        self._build(members[0].rows.shape[1], embedding, generator)
        self._check_width("dev", judges[0])
        self.space_.standardize(*members[0].moments(np.unique(members[2])))
        training, dev_table = (
            CaptionTable(table, self._encode(texts), owners)
            for table, texts, owners in (members, judges)
        )
        with torch_threads(n_threads):
            self.history_ = train(
                self.space_,
                self._objective(training, dev_table),
                schedule=self._schedule(),
                n_epochs=self.n_epochs,
                generator=generator,
                max_gradient_norm=_MAX_GRADIENT_NORM,
                mixed_precision=self.mixed_precision,
                folder=folder,
                fingerprint=self._fingerprint(generator, training, dev_table),
                progress=progress,
                description=f"train {type(self).__name__}",
            )
        return self

    def scores(
        self,
        images: Any,
        captions: Sequence[str],
        *,
        task: Literal["annotation", "search"] = "annotation",
        n_threads: int | None = None,
    ) -> npt.NDArray[np.float32]:
        """Score every image against every caption.

        Parameters
        ----------
        images : RegionFeatures or array_like of shape (n_images, n_features)
        captions : sequence of str
        task : {"annotation", "search"}, default "annotation"
            The scores are the same for both.
        n_threads : int, optional
            Threads to use; the default is every core this process may run on.

        Returns
        -------
        ndarray of float32, shape (n_images, n_captions)
            Higher is better.
        """
        check_choice("task", task, ("annotation", "search"))
        table, sentences = self._asked(images, captions)
        with torch_threads(n_threads):
            return self.space_.scores(table, sentences)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write parameters and weights as a safetensors file, whole or not at all.

        A generator as `rng` is not kept.
        """
        self._check_fitted("space_")
        tensors, about_words = vocabulary_parts(self.vocabulary_)
        for name, weight in self.space_.state_dict().items():
            tensors[f"space.{name}"] = weight.cpu().numpy()
        params = self.get_params()
        if isinstance(self.rng, np.random.Generator):
            params["rng"] = None
        metadata = {
            "params": params_to_json(params),
            "n_features": self.n_features_,
            "n_embedding": self.n_embedding_,
            "epochs": self.history_.epochs,
            **about_words,
        }
        save_tensors(path, type(self).__name__, tensors, metadata)

    @classmethod
    def load(
        cls: type[_Ranker], path: str | os.PathLike[str], *, device: str = "cpu"
    ) -> _Ranker:
        """Read what `save` wrote, onto any device; a damaged file is a ValueError."""
        with reading(path):
            arrays, metadata = load_tensors(path, cls.__name__)
            ranker = cls.from_json(metadata["params"]).set_params(device=device)
            ranker.vocabulary_ = vocabulary_from(arrays, metadata)
            ranker.history_ = History.of(metadata["epochs"])
            sizes = {
                name: check_integer(name, metadata[name], minimum=1)
                for name in ("n_features", "n_embedding")
            }
            with unfilled():
                embedding = torch.empty(len(ranker.vocabulary_) + 1, sizes["n_embedding"])
                ranker._build(sizes["n_features"], embedding, seeded_generator(0))
            ranker.space_ = fill(ranker.space_, space_of(arrays), path, cls.__name__).to(device)
            return ranker

    @abstractmethod
    def _make_space(
        self, n_features: int, embedding: Tensor, generator: torch.Generator
    ) -> RankingSpace:
        """Make the space with random weights."""

    @property
    def _n_last(self) -> int:
        """Epochs at the end with a lower learning rate."""
        return self.n_epochs // 4

    def _schedule(self) -> Schedule:
        return Cooldown(self.learning_rate, self.batch_size, self.n_epochs, n_last=self._n_last)

    def _objective(self, training: CaptionTable, dev: CaptionTable) -> RankingObjective:
        return RankingObjective(
            self.space_,
            training,
            dev,
            margin=self.margin,
            negatives=self.negatives,
            n_warm_up=self.n_epochs - self._n_last
            if self.n_warm_up is None
            else self.n_warm_up,
            n_drawn=self.n_drawn,
        )

    def _tokenize(self, text: str) -> list[str]:
        """Cut a caption into the words that the vocabulary has."""
        return tokenize(text)

    def _start(
        self, word_vectors: WordVectors | None, captions: Sequence[str]
    ) -> WordVectors | None:
        """Return the vectors that the embeddings of the vocabulary's words start from."""
        return word_vectors

    def _items(
        self, name: str, images: Any, captions: Any, caption_image: Any = None
    ) -> tuple[RegionTable, Sequence[str], npt.NDArray[np.intp]]:
        """Check images, captions and what belongs to what; `name` stands in errors."""
        table = self._table(name, images)
        if table.rows.ndim != 2:
            raise ValueError(
                f"{name} must have features in a row, got regions of shape "
                f"{table.rows.shape[1:]}"
            )
        texts = _texts("captions", captions)
        return table, texts, owners_of(len(table), len(texts), caption_image)

    def _asked(self, images: Any, captions: Any) -> tuple[RegionTable, Sentences]:
        """Check images and captions that are to be compared, and lay them out."""
        self._check_fitted("space_")
        table = self._table("images", images)
        self._check_width("images", table)
        return table, self._encode(_texts("captions", captions))

    def _table(self, name: str, images: Any) -> RegionTable:
        table = RegionTable.of(name, images, self.regions)
        return replace(table, rooted=self.square_root)

    def _build(self, n_features: int, embedding: Tensor, generator: torch.Generator) -> None:
        self.n_features_, self.n_embedding_ = n_features, embedding.shape[1]
        self.space_ = self._make_space(n_features, embedding, generator).to(embedding.device)

    def _encode(self, texts: Sequence[str]) -> Sentences:
        return as_sentences(
            texts, self.vocabulary_, max_tokens=self.max_tokens, tokenize=self._tokenize
        ).to(self.device)

    def _check_width(self, name: str, table: RegionTable) -> None:
        if table.rows.shape[1:] != (self.n_features_,):
            raise ValueError(
                f"{name} must have {self.n_features_} features, "
                f"got shape {table.rows.shape[1:]}"
            )

    def _check_params(self) -> None:
        self._check()

    def _check(self) -> None:
        """Raise unless every parameter is one that the ranker can be fitted with."""
        for name in ("n_components", "n_embedding", "min_count", "max_tokens", "n_epochs"):
            check_integer(name, getattr(self, name), minimum=1)
        check_integer("batch_size", self.batch_size, minimum=2)
        if self.n_warm_up is not None:
            check_integer("n_warm_up", self.n_warm_up, minimum=0)
        if self.n_drawn is not None:
            check_integer("n_drawn", self.n_drawn, minimum=1)
        check_flag("square_root", self.square_root)
        check_choice("negatives", self.negatives, NEGATIVES)
        check_real("margin", self.margin, minimum=0)
        check_real("learning_rate", self.learning_rate, minimum=0, exclusive=True)
        if check_real("dropout", self.dropout, minimum=0) >= 1:
            raise ValueError(f"dropout must be a number < 1, got {self.dropout}")

    def _fingerprint(self, generator: torch.Generator, *parts: CaptionTable) -> str:
        """Digest of settings, captions, what belongs to what, and the weights at the start.

        Features, which may be more than memory holds, count by their means and spreads.
        """
        params = {**self.get_params(), "rng": generator.initial_seed()}
        arrays = [value.cpu().numpy() for value in self.space_.state_dict().values()]
        for part in parts:
            words, lengths = (values.cpu().numpy() for values in part.sentences)
            arrays += [part.caption_image, part.images.offsets, words, lengths]
            arrays += part.images.moments(np.unique(part.caption_image))
        return digest(
            json.dumps(params_to_json(params)).encode(), *(array.tobytes() for array in arrays)
        )


_MAX_GRADIENT_NORM = 2.0


def _texts(name: str, captions: Any) -> Sequence[str]:
    if isinstance(captions, str) or not isinstance(captions, Sequence):
        raise TypeError(f"{name} must be a sequence of strings, got {captions!r:.80}")
    for text in captions:
        if not isinstance(text, str):
            raise TypeError(f"{name} must hold strings, got {text!r:.80}")
    if not captions:
        raise ValueError(f"{name} must hold at least one caption")
    return captions
