"""The training loop of all models, its checkpoints, and schedules of the learning rate."""

from __future__ import annotations

import csv
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from kernelcore._check import check_real, check_rng
from kernelcore._store import (
    check_mapping,
    check_tensor,
    load_tensors,
    make_folder,
    reading,
    replacing,
    save_tensors,
)
from kernelcore._threads import Progress, reporting, resolve_n_threads

Epoch: TypeAlias = Mapping[str, float]
"""Learning rate, batch size, losses and seconds of an epoch."""

Weights: TypeAlias = dict[str, Tensor]

_KIND = "state of a training run"
_CHECKPOINT = "checkpoint.safetensors"
_LOG = "log.csv"


Schedule: TypeAlias = Callable[[Sequence[float]], tuple[float, int]]
"""Learning rate and batch size of the next epoch, from the development losses of those before.

There is no state to save, and resumed training continues with the same settings.
"""


@dataclass(frozen=True)
class History:
    """Losses and settings of each epoch of a training run.

    Attributes
    ----------
    epochs : tuple of mapping of str to float
        For each epoch ``learning_rate``, ``batch_size``, ``train_loss``, ``dev_loss``, other
        values that the objective measured, and ``seconds``.

    Examples
    --------
    >>> from kernelcore.deep.training import History
    >>> history = History(({"dev_loss": 0.5}, {"dev_loss": 0.25}, {"dev_loss": 0.75}))
    >>> history.best_epoch, history.dev_losses[history.best_epoch]
    (1, 0.25)
    """

    epochs: tuple[Epoch, ...]

    @classmethod
    def of(cls, epochs: Any) -> History:
        """Make a history of the epochs in a file, and check that they map names to numbers."""
        if not isinstance(epochs, list):
            raise ValueError(f"epochs must be a list, got {epochs!r:.80}")
        for i, epoch in enumerate(epochs):
            for name, value in check_mapping(f"epochs[{i}]", epoch).items():
                if not isinstance(value, (int, float)):
                    raise ValueError(
                        f"epochs[{i}] must hold numbers, got {value!r:.80} as {name}"
                    )
            check_real(f"epochs[{i}]['dev_loss']", epoch.get("dev_loss"))
        return cls(tuple(epochs))

    @property
    def dev_losses(self) -> list[float]:
        """Development loss of each epoch."""
        return [epoch["dev_loss"] for epoch in self.epochs]

    @property
    def best_epoch(self) -> int:
        """Index of the epoch with the lowest development loss; the first of ties."""
        return min(range(len(self.epochs)), key=self.dev_losses.__getitem__)

    def is_over(self, patience: int | None) -> bool:
        """Whether the last `patience` epochs brought no lower development loss."""
        if patience is None or not self.epochs:
            return False
        return len(self.epochs) - 1 - self.best_epoch >= patience


def train(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    batches: Callable[[int, torch.Generator], Sequence[Any]],
    loss: Callable[[Any, int, torch.Generator], Tensor],
    evaluate: Callable[[], Mapping[str, float]],
    schedule: Schedule,
    n_epochs: int,
    generator: torch.Generator,
    patience: int | None = None,
    max_gradient_norm: float | None = None,
    folder: str | os.PathLike[str] | None = None,
    fingerprint: str = "",
    progress: Progress = False,
    description: str = "train",
) -> History:
    """Train a model in place, and keep the weights of the epoch with the lowest dev loss.

    On a CPU the same seed and number of threads give bit-identical weights, also after
    training was stopped and resumed, and with a checkpoint of fewer epochs.

    Parameters
    ----------
    model : Module
    optimizer : Optimizer
        Of the parameters of the model. The schedule sets its learning rate.
    batches : callable
        Returns the minibatches of an epoch, given the batch size and the generator.
    loss : callable
        Returns the loss of a minibatch, given also the epoch, from 0 on, and the generator.
    evaluate : callable
        Returns ``dev_loss`` and any other values to log. It runs without gradients.
    schedule : Schedule
    n_epochs : int
        Maximum number of epochs.
    generator : torch.Generator
        Random generator, on the device of the model.
    patience : int, optional
        Stop after this number of epochs without a lower development loss.
    max_gradient_norm : float, optional
        Clip gradients to this norm.
    folder : path, optional
        Folder for ``log.csv`` and a checkpoint after every epoch.
    fingerprint : str, default ""
        Digest of data and settings, without the number of epochs. A checkpoint with another
        fingerprint is refused.
    progress : bool or callable, default False
        Show a progress bar, or call this with (minibatches done, maximum of minibatches).
    description : str, default "train"
        Label of the progress bar.

    Raises
    ------
    ValueError
        If a loss becomes NaN or infinite, or the checkpoint belongs to another run.
    """
    run = _Run(model, optimizer, generator, _copy_weights(model), History(()))
    if folder is not None and (path := Path(folder) / _CHECKPOINT).exists():
        with reading(path):
            run.load(path, fingerprint)
            run.check_schedule(path, schedule, n_epochs)
    with reporting(progress, description) as report:
        while len(run.history.epochs) < n_epochs and not run.history.is_over(patience):
            begin, epoch = time.perf_counter(), len(run.history.epochs)
            rate, batch_size = schedule(run.history.dev_losses)
            for group in optimizer.param_groups:
                group["lr"] = rate
            dealt = batches(batch_size, generator)
            losses = []
            for done, batch in enumerate(dealt, epoch * len(dealt) + 1):
                losses.append(run.step(loss(batch, epoch, generator), max_gradient_norm))
                if report is not None:
                    report(done, n_epochs * len(dealt))
            with torch.no_grad():
                measured = evaluate()
            run.end_epoch(
                {
                    "learning_rate": rate,
                    "batch_size": batch_size,
                    "train_loss": sum(losses) / len(losses),
                    **measured,
                    "seconds": time.perf_counter() - begin,
                }
            )
            if folder is not None:
                run.save(Path(folder), fingerprint)
            if report is not None and run.history.is_over(patience):
                report(n_epochs * len(dealt), n_epochs * len(dealt))
    model.load_state_dict(run.best)
    return run.history


