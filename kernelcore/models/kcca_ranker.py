"""Kernel CCA ranker: cosines of images and captions in the space that kernel CCA learns."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, check_integer, check_real
from kernelcore._estimator import Estimator, params_to_json
from kernelcore._ragged import n_items
from kernelcore._store import load_tensors, reading, save_tensors
from kernelcore._threads import Progress, check_stopped, one_blas_thread, working
from kernelcore.images._extractor import of_length_one
from kernelcore.kcca import KCCA
from kernelcore.kcca.basis import Decomposition, constant_diagonal
from kernelcore.kcca.kcca import KCCAFactorization, Pair, as_pair, factorize
from kernelcore.kernels import ridge as add_ridge
from kernelcore.kernels.gram import as_gram
from kernelcore.models.base import Owners, Task, check_task, owners_of

Similarity: TypeAlias = Callable[..., npt.ArrayLike] | Literal["precomputed"]
"""A function of (X, Y=None) that returns a matrix (n_X, n_Y), or "precomputed"."""

_KIND = "kernel CCA ranker"
_LEAST_WEIGHT = 1e-18  # its square is a number of float32
_BLOCK = 2**22  # scores that are partitioned at a time
_MAX_BANK = 2000  # training items that hubs are estimated from; more hardly change them


@dataclass(repr=False, eq=False)
class KCCARanker(Estimator):
    r"""Cosine of the projections of image and caption on the canonical components.

    .. math::

        s(i, c) = \frac{\langle z_i, z_c \rangle}{\lVert z_i \rVert \, \lVert z_c \rVert},
        \qquad z = \rho^{q/2} \odot (\text{projection on the first } n \text{ components})

    Parameters
    ----------
    n_components : int, optional
        Number n of components, the most correlated first; the default is all there are.
    image_kernel : callable or "precomputed", default "precomputed"
        ``image_kernel(X)`` returns the Gram matrix of the training images, and
        ``image_kernel(X, Y)`` the kernel of the images X, one row each, with the training
        images Y. With "precomputed", `fit` and `scores` are given those matrices.
    text_kernel : callable or "precomputed", default "precomputed"
        The same for captions.
    regularization : float or (float, float), default 0.1
        :math:`\kappa` of both views or of (images, texts); see `kernelcore.kcca.KCCA`.
    ridge : float or (float, float), default 1.0
        Factor :math:`d \ge 1` of the diagonal of both training kernels, or of (images,
        texts).
    correlation_power : float, default 0.0
        q: components count by this power of their correlation :math:`\rho`. 0 is the plain
        cosine of the literature [1]_; larger values are this package's own.
    hub_neighbors : int, default 0
        Number k of training items from which the hubness of an item is estimated, see Notes;
        0 is no correction for hubs.
    decomposition, tolerance, max_rank
        See `kernelcore.kcca.KCCA`.

    Attributes
    ----------
    kcca_ : KCCA
        The fitted projection of both views: x images, y captions.

    Notes
    -----
    Both tasks rank by the same scores. An image or caption whose projection is zero has cosine
    0 with everything.

    Corrected for hubs, scores are

    .. math:: s'(i, c) = s(i, c) - \frac{r(i) + r(c)}{2}

    where r is the mean of the k largest cosines of an item with training items of the other
    kind, at most 2,000 of them. That is half of `hub_corrected`, for both tasks at once,
    because a term of the query alone changes no ranking.

    References
    ----------
    .. [1] M. Hodosh, P. Young and J. Hockenmaier, "Framing image description as a ranking
       task", Journal of Artificial Intelligence Research 47, 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.models import KCCARanker
    >>> images = np.random.default_rng(0).normal(size=(20, 3))
    >>> captions = images @ np.array([[1.0, 2.0], [0.0, 1.0], [1.0, 0.0]])
    >>> ranker = KCCARanker(image_kernel=lambda X, Y=None: X @ (X if Y is None else Y).T,
    ...                     text_kernel=lambda X, Y=None: X @ (X if Y is None else Y).T)
    >>> scores = ranker.fit(images[:15], captions[:15]).scores(images[15:], captions[15:])
    >>> scores.argmax(axis=1)
    array([0, 1, 2, 3, 4])
    """

    n_components: int | None = None
    _: KW_ONLY
    image_kernel: Similarity = "precomputed"
    text_kernel: Similarity = "precomputed"
    regularization: Pair = 0.1
    ridge: Pair = 1.0
    correlation_power: float = 0.0
    hub_neighbors: int = 0
    decomposition: Decomposition = "gram_schmidt"
    tolerance: float = 1e-6
    max_rank: int | None = None

    _images: Any = field(init=False, default=None)
    _captions: Any = field(init=False, default=None)
    _owners: Owners | None = field(init=False, default=None)
    _n_images: int = field(init=False, default=0)
    _bank: tuple[Array, Array] = field(init=False)

    def fit(
        self,
        images: Any,
        captions: Any,
        *,
        caption_image: npt.ArrayLike | None = None,
        dev: tuple[Any, ...] | None = None,
        n_threads: int | None = None,
        progress: Progress = False,
    ) -> KCCARanker:
        """Learn from training images and their captions.

        Parameters
        ----------
        images, captions : collection
            Arguments of the kernels; training Gram matrices where they are precomputed. Item i
            of both belongs together: where captions are nested, or `EncodedCaptions` of
            several captions an image, the kernel is given all those of an image.
        caption_image : array_like of int, shape (n_captions,), optional
            Position in `images` of the image of each caption; each pair is a training item.
        dev : optional
            Not needed: there is nothing to choose. `select_kcca` chooses settings.
        n_threads : int, optional
            See `kernelcore.kcca.factorize`; kernels that are functions have their own.
        progress : bool or callable, default False
            True shows a bar; a callable is called with (steps done, steps).

        Returns
        -------
        KCCARanker
            This ranker.

        Raises
        ------
        TypeError
            If a kernel is neither a function nor "precomputed", or a parameter is not of
            its kind.
        ValueError
            If a Gram matrix is not square, symmetric and finite, the two are not of one
            size, or a parameter is out of range.
        """
        self._owners = None
        if caption_image is not None:
            self._n_images = n_items(images)
            self._owners = owners_of(caption_image, self._n_images, n_items(captions))
        self._check_params()
        Kx = similarities("images", self.image_kernel, images)
        Ky = similarities("captions", self.text_kernel, captions)
        if self._owners is not None:
            Kx = Kx[np.ix_(self._owners, self._owners)]
        grams, ridges = [Kx, Ky], list(as_pair("ridge", self.ridge, minimum=1.0))
        for i, K in enumerate(grams):
            # With "eigen" and a constant diagonal a ridge only shifts the eigenvalues.
            if self.decomposition != "eigen" or constant_diagonal(K) is None:
                grams[i], ridges[i] = with_ridge(K, ridges[i]), 1.0
        with working(progress, "Factorising kernels"):
            factorization = factorize(
                *grams,
                decomposition=self.decomposition,
                tolerance=self.tolerance,
                max_rank=self.max_rank,
                n_threads=n_threads,
            )
        self._images = None if is_precomputed(self.image_kernel) else images
        self._captions = None if is_precomputed(self.text_kernel) else captions
        return self._keep(self._new_kcca().solve(factorization, (ridges[0], ridges[1])))

    @classmethod
    def from_factorization(
        cls,
        factorization: KCCAFactorization,
        n_components: int | None = None,
        *,
        regularization: Pair = 0.1,
        ridge: Pair = 1.0,
        correlation_power: float = 0.0,
    ) -> KCCARanker:
        """Return the fitted ranker of one setting over precomputed kernels.

        Parameters
        ----------
        factorization : kernelcore.kcca.KCCAFactorization
            Of the training kernels of images (x) and captions (y).
        n_components, regularization, ridge, correlation_power
            As for the class.

        Returns
        -------
        KCCARanker
            With the options of the factorisation; see `kernelcore.kcca.KCCA`.
        """
        check_real("correlation_power", correlation_power, minimum=0.0)
        ranker = cls(
            n_components,
            regularization=regularization,
            ridge=ridge,
            correlation_power=correlation_power,
            **factorization.x.options,
        )
        return ranker.solve(factorization)

    def solve(self, factorization: KCCAFactorization) -> KCCARanker:
        """Learn from the factorisation of precomputed kernels; see `from_factorization`."""
        return self._keep(self._new_kcca().solve(factorization, self.ridge))

    def scores(
        self, images: Any, captions: Any, *, task: Task = "annotation"
    ) -> npt.NDArray[Any]:
        """Score every image against every caption; see `Ranker.scores`.

        Returns
        -------
        ndarray of shape (n_images, n_captions)
            Values in [-1, 1], or [-2, 2] where hubs are corrected.
        """
        check_task(task)
        return products(self.embed_images(images), self.embed_captions(captions))

    def embed_images(self, images: Any) -> npt.NDArray[Any]:
        """Project images into the learned space, for example for an index of vectors.

        Parameters
        ----------
        images : collection of length n_images
            Arguments of the kernel, or rows of a precomputed kernel.

        Returns
        -------
        ndarray of shape (n_images, n_components)
            Weighted projections, of length 1 or zero, and two components more where hubs are
            corrected: ``embed_images(images) @ embed_captions(captions).T`` are the scores.
        """
        self._check_fitted("kcca_")
        K = similarities("images", self.image_kernel, images, self._images)
        if self._owners is not None:
            K = of_pairs(K, self._owners, self._n_images)
        return self._corrected(self.kcca_.transform_x(K), self._bank[1], (0, 1))

    def embed_captions(self, captions: Any) -> npt.NDArray[Any]:
        """Project captions into the learned space; see `embed_images`.

        Parameters
        ----------
        captions : collection of length n_captions
            Arguments of the kernel, or rows of a precomputed kernel.

        Returns
        -------
        ndarray of shape (n_captions, n_components)
        """
        self._check_fitted("kcca_")
        K = similarities("captions", self.text_kernel, captions, self._captions)
        return self._corrected(self.kcca_.transform_y(K), self._bank[0], (1, 0))

    def _corrected(
        self, projections: Array, bank: Array, order: tuple[int, int]
    ) -> npt.NDArray[Any]:
        """Return unit rows, with minus half of the nearness to the bank and 1 in this order."""
        rows = of_length_one(projections * self.weights)
        if not self.hub_neighbors:
            return rows
        nearness = mean_of_largest(products(rows, bank), self.hub_neighbors)
        ends = np.stack([-nearness / 2, np.ones_like(nearness)], axis=1)
        whole: Array = np.hstack([rows, ends[:, order].astype(rows.dtype)])
        return whole

    def _keep(self, kcca: KCCA) -> KCCARanker:
        """Store what was learned, and the training items that hubs are estimated from."""
        self.kcca_ = kcca
        images, captions = (
            of_length_one(scores[self.bank_items] * self.weights)
            for scores in (kcca.x_scores_, kcca.y_scores_)
        )
        self._bank = images, captions
        return self

    @property
    def bank_items(self) -> npt.NDArray[np.intp]:
        """Training items that hubs are estimated from, spread evenly."""
        return spread(len(self.kcca_.x_scores_), _MAX_BANK)

    def fingerprint(self) -> str:
        """Return a digest of the learned space."""
        space = self.kcca_.x_scores_ * self.weights
        about = f"hubs {self.hub_neighbors}" if self.hub_neighbors else ""
        return hashlib.blake2b(space.tobytes() + about.encode(), digest_size=16).hexdigest()

    @property
    def weights(self) -> Array:
        """Weight of each component, its correlation to the power of q / 2.

        If all these powers would underflow, correlations are divided by the largest first.
        """
        self._check_fitted("kcca_")
        return component_weights(self.kcca_.correlations_, self.correlation_power / 2.0)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a fitted ranker of precomputed kernels as one safetensors file.

        Raises
        ------
        ValueError
            If a kernel is a function, which no file can hold, or the ranker is not fitted.
        """
        self._check_fitted("kcca_")
        self._check_precomputed()
        tensors = self.kcca_.tensors()
        about: dict[str, Any] = {"params": params_to_json(self.get_params())}
        if self._owners is not None:
            tensors["caption_image"], about["n_images"] = self._owners, self._n_images
        save_tensors(path, _KIND, tensors, about)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> KCCARanker:
        """Read what `save` wrote.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        ValueError
            If the file is damaged, truncated or holds something else.
        """
        with reading(path):
            tensors, about = load_tensors(path, _KIND)
            ranker = cls.from_json(about.pop("params"))
            ranker._check_precomputed()
            if "n_images" in about:
                n_images = check_integer("n_images", about.pop("n_images"), minimum=1)
                owners = tensors.pop("caption_image", ())
                ranker._n_images = n_images
                ranker._owners = owners_of(owners, n_images, len(owners))
            about.exactly()
            return ranker._keep(ranker._new_kcca().restore(tensors))

    def _check_precomputed(self) -> None:
        for name in ("image_kernel", "text_kernel"):
            if not is_precomputed(getattr(self, name)):
                raise ValueError(
                    f'{name} must be "precomputed" in a file, which cannot hold a function, '
                    f"got {getattr(self, name)!r:.80}"
                )

    def _check_params(self) -> None:
        as_pair("ridge", self.ridge, minimum=1.0)
        check_real("correlation_power", self.correlation_power, minimum=0.0)
        check_integer("hub_neighbors", self.hub_neighbors, minimum=0)
        self._new_kcca()._check_params()

    def _new_kcca(self) -> KCCA:
        return KCCA(
            self.n_components,
            regularization=self.regularization,
            decomposition=self.decomposition,
            tolerance=self.tolerance,
            max_rank=self.max_rank,
        )


