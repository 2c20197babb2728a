"""Hubs, candidates that score high for every query, and a correction by training items."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._check import (
    Array,
    as_real_array,
    check_finite,
    check_integer,
    no_overflow,
)
from kernelcore._threads import cached_property, check_stopped
from kernelcore.models.base import Task, check_task
from kernelcore.models.kcca_ranker import KCCARanker, products, unit_rows

_BLOCK = 2**22  # scores that are partitioned at a time
_MAX_BANK = 2000  # training items that hubs are estimated from; more hardly change them


def hub_corrected(
    scores: npt.ArrayLike, bank: npt.ArrayLike, *, task: Task, n_neighbors: int = 30
) -> npt.NDArray[Any]:
    r"""Lower the scores of hubs: candidates that score high for every query.

    In a space of many dimensions some candidates are among the nearest of many queries. The
    correction estimates this from the scores of other queries, the bank B:

    .. math::

        s'(q, c) = 2 s(q, c) - \frac1k \sum_{b \in N_k(c)} s(b, c)

    :math:`N_k(c)` are the k queries of the bank with the highest scores for c. The published
    form, cross-domain similarity local scaling [1]_, also subtracts the term of the query,
    which changes no ranking.

    Parameters
    ----------
    scores : array_like of shape (n_images, n_captions)
        Scores of every image and every caption, higher is better.
    bank : array_like of shape (n_bank, n_captions) or (n_images, n_bank)
        Scores of other queries for the same candidates: of other images with these captions
        for annotation, of these images with other captions for search. Use training items:
        test items in the bank would make results too good.
    task : {"annotation", "search"}
        Candidates are captions for annotation, images for search.
    n_neighbors : int, default 30
        k; all of the bank where it holds fewer.

    Returns
    -------
    ndarray of shape (n_images, n_captions)
        float32 if `scores` and `bank` are, else float64.

    Raises
    ------
    TypeError
        If a matrix does not hold real numbers.
    ValueError
        If the two do not have the same candidates, the bank is empty, a value is NaN or
        infinite, or `n_neighbors` is not positive.

    References
    ----------
    .. [1] A. Conneau et al., "Word translation without parallel data", ICLR 2018.

    Examples
    --------
    The second caption is near to every image.

    >>> from kernelcore.models import hub_corrected
    >>> scores = [[0.6, 0.7], [0.1, 0.8]]
    >>> bank = [[0.2, 0.8], [0.3, 0.9]]      # of two training images
    >>> hub_corrected(scores, bank, task="annotation", n_neighbors=2)
    array([[ 0.95,  0.55],
           [-0.05,  0.75]])
    """
    check_task(task)
    k = check_integer("n_neighbors", n_neighbors, minimum=1)
    S = check_finite("scores", as_real_array("scores", scores, ndim=2))
    B = check_finite("bank", as_real_array("bank", bank, ndim=2))
    axis = 1 if task == "annotation" else 0  # of the candidates
    if B.shape[axis] != S.shape[axis]:
        what = ("image", "caption")[axis]
        raise ValueError(
            f"bank must have the {what}s of scores ({S.shape[axis]}) as its candidates, "
            f"got shape {B.shape}"
        )
    if B.shape[1 - axis] == 0:
        raise ValueError(f"bank must hold at least one query, got shape {B.shape}")
    rows = B if axis == 0 else B.T  # one for each candidate
    with no_overflow("scores", "be so small, as those of bank, that the result can be held"):
        nearness = mean_of_largest(rows, k).astype(np.result_type(S, B), copy=False)
        corrected: Array = 2 * S - (nearness if axis == 1 else nearness[:, np.newaxis])
    return corrected


def mean_of_largest(rows: Array, k: int) -> npt.NDArray[np.float64]:
    """Mean of the `k` largest values of each row."""
    k = min(k, rows.shape[1])
    means = np.empty(len(rows))
    n_rows = max(1, _BLOCK // rows.shape[1])
    for start in range(0, len(rows), n_rows):
        check_stopped()
        largest = np.partition(rows[start : start + n_rows], -k, axis=1)[:, -k:]
        means[start : start + n_rows] = largest.mean(axis=1, dtype=np.float64)
    return means


@dataclass(frozen=True, eq=False)
class JointSpace:
    r"""Images and captions as vectors whose products are scores.

    Without a correction they are cosines of the projections of kernel CCA. With it

    .. math:: s'(x, y) = x \cdot y - \frac{r(x) + r(y)}{2}

    where r is the mean of the largest cosines of an item with the training items of the other
    kind. That is half of `hub_corrected`, for both tasks at once, because a term of the query
    alone changes no ranking. Two more components, (-r(x) / 2, 1) of an image and
    (1, -r(y) / 2) of a caption, turn it into a product.

    Attributes
    ----------
    ranker : KCCARanker
        Fitted to precomputed kernels.
    hub_neighbors : int
        Number of nearest training items; 0 for no correction.
    """

    ranker: KCCARanker
    hub_neighbors: int = 0

    def images(self, K: Array) -> npt.NDArray[np.float32]:
        """Embed images, given as rows of kernel values with the training images."""
        rows = self.ranker.embed_images(K)
        return self._with_hubs(rows, self._bank[1], (0, 1)) if self.hub_neighbors else rows

    def captions(self, K: Array) -> npt.NDArray[np.float32]:
        """Embed captions, given as rows of kernel values with the training captions."""
        rows = self.ranker.embed_captions(K)
        return self._with_hubs(rows, self._bank[0], (1, 0)) if self.hub_neighbors else rows

    @property
    def n_directions(self) -> int:
        """Length of the vectors without what corrects for hubs."""
        return int(self.ranker.kcca_.x_scores_.shape[1])

    @property
    def n_components(self) -> int:
        """Length of the vectors."""
        return self.n_directions + (2 if self.hub_neighbors else 0)

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the learned space."""
        space = self.ranker.kcca_.x_scores_ * self.ranker.weights
        about = f"hubs {self.hub_neighbors}" if self.hub_neighbors else ""
        return hashlib.blake2b(space.tobytes() + about.encode(), digest_size=16).hexdigest()

    @property
    def bank_items(self) -> npt.NDArray[np.intp]:
        """Training items that hubs are estimated from."""
        return spread(len(self.ranker.kcca_.x_scores_), _MAX_BANK)

    @cached_property
    def _bank(self) -> tuple[Array, Array]:
        """Vectors of training images and of the captions of each, spread evenly."""
        kcca, weights = self.ranker.kcca_, self.ranker.weights
        images, captions = (
            unit_rows(scores[self.bank_items] * weights)
            for scores in (kcca.x_scores_, kcca.y_scores_)
        )
        return images, captions

    def _with_hubs(
        self, rows: Array, bank: Array, order: tuple[int, int]
    ) -> npt.NDArray[np.float32]:
        """Append minus half of the nearness to the bank, and 1, in this order."""
        nearness = mean_of_largest(products(rows, bank), self.hub_neighbors)
        ends = np.stack([-nearness / 2, np.ones_like(nearness)], axis=1)
        whole: npt.NDArray[np.float32] = np.hstack([rows, ends[:, order].astype(rows.dtype)])
        return whole


def spread(n_items: int, most: int) -> npt.NDArray[np.intp]:
    """Return the places of at most `most` items that are spread evenly."""
    return np.linspace(0, n_items - 1, min(n_items, most)).astype(np.intp)
