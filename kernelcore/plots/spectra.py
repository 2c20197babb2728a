"""Plots of kernel CCA: eigenvalues of kernels, correlations, and recalls by a parameter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kernelcore._check import (
    Array,
    as_list,
    as_real_array,
    check_choice,
    check_finite,
    check_flag,
)
from kernelcore.kcca import KCCA, KernelBasis, kernel_basis
from kernelcore.kcca.basis import project
from kernelcore.models import KCCASelection
from kernelcore.models.base import TASKS
from kernelcore.models.kcca_settings import KCCASetting
from kernelcore.plots._style import (
    COLOURS,
    GREY,
    label_of,
    legend_above,
    line_style,
    mark_whole_numbers,
    one_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE = (5.6, 3.8)
_MOST_LABELS = 8


def kernel_spectrum(
    kernels: npt.ArrayLike | KernelBasis | Mapping[str, npt.ArrayLike | KernelBasis],
    *,
    ax: Axes | None = None,
    legend: bool = True,
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
    legend : bool, default True
        Whether to name the lines of a mapping.

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
    check_flag("legend", legend)
    if isinstance(kernels, Mapping):
        spectra = {name: _spectrum(f"kernels[{name!r}]", K) for name, K in kernels.items()}
    else:
        spectra = {"": _spectrum("kernels", kernels)}
    if not spectra:
        raise ValueError("kernels must hold at least one kernel, got none")
    ax = one_axes(ax, _SIZE)
    for place, (name, eigenvalues) in enumerate(spectra.items()):
        numbers = np.arange(1, len(eigenvalues) + 1)
        ax.plot(numbers, eigenvalues, label=label_of(name), **line_style(place))
    ax.set(yscale="log", xlabel="number of the eigenvalue", ylabel="eigenvalue / largest")
    mark_whole_numbers(ax.xaxis)
    if legend and isinstance(kernels, Mapping):
        ax.legend()
    return ax


def canonical_correlations(
    kcca: KCCA | npt.ArrayLike,
    held_out: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Plot the canonical correlations of the components, in training and on other samples.

    Training correlations near 1 tell little: a kernel with many directions always has them.
    The correlations of held-out samples show how many components are real.

    Parameters
    ----------
    kcca : KCCA or array_like of shape (n_components,)
        A fitted estimator, such as `KCCARanker.kcca_`, or correlations.
    held_out : (Kx, Ky), optional
        Kernels of the same samples of both views with the training samples, as
        `KCCA.transform_x` and `transform_y` take them. They need an estimator.
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
        If `kcca` holds no correlations, or `held_out` does not fit it.
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
    if isinstance(kcca, KCCA):
        kcca._check_fitted("correlations_")
        curves = {"training": kcca.correlations_}
    else:
        curves = {"training": check_finite("kcca", as_real_array("kcca", kcca, ndim=1))}
        if not curves["training"].size:
            raise ValueError("kcca must hold at least one correlation, got none")
    if held_out is not None:
        if not isinstance(kcca, KCCA):
            raise TypeError("held_out must be left out unless kcca is a KCCA")
        curves["held out"] = _held_out_correlations(kcca, held_out)
    ax = one_axes(ax, _SIZE)
    for place, (name, correlations) in enumerate(curves.items()):
        components = np.arange(1, len(correlations) + 1)
        ax.plot(components, correlations, ".-", label=name, color=COLOURS[place])
    lowest = min(float(correlations.min()) for correlations in curves.values())
    ax.set(xlabel="component", ylabel="canonical correlation")
    ax.set_ylim(min(0.0, 1.05 * lowest), 1.05)
    mark_whole_numbers(ax.xaxis)
    if len(curves) > 1:
        legend_above(ax)
    return ax


def regularization_path(
    selection: KCCASelection,
    parameter: str = "regularization",
    *,
    ax: Axes | None = None,
) -> Axes:
    """Plot the recalls on development data against a parameter that was searched.

    For each value of the parameter the best of its settings counts: the one with the largest
    sum of the recalls of both tasks. A dotted line marks the setting that was chosen.

    Parameters
    ----------
    selection : KCCASelection
        What `kernelcore.models.select_kcca` returned.
    parameter : str, default "regularization"
        Name of a setting: n_components, regularization, ridge or correlation_power.
    ax : Axes, optional
        Where to draw. The default is a new figure.

    Returns
    -------
    Axes
        A line for each task: the mean of R@1, R@5 and R@10 in percent. The x axis is
        logarithmic if all values are positive numbers. Otherwise the values stand side by
        side: numbers in ascending order, others in that of the grid.

    Raises
    ------
    TypeError
        If `selection` is something else.
    ValueError
        If `parameter` is no field of a setting.
    MissingExtraError
        If Matplotlib is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from kernelcore.kcca import factorize
    >>> from kernelcore.models import select_kcca
    >>> from kernelcore.plots import regularization_path
    >>> images = np.random.default_rng(0).normal(size=(50, 3))
    >>> captions = images @ np.array([[1.0, 2.0], [0.0, 1.0], [1.0, 0.0]])
    >>> Kx, Ky = images @ images[:30].T, captions @ captions[:30].T
    >>> selection = select_kcca(factorize(Kx[:30], Ky[:30]), Kx[30:], Ky[30:],
    ...                         n_components_grid=[2],
    ...                         regularization_grid=[0.01, 0.1, 1.0])
    >>> ax = regularization_path(selection, ax=Figure().subplots())
    >>> ax.get_xscale(), [line.get_label() for line in ax.get_lines()]
    ('log', ['annotation', 'search', 'chosen'])
    """
    if not isinstance(selection, KCCASelection):
        raise TypeError(f"selection must be a KCCASelection, got {type(selection).__name__}")
    check_choice("parameter", parameter, KCCASetting._fields)
    tried = [_value(getattr(setting, parameter)) for setting in selection.settings]
    best: dict[Any, int] = {}
    for place in np.argsort(-selection.recalls.sum(axis=(1, 2)), kind="stable").tolist():
        best.setdefault(tried[place], place)
    chosen = next(iter(best))
    has_pairs = any(isinstance(value, str) for value in best)
    values = sorted(best, key=tried.index if has_pairs else None)
    is_scale = not has_pairs and values[0] > 0
    places = values if is_scale else list(range(len(values)))
    ax = one_axes(ax, _SIZE)
    for i, task in enumerate(TASKS):
        means = [100 * selection.recalls[best[value], i].mean() for value in values]
        ax.plot(places, means, "o-", color=COLOURS[i], label=task)
    ax.axvline(places[values.index(chosen)], color=GREY, linestyle=":", label="chosen")
    ax.set(xlabel=label_of(parameter), ylabel="mean of R@1, R@5, R@10 (%)")
    if is_scale:
        ax.set_xscale("log")
    step = -(-len(values) // _MOST_LABELS)
    names = [value if isinstance(value, str) else f"{value:g}" for value in values]
    ax.set_xticks(places[::step], names[::step])
    ax.set_xticks([], minor=True)
    legend_above(ax)
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
    x, y = (
        project(*of_view, K, name="held_out")
        for of_view, K in zip((kcca._x, kcca._y), views, strict=True)
    )
    if len(x) != len(y) or len(x) < 2:
        raise ValueError(
            f"held_out must be of the same samples, at least two, got {len(x)} and {len(y)}"
        )
    x, y = (projected - projected.mean(axis=0) for projected in (x, y))
    lengths = np.linalg.norm(x, axis=0) * np.linalg.norm(y, axis=0)
    correlations: Array = (x * y).sum(axis=0) / np.where(lengths > 0, lengths, 1)
    return correlations


def _value(value: float | tuple[float, float]) -> float | str:
    """Return a number, also of a pair of equal numbers, or another pair as text."""
    first, second = value if isinstance(value, tuple) else (value, value)
    return first if first == second else f"{first:g}, {second:g}"
