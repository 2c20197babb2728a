"""The choice of settings and the scores of a system, as cached steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np

from kernelcore._check import Array
from kernelcore.experiments.kernel_systems import System
from kernelcore.experiments.kernels import Kernels
from kernelcore.experiments.scores import Scores
from kernelcore.experiments.steps import Kind, Step
from kernelcore.kcca import KCCAFactorization, KernelBasis
from kernelcore.kernels import power
from kernelcore.models import (
    NearestNeighbourRanker,
    hub_corrected,
    select_kcca,
)
from kernelcore.models.base import TASKS
from kernelcore.models.kcca_settings import KCCASelection, KCCASetting

_SELECTION = Kind.json("selection", 2)
_SCORES = Kind.of("scores", 2, Scores)

_HUB_NEIGHBORS = 30
_PAIRS = ("regularization", "ridge")  # lists in JSON


def score(
    system: System, split: str, kernels: Kernels, *, ranked: Kernels | None = None
) -> Step[Scores]:
    """Return the step that ranks the photos and captions of a split by one system.

    The scores come as they are and corrected for hubs, with the training items as the bank.
    Systems with partial Gram-Schmidt, as the paper has it, are not corrected: their ridge is
    in the training captions' kernel, but not in that of new captions.

    Parameters
    ----------
    system : System
    split : str
    kernels : Kernels
        Settings are chosen in their pool.
    ranked : Kernels, optional
        The same with another pool, which is ranked instead.
    """
    new = kernels if ranked is None else ranked
    pair = [new.image(split, system), new.text(split, system)]
    grid, shared, about = kernels.grid, kernels.run, asdict(system)
    hub_neighbors = _HUB_NEIGHBORS if grid.decomposition == "eigen" else 0
    if system.ranker == "nearest_neighbour":
        known = [kernels.image("train", system), kernels.text("train", system)]
        return Step(
            kernels.store,
            _SCORES,
            _rank_by_neighbours,
            pair,
            known,
            system=about,
            hub_neighbors=hub_neighbors,
        )
    bases = [
        [kernels.image_basis(exponent, system) for exponent in grid.powers],
        [kernels.text_basis(ridge, system) for ridge in grid.ridges_of_pair],
    ]
    selection = Step(
        kernels.store,
        _SELECTION,
        partial(_try_all, **shared),
        bases,
        [kernels.image("dev", system), kernels.text("dev", system)],
        powers=grid.powers,
        ridges=grid.ridges_of_pair,
        n_components=grid.n_components,
        regularization=grid.regularization,
        ridge=grid.ridges_of_setting,
        correlation_power=grid.correlation_power,
    )
    rank = partial(_rank_by_kcca, n_threads=shared.get("n_threads"))
    inputs = pair, bases, selection
    return Step(
        kernels.store,
        _SCORES,
        rank,
        *inputs,
        system=about,
        grid=asdict(grid),
        hub_neighbors=hub_neighbors,
    )


def _try_all(
    bases: Sequence[Any],
    dev: Sequence[Step[Array]],
    *,
    powers: Sequence[float],
    ridges: Sequence[float],
    **options: Any,
) -> list[dict[str, Any]]:
    """Recalls on the development split of each power, ridge of the pair, and setting."""
    photos, captions = (step.value() for step in dev)
    images = dict(zip(powers, bases[0], strict=True))
    return [
        {
            "power": exponent,
            "ridge": ridge,
            "settings": [setting._asdict() for setting in selection.settings],
            "recalls": selection.recalls.tolist(),
        }
        for ridge, basis in zip(ridges, bases[1], strict=True)
        for exponent, selection in _try_powers(
            images, basis.value(), photos, captions, **options
        )
    ]


def _try_powers(
    images: Mapping[float, Step[KernelBasis]],
    texts: KernelBasis,
    photos: Array,
    captions: Array,
    *,
    ridge: Sequence[float],
    n_components: Sequence[int],
    regularization: Sequence[Any],
    correlation_power: Sequence[float],
    **run: Any,
) -> Iterator[tuple[float, KCCASelection]]:
    """Try all settings with each power of the images' kernel."""
    # a ridge of a setting needs a constant diagonal, which an image without words lacks
    ridges = ridge if texts.diagonal is not None else (1.0,)
    for exponent, basis in images.items():
        factorization = KCCAFactorization(basis.value(), texts)
        rank = factorization.rank
        yield (
            exponent,
            select_kcca(
                factorization,
                power(photos, exponent),
                captions,
                n_components_grid=[n for n in n_components if n <= rank] or [rank],
                regularization_grid=regularization,
                ridge_grid=[(1.0, d) for d in ridges],
                correlation_power_grid=correlation_power,
                **run,
            ),
        )


def _rank_by_kcca(
    new: Sequence[Step[Array]],
    bases: Sequence[Any],
    selection: Step[Any],
    *,
    system: Mapping[str, Any],
    grid: Mapping[str, Any],
    hub_neighbors: int,
    n_threads: int | None,
) -> Scores:
    """Borda's count of the settings that win on dev, after the choice of power and ridge."""
    tried = selection.value()
    best = max(tried, key=lambda one: np.sum(one["recalls"], axis=(1, 2)).max())
    ridges = list(dict.fromkeys(one["ridge"] for one in tried))
    image_basis = bases[0][grid["powers"].index(best["power"])]
    text_basis = bases[1][ridges.index(best["ridge"])]
    chosen = KCCASelection(
        KCCAFactorization(image_basis.value(), text_basis.value()),
        [
            KCCASetting(**setting | {name: tuple(setting[name]) for name in _PAIRS})
            for setting in best["settings"]
        ],
        np.array(best["recalls"]),
    )
    photos, captions = power(new[0].value(), best["power"]), new[1].value()

    def pair(n: int) -> tuple[Array, Array]:
        run: dict[str, Any] = {"hub_neighbors": n, "n_threads": n_threads}
        return (
            chosen.scores(photos, captions, task="annotation", **run),
            chosen.scores(photos, captions, task="search", **run),
        )

    winners: dict[str, Any] = {
        task: [setting._asdict() for setting in chosen.winners(task)] for task in TASKS
    }
    settings = {
        **system,
        "grid": grid,
        "power": best["power"],
        "ridge": best["ridge"],
        "best_sum_on_dev": chosen.recalls.sum(axis=(1, 2)).max(),
        **winners,
    }
    corrected = pair(hub_neighbors) if hub_neighbors else None
    return Scores(*pair(0), settings, corrected=corrected)


def _rank_by_neighbours(
    new: Sequence[Step[Array]],
    known: Sequence[Step[Array]],
    *,
    system: Mapping[str, Any],
    hub_neighbors: int,
) -> Scores:
    """Rank by nearest neighbours, and correct by training items.

    A training caption as a query has itself as its nearest caption, so its scores are the
    similarities of its own photo. The bank of each task is therefore a kernel.
    """
    ranker = NearestNeighbourRanker("precomputed", "precomputed")
    ranker.fit(*(step.value() for step in known))
    photos, captions = (step.value() for step in new)
    annotation, search = (ranker.scores(photos, captions, task=task) for task in TASKS)
    if not hub_neighbors:
        return Scores(annotation, search, system)
    corrected = (
        hub_corrected(annotation, captions.T, task="annotation", n_neighbors=hub_neighbors),
        hub_corrected(search, photos, task="search", n_neighbors=hub_neighbors),
    )
    return Scores(annotation, search, system, corrected=corrected)