def is_precomputed(similarity: Any) -> bool:
    """Whether rows of kernel values are given in place of items."""
    return isinstance(similarity, str) and similarity == "precomputed"


def similarities(name: str, similarity: Similarity, items: Any, *training: Any) -> Array:
    """Return the similarities of items, one row each, with the training items.

    Without `training` the items are the training items themselves.
    """
    if is_precomputed(similarity):
        return as_gram(name, items, square=not training)
    if not callable(similarity):
        raise TypeError(
            f'the similarity of {name} must be a function or "precomputed", got {similarity!r}'
        )
    return as_gram(name, similarity(items, *training))


def of_pairs(K: Array, owners: Owners, n_images: int) -> Array:
    """Repeat the columns of a kernel with training images for each of their captions."""
    if K.shape[1] != n_images:
        raise ValueError(
            f"images must have one column per training image ({n_images}), got shape {K.shape}"
        )
    return K[:, owners]


def with_ridge(K: Array, factor: float) -> Array:
    """Multiply the diagonal of a training kernel by this factor."""
    return K if factor == 1.0 else add_ridge(K, factor)


def component_weights(correlations: Array, exponent: float) -> Array:
    """Return powers of the correlations, as weights in cosines.

    A common factor changes no cosine. If the powers would underflow when squared, the
    correlations are divided by the largest first.
    """
    weights: Array = correlations**exponent
    largest = correlations.max(initial=0.0)
    if largest > 0 and weights.max() < _LEAST_WEIGHT:
        weights = (correlations / largest) ** exponent
    return weights


def products(X: Array, Y: Array) -> npt.NDArray[Any]:
    """Product of every row of `X` with every row of `Y`."""
    with one_blas_thread():
        matrix: Array = X @ Y.T
    return matrix


def spread(n_items: int, most: int) -> npt.NDArray[np.intp]:
    """Return the places of at most `most` items that are spread evenly."""
    return np.linspace(0, n_items - 1, min(n_items, most)).astype(np.intp)


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
