"""Learning rates and batch sizes over the epochs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from kernelcore._validation import check_integer, check_real


class Pace(NamedTuple):
    """What an epoch runs at."""

    learning_rate: float
    batch_size: int


class Schedule(Protocol):
    """Says what the next epoch runs at.

    It depends on nothing but the development losses so far, so that training that is resumed
    goes on at the same pace.
    """

    def __call__(self, dev_losses: Sequence[float]) -> Pace:
        """Return the pace of the epoch that follows those with these development losses."""
        ...


@dataclass(frozen=True)
class Plateau:
    """Multiply the learning rate whenever the development loss has stopped falling.

    Parameters
    ----------
    learning_rate : float
        Where to start.
    batch_size : int
        The same in all epochs.
    factor : float, default 0.2
    patience : int, default 3
        Epochs without a new minimum that are borne; the rate falls after one more.

    Examples
    --------
    >>> from kernelcore.deep import Plateau
    >>> schedule = Plateau(0.5, 10, factor=0.5, patience=1)
    >>> schedule([0.9, 0.8, 0.8]), schedule([0.9, 0.8, 0.8, 0.9])
    (Pace(learning_rate=0.5, batch_size=10), Pace(learning_rate=0.25, batch_size=10))
    """

    learning_rate: float
    batch_size: int
    factor: float = 0.2
    patience: int = 3

    def __post_init__(self) -> None:
        _check_pace(self.learning_rate, self.batch_size, self.factor)
        check_integer("patience", self.patience, minimum=0)

    def __call__(self, dev_losses: Sequence[float]) -> Pace:
        """Return the pace of the next epoch."""
        rate, best, n_bad = self.learning_rate, math.inf, 0
        for loss in dev_losses:
            if loss < best:
                best, n_bad = loss, 0
                continue
            n_bad += 1
            if n_bad > self.patience:
                rate, n_bad = rate * self.factor, 0
        return Pace(rate, self.batch_size)


@dataclass(frozen=True)
class Cooldown:
    """Keep the learning rate, but for the last epochs.

    Parameters
    ----------
    learning_rate : float
        Of all epochs but the last.
    batch_size : int
        The same in all epochs.
    n_epochs : int
        Number of all epochs.
    n_last : int, default 2
        Epochs at the end with a lower rate.
    factor : float, default 0.1
        By which it is multiplied.

    Examples
    --------
    >>> from kernelcore.deep import Cooldown
    >>> schedule = Cooldown(0.5, 10, n_epochs=4)
    >>> schedule([0.9]), schedule([0.9, 0.8])
    (Pace(learning_rate=0.5, batch_size=10), Pace(learning_rate=0.05, batch_size=10))
    """

    learning_rate: float
    batch_size: int
    n_epochs: int
    n_last: int = 2
    factor: float = 0.1

    def __post_init__(self) -> None:
        _check_pace(self.learning_rate, self.batch_size, self.factor)
        check_integer("n_epochs", self.n_epochs, minimum=1)
        check_integer("n_last", self.n_last, minimum=0)

    def __call__(self, dev_losses: Sequence[float]) -> Pace:
        """Return the pace of the next epoch."""
        is_last = len(dev_losses) >= self.n_epochs - self.n_last
        return Pace(self.learning_rate * (self.factor if is_last else 1), self.batch_size)


@dataclass(frozen=True)
class BatchDoubling:
    """Lower the learning rate on plateaus down to a floor, then double the batch and restart.

    Parameters
    ----------
    learning_rate : float
        Where to start, and to start again.
    batch_size : int
        At the start; doubled whenever the rate would fall below the floor.
    floor : float
        The least learning rate.
    factor : float, default 0.5
        By which the rate is multiplied, below 1.
    patience : int, default 0
        Epochs without a new minimum since the last restart that are borne; the rate falls
        after one more.

    Raises
    ------
    TypeError, ValueError
        If a number is out of its range, or the floor is above the rate.

    References
    ----------
    .. [1] H. A. Khojasteh, "Automatic image description generation using deep multimodal
       embeddings", master thesis, IASBS, Zanjan 2019, section 4.5.1.

    Examples
    --------
    >>> from kernelcore.deep import BatchDoubling
    >>> schedule = BatchDoubling(0.5, 10, floor=0.25)
    >>> schedule([0.9, 0.9]), schedule([0.9, 0.9, 0.9])
    (Pace(learning_rate=0.25, batch_size=10), Pace(learning_rate=0.5, batch_size=20))
    """

    learning_rate: float
    batch_size: int
    floor: float
    factor: float = 0.5
    patience: int = 0

    def __post_init__(self) -> None:
        _check_pace(self.learning_rate, self.batch_size, self.factor)
        check_real("floor", self.floor, minimum=0, exclusive=True)
        check_integer("patience", self.patience, minimum=0)
        if self.factor >= 1:
            raise ValueError(f"factor must be a number < 1, got {self.factor}")
        if self.floor > self.learning_rate:
            raise ValueError(
                f"floor must be at most the learning rate, {self.learning_rate}, "
                f"got {self.floor}"
            )

    def __call__(self, dev_losses: Sequence[float]) -> Pace:
        """Return the pace of the next epoch."""
        rate, size, best, n_bad = self.learning_rate, self.batch_size, math.inf, 0
        for loss in dev_losses:
            if loss < best:
                best, n_bad = loss, 0
                continue
            n_bad += 1
            if n_bad > self.patience:
                rate, n_bad = rate * self.factor, 0
            if rate < self.floor:
                rate, size, best = self.learning_rate, 2 * size, math.inf
        return Pace(rate, size)


def _check_pace(learning_rate: float, batch_size: int, factor: float) -> None:
    check_real("learning_rate", learning_rate, minimum=0, exclusive=True)
    check_integer("batch_size", batch_size, minimum=1)
    check_real("factor", factor, minimum=0, exclusive=True)
