"""Rows of published tables."""

from __future__ import annotations

import numbers
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kernelcore._check import check_real
from kernelcore.evaluation.labels import check_label

TASKS = ("annotation", "search")
_LABELS = ("kind", "system", "source")


@dataclass(frozen=True)
class Published:
    """A row of a published table, to stand beside results of our own.

    Attributes
    ----------
    system : str
        Name of the system in the publication.
    source : str
        The publication and its collection, short: "MSCOCO, Hessel et al. 2019".
    values : mapping of str to float, or of task to such a mapping
        Numbers by the names that `Result.mean` has for this kind of result, shares in
        [0, 1]: ``{"accuracy": 0.8}``, or ``{"search": {"R@1": 0.08, "median_rank": 34}}``.
        Leave out what is not published. NumPy scalars become plain numbers.

    Raises
    ------
    TypeError, ValueError
        If `system` or `source` is not one line of text, or `values` holds anything but finite
        numbers with names other than ``kind``, ``system`` and ``source``.

    See Also
    --------
    ResultTable : Prints it, and refuses numbers that none of its results has.
    """

    system: str
    source: str
    values: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("system", "source"):
            check_label(name, getattr(self, name))
        object.__setattr__(self, "values", _as_values("values", self.values, tasks=TASKS))

    def to_dict(self) -> dict[str, Any]:
        """Return the row as plain values; what is not published is missing."""
        labels = {"system": self.system, "source": self.source}
        return {"kind": "published result", **labels, **self.values}


def _as_values(name: str, values: Any, *, tasks: Collection[str] = ()) -> dict[str, Any]:
    if not isinstance(values, Mapping):
        raise TypeError(f"{name} must map names to numbers, got {type(values).__name__}")
    found: dict[str, Any] = {}
    for key, value in values.items():
        if not isinstance(key, str):
            raise TypeError(f"{name} must have names as keys, got {key!r}")
        if key in _LABELS:
            raise ValueError(f"{name} must hold numbers, got one for the label {key!r}")
        where = f"{name}[{key!r}]"
        found[key] = _as_values(where, value) if key in tasks else _as_number(where, value)
    return found


def _as_number(name: str, value: Any) -> int | float:
    number = check_real(name, value)
    return int(value) if isinstance(value, numbers.Integral) else number


def places(values: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield the keys that lead to each number, and to each task without numbers."""
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from ((key, name) for name in value)
        else:
            yield (key,)
