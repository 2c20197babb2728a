"""What fragment embeddings may be set to, and what follows from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from kernelcore._validation import check_choice, check_flag, check_integer, check_real
from kernelcore.deep.fragment_space import SENTENCES
from kernelcore.deep.region_tables import REGIONS, RegionTable
from kernelcore.deep.training import MakeOptimizer, adam

_OBJECTIVES = ("both", "alignment", "ranking")
_MOMENTUM = 0.9


def _make_adam(weight_decay: float) -> MakeOptimizer:
    return partial(adam, weight_decay=2 * weight_decay)


def _make_sgd(weight_decay: float) -> MakeOptimizer:
    def make(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        # the schedule sets the rate before the first step
        return torch.optim.SGD(
            parameters, lr=1.0, momentum=_MOMENTUM, weight_decay=2 * weight_decay
        )

    return make


OPTIMIZERS: Mapping[str, Callable[[float], MakeOptimizer]] = {
    "adam": _make_adam,
    "sgd": _make_sgd,
}
"""From the factor of |theta|^2, whose gradient is twice it, to an optimizer."""


def check_settings(params: Mapping[str, Any]) -> None:
    """Raise unless every parameter of the ranker is one that it can be fitted with."""
    check_choice("sentence", params["sentence"], SENTENCES)
    check_choice("regions", params["regions"], REGIONS)
    check_choice("objective", params["objective"], _OBJECTIVES)
    check_choice("optimizer", params["optimizer"], tuple(OPTIMIZERS))
    for name in ("multiple_instance", "balanced"):
        check_flag(name, params[name])
    for name, least in {"n_components": 1, "batch_size": 2, "n_epochs": 1}.items():
        check_integer(name, params[name], minimum=least)
    if params["n_dense"] is not None:
        check_integer("n_dense", params["n_dense"], minimum=0)
    if params["n_drawn"] is not None:
        check_integer("n_drawn", params["n_drawn"], minimum=1)
    for name in ("smoothing", "margin", "ranking_weight", "weight_decay"):
        check_real(name, params[name], minimum=0)
    check_real("learning_rate", params["learning_rate"], minimum=0, exclusive=True)
    if check_real("dropout", params["dropout"], minimum=0) >= 1:
        raise ValueError(f"dropout must be a number < 1, got {params['dropout']}")
    network = params["network"]
    if network is not None and not isinstance(network, nn.Module):
        raise TypeError(f"network must be a torch module, got {network!r}")


@torch.no_grad()
def n_features_of(table: RegionTable, network: nn.Module | None, device: str) -> int:
    """Length of the features of regions, or of those that a network makes of their pixels."""
    if network is None:
        if table.rows.ndim != 2:
            raise ValueError(
                f"images must have features in a row, got regions of shape "
                f"{table.rows.shape[1:]}: pixels need a network"
            )
        return int(table.rows.shape[1])
    rows, _ = table.take(np.zeros(1, np.intp), torch.device(device))
    features = network.to(device)(rows)
    if features.ndim != 2:
        raise ValueError(
            f"network must return one vector per region, got shape {tuple(features.shape)}"
        )
    return int(features.shape[1])
