"""Kernel CCA ranker: cosines of images and captions in the space that kernel CCA learns."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, check_real
from kernelcore._estimator import Estimator, params_to_json
from kernelcore._store import load_tensors, reading, save_tensors
from kernelcore._threads import one_blas_thread
from kernelcore.kcca import KCCA
from kernelcore.kcca.basis import Decomposition, constant_diagonal
from kernelcore.kcca.kcca import KCCAFactorization, Pair, as_pair, factorize
from kernelcore.models.base import Task, check_task
from kernelcore.models.kcca_settings import (
    component_weights,
    with_ridge,
)
from kernelcore.models.kernel_items import (
    KernelItems,
    Repeats,
    Similarity,
    rows_against,
    training_gram,
)
from kernelcore.models.saving import kernel_from_json, kernel_to_json

_KIND = "kernel CCA ranker"
_KERNELS = ("image_kernel", "text_kernel")


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
    decomposition, tolerance, max_rank, n_threads
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

    kcca_: KCCA
    _items = KernelItems(None, None, None)

    def __init__(
        self,
        n_components: int | None = None,
        *,
        image_kernel: Similarity = "precomputed",
        text_kernel: Similarity = "precomputed",
        regularization: Pair = 0.1,
        ridge: Pair = 1.0,
        correlation_power: float = 0.0,
        decomposition: Decomposition = "gram_schmidt",
        tolerance: float = 1e-6,
        max_rank: int | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.image_kernel = image_kernel
        self.text_kernel = text_kernel
        self.regularization = regularization
        self.ridge = ridge
        self.correlation_power = correlation_power
        self.decomposition = decomposition
        self.tolerance = tolerance
        self.max_rank = max_rank
        self.n_threads = n_threads

    def fit(
        self,
        images: Any,
        captions: Any,
        *,
        caption_image: npt.ArrayLike | None = None,
        dev: tuple[Any, ...] | None = None,
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
        repeats = Repeats.of(images, captions, caption_image)
        self._check_params()
        factorization, left = self._factorized(images, captions, repeats)
        self._items = KernelItems.of(
            images,
            captions,
            repeats,
            image_kernel=self.image_kernel,
            text_kernel=self.text_kernel,
        )
        return self._solve(factorization, left)

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
        return ranker._solve(factorization, ridge)

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
        return unit_rows(self.kcca_.transform_x(self._image_rows(images)) * self.weights)

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
        return unit_rows(self.kcca_.transform_y(self._caption_rows(captions)) * self.weights)

    @property
    def weights(self) -> Array:
        """Weight of each component, its correlation to the power of q / 2.

        If all these powers would underflow, correlations are divided by the largest first.
        """
        self._check_fitted("kcca_")
        return component_weights(self.kcca_.correlations_, self.correlation_power / 2.0)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a fitted ranker as one safetensors file, whole or not at all.

        Raises
        ------
        ValueError
            If a kernel is a function other than those of `kernelcore.kernels`, which no file
            can hold, or the ranker is not fitted.
        """
        self._check_fitted("kcca_")
        kernels = {name: kernel_to_json(name, getattr(self, name)) for name in _KERNELS}
        params = params_to_json({**self.get_params(), **kernels})
        tensors, about = self._items.to_file()
        save_tensors(path, _KIND, tensors | self.kcca_.tensors(), {"params": params, **about})

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
            tensors, metadata = load_tensors(path, _KIND)
            ranker = cls.from_json(metadata["params"])
            for name in _KERNELS:
                setattr(ranker, name, kernel_from_json(name, getattr(ranker, name)))
            kernels = {"images": ranker.image_kernel, "captions": ranker.text_kernel}
            about = metadata.exactly("params", *KernelItems.names(metadata, kernels))
            ranker._items = KernelItems.from_file(tensors, about, kernels)
            ranker.kcca_ = ranker._new_kcca().restore(tensors)
            return ranker

    def _check_params(self) -> None:
        as_pair("ridge", self.ridge, minimum=1.0)
        check_real("correlation_power", self.correlation_power, minimum=0.0)
        self._new_kcca()._check_params()

    def _factorized(
        self, images: Any, captions: Any, repeats: Repeats | None
    ) -> tuple[KCCAFactorization, tuple[float, float]]:
        """Factorise the training kernels, and return the ridge that is still to be added.

        With decomposition="eigen" and a constant diagonal it only shifts the eigenvalues.
        """
        grams = (
            training_gram("images", self.image_kernel, images, repeats),
            training_gram("captions", self.text_kernel, captions),
        )
        factors = as_pair("ridge", self.ridge, minimum=1.0)
        shifts = [
            self.decomposition == "eigen" and constant_diagonal(K) is not None for K in grams
        ]
        factorization = factorize(
            *(
                K if is_shift else with_ridge(K, factor)
                for K, factor, is_shift in zip(grams, factors, shifts, strict=True)
            ),
            decomposition=self.decomposition,
            tolerance=self.tolerance,
            max_rank=self.max_rank,
            n_threads=self.n_threads,
        )
        x, y = (f if is_shift else 1.0 for f, is_shift in zip(factors, shifts, strict=True))
        return factorization, (x, y)

    def _image_rows(self, images: Any) -> Array:
        """Kernel of new images with the training items."""
        known, _, repeats = self._items
        return rows_against("images", self.image_kernel, images, known, repeats)

    def _caption_rows(self, captions: Any) -> Array:
        """Kernel of new captions with the training items."""
        return rows_against("captions", self.text_kernel, captions, self._items.captions)

    def _solve(self, factorization: KCCAFactorization, ridge: Pair) -> KCCARanker:
        self.kcca_ = self._new_kcca().solve(factorization, ridge)
        return self

    def _new_kcca(self) -> KCCA:
        return KCCA(
            self.n_components,
            regularization=self.regularization,
            decomposition=self.decomposition,
            tolerance=self.tolerance,
            max_rank=self.max_rank,
            n_threads=self.n_threads,
        )


def cosines(X: Array, Y: Array) -> npt.NDArray[Any]:
    """Cosine of every row of `X` with every row of `Y`, 0 where one of them is zero."""
    return products(unit_rows(X), unit_rows(Y))


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
