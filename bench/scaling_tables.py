"""Tables of docs/scaling.md from the results of bench/scaling.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelcore.evaluation.table import Table

ABSENT = "not measured yet"


def ranks_table(found: Mapping[str, Any]) -> Table:
    """Times of exact ranks beside the product alone."""
    rows = []
    for name, one in found.items():
        n, by = name.split(" by ")
        who = {"0": "2 threads", "1": "1 worker", "2": "2 workers"}[by]
        rows.append(
            (
                f"{int(n):,} x {int(n):,}",
                who,
                f"{one['seconds']:.1f}",
                f"{one['product_seconds']:.1f}",
                f"{one['seconds'] / one['product_seconds']:.2f}",
            )
        )
    return Table(
        ("pool", "who", "seconds", "product alone", "ratio"),
        tuple(rows),
        n_labels=2,
        caption="512 dimensions, float32; the product of tiles of the same shape on as many "
        "threads, measured before and after",
    )


def kcca_table(found: Mapping[str, Any]) -> Table:
    """Time and memory of landmark KCCA."""
    return Table(
        ("workers", "seconds", "largest memory of all processes", "store"),
        tuple(
            (
                n_workers,
                f"{one['seconds']:.0f}",
                f"{one['peak_bytes'] / 1e9:.2f} GB",
                f"{one['store_bytes'] / 1e9:.1f} GB",
            )
            for n_workers, one in found.items()
        ),
        caption="1,000,000 photos, 5,000,000 captions, 300 landmarks of each view; client, "
        "scheduler and workers together, pages that they share counted once",
    )


def overhead_table(found: Mapping[str, Any]) -> Table:
    """Time of the engine for each task."""
    names = {"0": "threads of this process", "1": "1 worker", "2": "2 workers"}
    return Table(
        ("who", "tasks", "milliseconds for each"),
        tuple(
            (names[who], f"{one['n_tasks']:,}", f"{1e3 * one['seconds'] / one['n_tasks']:.1f}")
            for who, one in found.items()
        ),
        caption="tiles of 16 x 16 with hardly any work: to submit, compute and write",
    )


def sections(stored: Mapping[str, Any], machine: str) -> dict[str, str]:
    """Text under each heading of the page."""
    if not stored:
        return {"Measured": ABSENT}
    makers = {"ranks": ranks_table, "kcca": kcca_table, "overhead": overhead_table}
    titles = {"ranks": "Exact ranks", "kcca": "Landmark KCCA", "overhead": "The engine"}
    found = {
        titles[part]: make(stored[part]).to_markdown() if part in stored else ABSENT
        for part, make in makers.items()
    }
    found["Measured on"] = f"{machine}."
    return found
