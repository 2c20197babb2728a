"""Links inside documents, learned from documents alone."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from kernelcore._estimator import Estimator, params_to_json
from kernelcore._files import digest, load_tensors, save_tensors
from kernelcore._progress import Progress
from kernelcore._reading import check_tensor, reading
from kernelcore._validation import check_choice, check_integer, check_real
from kernelcore.datasets import Document
from kernelcore.deep.document_objective import SIMILARITIES, DocumentObjective
from kernelcore.deep.document_tables import DocumentTable, as_documents
from kernelcore.deep.encoders import ImageEncoder, SentenceEncoder, initial_embedding
from kernelcore.deep.joint_space import JointSpace
from kernelcore.deep.losses import NEGATIVES
from kernelcore.deep.randomness import seeded_generator
from kernelcore.deep.restoring import fill, unfilled
from kernelcore.deep.schedules import Plateau
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
from kernelcore.lexical.word_vectors import check_word_vectors

_KIND = "document linker"


class DocumentLinker(Estimator):
    r"""Finds which sentences and images of a document belong together.

    It learns from documents whose links nobody knows: sentences :math:`S_i` and images
    :math:`V_i` that occur together must be more alike, as sets, than those that do not,

    .. math::

        \max_{j \ne i} h(\mathrm{sim}(S_i, V_i), \mathrm{sim}(S_i, V_j)) +
        \max_{j \ne i} h(\mathrm{sim}(S_i, V_i), \mathrm{sim}(S_j, V_i)), \quad
        h(p, n) = \max(0, \alpha - p + n)

    where sim looks at the cosines of a recurrent network's vectors of the sentences and an
    affine map's vectors of the images. Within a document these cosines then say which
    sentence belongs to which image.

    Parameters
    ----------
    similarity : {"AP", "DC", "TK", "NoStruct"}, default "AP"
        How alike sets are: the best assignment, a dense correspondence, the best
        correspondences (see `kernelcore.matching.set_similarity`), or the cosine of one
        sentence and one image that are drawn at random.
    k : int or "half", optional
        Number of links or correspondences of "AP" and "TK".
    n_components : int, default 256
        Length of the vectors.
    n_embedding : int, default 300
        Length of the word embeddings, where no word vectors are given.
    min_count : int, default 2
        Rarer words of the training documents are treated as unknown.
    max_tokens : int, default 20
        Words of a sentence that are read.
    dropout : float, default 0.4
        Share of embeddings and image features that are dropped in training.
    margin : float, default 0.2
        :math:`\alpha`.
    n_negatives : int, default 10
        Other documents in a minibatch, b.
    negatives : {"hardest", "mean", "sum"}, default "hardest"
        Which of them count, in training and in the development loss.
    n_warm_up : int, default 4
        Epochs at the start that are trained with their mean in any case: at random weights
        the hardest tells little.
    learning_rate : float, default 1e-3
        Of Adam, divided by 5 when the development loss has not fallen for 4 epochs.
    n_epochs : int, default 20
    patience : int, optional
        Stop after that many epochs without a lower development loss.
    rng : numpy.random.Generator, int or None, default None
        Source of all random choices.
    device : str, default "cpu"
        Any of torch's.
    mixed_precision : bool, default False
        Multiply matrices in bfloat16, on a GPU alone.

    Attributes
    ----------
    vocabulary_ : Vocabulary
        Words of the training documents.
    history_ : History
        Losses of each epoch.

    See Also
    --------
    kernelcore.evaluation.evaluate_links : Measures the scores.
    kernelcore.models.ObjectLabelLinker : A baseline that does not learn.

    References
    ----------
    .. [1] J. Hessel, L. Lee and D. Mimno, "Unsupervised discovery of multimodal links in
       multi-image, multi-sentence documents", EMNLP 2019.

    Examples
    --------
    >>> from kernelcore.datasets import Document
    >>> from kernelcore.deep import DocumentLinker
    >>> features = {"dog.jpg": [1.0, 0.0, 0.0], "cat.jpg": [0.0, 1.0, 0.0],
    ...             "sea.jpg": [0.0, 0.0, 1.0]}
    >>> documents = [Document("1", ("a dog", "a cat"), ("cat.jpg", "dog.jpg")),
    ...              Document("2", ("the sea", "a dog"), ("dog.jpg", "sea.jpg")),
    ...              Document("3", ("a cat", "the sea"), ("sea.jpg", "cat.jpg"))]
    >>> linker = DocumentLinker(n_components=8, n_epochs=60, learning_rate=0.01, dropout=0.0,
    ...                         min_count=1, rng=0)
    >>> linker = linker.fit(documents, features, dev=documents)
    >>> linker.link_scores(documents[:1], features)[0].argmax(axis=1)
    array([1, 0])
    """

    def __init__(
        self,
        *,
        similarity: str = "AP",
        k: int | str | None = None,
        n_components: int = 256,
        n_embedding: int = 300,
        min_count: int = 2,
        max_tokens: int = 20,
        dropout: float = 0.4,
        margin: float = 0.2,
        n_negatives: int = 10,
        negatives: str = "hardest",
        n_warm_up: int = 4,
        learning_rate: float = 1e-3,
        n_epochs: int = 20,
        patience: int | None = None,
        rng: np.random.Generator | int | None = None,
        device: str = "cpu",
        mixed_precision: bool = False,
    ) -> None:
        self.similarity = similarity
        self.k = k
        self.n_components = n_components
        self.n_embedding = n_embedding
        self.min_count = min_count
        self.max_tokens = max_tokens
        self.dropout = dropout
        self.margin = margin
        self.n_negatives = n_negatives
        self.negatives = negatives
        self.n_warm_up = n_warm_up
        self.learning_rate = learning_rate
        self.n_epochs = n_epochs
        self.patience = patience
        self.rng = rng
        self.device = device
        self.mixed_precision = mixed_precision

    def fit(
        self,
        documents: Sequence[Document],
        features: Mapping[str, npt.ArrayLike],
        *,
        dev: Sequence[Document],
        word_vectors: WordVectors | None = None,
        folder: str | os.PathLike[str] | None = None,
        n_threads: int | None = None,
        progress: Progress = False,
    ) -> DocumentLinker:
        """Learn from documents.

        Parameters
        ----------
        documents : sequence of Document
            At least two. Their links are not looked at.
        features : mapping of str to array_like of shape (n_features,)
            Features of every image of the documents, by its id.
        dev : sequence of Document
            At least two other documents, by whose loss the epoch to keep is chosen. Where
            all their links are known, `history_` tells the ``dev_auc`` of each epoch.
        word_vectors : WordVectors, optional
            Where the word embeddings start; the default is at random.
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
        DocumentLinker
            This object.

        Raises
        ------
        TypeError, ValueError
            If a parameter is out of its range, there are too few documents, an image has no
            features, features are not finite or of different lengths, or the checkpoint is
            of another run.
        """
        members, judges = as_documents("documents", documents), as_documents("dev", dev)
        self._check(members, judges)
        generator = seeded_generator(self.rng, self.device)
        objective = self.objective(
            members, judges, features, word_vectors, generator, n_threads=n_threads
        )
        with torch_threads(n_threads):
            self.history_ = train(
                self.space_,
                objective,
                schedule=Plateau(self.learning_rate, self.n_negatives + 1),
                n_epochs=self.n_epochs,
                generator=generator,
                patience=self.patience,
                mixed_precision=self.mixed_precision,
                folder=folder,
                fingerprint=self._fingerprint(generator, members, judges, objective),
                progress=progress,
                description=f"train {self.similarity}",
            )
        return self

    def link_scores(
        self,
        documents: Sequence[Document],
        features: Mapping[str, npt.ArrayLike],
        *,
        n_threads: int | None = None,
    ) -> list[npt.NDArray[np.float32]]:
        """Score every sentence of a document with every image of it.

        Parameters
        ----------
        documents : sequence of Document
        features : mapping of str to array_like of shape (n_features,)
            Features of every image of the documents, by its id.
        n_threads : int, optional
            Threads to use; the default is every core this process may run on.

        Returns
        -------
        list of ndarray of float32, shape (n_sentences, n_images)
            Cosines, one matrix per document; higher means linked.
        """
        self._check_fitted("space_")
        table = self._tabulate(as_documents("documents", documents), features)
        self.space_.images.check_width(table.features)
        with torch_threads(n_threads), torch.inference_mode():
            sentences, images = self.space_.encode(table.sentences, table.features)
        return table.link_scores(sentences, images)

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
            **about_words,
            "epochs": self.history_.epochs,
        }
        save_tensors(path, _KIND, tensors, metadata)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, device: str = "cpu") -> DocumentLinker:
        """Read what `save` wrote, onto any device; a damaged file is a ValueError."""
        with reading(path):
            arrays, metadata = load_tensors(path, _KIND)
            linker = cls.from_json(metadata["params"]).set_params(device=device)
            linker.vocabulary_ = vocabulary_from(arrays, metadata)
            linker.history_ = History.of(metadata["epochs"])
            weights = space_of(arrays)
            n_embedding, n_features = (
                check_tensor(name, weights[name], (None, None)).shape[1]
                for name in ("sentences.embedding.weight", "images.affine.weight")
            )
            with unfilled():
                embedding = torch.empty(len(linker.vocabulary_) + 1, n_embedding)
                linker._build(n_features, embedding, seeded_generator(0))
            linker.space_ = fill(linker.space_, weights, path, cls.__name__).to(device)
            return linker

    def objective(
        self,
        documents: Sequence[Document],
        dev: Sequence[Document],
        features: Mapping[str, npt.ArrayLike],
        word_vectors: WordVectors | None,
        generator: torch.Generator,
        *,
        n_threads: int | None = None,
    ) -> DocumentObjective:
        """Make the vocabulary, a model with random weights, and what `fit` trains it for.

        Parameters
        ----------
        documents, dev, features, word_vectors
            See `fit`.
        generator : torch.Generator
            Draws the weights at the start.
        n_threads : int, optional
            Threads of the matching; the default is every core this process may run on.

        Returns
        -------
        DocumentObjective

        Raises
        ------
        TypeError, ValueError
            As `fit`, of documents, features and word vectors.
        """
        check_word_vectors(word_vectors)
        self.vocabulary_ = vocabulary_of(
            [text for d in documents for text in d.sentences], min_count=self.min_count
        )
        table, dev_table = self._tabulate(documents, features), self._tabulate(dev, features)
        embedding = initial_embedding(
            self.vocabulary_, word_vectors, self.n_embedding, generator=generator
        )
        self._build(table.features.shape[1], embedding, generator)
        self.space_.images.standardize(table.features)
        self.space_.images.check_width(dev_table.features)
        links = [d.links for d in dev if d.links is not None]
        return DocumentObjective(
            self.space_,
            table,
            dev_table,
            dev_links=links if len(links) == len(dev) else None,
            similarity=self.similarity,
            k=self.k,
            margin=self.margin,
            negatives=self.negatives,
            n_warm_up=self.n_warm_up,
            batch_size=self.n_negatives + 1,
            n_threads=n_threads,
        )

    def _build(self, n_features: int, embedding: Tensor, generator: torch.Generator) -> None:
        """Make the model with random weights."""
        options: dict[str, Any] = {"dropout": self.dropout, "generator": generator}
        self.space_ = JointSpace(
            SentenceEncoder(embedding, self.n_components, **options),
            ImageEncoder(n_features, self.n_components, **options),
        ).to(embedding.device)

    def _tabulate(
        self, documents: Sequence[Document], features: Mapping[str, npt.ArrayLike]
    ) -> DocumentTable:
        return DocumentTable.of(documents, features, self._encode, torch.device(self.device))

    def _encode(self, sentences: Sequence[str]) -> Sentences:
        return as_sentences(sentences, self.vocabulary_, max_tokens=self.max_tokens)

    def _fingerprint(
        self,
        generator: torch.Generator,
        members: Sequence[Document],
        judges: Sequence[Document],
        objective: DocumentObjective,
    ) -> str:
        """Digest of all that the result depends on but the number of epochs."""
        params = {**self.get_params(), "rng": generator.initial_seed(), "n_epochs": None}
        texts = [[(d.sentences, d.images) for d in part] for part in (members, judges)]
        weights = [value.cpu().numpy().tobytes() for value in self.space_.state_dict().values()]
        return digest(
            json.dumps([params_to_json(params), texts]).encode(),
            *(
                part.features.cpu().numpy().tobytes()
                for part in (objective.training, objective.dev)
            ),
            *weights,
        )

    def _check_params(self) -> None:
        check_choice("similarity", self.similarity, SIMILARITIES)
        if self.k is not None and self.similarity in {"DC", "NoStruct"}:
            raise ValueError(
                f"k must be omitted for similarity {self.similarity!r}, got {self.k!r}"
            )
        if isinstance(self.k, str):
            check_choice("k", self.k, ("half",))
        elif self.k is not None:
            check_integer("k", self.k, minimum=1)
        for name in ("n_components", "n_embedding", "min_count", "max_tokens", "n_negatives"):
            check_integer(name, getattr(self, name), minimum=1)
        check_choice("negatives", self.negatives, NEGATIVES)
        check_integer("n_warm_up", self.n_warm_up, minimum=0)
        check_real("margin", self.margin, minimum=0)
        check_real("learning_rate", self.learning_rate, minimum=0, exclusive=True)
        if check_real("dropout", self.dropout, minimum=0) >= 1:
            raise ValueError(f"dropout must be a number < 1, got {self.dropout}")

    def _check(self, members: Sequence[Document], judges: Sequence[Document]) -> None:
        self._check_params()
        for name, part in (("documents", members), ("dev", judges)):
            if len(part) < 2:
                raise ValueError(f"{name} must hold at least two documents, got {len(part)}")
