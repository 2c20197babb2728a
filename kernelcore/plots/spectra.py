"""Plots of kernel CCA: eigenvalues of kernels, and correlations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, as_list
from kernelcore.kcca import KCCA, KernelBasis, kernel_basis
from kernelcore.plots import _style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE = (5.6, 3.8)


def kernel_spectrum(
    kernels: npt.ArrayLike | KernelBasis | Mapping[str, npt.ArrayLike | KernelBasis],
    *,
    ax: Axes | None = None,
) -> Axes:
    """Plot the eigenvalues of centred kernels, each divided by its largest.

    How fast they fall tells how many components a kernel can support, and whether a low rank
    is enough.

    Parameters
    ----------
    kernels : array_like of shape (n, n), KernelBasis, or mapping of str to these
        Symmetric Gram matrices, not centred, or what `kernelcore.kcca.kernel_basis` made of
        them. The mapping names several.
    ax : Axes, optional
        Where to draw. The default is a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    TypeError
        If a kernel does not hold real numbers.
    ValueError
        If there is none, or a matrix is not square, symmetric and finite, or constant.
    MissingExtraError
        If Matplotlib is not installed.

    Notes
    -----
    Eigenvalues that cannot be told from 0 are left out. A matrix of n rows costs its whole
    eigen-decomposition.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from kernelcore.plots import kernel_spectrum
    >>> K = [[1.0, 0.8, 0.0], [0.8, 1.0, 0.0], [0.0, 0.0, 1.0]]
    >>> ax = kernel_spectrum({"words": K}, ax=Figure().subplots())
    >>> ax.get_lines()[0].get_ydata().round(3)
    array([1.   , 0.158])
    """
    if isinstance(kernels, Mapping):
        spectra = {name: _spectrum(f"kernels[{name!r}]", K) for name, K in kernels.items()}
    else:
        spectra = {"": _spectrum("kernels", kernels)}
    if not spectra:
        raise ValueError("kernels must hold at least one kernel, got none")
    ax = _style.one_axes(ax, _SIZE)
    for place, (name, eigenvalues) in enumerate(spectra.items()):
        numbers = np.arange(1, len(eigenvalues) + 1)
        ax.plot(numbers, eigenvalues, label=_style.label_of(name), **_style.line_style(place))
    ax.set(yscale="log", xlabel="number of the eigenvalue", ylabel="eigenvalue / largest")
    _style.mark_whole_numbers(ax.xaxis)
    if isinstance(kernels, Mapping):
        ax.legend()
    return ax


def canonical_correlations(
    kcca: KCCA,
    held_out: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Plot the canonical correlations of the components, in training and on other samples.

    Training correlations near 1 tell little: a kernel with many directions always has them.
    The correlations of held-out samples show how many components are real.

    Parameters
    ----------
    kcca : KCCA
        A fitted estimator, such as `KCCARanker.kcca_`.
    held_out : (Kx, Ky), optional
        Kernels of the same samples of both views with the training samples, as
        `KCCA.transform_x` and `transform_y` take them.
    ax : Axes, optional
        Where to draw. The default is a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    NotFittedError
        If the estimator is not fitted.
    TypeError, ValueError
        If `kcca` is of another type, or `held_out` does not fit it.
    MissingExtraError
        If Matplotlib is not installed.

    Notes
    -----
    A component that is constant on the held-out samples has the correlation 0 there.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from kernelcore.kcca import KCCA
    >>> from kernelcore.plots import canonical_correlations
    >>> X = np.array([[0.0], [1.0], [2.0], [5.0]])
    >>> kcca = KCCA(regularization=0.0).fit(X @ X.T, X @ X.T)
    >>> new = np.array([[3.0], [4.0]]) @ X.T
    >>> ax = canonical_correlations(kcca, (new, new), ax=Figure().subplots())
    >>> [line.get_ydata().round(6).tolist() for line in ax.get_lines()]
    [[1.0], [1.0]]
    """
    if not isinstance(kcca, KCCA):
        raise TypeError(f"kcca must be a KCCA, got {type(kcca).__name__}")
    kcca._check_fitted("correlations_")
    curves: dict[str, Array] = {"training": kcca.correlations_}
    if held_out is not None:
        curves["held out"] = _held_out_correlations(kcca, held_out)
    ax = _style.one_axes(ax, _SIZE)
    for place, (name, correlations) in enumerate(curves.items()):
        components = np.arange(1, len(correlations) + 1)
        ax.plot(components, correlations, ".-", label=name, color=_style.COLOURS[place])
    lowest = min(float(correlations.min()) for correlations in curves.values())
    ax.set(xlabel="component", ylabel="canonical correlation")
    ax.set_ylim(min(0.0, 1.05 * lowest), 1.05)
    _style.mark_whole_numbers(ax.xaxis)
    if len(curves) > 1:  # above the axes it covers nothing
        ax.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, frameon=False)
    return ax


def _spectrum(name: str, K: npt.ArrayLike | KernelBasis) -> Array:
    if not isinstance(K, KernelBasis):
        K = kernel_basis(K, decomposition="eigen", tolerance=0.0, n_threads=1, name=name)
    eigenvalues = K.spectrum()
    shares: Array = eigenvalues / eigenvalues[0]
    return shares


def _held_out_correlations(kcca: KCCA, held_out: tuple[npt.ArrayLike, npt.ArrayLike]) -> Array:
    """Correlation of the projections of both views, by component."""
    views = as_list("held_out", held_out)
    if len(views) != 2:
        raise ValueError(f"held_out must be two kernels, got {len(views)}")
    try:
        x, y = kcca.transform_x(views[0]), kcca.transform_y(views[1])
    except (TypeError, ValueError) as error:
        raise type(error)(f"held_out: {error}") from None
    if len(x) != len(y) or len(x) < 2:
        raise ValueError(
            f"held_out must be of the same samples, at least two, got {len(x)} and {len(y)}"
        )
    x, y = (projected - projected.mean(axis=0) for projected in (x, y))
    lengths = np.linalg.norm(x, axis=0) * np.linalg.norm(y, axis=0)
    correlations: Array = (x * y).sum(axis=0) / np.where(lengths > 0, lengths, 1)
    return correlations
