"""Plot of time, memory or another cost against size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from kernelcore._check import (
    Array,
    as_real_array,
    check_choice,
    check_finite,
    check_flag,
    check_real,
)
from kernelcore.plots._style import COLOURS, label_of, one_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKERS = "os^Dv<"
_MOST_TICKS = 8


def growth_curves(
    curves: Mapping[str, Mapping[float, float]],
    *,
    quantity: str = "seconds",
    size: str = "size",
    exponents: Mapping[str, float] | None = None,
    ax: Axes | None = None,
    legend: bool = True,
) -> Axes:
    r"""Plot how a cost grows with size, with a power of the size through each curve.

    Both axes are logarithmic. The line is :math:`c\,n^e`, where the exponent e is the slope of
    the logarithms by least squares: 1 is linear growth, 2 quadratic.

    Parameters
    ----------
    curves : mapping of str to mapping of float to float
        Cost by size, at least two sizes of each; all positive.
    quantity : str, default "seconds"
        What the costs are.
    size : str, default "size"
        What the sizes are.
    exponents : mapping of str to float, optional
        Exponents that are known better, from repeated measurements say, by name.
    ax : Axes, optional
        Where to draw. The default is a new figure.
    legend : bool, default True
        Whether to name the curves with their exponents.

    Returns
    -------
    Axes

    Raises
    ------
    TypeError, ValueError
        If there is no curve, or one without two positive, finite sizes and costs.
    MissingExtraError
        If Matplotlib is not installed.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from kernelcore.plots import growth_curves
    >>> seconds = {1000: 0.01, 2000: 0.04, 4000: 0.16}
    >>> ax = growth_curves({"Gram matrix": seconds}, size="captions", ax=Figure().subplots())
    >>> ax.get_legend().get_texts()[0].get_text()
    'Gram matrix, exponent 2.00'
    """
    if not isinstance(curves, Mapping) or not curves:
        raise ValueError(
            f"curves must be a mapping with at least one curve, got {curves!r:.80}"
        )
    check_flag("legend", legend)
    drawn = {name: _points(name, curve) for name, curve in curves.items()}
    slopes = {
        name: float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])
        for name, (sizes, costs) in drawn.items()
    }
    for name, exponent in (exponents or {}).items():
        check_choice("exponents", name, drawn)
        slopes[name] = check_real(f"exponents[{name!r}]", exponent)
    ax = one_axes(ax, (5.6, 3.8))
    for i, (name, (sizes, costs)) in enumerate(drawn.items()):
        look = COLOURS[i % len(COLOURS)], _MARKERS[i // len(COLOURS) % len(_MARKERS)]
        label = label_of(f"{name}, exponent {slopes[name]:.2f}")
        x, y = np.log(sizes), np.log(costs)
        fitted = np.exp(y.mean() + slopes[name] * (x - x.mean()))
        ax.plot(sizes, fitted, color=look[0], linewidth=1, alpha=0.6)
        ax.plot(sizes, costs, look[1], color=look[0], label=label)
    ax.set(xscale="log", yscale="log", xlabel=label_of(size), ylabel=label_of(quantity))
    every = sorted({one for sizes, _ in drawn.values() for one in sizes.tolist()})
    if len(every) <= _MOST_TICKS:
        ax.set_xticks(every, [f"{one:,.6g}" for one in every])
        ax.set_xticks([], minor=True)
    if legend:
        ax.legend()
    return ax


def _points(name: str, curve: Mapping[float, float]) -> tuple[Array, Array]:
    """Return sizes in ascending order and their costs."""
    where = f"curves[{name!r}]"
    if not isinstance(curve, Mapping) or len(curve) < 2:
        raise ValueError(f"{where} must map at least two sizes to costs, got {curve!r:.80}")
    points = check_finite(where, as_real_array(where, list(curve.items()), ndim=2))
    if points.min() <= 0:
        raise ValueError(f"{where} must hold positive numbers, got {points.min()}")
    points = points[points[:, 0].argsort()]
    return points[:, 0], points[:, 1]
