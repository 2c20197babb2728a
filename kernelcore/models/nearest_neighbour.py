"""Nearest neighbour: rank by way of the one training item most like the query."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._estimator import Estimator
from kernelcore._files import load_tensors, save_tensors
from kernelcore._reading import reading
from kernelcore._validation import check_integer
from kernelcore.kernels._samples import as_items, n_items
from kernelcore.models.base import Repeats, Similarity, Task, check_task, rows_against
from kernelcore.models.saved_items import TrainingViews, kernel_from_json, kernel_to_json

_KIND = "nearest neighbour ranker"


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
        """Remember the training items.

        Parameters
        ----------
        images, captions : collection
            What the similarities take; training Gram matrices where they are precomputed.
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

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted ranker as one safetensors file, whole or not at all.

        Raises
        ------
        ValueError
            If a similarity is a function other than those of `kernelcore.kernels`, or the
            ranker is not fitted.
        """
        self._check_fitted("n_training_")
        params = {name: kernel_to_json(name, own) for name, own in self.get_params().items()}
        views = TrainingViews(
            None if self.image_similarity == "precomputed" else self.images_,
            None if self.text_similarity == "precomputed" else self.captions_,
            self.repeats_,
        )
        tensors, about = views.to_file()
        about |= {"params": params, "n_training": self.n_training_}
        save_tensors(path, _KIND, tensors, about)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> NearestNeighbourRanker:
        """Read what `save` wrote; a damaged file is a ValueError."""
        with reading(path):
            tensors, metadata = load_tensors(path, _KIND)
            params = metadata["params"]
            names = ("text_similarity", "image_similarity")
            ranker = cls(*(kernel_from_json(name, params[name]) for name in names))
            kernels = {"images": ranker.image_similarity, "captions": ranker.text_similarity}
            about = metadata.exactly(
                "params", "n_training", *TrainingViews.names(metadata, kernels)
            )
            views = TrainingViews.from_file(tensors, about, kernels)
            tensors.exactly()
            ranker.images_, ranker.captions_, ranker.repeats_ = views
            n_training = check_integer("n_training", about["n_training"], minimum=1)
            ranker.n_training_ = n_training
            return ranker
