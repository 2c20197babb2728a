"""The choice of settings and the scores of a system, as cached steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np

from kernelcore._validation import Array
from kernelcore.experiments.hodosh2013.kernels import Kernels
from kernelcore.experiments.hodosh2013.systems import System
from kernelcore.experiments.scores import Scores
from kernelcore.experiments.steps import Kind, Step
from kernelcore.kcca import KCCAFactorization
from kernelcore.kernels import power
from kernelcore.models import KCCASelection, KCCASetting, NearestNeighbourRanker
from kernelcore.models.base import TASKS
from kernelcore.models.kcca_settings import select_with_powers

_SELECTION = Kind.json("selection", 1)
_SCORES = Kind.of("scores", 1, Scores)


def score(
    system: System, split: str, kernels: Kernels, *, ranked: Kernels | None = None
) -> Step[Scores]:
    """Return the step that ranks the photos and captions of a split by one system.

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
    about = asdict(system)
    if system.ranker == "nearest_neighbour":
        known = [kernels.image("train", system), kernels.text("train", system)]
        return Step(kernels.store, _SCORES, _rank_by_neighbours, pair, known, system=about)
    grid, shared = kernels.grid, kernels.run
    bases = [
        [kernels.image_basis(p, system) for p in grid.powers],
        kernels.text_basis(system),
    ]
    selection = Step(
        kernels.store,
        _SELECTION,
        partial(_try_all, **shared),
        bases,
        [kernels.image("dev", system), kernels.text("dev", system)],
        powers=grid.powers,
        n_components=grid.n_components,
        regularization=grid.regularization,
        ridge=grid.ridge,
        correlation_power=grid.correlation_power,
    )
    rank = partial(_rank_by_kcca, n_threads=shared.get("n_threads"))
    inputs = pair, bases, selection
    return Step(kernels.store, _SCORES, rank, *inputs, system=about, grid=asdict(grid))


def _try_all(
    bases: Sequence[Any],
    dev: Sequence[Step[Array]],
    *,
    powers: Sequence[float],
    ridge: Sequence[float],
    **options: Any,
) -> list[dict[str, Any]]:
    """Recalls on the development split of each power and setting of the grid."""
    by_power, text_basis = dict(zip(powers, bases[0], strict=True)), bases[1].value()
    # a ridge needs a constant diagonal, which an image without words does not have
    ridges = ridge if text_basis.diagonal is not None else (1.0,)
    selections = select_with_powers(
        powers,
        lambda exponent: KCCAFactorization(by_power[exponent].value(), text_basis),
        *(step.value() for step in dev),
        ridge=[(1.0, d) for d in ridges],
        **options,
    )
    return [
        {
            "power": exponent,
            "settings": [setting._asdict() for setting in selection.settings],
            "recalls": selection.recalls.tolist(),
        }
        for exponent, selection in selections
    ]


def _rank_by_kcca(
    new: Sequence[Step[Array]],
    bases: Sequence[Any],
    selection: Step[Any],
    *,
    system: Mapping[str, Any],
    grid: Mapping[str, Any],
    n_threads: int | None,
) -> Scores:
    """Borda's count of the settings that win on dev, after the choice of the power."""
    tried = selection.value()
    best = max(tried, key=lambda one: np.sum(one["recalls"], axis=(1, 2)).max())
    exponent = best["power"]
    image_basis = dict(zip(grid["powers"], bases[0], strict=True))[exponent]
    chosen = KCCASelection(
        KCCAFactorization(image_basis.value(), bases[1].value()),
        [KCCASetting.from_json(setting) for setting in best["settings"]],
        np.array(best["recalls"]),
    )
    photos, captions = power(new[0].value(), exponent), new[1].value()
    scores: dict[str, Any] = {
        task: chosen.scores(photos, captions, task=task, n_threads=n_threads) for task in TASKS
    }
    winners: dict[str, Any] = {
        task: [setting._asdict() for setting in chosen.winners(task)] for task in TASKS
    }
    settings = {
        **system,
        "grid": grid,
        "power": exponent,
        "best_sum_on_dev": chosen.recalls.sum(axis=(1, 2)).max(),
        **winners,
    }
    return Scores(**scores, settings=settings)


def _rank_by_neighbours(
    new: Sequence[Step[Array]], known: Sequence[Step[Array]], *, system: Mapping[str, Any]
) -> Scores:
    ranker = NearestNeighbourRanker("precomputed", "precomputed")
    ranker.fit(*(step.value() for step in known))
    pair = [step.value() for step in new]
    scores: dict[str, Any] = {task: ranker.scores(*pair, task=task) for task in TASKS}
    return Scores(**scores, settings=system)
