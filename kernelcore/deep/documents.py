"""Links between the sentences and images of a document, learned without link labels."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor

from kernelcore._check import as_real_array, check_choice, check_finite, check_integer
from kernelcore._ragged import offsets_of
from kernelcore._store import Contents, check_tensor
from kernelcore._threads import Progress
from kernelcore.captions import Vocabulary
from kernelcore.datasets import Document
from kernelcore.deep.base import WordModel
from kernelcore.deep.encoders import Dropout, FeatureEncoder, RecurrentEncoder, Space
from kernelcore.deep.items import Offsets, Sentences
from kernelcore.deep.losses import Negatives, hinge_loss, set_similarities
from kernelcore.deep.training import (
    cut_into_batches,
    plateau,
    seeded_generator,
    torch_threads,
)
from kernelcore.evaluation import evaluate_links
from kernelcore.lexical import WordVectors
from kernelcore.lexical.vectors import check_word_vectors

Rows: TypeAlias = npt.NDArray[np.int64]
"""Positions of rows in a table."""

Sides: TypeAlias = "tuple[Side, Side]"
"""Sentences and images of the same documents."""

_DEV_SEED = 0
_DEV_DRAWS = 10
_ROWS_AT_ONCE = 1024


@dataclass(kw_only=True, repr=False, eq=False)
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

    similarity: Literal["AP", "DC", "TK", "NoStruct"] = "AP"
    k: int | str | None = None
    n_components: int = 256
    n_embedding: int = 300
    min_count: int = 2
    max_tokens: int = 20
    dropout: float = 0.4
    margin: float = 0.2
    n_negatives: int = 10
    negatives: Negatives = "hardest"
    n_warm_up: int = 4
    learning_rate: float = 1e-3
    n_epochs: int = 20
    patience: int | None = None
    rng: np.random.Generator | int | None = None
    device: str = "cpu"

    space_: DocumentSpace = field(init=False)

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
        self._check_params()
        check_word_vectors(word_vectors)
        parts = as_documents("documents", documents, 2), as_documents("dev", dev, 2)
        generator = seeded_generator(self.rng, self.device)
        texts = [text for document in parts[0] for text in document.sentences]
        embedding = self._learn_words(texts, word_vectors, generator)
        training, held_out = (self._tabulate(part, features) for part in parts)
        self._build(training.features.shape[1], embedding, generator)
        self._check_width(held_out)
        mean, scale = training.features.mean(0), training.features.std(0, correction=0)
        scale = torch.where(scale > 0, scale, 1.0)
        self.space_.standardize(mean.cpu().numpy(), scale.cpu().numpy())
        sides = [[(d.sentences, d.images) for d in part] for part in parts]
        weights = self.space_.state_dict().values()
        text = np.frombuffer(repr(sides).encode(), np.uint8)
        values = [text, training.features, held_out.features, *weights]
        self._train(
            training,
            (held_out, parts[1]),
            generator,
            self._digest(generator, values),
            folder=folder,
            n_threads=n_threads,
            progress=progress,
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
        with torch_threads(n_threads):
            sentences, images = self.space_.encode_all(table)
        return table.link_scores(sentences, images)

    def _loss(
        self,
        training: DocumentTable,
        batch: list[int],
        epoch: int,
        generator: torch.Generator,
    ) -> Tensor:
        """Return the loss of some training documents."""
        texts, shown = sides = self._sides(training, batch, generator)
        sentences = training.sentences.take(texts.distinct)
        features = training.features[shown.distinct.to(training.features.device)]
        encoded = self.space_.encode(sentences, features, Dropout(self.dropout, generator))
        negatives = "mean" if epoch < self.n_warm_up else self.negatives
        return self._hinge_loss(encoded, sides, negatives)

    def _evaluate(self, dev: tuple[DocumentTable, Sequence[Document]]) -> Mapping[str, float]:
        """Return the mean loss of the development documents, and ``dev_auc`` of their links.

        The minibatches and the random draws of "NoStruct" are the same in every epoch.
        """
        table, documents = dev
        sentences, images = self.space_.encode_all(table)
        generator = torch.Generator().manual_seed(_DEV_SEED)
        total = 0.0
        n_draws = _DEV_DRAWS if self.similarity == "NoStruct" else 1
        for _ in range(n_draws):
            for batch in cut_into_batches(range(len(table)), self.n_negatives + 1):
                texts, shown = sides = self._sides(table, batch, generator)
                encoded = sentences[texts.distinct], images[shown.distinct]
                loss = self._hinge_loss(encoded, sides, self.negatives)
                total += float(loss) * len(batch)
        measured = {"dev_loss": total / (n_draws * len(table))}
        links = [d.links for d in documents if d.links is not None]
        if len(links) == len(documents):
            scores = table.link_scores(sentences, images)
            measured["dev_auc"] = evaluate_links(scores, links).mean["links"]["AUC"]
        return measured

    def _sides(
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

    def _hinge_loss(
        self, encoded: tuple[Tensor, Tensor], sides: Sides, negatives: Negatives
    ) -> Tensor:
        """Return the loss of documents, from vectors of their distinct members."""
        cosines = encoded[0] @ encoded[1].T
        rows, cols = (side.positions.to(cosines.device) for side in sides)
        similarities = cosines[rows][:, cols]
        if self.similarity != "NoStruct":
            similarities = set_similarities(
                similarities,
                *(side.offsets for side in sides),
                method=self.similarity,
                k=self.k,
                n_threads=torch.get_num_threads(),
            )
        return hinge_loss(similarities, margin=self.margin, negatives=negatives)

    def _schedule(self, dev_losses: Sequence[float]) -> tuple[float, int]:
        return plateau(dev_losses, self.learning_rate, self.n_negatives + 1)

    def _make_space(
        self, n_features: int, embedding: Tensor, generator: torch.Generator | None
    ) -> DocumentSpace:
        sentences = RecurrentEncoder(
            embedding, self.n_components, bidirectional=False, generator=generator
        )
        images = FeatureEncoder(n_features, self.n_components, generator=generator)
        return DocumentSpace(sentences, images)

    def _about(self) -> dict[str, Any]:
        return {"vocabulary": self.vocabulary_.to_dict()}

    def _rebuild(self, weights: Contents, metadata: Contents) -> None:
        self.vocabulary_ = Vocabulary.from_dict(metadata["vocabulary"])
        n_embedding, n_features = (
            check_tensor(name, weights[name], (None, None)).shape[1]
            for name in ("sentences.embedding.weight", "images.affine.weight")
        )
        self._build(n_features, torch.empty(len(self.vocabulary_) + 1, n_embedding), None)

    def _tabulate(
        self, documents: Sequence[Document], features: Mapping[str, npt.ArrayLike]
    ) -> DocumentTable:
        """Make a table of the distinct sentences and images of documents."""
        texts = {text: row for row, text in enumerate(_distinct(documents, "sentences"))}
        images = {name: row for row, name in enumerate(_distinct(documents, "images"))}
        return DocumentTable(
            self._encode(list(texts)),
            torch.from_numpy(_feature_matrix(list(images), features)).to(self.device),
            tuple(np.array([texts[text] for text in d.sentences]) for d in documents),
            tuple(np.array([images[name] for name in d.images]) for d in documents),
        )

    def _check_width(self, table: DocumentTable) -> None:
        found = table.features.shape[1]
        if found != self.n_features_:
            raise ValueError(f"features must have {self.n_features_} columns, got {found}")

    def _check_params(self) -> None:
        super()._check_params()
        if self.k is not None and self.similarity in {"DC", "NoStruct"}:
            raise ValueError(
                f"k must be omitted for similarity {self.similarity!r}, got {self.k!r}"
            )
        if isinstance(self.k, str):
            check_choice("k", self.k, ("half",))
        elif self.k is not None:
            check_integer("k", self.k, minimum=1)


class DocumentSpace(Space):
    """Encoders of sentences and images, compared by the cosine.

    Parameters
    ----------
    sentences : RecurrentEncoder
    images : FeatureEncoder
        Their vectors have the same length.
    """

    def __init__(self, sentences: RecurrentEncoder, images: FeatureEncoder) -> None:
        super().__init__()
        self.sentences = sentences
        self.images = images

    def encode(
        self, sentences: Sentences, features: Tensor, dropout: Dropout
    ) -> tuple[Tensor, Tensor]:
        """Encode sentences and images, each as a unit vector."""
        texts, shown = self.sentences(sentences, dropout), self.images(features, dropout)
        return F.normalize(texts, dim=1), F.normalize(shown, dim=1)

    @torch.no_grad()
    def encode_all(self, table: DocumentTable) -> tuple[Tensor, Tensor]:
        """Encode all sentences and images of a table."""
        # Sentences of similar length are encoded together, which needs less padding.
        order = torch.argsort(table.sentences.lengths, stable=True)
        vectors = [
            self.sentences(table.sentences.take(rows))
            for rows in torch.split(order, _ROWS_AT_ONCE)
        ]
        back = torch.argsort(order).to(table.features.device)
        sentences, images = torch.cat(vectors)[back], self.images(table.features)
        return F.normalize(sentences, dim=1), F.normalize(images, dim=1)


class Side(NamedTuple):
    """The sentences, or the images, of some documents.

    Attributes
    ----------
    distinct : Tensor of int64
        Rows of the table, each once.
    positions : Tensor of int64, shape (n_members,)
        Position in `distinct` of each member, document by document.
    offsets : ndarray of int64, shape (n_documents + 1,)
        Start of the members of each document.
    """

    distinct: Tensor
    positions: Tensor
    offsets: Offsets

    @classmethod
    def of(cls, members: Sequence[Rows]) -> Side:
        """Join the members of some documents and find the distinct ones."""
        distinct, positions = np.unique(np.concatenate(members), return_inverse=True)
        return cls(
            torch.from_numpy(distinct),
            torch.from_numpy(positions),
            offsets_of([len(rows) for rows in members]),
        )


@dataclass(frozen=True)
class DocumentTable:
    """Sentences and image features of documents.

    Attributes
    ----------
    sentences : Sentences
        The distinct sentences.
    features : Tensor of float32, shape (n_images, n_features)
        Features of the distinct images.
    sentence_rows, image_rows : tuple of ndarray of int64
        Rows of the sentences and of the images of each document.
    """

    sentences: Sentences
    features: Tensor
    sentence_rows: tuple[Rows, ...]
    image_rows: tuple[Rows, ...]

    def __len__(self) -> int:
        return len(self.sentence_rows)

    def link_scores(self, sentences: Tensor, images: Tensor) -> list[npt.NDArray[np.float32]]:
        """Return the cosines within each document, from vectors of the distinct items."""
        rows, cols = sentences.cpu().numpy(), images.cpu().numpy()
        return [
            rows[own] @ cols[shown].T
            for own, shown in zip(self.sentence_rows, self.image_rows, strict=True)
        ]


def _distinct(documents: Sequence[Document], part: str) -> list[str]:
    return list(dict.fromkeys(entry for d in documents for entry in getattr(d, part)))


def _feature_matrix(
    images: Sequence[str], features: Mapping[str, npt.ArrayLike]
) -> npt.NDArray[np.float32]:
    """Features of the images as rows of a matrix."""
    missing = [name for name in images if name not in features]
    if missing:
        raise ValueError(
            f"features must have a vector for every image, got none for {len(missing)} "
            f"images, such as {missing[0]!r}"
        )
    matrix = as_real_array("features", [np.asarray(features[name]) for name in images], ndim=2)
    return check_finite("features", matrix.astype(np.float32, copy=False))


def as_documents(name: str, documents: Any, at_least: int = 1) -> tuple[Document, ...]:
    """Return a sequence of documents as a tuple."""
    members = tuple(documents)
    for member in members:
        if not isinstance(member, Document):
            raise TypeError(f"{name} must hold documents, got {member!r}")
    if len(members) < at_least:
        raise ValueError(f"{name} must hold at least {at_least} documents, got {len(members)}")
    return members
