"""Links between the sentences and images of a document, learned without link labels."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from kernelcore._check import Array, check_choice, check_integer
from kernelcore._estimator import params_to_json
from kernelcore._store import Contents, check_tensor, digest
from kernelcore._threads import Progress
from kernelcore.datasets import Document
from kernelcore.deep.encoders import ImageEncoder, SentenceEncoder
from kernelcore.deep.items import DocumentTable, Sentences, Side, as_documents
from kernelcore.deep.layers import permutation, seeded_generator, torch_threads
from kernelcore.deep.losses import hinge_loss, set_similarities
from kernelcore.deep.sentences import WordModel
from kernelcore.deep.training import Plateau, cut_into_batches, train
from kernelcore.evaluation import evaluate_links
from kernelcore.evaluation.links import Links
from kernelcore.lexical import WordVectors
from kernelcore.lexical.vectors import check_word_vectors

SIMILARITIES = ("AP", "DC", "TK", "NoStruct")

Sides: TypeAlias = tuple[Side, Side]
"""Sentences and images of the same documents."""

_DEV_SEED = 0
_DEV_DRAWS = 10
_ROWS_AT_ONCE = 1024


class DocumentLinker(WordModel):
    r"""Finds links between the sentences and images of a document.

    The links of the training documents are not used. The loss requires that the set of
    sentences :math:`S_i` and the set of images :math:`V_i` of the same document are more
    similar than sets of different documents:

    .. math::

        \max_{j \ne i} h(\mathrm{sim}(S_i, V_i), \mathrm{sim}(S_i, V_j)) +
        \max_{j \ne i} h(\mathrm{sim}(S_i, V_i), \mathrm{sim}(S_j, V_i)), \quad
        h(p, n) = \max(0, \alpha - p + n)

    The set similarity sim is computed from cosines. A gated recurrent unit encodes the
    sentences, an affine map encodes the images. The cosines within a document are the scores
    of its links.

    Parameters
    ----------
    similarity : {"AP", "DC", "TK", "NoStruct"}, default "AP"
        Similarity of sets: best assignment, dense correspondence, best correspondences (see
        `kernelcore.matching.set_similarity`), or the cosine of one random sentence and one
        random image.
    k : int or "half", optional
        Number of links or correspondences of "AP" and "TK".
    n_components : int, default 256
        Length of the vectors.
    n_embedding : int, default 300
        Length of a word embedding, if no word vectors are given.
    min_count : int, default 2
        Words that occur less often in the training documents are unknown.
    max_tokens : int, default 20
        Sentences are truncated to this number of words.
    dropout : float, default 0.4
        Share of features and of embedding entries that are dropped in training.
    margin : float, default 0.2
        :math:`\alpha`.
    n_negatives : int, default 10
        Number b of other documents in a minibatch.
    negatives : {"hardest", "mean", "sum"}, default "hardest"
        How the hinges of the negatives are reduced, in training and in the development loss.
    n_warm_up : int, default 4
        Number of epochs, from the first on, that use the mean over all negatives.
        Hard-negative mining from random weights is unreliable.
    learning_rate : float, default 1e-3
        Initial learning rate of Adam. It is divided by 5 after 4 epochs without a lower
        development loss.
    n_epochs : int, default 20
        Maximum number of epochs. The epoch with the lowest development loss is kept.
    patience : int, optional
        Stop after this number of epochs without a lower development loss.
    rng : numpy.random.Generator, int or None, default None
        Random generator or seed.
    device : str, default "cpu"
        Torch device.
    mixed_precision : bool, default False
        Multiply matrices in bfloat16. Needs a GPU.

    Attributes
    ----------
    vocabulary_ : Vocabulary
        Words of the training documents.
    history_ : History
        Losses of each epoch.

    See Also
    --------
    kernelcore.evaluation.evaluate_links : Evaluates the scores.
    kernelcore.models.ObjectLabelLinker : A baseline without training.

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

    kind = "document linker"

    n_warm_up: int
    space_: DocumentSpace

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
        """Train on documents.

        Parameters
        ----------
        documents : sequence of Document
            At least two. Their links are not used.
        features : mapping of str to array_like of shape (n_features,)
            Features of every image of the documents, by its id.
        dev : sequence of Document
            At least two development documents, on which the best epoch is chosen. If all
            their links are known, `history_` has the ``dev_auc`` of each epoch.
        word_vectors : WordVectors, optional
            Pretrained word vectors. The default is random initial embeddings.
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
        DocumentLinker
            This object.

        Raises
        ------
        TypeError, ValueError
            If a parameter is out of range, there are too few documents, an image has no
            features, features are not finite or differ in length, or the checkpoint belongs
            to another run.
        """
        training, held_out = as_documents("documents", documents), as_documents("dev", dev)
        self._check_params()
        for name, part in (("documents", training), ("dev", held_out)):
            if len(part) < 2:
                raise ValueError(f"{name} must hold at least two documents, got {len(part)}")
        generator = seeded_generator(self.rng, self.device)
        objective = self.objective(
            training, held_out, features, word_vectors, generator, n_threads=n_threads
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
                fingerprint=self._fingerprint(generator, training, held_out, objective),
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
        """Score every sentence of a document against every image of the document.

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
            Cosines, one matrix per document. Higher scores are more likely links.
        """
        self._check_fitted("space_")
        table = self._tabulate(as_documents("documents", documents), features)
        self._check_width(table)
        with torch_threads(n_threads), torch.inference_mode():
            sentences, images = self.space_.encode(table.sentences, table.features)
        return table.link_scores(sentences, images)

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
        """Learn the vocabulary, make a model with random weights, and return its objective.

        Parameters
        ----------
        documents, dev, features, word_vectors
            See `fit`.
        generator : torch.Generator
            Draws the initial weights.
        n_threads : int, optional
            Threads of the matching; the default is every core this process may run on.

        Returns
        -------
        DocumentObjective

        Raises
        ------
        TypeError, ValueError
            As `fit`, for documents, features and word vectors.
        """
        check_word_vectors(word_vectors)
        texts = [text for d in documents for text in d.sentences]
        embedding = self._learn_words(texts, word_vectors, generator)
        table, dev_table = self._tabulate(documents, features), self._tabulate(dev, features)
        self._build(table.features.shape[1], embedding, generator)
        self._check_width(dev_table)
        mean, scale = table.features.mean(0), table.features.std(0, correction=0)
        scale = torch.where(scale > 0, scale, 1.0)
        self.space_.images.standardize(mean.cpu().numpy(), scale.cpu().numpy())
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
        """Make the space with random initial weights."""
        self._built_with = self._plain_params()
        options: dict[str, Any] = {"dropout": self.dropout, "generator": generator}
        self.space_ = DocumentSpace(
            SentenceEncoder(embedding, self.n_components, **options),
            ImageEncoder(n_features, self.n_components, **options),
        ).to(embedding.device)

    def _rebuild(self, arrays: Contents, metadata: Contents) -> Mapping[str, Array]:
        weights = super()._rebuild(arrays, metadata)
        n_embedding, n_features = (
            check_tensor(name, weights[name], (None, None)).shape[1]
            for name in ("sentences.embedding.weight", "images.affine.weight")
        )
        embedding = torch.empty(len(self.vocabulary_) + 1, n_embedding)
        self._build(n_features, embedding, seeded_generator(0))
        return weights

    def _tabulate(
        self, documents: Sequence[Document], features: Mapping[str, npt.ArrayLike]
    ) -> DocumentTable:
        return DocumentTable.of(documents, features, self._encode, torch.device(self.device))

    def _check_width(self, table: DocumentTable) -> None:
        found, wanted = table.features.shape[1], len(self.space_.images.mean)
        if found != wanted:
            raise ValueError(f"features must have {wanted} columns, got {found}")

    def _fingerprint(
        self,
        generator: torch.Generator,
        training: Sequence[Document],
        dev: Sequence[Document],
        objective: DocumentObjective,
    ) -> str:
        """Return a digest of settings, documents, features and initial weights.

        The number of epochs is not part of it.
        """
        params = {**self.get_params(), "rng": generator.initial_seed(), "n_epochs": None}
        texts = [[(d.sentences, d.images) for d in part] for part in (training, dev)]
        tensors = [objective.training.features, objective.dev.features]
        tensors += self.space_.state_dict().values()
        return digest(
            json.dumps([params_to_json(params), texts]).encode(),
            *(tensor.cpu().numpy().tobytes() for tensor in tensors),
        )

    def _check_params(self) -> None:
        super()._check_params()
        check_choice("similarity", self.similarity, SIMILARITIES)
        if self.k is not None and self.similarity in {"DC", "NoStruct"}:
            raise ValueError(
                f"k must be omitted for similarity {self.similarity!r}, got {self.k!r}"
            )
        if isinstance(self.k, str):
            check_choice("k", self.k, ("half",))
        elif self.k is not None:
            check_integer("k", self.k, minimum=1)
        check_integer("n_negatives", self.n_negatives, minimum=1)
        check_integer("n_warm_up", self.n_warm_up, minimum=0)


class DocumentSpace(nn.Module):
    """Encoders of sentences and images, compared by the cosine.

    Parameters
    ----------
    sentences : SentenceEncoder
    images : ImageEncoder
        Their vectors have the same length.
    """

    def __init__(self, sentences: SentenceEncoder, images: ImageEncoder) -> None:
        super().__init__()
        self.sentences = sentences
        self.images = images

    @torch.no_grad()
    def encode(self, sentences: Sentences, features: Tensor) -> tuple[Tensor, Tensor]:
        """Encode any number of sentences and images, each as a unit vector."""
        # Sentences of similar length are encoded together, which needs less padding.
        order = torch.argsort(sentences.lengths, stable=True)
        vectors = [
            self.sentences(sentences.take(rows)) for rows in torch.split(order, _ROWS_AT_ONCE)
        ]
        back = torch.argsort(order).to(sentences.word_ids.device)
        return torch.cat(vectors)[back], self.images(features)


@dataclass(eq=False)
class DocumentObjective:
    """Hinge loss of documents against the other documents of their minibatch.

    Parameters
    ----------
    space : DocumentSpace
        The model.
    training, dev : DocumentTable
    dev_links : sequence of set of (int, int), or None
        True links of the development documents. They are used for evaluation only.
    similarity : {"AP", "DC", "TK", "NoStruct"}
    k : int or "half" or None
    margin : float
    negatives : {"hardest", "mean", "sum"}
    n_warm_up : int
        Number of epochs, from the first on, that use the mean over all negatives.
    batch_size : int
        Size of the minibatches of development documents.
    n_threads : int or None
        Threads of the matching; the default is every core this process may run on.
    """

    space: DocumentSpace
    training: DocumentTable
    dev: DocumentTable
    dev_links: Sequence[Links] | None
    similarity: str
    k: int | str | None
    margin: float
    negatives: str
    n_warm_up: int
    batch_size: int
    n_threads: int | None

    def batches(self, batch_size: int, generator: torch.Generator) -> Sequence[list[int]]:
        """Divide the documents into minibatches of at least two, in random order."""
        return cut_into_batches(permutation(len(self.training), generator), batch_size)

    def loss(self, batch: list[int], epoch: int, generator: torch.Generator) -> Tensor:
        """Return the loss of some training documents."""
        sides = self.sides(self.training, batch, generator)
        similarities = self.similarities(self.cosines(sides, generator), sides)
        return self._loss(similarities, "mean" if epoch < self.n_warm_up else self.negatives)

    def evaluate(self) -> Mapping[str, float]:
        """Return the mean loss of the development documents, and ``dev_auc`` of their links.

        The minibatches and the random draws of "NoStruct" are the same in every epoch.
        """
        sentences, images = self.space.encode(self.dev.sentences, self.dev.features)
        generator = torch.Generator().manual_seed(_DEV_SEED)
        total = 0.0
        n_draws = _DEV_DRAWS if self.similarity == "NoStruct" else 1
        for _ in range(n_draws):
            for batch in cut_into_batches(range(len(self.dev)), self.batch_size):
                texts, shown = sides = self.sides(self.dev, batch, generator)
                parts = sentences[texts.distinct], images[shown.distinct]
                similarities = self.similarities(_cosines(*parts, sides), sides)
                total += float(self._loss(similarities, self.negatives)) * len(batch)
        measured = {"dev_loss": total / (n_draws * len(self.dev))}
        if self.dev_links is not None:
            scores = self.dev.link_scores(sentences, images)
            measured["dev_auc"] = evaluate_links(scores, self.dev_links).mean["links"]["AUC"]
        return measured

    def sides(
        self, table: DocumentTable, batch: Sequence[int], generator: torch.Generator
    ) -> Sides:
        """Return the sentences and images to compare: all, or one random pair per document."""
        members = [[rows[i] for i in batch] for rows in (table.sentence_rows, table.image_rows)]
        if self.similarity == "NoStruct":
            draws = torch.rand((2, len(batch)), generator=generator, device=generator.device)
            members = [
                [rows[[int(draw * len(rows))]] for rows, draw in zip(side, drawn, strict=True)]
                for side, drawn in zip(members, draws.tolist(), strict=True)
            ]
        return Side.of(members[0]), Side.of(members[1])

    def cosines(self, sides: Sides, generator: torch.Generator) -> Tensor:
        """Encode sentences and images of training documents, and return all cosines."""
        texts, images = (side.distinct for side in sides)
        sentences = self.space.sentences(self.training.sentences.take(texts), generator)
        features = self.training.features[images.to(self.training.features.device)]
        return _cosines(sentences, self.space.images(features, generator), sides)

    def similarities(self, cosines: Tensor, sides: Sides) -> Tensor:
        """Compare the sentences of every document with the images of every document."""
        if self.similarity == "NoStruct":
            return cosines
        return set_similarities(
            cosines,
            *(side.offsets for side in sides),
            method=self.similarity,
            k=self.k,
            n_threads=self.n_threads,
        )

    def _loss(self, similarities: Tensor, negatives: str) -> Tensor:
        return hinge_loss(similarities, margin=self.margin, negatives=negatives)


def _cosines(sentences: Tensor, images: Tensor, sides: Sides) -> Tensor:
    """Return the cosines of all members of both sides, from vectors of the distinct ones."""
    # Always in float32: the loss depends on small differences of cosines.
    with torch.autocast(sentences.device.type, enabled=False):
        cosines = sentences.float() @ images.float().T
    rows, cols = (side.positions.to(cosines.device) for side in sides)
    return cosines[rows][:, cols]
