"""Chance: the floor under every result."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._estimator import Estimator
from kernelcore.models.base import Task, check_task


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

    def fit(self, images: Any, captions: Any) -> ChanceRanker:
        """Learn nothing."""
        return self

    def scores(
        self, images: Any, captions: Any, *, task: Task = "annotation"
    ) -> npt.NDArray[np.float64]:
        """Draw a uniform score in [0, 1) for every image and caption.

        Parameters
        ----------
        images, captions : collection
            Only their lengths count.
        task : {"annotation", "search"}, default "annotation"
            Makes no difference.

        Returns
        -------
        ndarray of float64, shape (n_images, n_captions)
        """
        check_task(task)
        return np.random.default_rng(self.rng).random((len(images), len(captions)))
