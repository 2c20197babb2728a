"""The training loop of all models, and schedules of learning rate and batch size."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from kernelcore._check import check_integer, check_real
from kernelcore._threads import Progress, Report, reporting
from kernelcore.deep.checkpoints import Epoch, State, as_epochs, copy_weights

MakeOptimizer = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]
"""Makes an optimizer for parameters. The schedule sets its learning rate."""


class Pace(NamedTuple):
    """Learning rate and batch size of an epoch."""

    learning_rate: float
    batch_size: int


class Schedule(Protocol):
    """Sets the learning rate and batch size of the next epoch.

    A schedule depends only on the development losses so far. It has no state to save, and
    resumed training continues with the same settings.
    """

    def __call__(self, dev_losses: Sequence[float]) -> Pace:
        """Return the pace of the next epoch, given the development losses of all before it."""
        ...


class Objective(Protocol):
    """Training task of a model: minibatches, loss and evaluation on development data."""

    def batches(self, batch_size: int, generator: torch.Generator) -> Sequence[Any]:
        """Return the minibatches of an epoch."""
        ...

    def loss(self, batch: Any, epoch: int, generator: torch.Generator) -> Tensor:
        """Return the loss of a minibatch. Epochs count from 0."""
        ...

    def evaluate(self) -> Mapping[str, float]:
        """Evaluate the model on development data.

        Returns ``dev_loss`` and any other values to log. It runs without gradients.
        """
        ...


@dataclass(frozen=True)
class History:
    """Losses and settings of each epoch of a training run.

    Attributes
    ----------
    epochs : tuple of mapping of str to float
        For each epoch ``learning_rate``, ``batch_size``, ``train_loss``, ``dev_loss``, other
        values that the objective measured, and ``seconds``.
    """

    epochs: tuple[Epoch, ...]

    @classmethod
    def of(cls, epochs: Any) -> History:
        """Make a history of the epochs in a file, and check them."""
        return cls(tuple(as_epochs(epochs)))

    @property
    def dev_losses(self) -> list[float]:
        """Development loss of each epoch."""
        return [epoch["dev_loss"] for epoch in self.epochs]

    @property
    def best_epoch(self) -> int:
        """Index of the epoch with the lowest development loss; the first of ties."""
        return min(range(len(self.epochs)), key=self.dev_losses.__getitem__)


def train(
    model: nn.Module,
    objective: Objective,
    *,
    schedule: Schedule,
    n_epochs: int,
    generator: torch.Generator,
    make_optimizer: MakeOptimizer | None = None,
    patience: int | None = None,
    max_gradient_norm: float | None = None,
    mixed_precision: bool = False,
    folder: str | os.PathLike[str] | None = None,
    fingerprint: str = "",
    progress: Progress = False,
    description: str = "train",
) -> History:
    """Train a model, and keep the weights of the best epoch.

    The best epoch is the one with the lowest development loss. On a CPU the same seed and
    number of threads give bit-identical weights, also after training was stopped and resumed.

    Parameters
    ----------
    model : Module
        Trained in place.
    objective : Objective
        Provides minibatches, losses and the evaluation.
    schedule : Schedule
        Learning rate and batch size of each epoch.
    n_epochs : int
        Maximum number of epochs.
    generator : torch.Generator
        Random generator, on the device of the model.
    make_optimizer : callable, optional
        Makes the optimizer. The default is Adam.
    patience : int, optional
        Stop after this number of epochs without a lower development loss.
    max_gradient_norm : float, optional
        Clip gradients to this norm.
    mixed_precision : bool, default False
        Multiply matrices in bfloat16. Needs a GPU.
    folder : path, optional
        Folder for ``log.csv`` and a checkpoint after every epoch. The same call resumes from
        the checkpoint.
    fingerprint : str, default ""
        Digest of data and settings. A checkpoint with another fingerprint is refused.
    progress : bool or callable, default False
        Show a progress bar, or call this with (minibatches done, maximum of minibatches).
    description : str, default "train"
        Label of the progress bar.

    Returns
    -------
    History

    Raises
    ------
    ValueError
        If `n_epochs` or `patience` is below 1, `mixed_precision` is True on a CPU, a loss
        becomes NaN or infinite, or the checkpoint belongs to another run.

    Examples
    --------
    >>> import torch
    >>> from kernelcore.deep import Plateau, seeded_generator, train
    >>> class Line:
    ...     def __init__(self, model):
    ...         self.model = model
    ...     def batches(self, batch_size, generator):
    ...         return torch.rand(8, batch_size, 1, generator=generator)
    ...     def loss(self, batch, epoch, generator):
    ...         return (self.model(batch) - 2 * batch).square().mean()
    ...     def evaluate(self):
    ...         return {"dev_loss": float((self.model.weight - 2).abs())}
    >>> model = torch.nn.Linear(1, 1, bias=False)
    >>> history = train(model, Line(model), schedule=Plateau(0.5, 4), n_epochs=20,
    ...                 generator=seeded_generator(0))
    >>> history.dev_losses[history.best_epoch] < 0.1
    True
    """
    check_integer("n_epochs", n_epochs, minimum=1)
    if patience is not None:
        check_integer("patience", patience, minimum=1)
    device = next(model.parameters()).device
    if mixed_precision and device.type == "cpu":
        raise ValueError("mixed_precision must be False on a CPU, got True")
    autocast = torch.autocast(device.type, torch.bfloat16) if mixed_precision else None
    optimizer = (make_optimizer or adam)(model.parameters())
    state = State(model, optimizer, generator, copy_weights(model), [])
    if folder is not None:
        state.load(folder, fingerprint)
    with reporting(progress, description) as report:
        while len(state.epochs) < n_epochs and not _is_over(state.epochs, patience):
            pace = schedule(History(tuple(state.epochs)).dev_losses)
            begin = time.perf_counter()
            losses = _run_epoch(
                state,
                objective,
                pace,
                max_gradient_norm=max_gradient_norm,
                autocast=autocast,
                report=_over_all_epochs(report, len(state.epochs), n_epochs),
            )
            with torch.no_grad():
                measured = dict(objective.evaluate())
            state.epochs.append(
                {
                    **pace._asdict(),
                    "train_loss": sum(losses) / len(losses),
                    **measured,
                    "seconds": time.perf_counter() - begin,
                }
            )
            history = History(tuple(state.epochs))
            if not math.isfinite(history.dev_losses[-1]):
                raise ValueError(
                    f"the development loss must be finite, got {history.dev_losses[-1]}"
                )
            if history.best_epoch == len(history.epochs) - 1:
                state.best = copy_weights(model)
            if folder is not None:
                state.save(folder, fingerprint)
            stopped_early = len(state.epochs) < n_epochs and _is_over(state.epochs, patience)
            if report is not None and stopped_early:
                report(n_epochs * len(losses), n_epochs * len(losses))
    model.load_state_dict(state.best)
    return History(tuple(state.epochs))


def adam(parameters: Iterable[nn.Parameter], **options: Any) -> torch.optim.Optimizer:
    """Make the default optimizer. The schedule sets its learning rate."""
    return torch.optim.Adam(parameters, fused=True, **options)


def cut_into_batches(order: Sequence[int], batch_size: int) -> list[list[int]]:
    """Cut a sequence into batches. A last batch of one item joins the batch before it."""
    starts = list(range(0, len(order), batch_size))
    if len(starts) > 1 and len(order) - starts[-1] < 2:
        starts.pop()
    return [list(order[a:b]) for a, b in pairwise([*starts, len(order)])]


def _is_over(epochs: Sequence[Epoch], patience: int | None) -> bool:
    """Whether the last `patience` epochs brought no lower development loss."""
    if patience is None or not epochs:
        return False
    return len(epochs) - 1 - History(tuple(epochs)).best_epoch >= patience


def _over_all_epochs(report: Report | None, epoch: int, n_epochs: int) -> Report | None:
    """Convert progress within an epoch to progress over all epochs."""
    if report is None:
        return None
    return lambda done, total: report(epoch * total + done, n_epochs * total)


def _run_epoch(
    state: State,
    objective: Objective,
    pace: Pace,
    *,
    max_gradient_norm: float | None,
    autocast: AbstractContextManager[Any] | None,
    report: Report | None,
) -> list[float]:
    """Take one optimizer step for each minibatch, and return their losses."""
    for group in state.optimizer.param_groups:
        group["lr"] = pace.learning_rate
    epoch = len(state.epochs)
    batches = objective.batches(pace.batch_size, state.generator)
    losses = []
    for done, batch in enumerate(batches, 1):
        with autocast or nullcontext():
            loss = objective.loss(batch, epoch, state.generator)
        losses.append(float(loss.detach()))
        if not math.isfinite(losses[-1]):
            raise ValueError(
                f"the training loss must be finite, got {losses[-1]} in epoch {epoch + 1}: "
                "lower the learning rate"
            )
        state.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        if max_gradient_norm is not None:
            nn.utils.clip_grad_norm_(state.model.parameters(), max_gradient_norm)
        state.optimizer.step()
        if report is not None:
            report(done, len(batches))
    return losses


@dataclass(frozen=True)
class Plateau:
    """Reduce the learning rate when the development loss stops falling.

    Parameters
    ----------
    learning_rate : float
        Initial learning rate.
    batch_size : int
        Constant.
    factor : float, default 0.2
        The learning rate is multiplied by this.
    patience : int, default 3
        Epochs without improvement to tolerate before the rate is reduced.

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
    """Reduce the learning rate once, for the last epochs.

    Parameters
    ----------
    learning_rate : float
        Learning rate of all epochs before the last ones.
    batch_size : int
        Constant.
    n_epochs : int
        Total number of epochs.
    n_last : int, default 2
        Number of final epochs with the reduced rate.
    factor : float, default 0.1
        The learning rate of the last epochs is multiplied by this.

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
    """Reduce the learning rate on plateaus; at a floor, double the batch size and restart.

    Parameters
    ----------
    learning_rate : float
        Initial learning rate, and the rate after each restart.
    batch_size : int
        Initial batch size. It is doubled whenever the rate would fall below the floor.
    floor : float
        Smallest learning rate.
    factor : float, default 0.5
        The learning rate is multiplied by this; below 1.
    patience : int, default 0
        Epochs without improvement since the last restart to tolerate before the rate is
        reduced.

    Raises
    ------
    TypeError, ValueError
        If a number is out of range, or the floor is above the learning rate.

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