@dataclass
class _Run:
    """State of a training run: what a checkpoint holds.

    Attributes
    ----------
    model : Module
    optimizer : Optimizer
    generator : torch.Generator
    best : dict of str to Tensor
        Weights of the epoch with the lowest development loss so far.
    history : History
    """

    model: nn.Module
    optimizer: torch.optim.Optimizer
    generator: torch.Generator
    best: Weights
    history: History

    def step(self, loss: Tensor, max_gradient_norm: float | None) -> float:
        """Take one step of the optimizer, and return the loss."""
        value = float(loss.detach())
        if not math.isfinite(value):
            raise ValueError(
                f"the training loss must be finite, got {value} in epoch "
                f"{len(self.history.epochs) + 1}: lower the learning rate"
            )
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        if max_gradient_norm is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), max_gradient_norm)
        self.optimizer.step()
        return value

    def end_epoch(self, epoch: Epoch) -> None:
        """Add an epoch to the history, and keep its weights if they are the best."""
        if not math.isfinite(epoch["dev_loss"]):
            raise ValueError(f"the development loss must be finite, got {epoch['dev_loss']}")
        self.history = History((*self.history.epochs, epoch))
        if self.history.best_epoch == len(self.history.epochs) - 1:
            self.best = _copy_weights(self.model)

    def save(self, folder: Path, fingerprint: str) -> None:
        """Write the checkpoint and the log into a folder. Each file is replaced atomically."""
        make_folder(folder)
        epochs = self.history.epochs
        with (
            replacing(folder / _LOG) as temporary,
            temporary.open("w", encoding="utf-8", newline="") as file,
        ):
            names = dict.fromkeys(name for epoch in epochs for name in epoch)
            writer = csv.DictWriter(file, ["epoch", *names])
            writer.writeheader()
            writer.writerows({"epoch": i, **epoch} for i, epoch in enumerate(epochs, 1))
        tensors = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        tensors |= {f"best.{name}": value for name, value in self.best.items()}
        for position, moments in self.optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{position}.{name}": v for name, v in moments.items()}
        tensors["generator"] = self.generator.get_state()
        arrays = {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}
        metadata = {"fingerprint": fingerprint, "epochs": epochs}
        save_tensors(folder / _CHECKPOINT, _KIND, arrays, metadata)

    def load(self, path: Path, fingerprint: str) -> None:
        """Restore the state from a checkpoint, unless it is damaged or of another run."""
        arrays, metadata = load_tensors(path, _KIND)
        if metadata["fingerprint"] != fingerprint:
            raise _other_run(path)
        device = next(self.model.parameters()).device
        weights: dict[str, Weights] = {"model": {}, "best": {}}
        for name, value in self.model.state_dict().items():
            for part, found in weights.items():
                array = arrays.pop(f"{part}.{name}")
                check_tensor(name, array, tuple(value.shape), value.cpu().numpy().dtype)
                found[name] = torch.from_numpy(array.copy()).to(device)
        generator = check_tensor("generator", arrays.pop("generator"), (None,), np.uint8)
        moments: dict[int, Weights] = {}
        shapes = [tuple(parameter.shape) for parameter in self.model.parameters()]
        for name, array in arrays.items():  # what is left belongs to the optimizer
            part, position, moment = name.split(".")
            shape = shapes[int(position)] if array.ndim else ()
            check_tensor(name, array, {"optimizer": shape}[part])
            moments.setdefault(int(position), {})[moment] = torch.from_numpy(array.copy())
        self.history, self.best = History.of(metadata["epochs"]), weights["best"]
        self.generator.set_state(torch.from_numpy(generator.copy()))
        self.model.load_state_dict(weights["model"])
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": moments})

    def check_schedule(self, path: Path, schedule: Schedule, n_epochs: int) -> None:
        """Raise unless a run of `n_epochs` begins with the epochs of the checkpoint.

        The number of epochs is in no fingerprint, so that longer runs continue. But the
        learning rate of some models falls near the end.
        """
        for i, epoch in enumerate(self.history.epochs):
            settings = epoch["learning_rate"], epoch["batch_size"]
            if i >= n_epochs or settings != schedule(self.history.dev_losses[:i]):
                raise _other_run(path)


