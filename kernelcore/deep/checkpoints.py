"""The state of a training run between two epochs, in one file."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from kernelcore._files import load_tensors, make_folder, replacing, save_tensors
from kernelcore._reading import check_mapping, check_tensor, reading
from kernelcore._validation import Array, check_real

_KIND = "state of a training run"
_CHECKPOINT = "checkpoint.safetensors"
_LOG = "log.csv"

Epoch = Mapping[str, float]
"""What is known of an epoch: its pace, its losses and how long it took."""


@dataclass
class State:
    """All that training goes on from.

    Attributes
    ----------
    model : Module
    optimizer : Optimizer
    generator : torch.Generator
    best : dict of str to Tensor
        Parameters of the epoch with the lowest development loss so far.
    epochs : list of Epoch
    """

    model: nn.Module
    optimizer: torch.optim.Optimizer
    generator: torch.Generator
    best: dict[str, Tensor]
    epochs: list[Epoch]

    def save(self, folder: str | os.PathLike[str], fingerprint: str) -> None:
        """Write the checkpoint and the log into a folder, each whole or not at all."""
        target = Path(folder)
        make_folder(target)
        tensors = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        tensors |= {f"best.{name}": value for name, value in self.best.items()}
        for place, values in self.optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{place}.{name}": value for name, value in values.items()}
        tensors["generator"] = self.generator.get_state()
        metadata = {"fingerprint": fingerprint, "epochs": self.epochs}
        arrays = {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}
        write_log(target / _LOG, self.epochs)
        save_tensors(target / _CHECKPOINT, _KIND, arrays, metadata)

    def load(self, folder: str | os.PathLike[str], fingerprint: str) -> None:
        """Go back to what was saved, if anything was.

        Raises
        ------
        ValueError
            If the folder holds another training run, or a damaged file.
        """
        path = Path(folder) / _CHECKPOINT
        if not path.exists():
            return
        with reading(path):
            arrays, metadata = load_tensors(path, _KIND)
            if metadata["fingerprint"] != fingerprint:
                raise ValueError(
                    f"{path} must be of the same data and settings, and it is of others: "
                    "name another folder or remove it"
                )
            epochs = as_epochs(metadata["epochs"])
            generator = check_tensor("generator", arrays.pop("generator"), (None,), np.uint8)
            parts = self._parts(arrays)
            self.generator.set_state(torch.from_numpy(generator.copy()))
            self.model.load_state_dict(parts["model"])
            state = self.optimizer.state_dict()
            self.optimizer.load_state_dict({**state, "state": _by_place(parts["optimizer"])})
            self.best, self.epochs = parts["best"], epochs

    def _parts(self, arrays: Mapping[str, Array]) -> dict[str, dict[str, Tensor]]:
        """Return the tensors of model, best model and optimizer, if they fit this run's."""
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
                place = int(rest.partition(".")[0])
                check_tensor(name, array, () if array.ndim == 0 else shapes[place])
            else:
                raise ValueError(f"it must be of this model, got {name!r:.80}")
            parts[part][rest] = torch.from_numpy(array.copy()).to(device)
        missing = wanted.keys() - arrays.keys()
        if missing:
            raise ValueError(f"it must hold {min(missing)!r}, and it does not")
        return parts


def _by_place(tensors: Mapping[str, Tensor]) -> dict[int, dict[str, Tensor]]:
    """Sort what an optimizer keeps by the place of the parameter that it belongs to."""
    moments: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        place, _, moment = name.partition(".")
        moments.setdefault(int(place), {})[moment] = value
    return moments


def as_epochs(epochs: Any) -> list[Epoch]:
    """Return what a file tells of epochs, if each is numbers by name."""
    if not isinstance(epochs, list):
        raise ValueError(f"epochs must be a list, got {epochs!r:.80}")
    for i, epoch in enumerate(epochs):
        for name, value in check_mapping(f"epochs[{i}]", epoch).items():
            if not isinstance(value, (int, float)):
                raise ValueError(f"epochs[{i}] must hold numbers, got {value!r:.80} as {name}")
        check_real(f"epochs[{i}]['dev_loss']", epoch.get("dev_loss"))
    return epochs


def write_log(path: Path, epochs: Sequence[Epoch]) -> None:
    """Write what is known of each epoch as a row of a CSV file."""
    with (
        replacing(path) as temporary,
        temporary.open("w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.DictWriter(file, ["epoch", *(epochs[0] if epochs else ())])
        writer.writeheader()
        writer.writerows({"epoch": i, **epoch} for i, epoch in enumerate(epochs, 1))


def copied(model: nn.Module) -> dict[str, Tensor]:
    """Return a copy of all parameters and buffers."""
    return {name: value.detach().clone() for name, value in model.state_dict().items()}
