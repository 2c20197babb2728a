"""The training loop that all models share."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from kernelcore._progress import Progress, Report, reporting
from kernelcore._validation import check_integer
from kernelcore.deep.checkpoints import Epoch, State, as_epochs, copied
from kernelcore.deep.schedules import Pace, Schedule

MakeOptimizer = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]
"""Makes an optimizer of parameters; the schedule sets its learning rate."""


class Objective(Protocol):
    """What a model is trained for: its minibatches, its loss, and how it is judged."""

    def batches(self, batch_size: int, generator: torch.Generator) -> Sequence[Any]:
        """Return the minibatches of an epoch."""
        ...

    def loss(self, batch: Any, epoch: int, generator: torch.Generator) -> Tensor:
        """Return the loss of a minibatch; epochs count from 0."""
        ...

    def evaluate(self) -> Mapping[str, float]:
        """Measure the model on development data: ``dev_loss``, and what else to log.

        No gradients are recorded.
        """
        ...


@dataclass(frozen=True)
class History:
    """What happened in training.

    Attributes
    ----------
    epochs : tuple of mapping of str to float
        Of each epoch ``learning_rate``, ``batch_size``, ``train_loss``, ``dev_loss`` and
        what else the objective measured, and ``seconds``.
    """

    epochs: tuple[Epoch, ...]

    @classmethod
    def of(cls, epochs: Any) -> History:
        """Return the history of epochs as a file tells them, checked."""
        return cls(tuple(as_epochs(epochs)))

    @property
    def dev_losses(self) -> list[float]:
        """Development loss of each epoch."""
        return [epoch["dev_loss"] for epoch in self.epochs]

    @property
    def best_epoch(self) -> int:
        """Position of the epoch whose model was kept, the first of equals."""
        return best_of(self.dev_losses)


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
    """Train a model and leave it as it was after its best epoch.

    On a CPU the same seed gives the same bits, also when training was stopped and resumed.
    The number of torch's threads is part of the setting: its sums depend on it.

    Parameters
    ----------
    model : Module
        Trained in place.
    objective : Objective
        Gives minibatches and losses.
    schedule : Schedule
        Learning rate and batch size of each epoch.
    n_epochs : int
        Epochs at most.
    generator : torch.Generator
        Source of all random choices, on the device of the model.
    make_optimizer : callable, optional
        Makes the optimizer; the default is Adam.
    patience : int, optional
        Stop after that many epochs without a lower development loss.
    max_gradient_norm : float, optional
        Scale greater gradients down to this norm.
    mixed_precision : bool, default False
        Multiply matrices in bfloat16, on a GPU alone.
    folder : path, optional
        Keeps a checkpoint after every epoch, from which the same call goes on, and
        ``log.csv``.
    fingerprint : str, default ""
        Digest of data and settings: a checkpoint of others is refused.
    progress : bool or callable, default False
        Show a bar, or call this with (minibatches done, minibatches at most).
    description : str, default "train"
        What stands before the bar.

    Returns
    -------
    History

    Raises
    ------
    ValueError
        If `n_epochs` or `patience` is below 1, mixed precision is asked for on a CPU, a loss
        becomes NaN or infinite, or the checkpoint is of another run.

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
    state = State(model, optimizer, generator, copied(model), [])
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
                report=_of_all(report, len(state.epochs), n_epochs),
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
            dev_losses = History(tuple(state.epochs)).dev_losses
            if not math.isfinite(dev_losses[-1]):
                raise ValueError(f"the development loss must be finite, got {dev_losses[-1]}")
            if best_of(dev_losses) == len(dev_losses) - 1:
                state.best = copied(model)
            if folder is not None:
                state.save(folder, fingerprint)
            stopped_early = len(state.epochs) < n_epochs and _is_over(state.epochs, patience)
            if report is not None and stopped_early:
                report(n_epochs * len(losses), n_epochs * len(losses))
    model.load_state_dict(state.best)
    return History(tuple(state.epochs))


def adam(parameters: Iterable[nn.Parameter], **options: Any) -> torch.optim.Optimizer:
    """Make the default optimizer; the schedule sets its rate."""
    return torch.optim.Adam(parameters, fused=True, **options)


def dealt(order: Sequence[int], batch_size: int) -> list[list[int]]:
    """Cut into batches; what is too few to be compared joins the last one."""
    starts = list(range(0, len(order), batch_size))
    if len(starts) > 1 and len(order) - starts[-1] < 2:
        starts.pop()
    ends = [*starts[1:], len(order)]
    return [list(order[start:end]) for start, end in zip(starts, ends, strict=True)]


def best_of(losses: Sequence[float]) -> int:
    """Position of the lowest loss, the first of equals."""
    return min(range(len(losses)), key=losses.__getitem__)


def _is_over(epochs: Sequence[Epoch], patience: int | None) -> bool:
    """Whether the last `patience` epochs brought nothing."""
    if patience is None or not epochs:
        return False
    return len(epochs) - 1 - History(tuple(epochs)).best_epoch >= patience


def _of_all(report: Report | None, epoch: int, n_epochs: int) -> Report | None:
    """Count the minibatches of an epoch among those of all epochs."""
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
    """Take one step per minibatch and return their losses."""
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
