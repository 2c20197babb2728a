"""Nearest neighbour: rank by way of the one training item most like the query."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._estimator import Estimator
from kernelcore.kernels._samples import as_items, n_items
from kernelcore.models.base import Similarity, Task, check_task, rows_against


class NearestNeighbourRanker(Estimator):
    r"""Scores by way of the training item nearest to the query.

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

    def __init__(self, text_similarity: Similarity, image_similarity: Similarity) -> None:
        self.text_similarity = text_similarity
        self.image_similarity = image_similarity

    def fit(self, images: Any, captions: Any) -> NearestNeighbourRanker:
        """Remember the training items: item i of both belongs together.

        Parameters
        ----------
        images, captions : collection of length n_training
            What the similarities take; training Gram matrices where they are precomputed.
        """
        images, captions = as_items(images, "images"), as_items(captions, "captions")
        n_images, n_captions = n_items(images), n_items(captions)
        if n_images != n_captions or not n_images:
            raise ValueError(
                "images and captions must be equally many and at least one, "
                f"got {n_images} and {n_captions}"
            )
        self.images_, self.captions_ = images, captions
        return self

    def scores(
        self, images: Any, captions: Any, *, task: Task = "annotation"
    ) -> npt.NDArray[Any]:
        """Score every image against every caption; see `Ranker.scores`."""
        self._check_fitted("images_")
        check_task(task)
        of_images = rows_against("images", self.image_similarity, images, self.images_)
        of_captions = rows_against("captions", self.text_similarity, captions, self.captions_)
        n_training = n_items(self.images_)
        for name, matrix in (("images", of_images), ("captions", of_captions)):
            if matrix.shape[1] != n_training:
                raise ValueError(
                    f"{name} must have one similarity per training item ({n_training}), "
                    f"got shape {matrix.shape}"
                )
        if task == "search":
            return of_images[:, of_captions.argmax(axis=1)]
        return np.ascontiguousarray(of_captions[:, of_images.argmax(axis=1)].T)
