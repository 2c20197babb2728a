"""A page of photos that were found, as one HTML file."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from kernelcore.images import read_image
from kernelcore.models import Match
from kernelcore.report.examples import make_thumbnail
from kernelcore.report.page import render

Found: TypeAlias = Sequence[tuple[str, Sequence[Match]]]
"""Sentences and the photos that were found for each, the best first."""


def write_found(
    path: str | os.PathLike[str],
    found: Found,
    file_of: Callable[[str], str | os.PathLike[str]],
    *,
    false_rate: float = 0.05,
) -> None:
    """Write the results of a search as one HTML file that holds its pictures.

    Parameters
    ----------
    path : path
        File to write, whole or not at all.
    found : sequence of (str, sequence of Match)
        Sentences, and the photos found for each.
    file_of : callable
        Returns the file of a photo by its name.
    false_rate : float, default 0.05
        Where matches say how often they are found by chance, those from the first match
        above this share on stand below a line.

    Raises
    ------
    UnreadableImageError
        If a photo cannot be read.
    MissingExtraError
        If Jinja or Pillow is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kernelcore.datasets import make_scenes
    >>> from kernelcore.models import Match
    >>> from kernelcore.report import write_found
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     make_scenes(1).write(folder)
    ...     [photo] = Path(folder, "images").iterdir()
    ...     write_found(
    ...         Path(folder, "page.html"),
    ...         [("a dog", [Match(0, 0.5, photo.name)])],
    ...         lambda name: photo,
    ...     )
    ...     "a dog" in Path(folder, "page.html").read_text(encoding="utf-8")
    True
    """
    queries = [_described(query, matches, file_of, false_rate) for query, matches in found]
    render(path, "found.html.j2", queries=queries, percent=f"{100 * false_rate:g}")


def _described(
    query: str,
    matches: Sequence[Match],
    file_of: Callable[[str], str | os.PathLike[str]],
    false_rate: float,
) -> dict[str, Any]:
    """Return what the page shows of a query: photos above and below the line."""
    photos = [
        {
            "match": match,
            "thumbnail": make_thumbnail(
                "photo", read_image(Path(file_of(match.name))), alt=match.name
            ),
        }
        for match in matches
    ]
    rates = [match.by_chance for match in matches]
    is_below = [rate is not None and rate > false_rate for rate in rates]
    n_fitting = is_below.index(True) if any(is_below) else len(matches)
    return {
        "text": query,
        "above": photos[:n_fitting],
        "below": photos[n_fitting:],
        "has_line": any(rate is not None for rate in rates),
    }
