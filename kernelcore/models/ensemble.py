"""Borda's count: rankings of several models combined into one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._estimator import Estimator
from kernelcore._reading import reading
from kernelcore._validation import as_real_array, check_finite
from kernelcore.models.base import Ranker, Task, check_ranker, check_task, fit_ranker
from kernelcore.models.saving import (
    DESCRIPTION,
    classes_of,
    read_description,
    read_rankers,
    write_folder,
    write_rankers,
)

_KIND = "Borda ensemble"


def borda_scores(
    score_matrices: Sequence[npt.ArrayLike], *, task: Task
) -> npt.NDArray[np.float64]:
    r"""Combine the rankings that several score matrices give each query.

    A model whose ranking has a candidate at position r = 0, ..., N - 1 gives it N - r
    points; candidates with equal points are ordered by their median position over the
    models [1]_:

    .. math::

        s = \sum_m (N - r_m) + \frac{N - \operatorname{median}_m r_m}{2 (N + 1)}

    Parameters
    ----------
    score_matrices : sequence of array_like of shape (n_images, n_captions)
        One matrix of each model, higher is better; only the order within a query counts.
        A matrix may come several times and weighs accordingly.
    task : {"annotation", "search"}
        Queries are the rows (images) for "annotation", the columns (captions) for "search".

    Returns
    -------
    ndarray of float64, shape (n_images, n_captions)
        Higher is better. The whole and half points come first, the tie-break is below a
        half.

    Raises
    ------
    TypeError
        If a matrix does not hold real numbers.
    ValueError
        If there is no matrix, shapes differ, `task` is neither of the two, or a score is NaN
        or infinite.

    Notes
    -----
    Candidates with equal scores share the mean of their positions.

    References
    ----------
    .. [1] M. Hodosh, P. Young and J. Hockenmaier, "Framing image description as a ranking
       task", Journal of Artificial Intelligence Research 47, 2013.

    Examples
    --------
    >>> from kernelcore.models import borda_scores
    >>> first, second = [[0.9, 0.5, 0.1]], [[0.2, 0.8, 0.7]]
    >>> borda_scores([first, second], task="annotation")
    array([[4.25  , 5.3125, 3.1875]])
    """
    from scipy.stats import rankdata

    check_task(task)
    matrices = [
        check_finite(f"score_matrices[{m}]", as_real_array(f"score_matrices[{m}]", S, ndim=2))
        for m, S in enumerate(score_matrices)
    ]
    if not matrices:
        raise ValueError("score_matrices must hold at least one matrix, got none")
    for m, matrix in enumerate(matrices):
        if matrix.shape != matrices[0].shape:
            raise ValueError(
                f"score_matrices must have one shape, got {matrices[0].shape} and "
                f"{matrix.shape} for score_matrices[{m}]"
            )
    candidates = 1 if task == "annotation" else 0
    n_candidates = matrices[0].shape[candidates]
    positions = np.stack([rankdata(-matrix, axis=candidates) - 1.0 for matrix in matrices])
    points = (n_candidates - positions).sum(axis=0)
    medians = np.median(positions, axis=0)
    combined: npt.NDArray[np.float64] = points + (n_candidates - medians) / (
        2.0 * (n_candidates + 1)
    )
    return combined


class BordaEnsemble(Estimator):
    """Several rankers, combined by Borda's count for each query.

    Parameters
    ----------
    rankers : sequence of Ranker
        Anything with the two methods of `Ranker`, fitted already or not. Their scores are
        combined by `borda_scores`. A ranker that occurs several times is fitted once and weighs
        accordingly.

    Raises
    ------
    TypeError
        From `fit` and `scores`, if `rankers` is no sequence or one of them lacks a method.
    ValueError
        If there is no ranker, or, from `scores`, their scores do not fit together.

    Examples
    --------
    >>> from kernelcore.models import BordaEnsemble, ChanceRanker
    >>> ensemble = BordaEnsemble([ChanceRanker(rng=0), ChanceRanker(rng=1)])
    >>> ensemble.fit(["image"], ["caption"]).scores(["a", "b"], ["c", "d"]).shape
    (2, 2)
    """

    def __init__(self, rankers: Sequence[Ranker]) -> None:
        self.rankers = rankers

    def fit(
        self,
        images: Any,
        captions: Any,
        *,
        caption_image: npt.ArrayLike | None = None,
        dev: tuple[Any, ...] | None = None,
    ) -> BordaEnsemble:
        """Fit every ranker to the same training items.

        Parameters
        ----------
        images, captions, caption_image, dev
            As for `Ranker.fit`; `dev` is passed to the rankers that take it.

        Returns
        -------
        BordaEnsemble
            This ensemble.

        Raises
        ------
        TypeError
            If `caption_image` is given and a ranker of another package does not take it.
        """
        for ranker in self._distinct():
            fit_ranker(ranker, images, captions, caption_image=caption_image, dev=dev)
        return self

    def scores(
        self, images: Any, captions: Any, *, task: Task = "annotation"
    ) -> npt.NDArray[np.float64]:
        """Score every image against every caption; see `Ranker.scores` and `borda_scores`.

        The two tasks have different scores: positions are counted within each query.
        """
        check_task(task)
        matrices = {
            id(ranker): ranker.scores(images, captions, task=task)
            for ranker in self._distinct()
        }
        return borda_scores([matrices[id(ranker)] for ranker in self.rankers], task=task)

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the ensemble as a folder, each ranker as its own `save` writes it.

        Parameters
        ----------
        folder : path
            New or empty, unless it holds a model and `overwrite` is True.
        overwrite : bool, default False

        Raises
        ------
        FileExistsError
            If something is in the folder, unless it is a model and `overwrite` is True.
        ValueError
            If a ranker cannot be saved: it is not one of this package, is not fitted, or has
            a function that no file can hold.
        """
        rankers = {str(i): ranker for i, ranker in enumerate(self._distinct())}
        place = {id(ranker): int(name) for name, ranker in rankers.items()}
        description = {
            "order": [place[id(ranker)] for ranker in self.rankers],
            "rankers": classes_of(rankers),
        }
        write_folder(
            folder,
            _KIND,
            description,
            lambda temporary: write_rankers(temporary, rankers),
            overwrite=overwrite,
        )

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> BordaEnsemble:
        """Load a folder of `save`; errors name the missing or damaged file."""
        description = read_description(folder, _KIND)
        rankers = read_rankers(folder, description["rankers"])
        with reading(Path(folder) / DESCRIPTION):
            ensemble = cls([rankers[str(i)] for i in description["order"]])
            ensemble._distinct()
            return ensemble

    def _distinct(self) -> list[Ranker]:
        """Return the checked rankers, each once."""
        if not isinstance(self.rankers, Sequence):
            raise TypeError(f"rankers must be a sequence of rankers, got {self.rankers!r}")
        if not self.rankers:
            raise ValueError("rankers must hold at least one ranker, got none")
        for m, ranker in enumerate(self.rankers):
            check_ranker(f"rankers[{m}]", ranker)
        return list({id(ranker): ranker for ranker in self.rankers}.values())
