"""The settings of a grid, in families that one fit of a ranker serves."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple, TypeAlias

from kernelcore.models.base import FittedSettings, Ranker, Run, SharesFit, Task, fit_ranker

Setting: TypeAlias = dict[str, Any]
"""Values of parameters by name."""


class Family(NamedTuple):
    """Settings that one fit serves.

    Attributes
    ----------
    places : list of int
        Where they stand in the whole grid.
    common : dict
        The parameters that they have in common: those that need a fit of their own.
    varying : list of dict
        The other parameters of each.
    """

    places: list[int]
    common: Setting
    varying: list[Setting]


def expand(param_grid: Any, shared: Collection[str]) -> tuple[list[Setting], list[Family]]:
    """Return every combination once, and the families that differ in `shared` names only."""
    settings: list[Setting] = []
    families: dict[frozenset[Any], Family] = {}
    seen = set()
    for grid in _checked_grids(param_grid):
        for values in product(*grid.values()):
            setting = dict(zip(grid, values, strict=True))
            whole = _identity(setting)
            if whole in seen:
                continue
            seen.add(whole)
            common = {name: setting[name] for name in setting if name not in shared}
            family = families.setdefault(_identity(common), Family([], common, []))
            family.places.append(len(settings))
            family.varying.append({name: setting[name] for name in setting if name in shared})
            settings.append(setting)
    return settings, list(families.values())


def fit_family(
    ranker: Ranker,
    family: Family,
    images: Any,
    captions: Any,
    *,
    caption_image: Any = None,
    dev: Any = None,
) -> FittedSettings:
    """Fit a copy of the ranker for the settings of a family."""
    copy = copy_of(ranker, family.common)
    if isinstance(copy, SharesFit):
        options = {} if caption_image is None else {"caption_image": caption_image}
        return copy.fit_settings(images, captions, family.varying, **options)
    fit_ranker(copy, images, captions, caption_image=caption_image, dev=dev)
    return Alone(copy)


def copy_of(ranker: Any, setting: Setting) -> Any:
    """Return an unfitted copy of a ranker with other parameters."""
    from sklearn.base import clone

    if not (hasattr(ranker, "get_params") and hasattr(ranker, "set_params")):
        raise TypeError(
            "ranker must have the methods get_params and set_params, as "
            f"sklearn.base.BaseEstimator gives them, got {ranker!r}"
        )
    return clone(ranker).set_params(**setting)


class Alone:
    """A ranker fitted for one setting, behind the methods of `FittedSettings`."""

    def __init__(self, ranker: Ranker) -> None:
        self._ranker = ranker

    def runs(
        self, places: Collection[int], images: Any, captions: Any, *, tasks: Sequence[Task]
    ) -> list[Run]:
        """Score under the one setting; see `FittedSettings.runs`."""

        def run() -> Run:
            for place in places:
                yield place, {t: self._ranker.scores(images, captions, task=t) for t in tasks}

        return [run()]

    def ranker(self, place: int) -> Ranker:
        """Return the one ranker."""
        return self._ranker


def _checked_grids(param_grid: Any) -> Iterator[dict[str, list[Any]]]:
    grids = [param_grid] if isinstance(param_grid, Mapping) else param_grid
    if isinstance(grids, str) or not isinstance(grids, Iterable):
        raise TypeError(f"param_grid must be a mapping or a sequence of them, got {grids!r}")
    n_grids = 0
    for grid in grids:
        if not isinstance(grid, Mapping) or not all(isinstance(name, str) for name in grid):
            raise TypeError(f"param_grid must map names of parameters to values, got {grid!r}")
        if not grid:
            raise ValueError("param_grid must name at least one parameter, got none")
        yield {name: _checked_values(name, values) for name, values in grid.items()}
        n_grids += 1
    if not n_grids:
        raise ValueError("param_grid must hold at least one mapping, got none")


def _checked_values(name: str, values: Any) -> list[Any]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"param_grid[{name!r}] must be a sequence of values, got {values!r}")
    checked = list(values)
    if not checked:
        raise ValueError(f"param_grid[{name!r}] must hold at least one value, got none")
    return checked


def _identity(setting: Setting) -> frozenset[Any]:
    """Something hashable that two settings share if they are the same."""

    def of(value: Any) -> Any:
        try:
            hash(value)
        except TypeError:
            return id(value)
        return type(value), value

    return frozenset((name, of(value)) for name, value in setting.items())
