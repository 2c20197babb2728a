"""Baselines of rankings: chance and nearest neighbour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._check import check_rng
from kernelcore._estimator import Estimator
from kernelcore._ragged import n_items
from kernelcore._threads import Progress
from kernelcore.kernels.prepared import as_items
from kernelcore.models.base import Task, check_task, owners_of
from kernelcore.models.kcca_ranker import Similarity, of_pairs, similarities


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
        n_threads: int | None = None,
        progress: Progress = False,
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
        return check_rng("rng", self.rng).random((n_items(images), n_items(captions)))


@dataclass(repr=False, eq=False)
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

    text_similarity: Similarity
    image_similarity: Similarity

    def fit(
        self,
        images: Any,
        captions: Any,
        *,
        caption_image: npt.ArrayLike | None = None,
        dev: tuple[Any, ...] | None = None,
        n_threads: int | None = None,
        progress: Progress = False,
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
        dev, n_threads, progress : optional
            Not needed: nothing is chosen or computed.

        Returns
        -------
        NearestNeighbourRanker
            This ranker.
        """
        images, captions = as_items(images, "images"), as_items(captions, "captions")
        n_images, n_captions = n_items(images), n_items(captions)
        owners = None
        if caption_image is not None:
            owners = owners_of(caption_image, n_images, n_captions)
        elif n_images != n_captions or not n_images:
            raise ValueError(
                "images and captions must be equally many and at least one, "
                f"got {n_images} and {n_captions}"
            )
        self.images_, self.captions_, self.owners_ = images, captions, owners
        return self

    def scores(
        self, images: Any, captions: Any, *, task: Task = "annotation"
    ) -> npt.NDArray[Any]:
        """Score every image against every caption; see `Ranker.scores`."""
        self._check_fitted("captions_")
        check_task(task)
        of_images = similarities("images", self.image_similarity, images, self.images_)
        if self.owners_ is not None:
            of_images = of_pairs(of_images, self.owners_, n_items(self.images_))
        of_captions = similarities("captions", self.text_similarity, captions, self.captions_)
        for name, matrix in (("images", of_images), ("captions", of_captions)):
            if matrix.shape[1] != n_items(self.captions_):
                raise ValueError(
                    f"{name} must have one similarity per training item "
                    f"({n_items(self.captions_)}), got shape {matrix.shape}"
                )
        if task == "search":
            return of_images[:, of_captions.argmax(axis=1)]
        return np.ascontiguousarray(of_captions[:, of_images.argmax(axis=1)].T)
