"""Checks of stores: files against their digests, and a sample of pieces computed again."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernelcore._files import check_digest
from kernelcore._validation import check_flag, check_integer, check_rng
from kernelcore.distributed.gram import withdraw
from kernelcore.distributed.landmark_kcca import MODEL_FILE
from kernelcore.distributed.store import Store
from kernelcore.distributed.tasks import can_make, made


@dataclass(frozen=True)
class Verification:
    """Condition of a store.

    Attributes
    ----------
    folder : Path
    n_pieces : int
        Pieces of the whole store; 0 where `about.json` cannot be read.
    missing : list of int
        Pieces that have not been computed.
    damaged : dict of int to str
        Pieces whose files are not as they were written, and what is wrong. The number -1
        stands for the store itself.
    recomputed : list of int
        Pieces that were computed again.
    differing : dict of int to str
        Those of them that came out otherwise, or could not be computed.
    """

    folder: Path
    n_pieces: int
    missing: list[int]
    damaged: dict[int, str]
    recomputed: list[int]
    differing: dict[int, str]

    @property
    def is_intact(self) -> bool:
        """Whether nothing is missing, damaged or different."""
        return not (self.missing or self.damaged or self.differing)

    def __str__(self) -> str:
        if self.is_intact:
            again = f", {len(self.recomputed)} computed again" if self.recomputed else ""
            return f"{self.folder}: {self.n_pieces} pieces as written{again}"
        lines = [f"{self.folder}: {self.n_pieces} pieces"]
        if self.missing:
            lines.append(f"  {len(self.missing)} missing, the first is {self.missing[0]}")
        for title, found in (("damaged", self.damaged), ("different", self.differing)):
            lines += [f"  {title}: piece {k}: {text}" for k, text in sorted(found.items())]
        return "\n".join(lines)


def verify(
    folder: str | os.PathLike[str],
    *,
    n_recomputed: int = 3,
    repair: bool = False,
    rng: np.random.Generator | int | None = None,
) -> list[Verification]:
    """Check all stores in a folder.

    Parameters
    ----------
    folder : path
        A store, or a folder of stores such as that of `fit_landmark_kcca`.
    n_recomputed : int, default 3
        Pieces of each store to compute again, drawn at random. Their files must have the same
        digests. Rows that were written from memory cannot be computed again.
    repair : bool, default False
        Let damaged pieces count as missing, so that the next run makes them again.
    rng : numpy.random.Generator, int or None
        Source of the draw; an int is a seed.

    Returns
    -------
    list of Verification
        One for each store and each model of `fit_landmark_kcca`, by folder.

    Raises
    ------
    FileNotFoundError
        If there is no store.
    TypeError, ValueError
        If an option is out of range.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from kernelcore.distributed import verify, write_rows
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_rows(folder, np.eye(3))
    ...     [found] = verify(folder)
    >>> found.is_intact
    True
    """
    count = check_integer("n_recomputed", n_recomputed, minimum=0)
    check_flag("repair", repair)
    generator = check_rng("rng", rng)
    found: list[Verification] = []
    for place, folders, files in os.walk(folder):
        folders.sort()
        if "about.json" in files:
            found.append(_verified(Path(place), count, generator, repair=repair))
        if MODEL_FILE in files and "triangles" in folders:
            found.append(_verified_model(Path(place)))
    if not found:
        raise FileNotFoundError(f"{folder} must hold a store, and it holds none")
    return found


def _verified(
    folder: Path, n_recomputed: int, rng: np.random.Generator, *, repair: bool
) -> Verification:
    try:
        store = Store.open(folder)
    except (OSError, ValueError) as error:
        return Verification(folder, 0, [], {-1: str(error)}, [], {})
    done = sorted(store.done() & set(range(store.n_pieces)))
    damaged = {number: text for number in done if (text := store.damage(number))}
    intact = [number for number in done if number not in damaged]
    recomputed: list[int] = []
    differing: dict[int, str] = {}
    if can_make(store) and intact:
        drawn = rng.permutation(len(intact))[:n_recomputed]
        recomputed = sorted(intact[place] for place in drawn)
        for number in recomputed:
            text = _difference(store, number)
            if text:
                differing[number] = text
    if repair and damaged:
        if store.kind == "gram":
            withdraw(store)
        for number in damaged:
            store.remove_mark(number)
    return Verification(folder, store.n_pieces, store.missing(), damaged, recomputed, differing)


def _verified_model(folder: Path) -> Verification:
    """Check the model of `fit_landmark_kcca`; each call writes it anew."""
    try:
        check_digest(folder / MODEL_FILE)
    except (OSError, ValueError) as error:
        return Verification(folder, 1, [], {0: str(error)}, [], {})
    return Verification(folder, 1, [], {}, [], {})


def _difference(store: Store, number: int) -> str:
    """Compute a piece again; say how it differs from the one that is there."""
    try:
        again = made(store, number).digests()
    except Exception as error:
        return f"it cannot be computed again: {error}"
    written = store.digests(number)
    names = [name for name in written if again.get(name) != written[name]]
    return f"{names[0]} came out otherwise" if names or again.keys() != written.keys() else ""
