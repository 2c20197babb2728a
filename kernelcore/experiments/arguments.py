"""Checks of what all experiments are asked for."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kernelcore._validation import check_choice


def check_systems(systems: Sequence[str] | None, known: Collection[str]) -> list[str]:
    """Return the names of the systems to run, each once; None stands for all."""
    if isinstance(systems, str) or (systems is not None and not systems):
        raise ValueError(f"systems must hold at least one name, got {systems!r}")
    names = list(known if systems is None else dict.fromkeys(systems))
    for name in names:
        check_choice("systems", name, tuple(known))
    return names