def _other_run(path: Path) -> ValueError:
    return ValueError(
        "folder must hold a checkpoint of the same data, settings and learning rates, got "
        f"{path} of another run: name another folder or remove the file"
    )


def _copy_weights(model: nn.Module) -> Weights:
    """Return a copy of all parameters and buffers."""
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def plateau(
    dev_losses: Sequence[float],
    learning_rate: float,
    batch_size: int,
    *,
    factor: float = 0.2,
    patience: int = 3,
) -> tuple[float, int]:
    """Multiply the rate by `factor` after more than `patience` epochs without a lower loss."""
    best, n_bad = math.inf, 0
    for loss in dev_losses:
        if loss < best:
            best, n_bad = loss, 0
            continue
        n_bad += 1
        if n_bad > patience:
            learning_rate, n_bad = learning_rate * factor, 0
    return learning_rate, batch_size


def cooldown(
    dev_losses: Sequence[float], learning_rate: float, batch_size: int, *, n_before: int
) -> tuple[float, int]:
    """Reduce the learning rate to a tenth after `n_before` epochs."""
    return learning_rate * (0.1 if len(dev_losses) >= n_before else 1), batch_size


def batch_doubling(
    dev_losses: Sequence[float],
    learning_rate: float,
    batch_size: int,
    *,
    floor: float,
    factor: float = 0.5,
) -> tuple[float, int]:
    """Reduce the learning rate on plateaus; at a floor, double the batch size and restart.

    After each epoch without a new minimum since the last restart, the rate is multiplied by
    `factor`. Where it would fall below the floor, it is reset and the batch size doubled.

    References
    ----------
    .. [1] H. A. Khojasteh, "Automatic image description generation using deep multimodal
       embeddings", master thesis, IASBS, Zanjan 2019, section 4.5.1.
    """
    rate, best = learning_rate, math.inf
    for loss in dev_losses:
        if loss < best:
            best = loss
            continue
        rate *= factor
        if rate < floor:
            rate, batch_size, best = learning_rate, 2 * batch_size, math.inf
    return rate, batch_size


def seeded_generator(
    rng: np.random.Generator | int | None, device: torch.device | str = "cpu"
) -> torch.Generator:
    """Return a torch generator that is seeded from a NumPy one."""
    seed = int(check_rng("rng", rng).integers(2**63))
    return torch.Generator(device).manual_seed(seed)


def permutation(length: int, generator: torch.Generator) -> list[int]:
    """Return the integers 0 to ``length - 1`` in random order."""
    order = torch.randperm(length, generator=generator, device=generator.device)
    positions: list[int] = order.tolist()
    return positions


def cut_into_batches(order: Sequence[int], batch_size: int) -> list[list[int]]:
    """Cut a sequence into batches. A last batch of one item joins the batch before it."""
    starts = list(range(0, len(order), batch_size))
    if len(starts) > 1 and len(order) - starts[-1] < 2:
        starts.pop()
    return [list(order[a:b]) for a, b in pairwise([*starts, len(order)])]


@contextmanager
def torch_threads(n_threads: int | None) -> Iterator[None]:
    """Set the number of threads of torch within a block, and restore it afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(resolve_n_threads(n_threads))
    try:
        yield
    finally:
        torch.set_num_threads(before)
