"""Labels of results: their checks, and the facts in which several results agree or differ."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import numpy as np

__all__ = [
    "Labels",
    "PoolLabels",
    "as_settings",
    "check_label",
    "checked_labels",
    "differing_facts",
    "shared_facts",
]

_FACTS = {
    "protocol": "{}",
    "dataset": "{}",
    "split": "split {}",
    "pool": "pool {}",
    "selections": "{}",
    "relevance": "relevant by {}",
    "n_images": "{} images",
    "n_captions": "{} captions",
    "n_folds": "means over {} folds",
    "n_documents": "{} documents",
    "n_judged": "{} judged",
    "n_triples": "{} triples",
    "n_answered": "{} answered",
    "ties": "ties {}",
    "version": "kernelcore {}",
}


class Labels(TypedDict, total=False):
    """Labels that are stored in a result: keyword arguments of `evaluate_links`.

    All but `settings` are one line of text. `settings` holds the settings of the system,
    anything JSON can hold; NumPy scalars become plain numbers.
    """

    system: str
    protocol: str
    dataset: str
    split: str
    settings: Mapping[str, Any] | None


class PoolLabels(Labels, total=False):
    """Labels of a result on a pool of images and captions: arguments of `evaluate`."""

    pool: str


def check_label(name: str, label: Any) -> str:
    """Return `label` if it is one line of text."""
    if not isinstance(label, str):
        raise TypeError(f"{name} must be a string, got {label!r}")
    if not label.isprintable():
        raise ValueError(f"{name} must be one line of printable text, got {label!r}")
    return label


def checked_labels(
    labels: Mapping[str, Any], known: type[Labels] = PoolLabels
) -> dict[str, Any]:
    """Return the labels for a result; another keyword argument is a TypeError."""
    for name in labels:
        if name not in known.__annotations__:
            raise TypeError(
                f"{name} is not an argument; labels are {', '.join(known.__annotations__)}"
            )
    settings = labels.get("settings")
    return {**labels, "settings": {} if settings is None else settings}


def differing_facts(results: Sequence[Any]) -> list[str]:
    """Names of the labels, sizes and rules in which the results differ."""
    return [
        fact for fact in _FACTS if len({getattr(result, fact, "") for result in results}) > 1
    ]


def shared_facts(results: Sequence[Any]) -> str:
    """Return what all results have in common, for the caption of their table."""
    differing = differing_facts(results)
    return ", ".join(
        template.format(getattr(results[0], fact))
        for fact, template in _FACTS.items()
        if fact not in differing and getattr(results[0], fact, "") != ""
    )


def as_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of `settings` as JSON will give it back: tuples become lists."""
    if not isinstance(settings, Mapping) or not all(isinstance(key, str) for key in settings):
        raise TypeError(f"settings must be a mapping from strings, got {settings!r}")
    copy = {}
    for key, value in settings.items():
        try:
            copy[key] = json.loads(json.dumps(value, default=_as_plain, allow_nan=False))
        except (TypeError, ValueError) as error:
            raise type(error)(f"settings[{key!r}] must fit into JSON: {error}") from None
    return copy


def _as_plain(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"got {value!r} of type {type(value).__name__}")
