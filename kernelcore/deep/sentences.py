"""Base classes of models that read raw text and learn a vocabulary and word embeddings."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from kernelcore._check import Array, check_choice, check_integer, check_real
from kernelcore._store import Contents
from kernelcore.captions import Vocabulary
from kernelcore.captions.tokens import tokenize
from kernelcore.deep.base import TorchModel, TorchRanker
from kernelcore.deep.encoders import SentenceSpace, initial_embedding
from kernelcore.deep.items import Sentences
from kernelcore.deep.layers import seeded_generator
from kernelcore.deep.losses import NEGATIVES, RankingObjective
from kernelcore.deep.training import Cooldown, Schedule
from kernelcore.lexical import WordVectors
from kernelcore.models.base import Pairs


class WordModel(TorchModel):
    """Base class of models that learn a vocabulary and word embeddings from raw text."""

    n_embedding: int
    min_count: int
    max_tokens: int
    negatives: str
    n_warm_up: int | None
    vocabulary_: Vocabulary

    def _learn_words(
        self,
        texts: Sequence[str],
        word_vectors: WordVectors | None,
        generator: torch.Generator,
    ) -> Tensor:
        """Learn the vocabulary, and return the initial word embeddings."""
        self.vocabulary_ = Vocabulary.from_captions(
            [list(map(self._tokenize, texts))], min_count=self.min_count
        )
        return initial_embedding(
            self.vocabulary_, word_vectors, self.n_embedding, generator=generator
        )

    def _encode(self, captions: Sequence[str]) -> Sentences:
        return Sentences.of(
            captions, self.vocabulary_, max_tokens=self.max_tokens, tokenize=self._tokenize
        ).to(self.device)

    def _tokenize(self, text: str) -> list[str]:
        """Split a caption into words."""
        return tokenize(text)

    def _parts(self) -> tuple[dict[str, Array], dict[str, Any]]:
        words = self.vocabulary_
        tensors = {"counts": words.counts, "document_frequency": words.document_frequency}
        for name, weight in self.space_.state_dict().items():
            tensors[f"space.{name}"] = weight.cpu().numpy()
        return tensors, {"words": words.words, "n_documents": words.n_documents}

    def _rebuild(self, arrays: Contents, metadata: Contents) -> Mapping[str, Array]:
        counts = arrays["counts"], arrays["document_frequency"]
        self.vocabulary_ = Vocabulary(metadata["words"], *counts, metadata["n_documents"])
        return {
            name.removeprefix("space."): array
            for name, array in arrays.items()
            if name not in ("counts", "document_frequency")
        }

    def _check_params(self) -> None:
        super()._check_params()
        for name in ("n_embedding", "min_count", "max_tokens"):
            check_integer(name, getattr(self, name), minimum=1)
        check_choice("negatives", self.negatives, NEGATIVES)
        if self.n_warm_up is not None:
            check_integer("n_warm_up", self.n_warm_up, minimum=0)


class SentenceRanker(WordModel, TorchRanker):
    """Base class of rankers that read raw captions and train word embeddings.

    A subclass has the parameters, and makes the space that compares both sides.
    """

    max_gradient_norm = 2.0
    cooldown = 0.25
    n_embedding_: int
    space_: SentenceSpace

    def __init_subclass__(cls) -> None:
        """Use the name of the class as the type of its files."""
        super().__init_subclass__()
        cls.kind = cls.__name__

    @abstractmethod
    def _make_space(
        self, n_features: int, embedding: Tensor, generator: torch.Generator
    ) -> SentenceSpace:
        """Make the space with random initial weights."""

    def _check_params(self) -> None:
        super()._check_params()
        check_real("cooldown", self.cooldown, minimum=0, maximum=1)

    def _learn(
        self, training: Pairs, word_vectors: WordVectors | None, generator: torch.Generator
    ) -> Sentences:
        embedding = self._learn_words(training.captions, word_vectors, generator)
        self._build(training.images.rows.shape[1], embedding, generator)
        return self._encode(training.captions)

    def _build(self, n_features: int, embedding: Tensor, generator: torch.Generator) -> None:
        self._built_with = self._plain_params()
        self.n_features_, self.n_embedding_ = n_features, embedding.shape[1]
        self.space_ = self._make_space(n_features, embedding, generator).to(embedding.device)

    def _parts(self) -> tuple[dict[str, Array], dict[str, Any]]:
        tensors, about = super()._parts()
        sizes = {"n_features": self.n_features_, "n_embedding": self.n_embedding_}
        return tensors, {**sizes, **about}

    def _rebuild(self, arrays: Contents, metadata: Contents) -> Mapping[str, Array]:
        weights = super()._rebuild(arrays, metadata)
        names = ("n_features", "n_embedding")
        sizes = [check_integer(name, metadata[name], minimum=1) for name in names]
        embedding = torch.empty(len(self.vocabulary_) + 1, sizes[1])
        self._build(sizes[0], embedding, seeded_generator(0))
        return weights

    def _schedule(self) -> Schedule:
        return Cooldown(
            self.learning_rate, self.batch_size, self.n_epochs, n_last=self._n_last()
        )

    def _objective(self, training: Pairs, dev: Pairs) -> RankingObjective:
        n_warm_up = self.n_warm_up
        if n_warm_up is None:  # until the learning rate is reduced
            n_warm_up = self.n_epochs - self._n_last()
        return RankingObjective(
            self.space_, training, dev, self.margin, self.negatives, n_warm_up, self.n_drawn
        )

    def _n_last(self) -> int:
        """Return the number of epochs with the reduced learning rate."""
        return int(self.n_epochs * self.cooldown)
