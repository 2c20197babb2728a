"""Public names, by the objects they stand for."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from public_api import exported_callables


def public_names() -> list[set[str]]:
    """Full names of each public function and class; some packages share one.

    Studies are commands first: a page of the reference has each of them as a whole.
    """
    names: defaultdict[int, set[str]] = defaultdict(set)
    kept: list[Any] = []  # no two objects have the number of one that is gone
    for name, value in exported_callables().items():
        owner, _, last = name.rpartition(".")
        is_method = owner.rpartition(".")[2][:1].isupper()
        if is_method or ".experiments." in name or getattr(value, "__name__", last) != last:
            continue
        kept.append(value)
        names[id(value)].add(name)
    return list(names.values())
