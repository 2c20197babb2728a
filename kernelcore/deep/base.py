"""Base classes of models that read words, and of rankers: `fit`, scores and embeddings."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from kernelcore._check import as_strings, check_integer
from kernelcore._store import Contents
from kernelcore._threads import Progress
from kernelcore.captions import Vocabulary
from kernelcore.captions.tokens import tokenize
from kernelcore.deep.encoders import Dropout, Space, initial_embedding
from kernelcore.deep.items import Regions, RegionTable, Sentences
from kernelcore.deep.losses import Negatives, hinge_loss, relative_variance
from kernelcore.deep.training import (
    TorchModel,
    cooldown,
    seeded_generator,
    torch_threads,
)
from kernelcore.evaluation.ranks import retrieval_ranks
from kernelcore.lexical import WordVectors
from kernelcore.lexical.vectors import check_word_vectors
from kernelcore.models.base import Pairs, Task, check_task, dev_parts, held_out, is_nested


class WordModel(TorchModel):
    """Base class of models that read raw text and train word embeddings."""

    n_embedding: int
    min_count: int
    max_tokens: int
    n_embedding_: int
    vocabulary_: Vocabulary

    def _tokenize(self, text: str) -> list[str]:
        """Split a text into words."""
        return tokenize(text)

    def _learn_words(
        self,
        texts: Sequence[str],
        word_vectors: WordVectors | None,
        generator: torch.Generator,
    ) -> Tensor:
        """Learn the vocabulary, and return the initial embeddings of its words."""
        tokens = list(map(self._tokenize, texts))
        self.vocabulary_ = Vocabulary.from_captions([tokens], min_count=self.min_count)
        return initial_embedding(
            self.vocabulary_, word_vectors, self.n_embedding, generator=generator
        )

    def _encode(self, captions: Any) -> Sentences:
        tokens = list(map(self._tokenize, captions))
        return Sentences.of(tokens, self.vocabulary_, max_tokens=self.max_tokens).to(
            self.device
        )

    @abstractmethod
    def _make_space(
        self, n_features: int, embedding: Tensor, generator: torch.Generator | None
    ) -> Space:
        """Make the space with random initial weights; without a generator, with none."""

    def _build(
        self, n_features: int, embedding: Tensor, generator: torch.Generator | None
    ) -> None:
        self._built_with = self._plain_params()
        self.n_features_, self.n_embedding_ = n_features, embedding.shape[1]
        self.space_ = self._make_space(n_features, embedding, generator).to(embedding.device)


@dataclass(kw_only=True, repr=False, eq=False)
class TorchRanker(TorchModel):
    """Base class of rankers of images and captions.

    Its parameters are those of all rankers. A subclass reads captions, makes the space that
    compares both sides, and defines the objective and the learning rates of the training.
    """

    n_components: int = 256
    square_root: bool = False
    dropout: float = 0.3
    learning_rate: float = 1e-3
    batch_size: int = 128
    n_epochs: int = 10
    patience: int | None = None
    rng: np.random.Generator | int | None = None
    device: str = "cpu"

    # Parameters of some rankers.
    regions: Regions = field(init=False, default="all")
    n_drawn: int | None = field(init=False, default=None)
    network: nn.Module | None = field(init=False, default=None)

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
            training, new = map(training.select, held_out(training.caption_image))
        else:
            new = self._pairs("dev", *dev_parts(dev), prefix="dev ")
        used = np.unique(training.caption_image)
        if len(used) < 2:
            raise ValueError(f"images must hold at least two with captions, got {len(used)}")
        generator = seeded_generator(self.rng, self.device)
        training = replace(training, captions=self._learn(training, word_vectors, generator))
        self._check_width("dev", new.images)
        new = replace(new, captions=self._encode(new.captions)).compact()
        if self.network is None:
            self.space_.standardize(*training.images.moments(used))
        self._train(
            training,
            new,
            generator,
            self._fingerprint(generator, training, new),
            folder=folder,
            n_threads=n_threads,
            progress=progress,
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
            scores: npt.NDArray[np.float32] = self.space_.scores(table, own)
        return scores

    @abstractmethod
    def _learn(
        self, training: Pairs, word_vectors: WordVectors | None, generator: torch.Generator
    ) -> Any:
        """Learn the words, make the space, and return the training captions encoded."""

    @abstractmethod
    def _encode(self, captions: Any) -> Any:
        """Convert captions to the input of the space."""

    def _evaluate(self, dev: Pairs) -> Mapping[str, float]:
        """Return 1 minus the mean of R@1, R@5 and R@10 of both directions."""
        scores = self.space_.scores(dev.images, dev.captions)
        n_threads = torch.get_num_threads()
        ranks = retrieval_ranks(scores, dev.caption_image, n_threads=n_threads)
        recalls = [np.mean(side <= k) for side in ranks for k in (1, 5, 10)]
        return {"dev_loss": float(1 - np.mean(recalls))}

    def _pairs(
        self, name: str, images: Any, captions: Any, caption_image: Any, *, prefix: str = ""
    ) -> Pairs:
        """Check images, captions and their owners. Errors mention `name`."""
        table = self._table(name, images)
        checked = self._checked_captions(captions, f"{prefix}captions")
        return Pairs.of(table, checked, caption_image, prefix=prefix)

    def _regions(self) -> Regions:
        """Return which regions of an image are read."""
        return self.regions

    def _checked_captions(self, captions: Any, name: str = "captions") -> Any:
        if is_nested(captions):
            return captions
        texts = as_strings(name, captions)
        if not texts:
            raise ValueError(f"{name} must hold at least one caption")
        return texts

    def _table(self, name: str, images: Any) -> RegionTable:
        table = RegionTable.of(name, images, self._regions())
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
        return self._encode(self._checked_captions(captions))

    def _check_width(self, name: str, table: RegionTable) -> None:
        if self.network is None and table.rows.shape[1] != self.n_features_:
            shape = table.rows.shape[1:]
            raise ValueError(f"{name} must have {self.n_features_} features, got shape {shape}")

    def _fingerprint(self, generator: torch.Generator, *parts: Pairs) -> str:
        """Return a digest of settings, captions, owners, offsets and initial weights.

        Features may be larger than the memory. They are represented by mean and standard
        deviation.
        """
        arrays: list[Any] = list(self.space_.state_dict().values())
        for part in parts:
            captions = part.captions
            arrays += captions if isinstance(captions, tuple) else vars(captions).values()
            arrays += [part.caption_image, part.images.offsets]
            if self.network is None:
                arrays += part.images.moments(np.unique(part.caption_image))
        return self._digest(generator, arrays)


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


@dataclass(kw_only=True, repr=False, eq=False)
class SentenceRanker(WordModel, TorchRanker):
    """Base class of rankers that read raw captions and train word embeddings."""

    n_embedding: int = 50
    min_count: int = 2
    max_tokens: int = 20

    # Parameters of some rankers.
    margin: float = field(init=False, default=0.0)
    negatives: Negatives = field(init=False, default="sum")
    n_warm_up: int | None = field(init=False, default=None)
    variance_weight: float = field(init=False, default=0.0)
    max_gradient_norm = 2.0

    def _learn(
        self, training: Pairs, word_vectors: WordVectors | None, generator: torch.Generator
    ) -> Sentences:
        embedding = self._learn_words(training.captions, word_vectors, generator)
        self._build(training.images.rows.shape[1], embedding, generator)
        return self._encode(training.captions)

    def _about(self) -> dict[str, Any]:
        sizes = {"n_features": self.n_features_, "n_embedding": self.n_embedding_}
        return {**sizes, "vocabulary": self.vocabulary_.to_dict()}

    def _rebuild(self, weights: Contents, metadata: Contents) -> None:
        self.vocabulary_ = Vocabulary.from_dict(metadata["vocabulary"])
        n_features, n_embedding = (
            check_integer(name, metadata[name], minimum=1)
            for name in ("n_features", "n_embedding")
        )
        self._build(n_features, torch.empty(len(self.vocabulary_) + 1, n_embedding), None)

    def _n_before(self) -> int:
        """Return the number of epochs before the learning rate is reduced."""
        return self.n_epochs - self.n_epochs // 4

    def _schedule(self, dev_losses: Sequence[float]) -> tuple[float, int]:
        rates = self.learning_rate, self.batch_size
        return cooldown(dev_losses, *rates, n_before=self._n_before())

    def _loss(
        self, training: Pairs, batch: list[int], epoch: int, generator: torch.Generator
    ) -> Tensor:
        r"""Return the hinge loss of pairs against the others of their minibatch.

        Other captions of the same image are not negatives. The weighted variance of the
        vectors is subtracted:

        .. math:: C - \lambda \big( \sigma^2(v_1, \dots) + \sigma^2(t_1, \dots) \big)
        """
        images, positions = np.unique(training.caption_image[batch], return_inverse=True)
        device = self.space_.device
        rows, offsets = training.images.take(images, device, self.n_drawn, generator)
        dropout = Dropout(self.dropout, generator)
        shown = self.space_.encode_images(rows, offsets, dropout)
        sentences = training.captions.take(torch.tensor(batch))
        texts = self.space_.encode_captions(sentences, dropout)
        owners = torch.from_numpy(positions).to(device)
        n_warm_up = self._n_before() if self.n_warm_up is None else self.n_warm_up
        loss = hinge_loss(
            # Row i is sentence i, column j the image of sentence j.
            self.space_.similarities(shown, texts)[owners].T,
            margin=self.margin,
            negatives="sum" if epoch < n_warm_up else self.negatives,
            excluded=owners.unsqueeze(1) == owners,
        )
        if self.variance_weight:
            variance = relative_variance(shown) + relative_variance(texts)
            loss = loss - self.variance_weight * variance
        return loss
