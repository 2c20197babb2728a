"""Hubs, candidates that score high for every query, and a correction by training items."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._estimator import Estimator, params_to_json
from kernelcore._files import load_tensors, save_tensors
from kernelcore._parallel import check_stopped
from kernelcore._reading import reading
from kernelcore._validation import (
    Array,
    as_real_array,
    check_choice,
    check_finite,
    check_integer,
    check_real,
    check_rng,
    no_overflow,
)
from kernelcore.captions import EncodedCaptions
from kernelcore.kernels.prepared import n_items, take
from kernelcore.models.base import (
    Pairs,
    Ranker,
    Task,
    check_ranker,
    check_task,
    count,
    fit_ranker,
    is_nested,
    take_images,
)
from kernelcore.models.kernel_items import KernelItems
from kernelcore.models.saving import (
    DESCRIPTION,
    classes_of,
    read_description,
    read_rankers,
    write_folder,
    write_rankers,
)

_KIND = "hub correction"
_BANK = "bank.safetensors"
_BLOCK = 2**22  # scores that are partitioned at a time


HubMethod: TypeAlias = Literal["csls", "z_score", "inverted_softmax"]
METHODS: tuple[HubMethod, ...] = ("csls", "z_score", "inverted_softmax")


def hub_corrected(
    scores: npt.ArrayLike,
    bank: npt.ArrayLike,
    *,
    task: Task,
    method: HubMethod = "csls",
    n_neighbors: int = 30,
    inverse_temperature: float = 10.0,
) -> npt.NDArray[Any]:
    r"""Lower the scores of hubs: candidates that score high for every query.

    In a space of many dimensions some candidates are among the nearest of many queries. The
    correction estimates this from the scores of other queries, the bank B:

    .. math::

        \text{csls: } & s'(q, c) = 2 s(q, c) - \frac1k \sum_{b \in N_k(c)} s(b, c) \\
        \text{z_score: } & s'(q, c) = \frac{s(q, c) - m(c)}{d(c)} \\
        \text{inverted_softmax: } & s'(q, c) = s(q, c)
        - \frac1\beta \log \frac1{|B|} \sum_{b \in B} e^{\beta s(b, c)}

    :math:`N_k(c)` are the k queries of the bank with the highest scores for c, m and d the
    mean and the standard deviation of the scores of the bank for c. The published form of
    csls [1]_ also subtracts the term of the query, which changes no ranking. The inverted
    softmax [2]_ is published as a ratio of exponentials, of which this is the logarithm divided
    by :math:`\beta`: the ranking is the same. The z-score is the Z-norm of speaker
    verification [3]_. For search among captioned photos, csls and the inverted softmax are
    compared in [4]_.

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
    method : {"csls", "z_score", "inverted_softmax"}, default "csls"
        The formula.
    n_neighbors : int, default 30
        k of csls; all of the bank where it holds fewer.
    inverse_temperature : float, default 10.0
        :math:`\beta > 0` of the inverted softmax, in units of one over a score. The best value
        depends on the spread of the scores.

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
        infinite, or an option is none of the above.

    Notes
    -----
    Where the bank has one score for a candidate, up to rounding, d is 1.

    References
    ----------
    .. [1] A. Conneau et al., "Word translation without parallel data", ICLR 2018 (cross-domain
       similarity local scaling).
    .. [2] S. L. Smith et al., "Offline bilingual word vectors, orthogonal transformations and
       the inverted softmax", ICLR 2017.
    .. [3] R. Auckenthaler, M. Carey and H. Lloyd-Thomas, "Score normalization for
       text-independent speaker verification systems", Digital Signal Processing 10, 2000.
    .. [4] S.-V. Bogolin et al., "Cross modal retrieval with querybank normalisation", CVPR
       2022.

    Examples
    --------
    The second caption is near to every image.

    >>> from kernelcore.models import hub_corrected
    >>> scores = [[0.6, 0.7], [0.1, 0.8]]
    >>> bank = [[0.2, 0.8], [0.3, 0.9]]      # of two training images
    >>> hub_corrected(scores, bank, task="annotation", n_neighbors=2)
    array([[ 0.95,  0.55],
           [-0.05,  0.75]])
    >>> hub_corrected(scores, bank, task="annotation", method="z_score").round(6)
    array([[ 7., -3.],
           [-3., -1.]])
    """
    check_task(task)
    check_choice("method", method, METHODS)
    k = check_integer("n_neighbors", n_neighbors, minimum=1)
    beta = check_real("inverse_temperature", inverse_temperature, minimum=0.0, exclusive=True)
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
    dtype = np.result_type(S, B)

    def beside(values: Array) -> Array:
        """One value for each candidate, to be combined with the scores."""
        own = values.astype(dtype, copy=False)
        return own if axis == 1 else own[:, np.newaxis]

    with no_overflow("scores", "be so small, as those of bank, that the result can be held"):
        if method == "csls":
            return 2 * S - beside(mean_of_largest(rows, k))
        if method == "z_score":
            return (S - beside(_by_rows(rows, _mean))) / beside(_by_rows(rows, _deviation))
        return S - beside(_by_rows(rows, partial(_soft_maximum, beta)))


class HubCorrection(Estimator):
    """A ranker whose scores are corrected for hubs by a bank of training items.

    Parameters
    ----------
    ranker : Ranker
        Any ranker; `fit` fits it. See `set_bank` for one that is fitted already.
    method : {"csls", "z_score", "inverted_softmax"}, default "csls"
        Formula of the correction; see `hub_corrected`.
    n_neighbors : int, default 30
        Nearest queries of the bank that count for "csls".
    inverse_temperature : float, default 10.0
        Of "inverted_softmax".
    n_bank : int, default 2000
        Training images, and as many captions, that are drawn for the bank, or all if there
        are fewer. The ranker scores the candidates against them in every call of `scores`.
    rng : Generator or int, optional, default 0
        Source of the draw.

    Attributes
    ----------
    bank_images_, bank_captions_ : collection
        Training items of the bank.

    See Also
    --------
    hub_corrected : The same for matrices of scores.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.models import HubCorrection, KCCARanker
    >>> images = np.random.default_rng(0).normal(size=(30, 3))
    >>> captions = images @ np.array([[1.0, 2.0], [0.0, 1.0], [1.0, 0.0]])
    >>> linear = lambda X, Y=None: X @ (X if Y is None else Y).T
    >>> ranker = HubCorrection(KCCARanker(image_kernel=linear, text_kernel=linear))
    >>> scores = ranker.fit(images[:25], captions[:25]).scores(images[25:], captions[25:])
    >>> scores.argmax(axis=1)
    array([0, 1, 2, 3, 4])
    """

    bank_images_: Any
    bank_captions_: Any

    def __init__(
        self,
        ranker: Ranker,
        *,
        method: HubMethod = "csls",
        n_neighbors: int = 30,
        inverse_temperature: float = 10.0,
        n_bank: int = 2000,
        rng: np.random.Generator | int | None = 0,
    ) -> None:
        self.ranker = ranker
        self.method = method
        self.n_neighbors = n_neighbors
        self.inverse_temperature = inverse_temperature
        self.n_bank = n_bank
        self.rng = rng

    def fit(
        self,
        images: Any,
        captions: Any,
        *,
        caption_image: npt.ArrayLike | None = None,
        dev: tuple[Any, ...] | None = None,
    ) -> HubCorrection:
        """Fit the ranker, and take the bank from the training items.

        Parameters
        ----------
        images, captions, caption_image, dev
            As for `Ranker.fit` of the ranker.

        Returns
        -------
        HubCorrection

        Raises
        ------
        TypeError, ValueError
            If a parameter is out of range, and what the ranker itself refuses.
        """
        self._check_params()
        fit_ranker(self.ranker, images, captions, caption_image=caption_image, dev=dev)
        return self.set_bank(images, captions, caption_image=caption_image)

    def set_bank(
        self, images: Any, captions: Any, *, caption_image: npt.ArrayLike | None = None
    ) -> HubCorrection:
        """Take the bank from training items; for a ranker that is already fitted.

        Parameters
        ----------
        images, captions, caption_image
            The items that the ranker was fitted to, or others outside the test set: test
            items would make results too good.

        Returns
        -------
        HubCorrection
        """
        self._check_params()
        if caption_image is not None or is_nested(captions):
            captions = Pairs.of(images, captions, caption_image).captions
        elif isinstance(captions, EncodedCaptions):
            captions = captions.caption_as_image()
        rng = check_rng("rng", self.rng)
        drawn = [
            np.sort(rng.permutation(n)[: self.n_bank])
            for n in (count(images), n_items(captions))
        ]
        self.bank_images_ = take_images(images, drawn[0])
        self.bank_captions_ = take(captions, drawn[1])
        return self

    def scores(
        self, images: Any, captions: Any, *, task: Task = "annotation"
    ) -> npt.NDArray[Any]:
        """Score every image against every caption; see `Ranker.scores` and `hub_corrected`.

        The two tasks have different scores, because their candidates differ.
        """
        self._check_fitted("bank_images_")
        check_task(task)
        scores = self.ranker.scores(images, captions, task=task)
        if task == "annotation":
            bank = self.ranker.scores(self.bank_images_, captions, task=task)
        else:
            bank = self.ranker.scores(images, self.bank_captions_, task=task)
        return hub_corrected(
            scores,
            bank,
            task=task,
            method=self.method,
            n_neighbors=self.n_neighbors,
            inverse_temperature=self.inverse_temperature,
        )

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write a folder: the ranker as its own `save` writes it, and the bank.

        Raises
        ------
        FileExistsError
            If something is in the folder, unless it is a model and `overwrite` is True.
        ValueError
            If the ranker or the bank cannot be saved; raw photos cannot.
        """
        self._check_fitted("bank_images_")
        bank, about = KernelItems(self.bank_images_, self.bank_captions_, None).to_file()
        params = {**self.get_params(deep=False), "ranker": None}
        if isinstance(self.rng, np.random.Generator):
            params["rng"] = None
        rankers = {"0": self.ranker}
        description = {"params": params_to_json(params), "rankers": classes_of(rankers)}

        def write_parts(temporary: Path) -> None:
            write_rankers(temporary, rankers)
            save_tensors(temporary / _BANK, _KIND, bank, about)

        write_folder(folder, _KIND, description, write_parts, overwrite=overwrite)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> HubCorrection:
        """Load a folder of `save`; errors name the missing or damaged file."""
        description = read_description(folder, _KIND)
        rankers = read_rankers(folder, description["rankers"])
        with reading(Path(folder) / DESCRIPTION):
            params = {**description["params"], "ranker": rankers["0"]}
            correction = cls(**params)
            correction._check_params()
        with reading(Path(folder) / _BANK):
            tensors, about = load_tensors(Path(folder) / _BANK, _KIND)
            kinds = {"images": "", "captions": ""}
            views = KernelItems.from_file(tensors, about, kinds)
            tensors.exactly()
            correction.bank_images_, correction.bank_captions_ = views.images, views.captions
        return correction

    def _check_params(self) -> None:
        check_ranker("ranker", self.ranker)
        check_choice("method", self.method, METHODS)
        check_integer("n_neighbors", self.n_neighbors, minimum=1)
        check_real("inverse_temperature", self.inverse_temperature, minimum=0.0, exclusive=True)
        check_integer("n_bank", self.n_bank, minimum=1)
        check_rng("rng", self.rng)


