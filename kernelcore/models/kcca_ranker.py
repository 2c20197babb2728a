"""Kernel CCA ranker: cosines of images and captions in the space that kernel CCA learns.

`JointSpace` corrects these cosines for hubs, and keeps them scalar products.
"""

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
from kernelcore._store import load_tensors, reading, save_tensors
from kernelcore._threads import (
    Progress,
    cached_property,
    check_stopped,
    one_blas_thread,
    working,
)
from kernelcore.kcca import KCCA
from kernelcore.kcca.basis import Decomposition, constant_diagonal
from kernelcore.kcca.kcca import KCCAFactorization, Pair, as_pair, factorize
from kernelcore.kernels import ridge as add_ridge
from kernelcore.kernels.gram import as_gram
from kernelcore.kernels.prepared import n_items
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
    decomposition, tolerance, max_rank
        See `kernelcore.kcca.KCCA`.

    Attributes
    ----------
    kcca_ : KCCA
        The fitted projection of both views: x images, y captions.

    Notes
    -----
    Both tasks rank by the same scores. An image or caption whose projection is zero scores 0
    against everything.

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
    decomposition: Decomposition = "gram_schmidt"
    tolerance: float = 1e-6
    max_rank: int | None = None

    _images: Any = field(init=False, default=None)
    _captions: Any = field(init=False, default=None)
    _owners: Owners | None = field(init=False, default=None)
    _n_images: int = field(init=False, default=0)

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
        grams, ridges = [], []
        for K, ridge in zip((Kx, Ky), as_pair("ridge", self.ridge, minimum=1.0), strict=True):
            # With "eigen" and a constant diagonal a ridge only shifts the eigenvalues.
            is_shift = self.decomposition == "eigen" and constant_diagonal(K) is not None
            grams.append(K if is_shift else with_ridge(K, ridge))
            ridges.append(ridge if is_shift else 1.0)
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
        self.kcca_ = self._new_kcca().solve(factorization, (ridges[0], ridges[1]))
        return self

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
        ranker.kcca_ = ranker._new_kcca().solve(factorization, ridge)
        return ranker

    def scores(
        self, images: Any, captions: Any, *, task: Task = "annotation"
    ) -> npt.NDArray[Any]:
        """Score every image against every caption; see `Ranker.scores`.

        Returns
        -------
        ndarray of shape (n_images, n_captions)
            Values in [-1, 1].
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
            Weighted projections, of length 1 or zero:
            ``embed_images(images) @ embed_captions(captions).T`` are the scores.
        """
        self._check_fitted("kcca_")
        K = similarities("images", self.image_kernel, images, self._images)
        if self._owners is not None:
            K = of_pairs(K, self._owners, self._n_images)
        return unit_rows(self.kcca_.transform_x(K) * self.weights)

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
        return unit_rows(self.kcca_.transform_y(K) * self.weights)

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
            ranker.kcca_ = ranker._new_kcca().restore(tensors)
            return ranker

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


def unit_rows(Z: Array) -> npt.NDArray[Any]:
    """Scale every row to length 1; rows of zeros stay zero."""
    lengths = np.linalg.norm(Z, axis=1, keepdims=True)
    rows: Array = Z / np.where(lengths > 0, lengths, 1)
    return rows


def products(X: Array, Y: Array) -> npt.NDArray[Any]:
    """Product of every row of `X` with every row of `Y`."""
    with one_blas_thread():
        matrix: Array = X @ Y.T
    return matrix


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
