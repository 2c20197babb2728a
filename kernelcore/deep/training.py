"""The base class of all models: parameters, training, checkpoints and files."""

from __future__ import annotations

import csv
import json
import math
import os
import time
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import NoneType
from typing import Any, ClassVar, Literal, Self, TypeAlias, get_args, get_origin, get_type_hints

import numpy as np
import torch
from torch import Tensor, nn

from kernelcore._check import check_choice, check_flag, check_integer, check_real, check_rng
from kernelcore._estimator import Estimator, params_to_json
from kernelcore._store import (
    Contents,
    check_mapping,
    check_tensor,
    digest,
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


class TorchModel(Estimator):
    """Base class of models that are trained by gradient descent: training and files."""

    dropout: float
    n_epochs: int
    patience: int | None
    device: str
    n_features_: int
    space_: Any
    history_: History
    max_gradient_norm: ClassVar[float | None] = None
    _built_with: dict[str, Any]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write parameters and weights to a safetensors file, atomically.

        Parameters are saved as they were at `fit`: a later `set_params` does not change the
        file. A generator as `rng`, and the class of a `network`, are not saved.
        """
        self._check_fitted("space_")
        weights = {name: own.cpu().numpy() for name, own in self.space_.state_dict().items()}
        params = params_to_json(self._built_with)
        metadata = {"params": params, "epochs": self.history_.epochs, **self._about()}
        save_tensors(path, type(self).__name__, weights, metadata)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, device: str = "cpu", **params: Any) -> Self:
        """Read a model from a file that `save` wrote.

        Parameters
        ----------
        path : path
        device : str, default "cpu"
            Torch device to load the model onto.
        **params
            Parameters that files do not hold: a `network` with the structure of the trained
            one.

        Returns
        -------
        model
            Fitted.

        Raises
        ------
        ValueError
            If the file is damaged, or holds another type of model.
        """
        # A damaged file can ask for layers of any size. They are made on the meta device,
        # without memory, and filled where the shapes of the weights are known to agree.
        with reading(path):
            arrays, metadata = load_tensors(path, cls.__name__)
            model = cls.from_json(metadata["params"]).set_params(device=device, **params)
            model.history_ = History.of(metadata["epochs"])
            try:
                with torch.device("meta"):
                    model._rebuild(arrays, metadata)
            except RuntimeError as error:  # sizes that do not fit 64 bits
                raise ValueError(f"params must be sizes of layers: {error}") from error
            if getattr(model, "network", 0) is None and any(
                ".network." in one for one in arrays
            ):
                raise ValueError(f"network must be given: {os.fspath(path)} has weights of one")
            arrays.exactly(*model.space_.state_dict())
            model.space_.load_state_dict(_take_weights(arrays, model.space_), assign=True)
            model.space_.to(device)
            return model

    @abstractmethod
    def _about(self) -> dict[str, Any]:
        """Return what a file holds beside parameters, history and weights."""

    @abstractmethod
    def _rebuild(self, weights: Contents, metadata: Contents) -> None:
        """Make the space of a file, without the values of its weights."""

    def _train(
        self,
        training: Any,
        dev: Any,
        generator: torch.Generator,
        fingerprint: str,
        *,
        folder: str | os.PathLike[str] | None,
        n_threads: int | None,
        progress: Progress,
    ) -> None:
        """Train the space, and keep the weights of the epoch with the lowest dev loss.

        On a CPU the same seed and number of threads give bit-identical weights, also after
        training was stopped and resumed, and with a checkpoint of fewer epochs. A checkpoint
        with another fingerprint, a digest of data and settings without the number of epochs,
        is refused.
        """
        optimizer = self._optimizer(self.space_.parameters())
        run = _Run(self.space_, optimizer, generator, _copy_weights(self.space_), History(()))
        if folder is not None and (path := Path(folder) / _CHECKPOINT).exists():
            with reading(path):
                run.load(path, fingerprint)
                # The number of epochs is in no fingerprint, so that longer runs continue. But
                # the learning rate of some models falls near the end.
                for i, past in enumerate(run.history.epochs):
                    settings = past["learning_rate"], past["batch_size"]
                    schedule = self._schedule(run.history.dev_losses[:i])
                    if i >= self.n_epochs or settings != schedule:
                        raise _other_run(path)
        description = f"train {type(self).__name__}"
        with torch_threads(n_threads), reporting(progress, description) as report:
            for epoch in range(len(run.history.epochs), self.n_epochs):
                if run.history.is_over(self.patience):
                    break
                begin = time.perf_counter()
                rate, batch_size = self._schedule(run.history.dev_losses)
                for group in optimizer.param_groups:
                    group["lr"] = rate
                batches = self._batches(training, batch_size, generator)
                n_steps, losses = self.n_epochs * len(batches), []
                for done, batch in enumerate(batches, epoch * len(batches) + 1):
                    loss = self._loss(training, batch, epoch, generator)
                    losses.append(run.step(loss, self.max_gradient_norm))
                    if report is not None:
                        report(done, n_steps)
                with torch.no_grad():
                    measured = self._evaluate(dev)
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
                if report is not None and run.history.is_over(self.patience):
                    report(n_steps, n_steps)
        self.space_.load_state_dict(run.best)
        self.history_ = run.history

    def _batches(
        self, training: Any, batch_size: int, generator: torch.Generator
    ) -> Sequence[list[int]]:
        """Divide the training items into minibatches of at least two, in random order."""
        return cut_into_batches(permutation(len(training), generator), batch_size)

    @abstractmethod
    def _loss(
        self, training: Any, batch: list[int], epoch: int, generator: torch.Generator
    ) -> Tensor:
        """Return the loss of a minibatch."""

    @abstractmethod
    def _evaluate(self, dev: Any) -> Mapping[str, float]:
        """Return the loss of the development items, and other values to log."""

    @abstractmethod
    def _schedule(self, dev_losses: Sequence[float]) -> tuple[float, int]:
        """Return learning rate and batch size of the next epoch.

        They follow from the development losses of the epochs before, so there is no state to
        save, and resumed training continues with the same settings.
        """

    def _optimizer(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.Adam(parameters, fused=True)

    def _plain_params(self) -> dict[str, Any]:
        """Return the parameters that a file can hold. The others are None."""
        return {
            name: None if isinstance(value, (np.random.Generator, nn.Module)) else value
            for name, value in self.get_params().items()
        }

    def _digest(self, generator: torch.Generator, values: Iterable[Any]) -> str:
        """Return a digest of arrays, and of all settings but the number of epochs."""
        params = {**self._plain_params(), "rng": generator.initial_seed(), "n_epochs": None}
        arrays = (v.cpu().numpy() if isinstance(v, Tensor) else v for v in values)
        return digest(
            json.dumps(params_to_json(params)).encode(),
            *(array.tobytes() for array in arrays if isinstance(array, np.ndarray)),
        )

    def _check_params(self) -> None:
        types = get_type_hints(type(self))
        for name, value in self.get_params().items():
            _check_param(name, value, types[name])
        if self.dropout >= 1:
            raise ValueError(f"dropout must be a number < 1, got {self.dropout}")


_BOUNDS: dict[str, dict[str, Any]] = {
    "batch_size": {"minimum": 2},
    "learning_rate": {"minimum": 0, "exclusive": True},
    "min_learning_rate": {"minimum": 0, "exclusive": True},
    "n_dense": {"minimum": 0},
    "n_warm_up": {"minimum": 0},
}


def _check_param(name: str, value: Any, kind: Any) -> None:
    """Check a parameter by its type. Other counts are at least 1, other numbers at least 0.

    Parameters of several types are checked where they are used.
    """
    kinds = [own for own in get_args(kind) if own is not NoneType]
    if get_origin(kind) is Literal:
        check_choice(name, value, get_args(kind))
    elif kind is bool:
        check_flag(name, value)
    elif kind is int:
        check_integer(name, value, **_BOUNDS.get(name, {"minimum": 1}))
    elif kind is float:
        check_real(name, value, **_BOUNDS.get(name, {"minimum": 0}))
    elif kind is nn.Module and not isinstance(value, nn.Module):
        raise TypeError(f"{name} must be a torch module, got {value!r:.80}")
    elif value is not None and len(kinds) == 1:
        _check_param(name, value, kinds[0])


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
        weights = _take_weights(arrays, self.model, "model.")
        best = _take_weights(arrays, self.model, "best.")
        generator = check_tensor("generator", arrays.pop("generator"), (None,), np.uint8)
        moments: dict[int, Weights] = {}
        shapes = [tuple(parameter.shape) for parameter in self.model.parameters()]
        for name, array in arrays.items():  # what is left belongs to the optimizer
            part, position, moment = name.split(".")
            shape = shapes[int(position)] if array.ndim else ()
            check_tensor(name, array, {"optimizer": shape}[part])
            moments.setdefault(int(position), {})[moment] = torch.from_numpy(array.copy())
        self.history, self.best = History.of(metadata["epochs"]), best
        self.generator.set_state(torch.from_numpy(generator.copy()))
        self.model.load_state_dict(weights)
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": moments})


def _other_run(path: Path) -> ValueError:
    return ValueError(
        "folder must hold a checkpoint of the same data, settings and learning rates, got "
        f"{path} of another run: name another folder or remove the file"
    )


def _copy_weights(model: nn.Module) -> Weights:
    """Return a copy of all parameters and buffers."""
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def _take_weights(arrays: dict[str, Any], model: nn.Module, prefix: str = "") -> Weights:
    """Take all parameters and buffers of a model out of the arrays of a file."""
    found = {}
    for name, value in model.state_dict().items():
        dtype = str(value.dtype).removeprefix("torch.")
        array = check_tensor(name, arrays.pop(prefix + name), tuple(value.shape), dtype)
        found[name] = torch.from_numpy(array.copy())
    return found


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
