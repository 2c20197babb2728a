"""Chance: the floor under every result."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._estimator import Estimator, params_to_json
from kernelcore._files import load_tensors, save_tensors
from kernelcore._reading import reading
from kernelcore._validation import check_rng
from kernelcore.models.base import Task, check_task

_KIND = "chance ranker"


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
        """Learn nothing, from whatever `Ranker.fit` takes; it needs no `dev`."""
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
        return check_rng("rng", self.rng).random((len(images), len(captions)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the ranker as a safetensors file; a generator as `rng` is not kept."""
        params = self.get_params()
        if isinstance(self.rng, np.random.Generator):
            params["rng"] = None
        save_tensors(path, _KIND, {}, {"params": params_to_json(params)})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ChanceRanker:
        """Read what `save` wrote; a damaged file is a ValueError."""
        with reading(path):
            tensors, metadata = load_tensors(path, _KIND)
            tensors.exactly()
            return cls.from_json(metadata.exactly("params")["params"])

    def _check_params(self) -> None:
        check_rng("rng", self.rng)
