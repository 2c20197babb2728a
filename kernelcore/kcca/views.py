"""Kernel CCA over a list of two views, as the models of cca-zoo take it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._estimator import Estimator
from kernelcore._validation import as_list, check_callable
from kernelcore.kcca.estimator import KCCA
from kernelcore.kernels._samples import as_items
from kernelcore.kernels.gram import as_gram

KernelFunction: TypeAlias = Callable[..., npt.ArrayLike]


class TwoViewKCCA(Estimator):
    """Kernel CCA with the interface of cca-zoo: one argument, the list of both views.

    So it stands beside the models of cca-zoo in its searches, its cross-validation and its
    metrics, which take rows of all views at once.

    Parameters
    ----------
    kernel : callable or (callable, callable)
        ``kernel(X, Y)`` returns the matrix of kernel values of the items X, one row each, with
        the items Y: one function for both views, or one for each.
    kcca : KCCA, optional
        The settings; it is copied, never fitted itself. The default is ``KCCA()``.

    Attributes
    ----------
    kcca_ : KCCA
        The fitted estimator.

    See Also
    --------
    KCCA : The estimator, over kernels.

    Notes
    -----
    The shrinkage c of cca-zoo's own kernel CCA is ``regularization=(n - 1) * c / (1 - c)`` for
    n training samples.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.kcca import KCCA, TwoViewKCCA
    >>> X = np.array([[0.0], [1.0], [2.0], [5.0]])
    >>> model = TwoViewKCCA(lambda A, B: A @ B.T, KCCA(regularization=0.0))
    >>> x, y = model.fit_transform([X, 2 * X + 1])
    >>> x.shape, y.shape
    ((4, 1), (4, 1))
    >>> round(model.score([X, 2 * X + 1]), 6)
    1.0
    """

    kcca_: KCCA
    _items: list[Any]

    def __init__(
        self, kernel: KernelFunction | Sequence[KernelFunction], kcca: KCCA | None = None
    ) -> None:
        self.kernel = kernel
        self.kcca = kcca

    def fit(self, views: Sequence[Any], y: Any = None) -> TwoViewKCCA:
        """Learn from both views of the training samples.

        Parameters
        ----------
        views : sequence of two collections of length n_training
            What the kernel takes, or each kernel.
        y : ignored
            As in cca-zoo.

        Returns
        -------
        TwoViewKCCA
            This estimator.

        Raises
        ------
        TypeError
            If `kernel` is not callable, `kcca` is no KCCA, or a view is no collection.
        ValueError
            If there are not two views of the same samples, or not one or two kernels.
        """
        settings = KCCA() if self.kcca is None else self.kcca
        if not isinstance(settings, KCCA):
            raise TypeError(f"kcca must be a KCCA, got {type(settings).__name__}")
        items = _two_views(views)
        self.kcca_ = KCCA(**settings.get_params()).fit(*self._kernels(items, items))
        self._items = items
        return self

    def transform(self, views: Sequence[Any]) -> list[npt.NDArray[Any]]:
        """Project both views of samples.

        Parameters
        ----------
        views : sequence of two collections of length n_samples
            What the kernel takes, or each kernel.

        Returns
        -------
        list of two ndarrays of shape (n_samples, n_components)
        """
        self._check_fitted("kcca_")
        Kx, Ky = self._kernels(_two_views(views), self._items)
        return [self.kcca_.transform_x(Kx), self.kcca_.transform_y(Ky)]

    def fit_transform(self, views: Sequence[Any], y: Any = None) -> list[npt.NDArray[Any]]:
        """Learn from both views of the training samples, and project them."""
        return self.fit(views).transform(views)

    def score(self, views: Sequence[Any], y: Any = None) -> float:
        """Return the mean over components of the correlation between both projections.

        A component that is constant on these samples counts as 0, as in cca-zoo.
        """
        x, y_scores = self.transform(views)
        if len(x) != len(y_scores) or not len(x):
            raise ValueError(
                f"views must hold the same samples, got {len(x)} and {len(y_scores)}"
            )
        directions = []
        for scores in (x, y_scores):
            centred = scores - scores.mean(axis=0)
            lengths = np.linalg.norm(centred, axis=0)
            directions.append(centred / np.where(lengths > 0, lengths, 1))
        return float((directions[0] * directions[1]).sum(axis=0).mean())

    def _kernels(self, views: list[Any], training: list[Any]) -> list[npt.NDArray[Any]]:
        kernels = [self.kernel] * 2 if callable(self.kernel) else as_list("kernel", self.kernel)
        if len(kernels) != 2:
            raise ValueError(
                f"kernel must be a function, or one for each of two views, got {len(kernels)}"
            )
        return [
            as_gram("kernel(X, Y)", check_callable("kernel", kernel)(items, own))
            for kernel, items, own in zip(kernels, views, training, strict=True)
        ]


def _two_views(views: Sequence[Any]) -> list[Any]:
    items = [as_items(view, f"views[{v}]") for v, view in enumerate(as_list("views", views))]
    if len(items) != 2:
        raise ValueError(f"views must be two views of the same samples, got {len(items)}")
    return items
