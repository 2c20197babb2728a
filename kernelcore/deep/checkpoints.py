"""Weights in files: checkpoints of a training run, and modules that are filled from a file."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from kernelcore._check import Array, check_finite, check_real
from kernelcore._store import (
    check_mapping,
    check_tensor,
    load_tensors,
    make_folder,
    reading,
    replacing,
    save_tensors,
)

_Module = TypeVar("_Module", bound=nn.Module)

_KIND = "state of a training run"
_CHECKPOINT = "checkpoint.safetensors"
_LOG = "log.csv"

Epoch = Mapping[str, float]
"""Learning rate, batch size, losses and seconds of an epoch."""


@dataclass
class State:
    """State of a training run between two epochs.

    Attributes
    ----------
    model : Module
    optimizer : Optimizer
    generator : torch.Generator
    best : dict of str to Tensor
        Weights of the epoch with the lowest development loss so far.
    epochs : list of Epoch
    """

    model: nn.Module
    optimizer: torch.optim.Optimizer
    generator: torch.Generator
    best: dict[str, Tensor]
    epochs: list[Epoch]

    def save(self, folder: str | os.PathLike[str], fingerprint: str) -> None:
        """Write the checkpoint and the log into a folder. Each file is replaced atomically."""
        target = Path(folder)
        make_folder(target)
        tensors = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        tensors |= {f"best.{name}": value for name, value in self.best.items()}
        for position, values in self.optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{position}.{name}": value for name, value in values.items()}
        tensors["generator"] = self.generator.get_state()
        metadata = {"fingerprint": fingerprint, "epochs": self.epochs}
        arrays = {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}
        write_log(target / _LOG, self.epochs)
        save_tensors(target / _CHECKPOINT, _KIND, arrays, metadata)

    def load(self, folder: str | os.PathLike[str], fingerprint: str) -> None:
        """Restore the state from a folder, if it holds a checkpoint.

        Raises
        ------
        ValueError
            If the checkpoint belongs to another run, or is damaged.
        """
        path = Path(folder) / _CHECKPOINT
        if not path.exists():
            return
        with reading(path):
            arrays, metadata = load_tensors(path, _KIND)
            if metadata["fingerprint"] != fingerprint:
                raise ValueError(
                    f"folder must hold a checkpoint of the same data and settings, got {path} "
                    "of another run: name another folder or remove the file"
                )
            epochs = as_epochs(metadata["epochs"])
            generator = check_tensor("generator", arrays.pop("generator"), (None,), np.uint8)
            parts = self._parts(arrays)
            self.generator.set_state(torch.from_numpy(generator.copy()))
            self.model.load_state_dict(parts["model"])
            state = self.optimizer.state_dict()
            self.optimizer.load_state_dict(
                {**state, "state": _by_parameter(parts["optimizer"])}
            )
            self.best, self.epochs = parts["best"], epochs

    def _parts(self, arrays: Mapping[str, Array]) -> dict[str, dict[str, Tensor]]:
        """Return the tensors of model, best model and optimizer, and check their shapes."""
        own = self.model.state_dict()
        wanted = {f"{part}.{name}": own[name] for part in ("model", "best") for name in own}
        device = next(self.model.parameters()).device
        shapes = [tuple(parameter.shape) for parameter in self.model.parameters()]
        parts: dict[str, dict[str, Tensor]] = {"model": {}, "best": {}, "optimizer": {}}
        for name, array in arrays.items():
            part, _, rest = name.partition(".")
            if name in wanted:
                shape = tuple(wanted[name].shape)
                check_tensor(name, array, shape, wanted[name].cpu().numpy().dtype)
            elif part == "optimizer" and rest.partition(".")[0].isdecimal():
                position = int(rest.partition(".")[0])
                check_tensor(name, array, () if array.ndim == 0 else shapes[position])
            else:
                raise ValueError(f"it must hold tensors of this model alone, got {name!r:.80}")
            parts[part][rest] = torch.from_numpy(array.copy()).to(device)
        missing = wanted.keys() - arrays.keys()
        if missing:
            raise ValueError(f"it must hold {min(missing)!r}, which is missing")
        return parts


def _by_parameter(tensors: Mapping[str, Tensor]) -> dict[int, dict[str, Tensor]]:
    """Group the state of an optimizer by the position of the parameter."""
    moments: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        position, _, moment = name.partition(".")
        moments.setdefault(int(position), {})[moment] = value
    return moments


def as_epochs(epochs: Any) -> list[Epoch]:
    """Return the epochs of a file, and check that each maps names to numbers."""
    if not isinstance(epochs, list):
        raise ValueError(f"epochs must be a list, got {epochs!r:.80}")
    for i, epoch in enumerate(epochs):
        for name, value in check_mapping(f"epochs[{i}]", epoch).items():
            if not isinstance(value, (int, float)):
                raise ValueError(f"epochs[{i}] must hold numbers, got {value!r:.80} as {name}")
        check_real(f"epochs[{i}]['dev_loss']", epoch.get("dev_loss"))
    return epochs


def write_log(path: Path, epochs: Sequence[Epoch]) -> None:
    """Write a CSV file with one row per epoch."""
    with (
        replacing(path) as temporary,
        temporary.open("w", encoding="utf-8", newline="") as file,
    ):
        names = dict.fromkeys(name for epoch in epochs for name in epoch)
        writer = csv.DictWriter(file, ["epoch", *names])
        writer.writeheader()
        writer.writerows({"epoch": i, **epoch} for i, epoch in enumerate(epochs, 1))


def copy_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return a copy of all parameters and buffers."""
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


_MAKERS = frozenset(
    {torch.empty, torch.empty_like, torch.eye, torch.ones, torch.rand, torch.randn, torch.zeros}
)


class _Unfilled(TorchFunctionMode):
    """Makes tensors on the meta device: they have a shape but no memory.

    A damaged file can ask for layers of any size. No memory is allocated before the sizes of
    its weights are known to agree.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        options = dict(kwargs or {})
        if func in _MAKERS:
            options.pop("generator", None)
            options["device"] = "meta"
        return func(*args, **options)


@contextmanager
def unfilled() -> Iterator[None]:
    """Make modules without memory within a block; `fill` sets their weights."""
    try:
        with _Unfilled():
            yield
    except RuntimeError as error:  # the size of a tensor does not fit 64 bits
        raise ValueError(f"its sizes are too large for any module: {error}") from error


def fill(
    space: _Module, weights: Mapping[str, Array], path: str | os.PathLike[str], owner: str
) -> _Module:
    """Set the weights of a module that was made under `unfilled`.

    Raises
    ------
    ValueError
        If a weight is missing, unknown, not finite, or has another shape or dtype than in the
        module.
    """
    tensors = {}
    for name, wanted in space.state_dict().items():
        if name in weights:
            tensors[name] = torch.from_numpy(check_finite(name, weights[name]).copy())
            if tensors[name].dtype != wanted.dtype:
                raise ValueError(
                    f"{name} must be of dtype {wanted.dtype}, got {tensors[name].dtype}"
                )
    for name in weights.keys() - tensors.keys():
        tensors[name] = torch.empty(0)  # load_state_dict names unknown weights
    try:
        space.load_state_dict(tensors, assign=True)
    except RuntimeError as error:  # names or shapes do not fit
        raise ValueError(
            f"{os.fspath(path)} must hold the weights of its {owner}: {error}"
        ) from error
    return space
