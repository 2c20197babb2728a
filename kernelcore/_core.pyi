from collections.abc import Callable, Sequence
from typing import Any

import numpy.typing as npt

_Report = Callable[[int, int], None] | None
_Segments = Sequence[tuple[int, int, float]]

def compiler() -> str: ...
def supported_isas() -> list[str]: ...
def active_isa() -> str: ...
def select_isa(name: str) -> None: ...
def histogram_intersection(
    X: npt.NDArray[Any],
    Y: npt.NDArray[Any],
    out: npt.NDArray[Any],
    n_threads: int,
    report: _Report,
) -> None: ...
def segmented_intersection(
    X: npt.NDArray[Any],
    Y: npt.NDArray[Any],
    segments: _Segments,
    out: npt.NDArray[Any],
    n_threads: int,
    report: _Report,
) -> None: ...
