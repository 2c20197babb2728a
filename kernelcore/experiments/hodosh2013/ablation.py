"""What idf weights and similarities of words add to the kernel of word sequences."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore.evaluation import Table
from kernelcore.evaluation.significance import fisher_randomization
from kernelcore.experiments.hodosh2013.systems import SYSTEMS, System
from kernelcore.report import Section

_Floats: TypeAlias = npt.NDArray[np.float64]
_Values: TypeAlias = Mapping[str, Mapping[str, _Floats]]

LEVELS = (0.1, 0.05, 0.01)
"""A p-value of at most the first gets one letter, of at most the second two, and so on."""
_SIMILARITIES: Mapping[str, frozenset[str]] = {
    "none": frozenset(),
    "D_out": frozenset({"D_out"}),
    "D_ic": frozenset({"D_ic"}),
    "D_out,ic": frozenset({"D_out", "D_ic"}),
}
_COLUMNS = {
    "no weights": ("none", frozenset[str]()),
    "sqrt(idf)": ("sqrt_idf", frozenset[str]()),
    "alignment": ("none", frozenset({"A"})),
    "sqrt(idf), alignment": ("sqrt_idf", frozenset({"A"})),
}


class Effect(NamedTuple):
    """A feature that a system has and another, else equal, has not.

    Attributes
    ----------
    feature : {"I", "A", "D"}
        Weights (I), similarity from alignment (A), or from co-occurrence (D).
    system, without : str
    """

    feature: str
    system: str
    without: str


def system_name(weights: str, similarities: Collection[str]) -> str:
    """Name of the Tri5 system with these weights and similarities."""
    plain = System("word_sequence")
    return next(
        name
        for name, system in SYSTEMS.items()
        if (system.text, system.weights) == (plain.text, weights)
        and set(system.lexical) == set(similarities)
        and (system.ranker, system.single, system.pyramid)
        == (plain.ranker, plain.single, plain.pyramid)
    )


def effects() -> Iterator[Effect]:
    """Yield the comparisons of the paper's table 6."""
    for similarities in _SIMILARITIES.values():
        for weights, alignment in _COLUMNS.values():
            name = system_name(weights, similarities | alignment)
            if similarities:
                yield Effect("D", name, system_name(weights, alignment))
            if weights != "none":
                yield Effect("I", name, system_name("none", similarities | alignment))
            if alignment:
                yield Effect("A", name, system_name(weights, similarities))


COMPARED = tuple(effects())
SYSTEMS_COMPARED = ("Tri5", *dict.fromkeys(effect.system for effect in COMPARED))


def ablation_section(measures: Mapping[str, _Values], *, n_threads: int | None) -> Section:
    """Tabulate one measure after another, with letters for what improves it.

    Parameters
    ----------
    measures : mapping of str to mapping of str to mapping of str to ndarray
        By the caption of a table, the heading of a column, and the system: one value for each
        query. All `SYSTEMS_COMPARED` are there.
    n_threads : int or None
    """
    levels = ", ".join(f"{'X' * i} p <= {level:g}" for i, level in enumerate(LEVELS, 1))
    return Section(
        "What makes Tri5Sem",
        (
            "Rows have the word similarity from co-occurrence; columns have the word weights "
            "and the similarity from alignment. A superscript says that a feature makes a "
            "system significantly better than the same system without it: I the weights, A "
            "the alignment, D the co-occurrence (against the top cell of the column). "
            f"Fisher's randomisation test: {levels}, not corrected for multiple tests.",
        ),
        [_table(caption, of, n_threads) for caption, of in measures.items()],
    )


def _table(caption: str, columns: _Values, n_threads: int | None) -> Table:
    places = {
        system_name(weights, similarities | alignment): (i, 1 + j * len(columns))
        for i, similarities in enumerate(_SIMILARITIES.values())
        for j, (weights, alignment) in enumerate(_COLUMNS.values())
    }
    rows = [[label] + [""] * len(_COLUMNS) * len(columns) for label in _SIMILARITIES]
    marks: dict[tuple[int, int], str] = {}
    for offset, values in enumerate(columns.values()):
        for name, (i, j) in places.items():
            rows[i][j + offset] = f"{100 * values[name].mean():.1f}"
        differences = np.stack([values[one.system] - values[one.without] for one in COMPARED])
        none = np.zeros(differences.shape[1])
        p_values = fisher_randomization(differences, none, rng=0, n_threads=n_threads).p_value
        n_letters = (np.asarray(p_values)[:, np.newaxis] <= LEVELS).sum(axis=1)
        for effect, n, difference in zip(COMPARED, n_letters, differences, strict=True):
            if difference.mean() > 0 and n:
                i, j = places[effect.system]
                marks[i, j + offset] = marks.get((i, j + offset), "") + effect.feature * n
    return Table(
        columns=("co-occurrence", *[*columns] * len(_COLUMNS)),
        rows=tuple(map(tuple, rows)),
        groups=(("", 1), *((heading, len(columns)) for heading in _COLUMNS)),
        caption=caption,
        superscripts=frozenset(marks.items()),
    )
