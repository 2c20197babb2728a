"""What rankers of images and raw captions share: they learn their own words."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from kernelcore._reading import Contents
from kernelcore._validation import Array, check_choice, check_flag, check_integer, check_real
from kernelcore.captions import Vocabulary
from kernelcore.captions.tokens import tokenize
from kernelcore.deep.encoders import initial_embedding
from kernelcore.deep.losses import NEGATIVES
from kernelcore.deep.randomness import seeded_generator
from kernelcore.deep.ranking_objective import RankingObjective
from kernelcore.deep.ranking_space import RankingSpace
from kernelcore.deep.schedules import Cooldown, Schedule
from kernelcore.deep.sentences import (
    Sentences,
    as_sentences,
    space_of,
    vocabulary_from,
    vocabulary_of,
    vocabulary_parts,
)
from kernelcore.deep.torch_ranker import TorchRanker
from kernelcore.lexical import WordVectors
from kernelcore.models.pairs import Pairs


class SentenceRanker(TorchRanker):
    """The half that `EmbeddingRanker`, `CrossAttentionRanker` and `OrderRanker` share.

    A subclass has the parameters, and makes the space in which it compares. Word embeddings
    start from the word vectors that `fit` is given, and are trained.
    """

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
    n_drawn: int | None = None
    vocabulary_: Vocabulary
    space_: RankingSpace

    def __init_subclass__(cls) -> None:
        """Name the kind of file after the class."""
        super().__init_subclass__()
        cls.kind = cls.__name__

    @abstractmethod
    def _make_space(
        self, n_features: int, embedding: Tensor, generator: torch.Generator
    ) -> RankingSpace:
        """Make the space with random weights."""

    def _learn(
        self, training: Pairs, word_vectors: WordVectors | None, generator: torch.Generator
    ) -> Sentences:
        self.vocabulary_ = vocabulary_of(
            training.captions, min_count=self.min_count, tokenize=self._tokenize
        )
        embedding = initial_embedding(
            self.vocabulary_,
            self._start(word_vectors, training.captions),
            self.n_embedding,
            generator=generator,
        )
        self._build(training.images.rows.shape[1], embedding, generator)
        return self._encode(training.captions)

    def _encode(self, captions: Sequence[str]) -> Sentences:
        return as_sentences(
            captions, self.vocabulary_, max_tokens=self.max_tokens, tokenize=self._tokenize
        ).to(self.device)

    def _build(self, n_features: int, embedding: Tensor, generator: torch.Generator) -> None:
        self.n_features_, self.n_embedding_ = n_features, embedding.shape[1]
        self.space_ = self._make_space(n_features, embedding, generator).to(embedding.device)

    def _parts(self) -> tuple[dict[str, Array], dict[str, Any]]:
        tensors, about_words = vocabulary_parts(self.vocabulary_)
        for name, weight in self.space_.state_dict().items():
            tensors[f"space.{name}"] = weight.cpu().numpy()
        sizes = {"n_features": self.n_features_, "n_embedding": self.n_embedding_}
        return tensors, {**sizes, **about_words}

    def _rebuild(self, arrays: Contents, metadata: Contents) -> Mapping[str, Array]:
        self.vocabulary_ = vocabulary_from(arrays, metadata)
        n_features, n_embedding = (
            check_integer(name, metadata[name], minimum=1)
            for name in ("n_features", "n_embedding")
        )
        embedding = torch.empty(len(self.vocabulary_) + 1, n_embedding)
        self._build(n_features, embedding, seeded_generator(0))
        return space_of(arrays)

    @property
    def _n_features(self) -> int:
        return self.n_features_

    @property
    def _max_gradient_norm(self) -> float:
        return 2.0

    @property
    def _n_last(self) -> int:
        """Epochs at the end with a lower learning rate."""
        return self.n_epochs // 4

    def _schedule(self) -> Schedule:
        return Cooldown(self.learning_rate, self.batch_size, self.n_epochs, n_last=self._n_last)

    def _objective(self, training: Pairs, dev: Pairs) -> RankingObjective:
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

    def _check_params(self) -> None:
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
