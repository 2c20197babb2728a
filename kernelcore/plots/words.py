"""Plot of the words that are most similar to a word."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelcore.lexical import WordKernel
from kernelcore.plots._style import COLOURS, literal, one_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def word_neighbors(
    kernel: WordKernel, word: str, *, k: int = 10, ax: Axes | None = None
) -> Axes:
    """Plot the words most similar to a word, the most similar at the top.

    Parameters
    ----------
    kernel : WordKernel
        Similarities of words.
    word : str
        A word of the kernel.
    k : int, default 10
        Most words to show. Words of similarity 0 or less are left out.
    ax : Axes, optional
        Where to draw. The default is a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    TypeError
        If `kernel` is something else.
    ValueError
        If the kernel does not know the word, or `k` is below 1.
    MissingExtraError
        If Matplotlib is not installed.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from kernelcore.lexical import WordKernel
    >>> from kernelcore.plots import word_neighbors
    >>> kernel = WordKernel(["bike", "cycle", "dog"], [[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1]])
    >>> ax = word_neighbors(kernel, "bike", ax=Figure().subplots())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['cycle']
    """
    if not isinstance(kernel, WordKernel):
        raise TypeError(f"kernel must be a WordKernel, got {type(kernel).__name__}")
    neighbors = kernel.most_similar(word, k)
    ax = one_axes(ax, (5.6, 1.0 + 0.28 * max(len(neighbors), 2)))
    places = range(len(neighbors))
    bars = ax.barh(places, [similarity for _, similarity in neighbors], color=COLOURS[0])
    ax.bar_label(bars, fmt="%.2f", padding=3)
    ax.set_yticks(places, [literal(neighbor) for neighbor, _ in neighbors])
    ax.set(xlabel="similarity", xlim=(0, 1.15), title=f"Words similar to “{literal(word)}”")
    ax.set_ylim(max(len(neighbors), 1) - 0.5, -0.5)
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1])
    if not neighbors:
        ax.text(0.5, 0.5, "none", transform=ax.transAxes, ha="center", va="center")
    return ax
