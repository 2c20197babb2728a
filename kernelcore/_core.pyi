from collections.abc import Callable, Sequence
from typing import Any

import numpy.typing as npt

_Report = Callable[[int, int], None] | None
_Segments = Sequence[tuple[int, int, float]]
_Captions = tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]
_Queries = tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]
_Csr = tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]
_Links = tuple[
    npt.NDArray[Any],
    npt.NDArray[Any],
    npt.NDArray[Any],
    npt.NDArray[Any],
    tuple[int, int] | None,
]
_Duals = tuple[npt.NDArray[Any], npt.NDArray[Any], float]

def compiler() -> str: ...
def supported_isas() -> list[str]: ...
def active_isa() -> str: ...
def select_isa(name: str) -> None: ...
def scan_values(values: npt.NDArray[Any], n_threads: int) -> tuple[float, float, bool]: ...
def scan_gram(
    K: npt.NDArray[Any], n_threads: int, copy: npt.NDArray[Any] | None = None
) -> tuple[float, float, bool, float]: ...
def decimals(scores: npt.NDArray[Any]) -> list[str]: ...
def histogram_intersection(
    X: npt.NDArray[Any],
    Y: npt.NDArray[Any],
    out: npt.NDArray[Any],
    n_threads: int,
    report: _Report,
) -> None: ...
def divide_by_masses(
    K: npt.NDArray[Any],
    masses_X: npt.NDArray[Any],
    masses_Y: npt.NDArray[Any],
    counts: bool,
    to_union: bool,
    n_threads: int,
) -> None: ...
def segmented_intersection(
    X: npt.NDArray[Any],
    Y: npt.NDArray[Any],
    segments: _Segments,
    symmetric: bool,
    out: npt.NDArray[Any],
    n_threads: int,
    report: _Report,
) -> None: ...
def sparse_intersection(
    X: _Csr,
    Y: _Csr,
    n_bins: int,
    out: npt.NDArray[Any],
    n_threads: int,
    report: _Report,
) -> None: ...
def bag_of_words(
    X: _Csr,
    Y: _Csr,
    n_words: int,
    f1_weights: npt.NDArray[Any] | None,
    out: npt.NDArray[Any],
    n_threads: int,
    report: _Report,
) -> None: ...
def word_sequence(
    X: _Captions,
    Y: _Captions,
    scale: npt.NDArray[Any],
    dense: npt.NDArray[Any] | None,
    sparse: _Csr | None,
    max_length: int,
    gap_decay: float,
    per_length: bool,
    normalize: bool,
    out: npt.NDArray[Any],
    n_threads: int,
    report: _Report,
) -> None: ...
def word_sequence_exact(
    X: _Captions,
    Y: _Captions,
    scale: npt.NDArray[Any],
    max_length: int,
    gap_decay: float,
    per_length: bool,
    normalize: bool,
    out: npt.NDArray[Any],
    n_threads: int,
    report: _Report,
) -> None: ...
def tag_rank(
    X: _Captions,
    Y: _Captions,
    tag_words: npt.NDArray[Any],
    n_words: int,
    absolute: npt.NDArray[Any],
    relative: npt.NDArray[Any],
    absolute_width: float,
    relative_width: float,
    out: npt.NDArray[Any],
    n_threads: int,
    report: _Report,
) -> None: ...
def count_ranks(
    scores: npt.NDArray[Any],
    rows: _Queries | None,
    columns: _Queries | None,
    ordered: bool,
    n_threads: int,
    report: _Report,
) -> bool: ...
def count_ranks_of_products(
    left: npt.NDArray[Any],
    right: npt.NDArray[Any],
    rows: _Queries,
    columns: _Queries,
    ordered: bool,
    n_threads: int,
    report: _Report,
) -> None: ...
def dot_products(
    left: npt.NDArray[Any],
    right: npt.NDArray[Any],
    out: npt.NDArray[Any],
    n_threads: int,
    report: _Report,
) -> None: ...
def paired_dot_products(
    left: npt.NDArray[Any],
    right: npt.NDArray[Any],
    row_of: npt.NDArray[Any],
    out: npt.NDArray[Any],
    n_threads: int,
    report: _Report,
) -> None: ...
def unit_rows(rows: npt.NDArray[Any], out: npt.NDArray[Any], report: _Report) -> bool: ...
def best_products(
    left: npt.NDArray[Any],
    right: npt.NDArray[Any],
    first: int,
    positions: npt.NDArray[Any],
    scores: npt.NDArray[Any],
    n_threads: int,
    report: _Report,
) -> None: ...
def linear_assignments(
    costs: npt.NDArray[Any] | list[npt.NDArray[Any]],
    n_columns: npt.NDArray[Any] | None,
    maximize: bool,
    n_links: int,
    threshold: float | None,
    with_duals: bool,
    n_threads: int,
    report: _Report,
) -> tuple[_Links, list[_Duals]]: ...
def k_cardinality_assignments(
    costs: npt.NDArray[Any], maximize: bool, max_k: int, report: _Report
) -> _Links: ...
def set_similarity(
    S: npt.NDArray[Any],
    row_offsets: npt.NDArray[Any],
    col_offsets: npt.NDArray[Any],
    kind: str,
    bounds: npt.NDArray[Any],
    out: npt.NDArray[Any],
    selected: tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]] | None,
    n_threads: int,
    report: _Report,
) -> None: ...
def word_assignment(
    X: _Captions,
    Y: _Captions,
    scale: npt.NDArray[Any],
    dense: npt.NDArray[Any] | None,
    sparse: _Csr | None,
    normalize: bool,
    out: npt.NDArray[Any],
    n_threads: int,
    report: _Report,
) -> None: ...