def mean_of_largest(rows: Array, k: int) -> npt.NDArray[np.float64]:
    """Mean of the `k` largest values of each row."""
    k = min(k, rows.shape[1])

    def of_block(block: Array) -> Array:
        largest = np.partition(block, -k, axis=1)[:, -k:]
        return _mean(largest)

    return _by_rows(rows, of_block)


def _by_rows(rows: Array, statistic: Callable[[Array], Array]) -> npt.NDArray[np.float64]:
    """Compute a statistic of each row, some rows at a time."""
    values = np.empty(len(rows))
    n_rows = max(1, _BLOCK // rows.shape[1])
    for start in range(0, len(rows), n_rows):
        check_stopped()
        values[start : start + n_rows] = statistic(rows[start : start + n_rows])
    return values


def _mean(rows: Array) -> Array:
    means: Array = rows.mean(axis=1, dtype=np.float64)
    return means


def _deviation(rows: Array) -> Array:
    """Return the standard deviation of each row, or 1 where it is no more than rounding."""
    deviations = rows.std(axis=1, dtype=np.float64)
    rounding = 4 * np.finfo(rows.dtype).eps * np.abs(rows).max(axis=1)
    return np.where(deviations > rounding, deviations, 1.0)


def _soft_maximum(beta: float, rows: Array) -> Array:
    """Logarithm of the mean of exp(beta x) of each row, divided by beta."""
    largest = rows.max(axis=1, keepdims=True).astype(np.float64)
    exponentials = np.exp(beta * (rows - largest))
    values: Array = largest[:, 0] + np.log(exponentials.mean(axis=1)) / beta
    return values
