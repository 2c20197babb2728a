"""What a file keeps of a fitted ranker beside its arrays: its kernels and training items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import kernelcore.kernels
from kernelcore._reading import Contents, check_mapping
from kernelcore._validation import Array, check_choice, check_finite, check_integer
from kernelcore.captions import EncodedCaptions
from kernelcore.images import SpatialHistograms
from kernelcore.models.base import Repeats
from kernelcore.models.pairs import is_nested, owners_of

KERNELS = (
    "bag_of_words",
    "bag_of_words_f1",
    "histogram_intersection",
    "spatial_pyramid",
    "word_sequence",
)
"""Functions of `kernelcore.kernels` that a file may name."""

_RECORDS = {kind.__name__: kind for kind in (EncodedCaptions, SpatialHistograms)}


def kernel_to_json(name: str, kernel: Any) -> str:
    """Return "precomputed", or the name of a kernel of this package."""
    if isinstance(kernel, str) and kernel == "precomputed":
        return kernel
    own: str = getattr(kernel, "__name__", "")
    if own in KERNELS and getattr(kernelcore.kernels, own) is kernel:
        return own
    raise ValueError(
        f'{name} must be "precomputed" or one of {", ".join(KERNELS)} to be saved: '
        f"a file cannot hold a function, got {kernel!r:.200}"
    )


def kernel_from_json(name: str, value: Any) -> Any:
    """Return what `kernel_to_json` named."""
    check_choice(name, value, ("precomputed", *KERNELS))
    return value if value == "precomputed" else getattr(kernelcore.kernels, value)


def value_to_json(name: str, value: Any) -> Any:
    """Return a parameter as JSON holds it: numbers, strings, None, lists, and kernels."""
    if isinstance(value, (list, tuple)):
        return [value_to_json(name, part) for part in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if callable(value):
        return {"function": kernel_to_json(name, value)}
    raise ValueError(f"{name} cannot be saved: a file cannot hold {value!r:.200}")


def value_from_json(name: str, value: Any) -> Any:
    """Return what `value_to_json` wrote, lists as tuples."""
    if isinstance(value, list):
        return tuple(value_from_json(name, part) for part in value)
    if isinstance(value, Mapping):
        return kernel_from_json(name, value["function"])
    return value


class TrainingViews(NamedTuple):
    """Training items that kernels compare new ones with, and which belong together.

    Attributes
    ----------
    images, captions : collection or None
        None where the kernel is precomputed.
    repeats : Repeats or None
    """

    images: Any
    captions: Any
    repeats: Repeats | None

    def to_file(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Return arrays and JSON; raise if a file cannot hold the items."""
        tensors: dict[str, Array] = {}
        about: dict[str, Any] = {}
        for name in ("images", "captions"):
            if getattr(self, name) is not None:
                arrays, about[name] = _items_to_tensors(name, getattr(self, name))
                tensors |= arrays
        if self.repeats is not None:
            tensors["caption_image"] = self.repeats.caption_image
            about["n_images"] = self.repeats.n_images
        return tensors, about

    @classmethod
    def from_file(
        cls, tensors: Contents, about: Mapping[str, Any], kernels: Mapping[str, Any]
    ) -> TrainingViews:
        """Take the arrays that `to_file` made out of `tensors`, and return the views."""
        images, captions = (
            None if kernel == "precomputed" else _items_from(name, tensors, about[name])
            for name, kernel in kernels.items()
        )
        repeats = None
        if "n_images" in about:
            n_images = check_integer("n_images", about["n_images"], minimum=1)
            owners = tensors.pop("caption_image") if "caption_image" in tensors else ()
            repeats = Repeats(n_images, owners_of(owners, n_images, len(owners)))
        return cls(images, captions, repeats)

    @staticmethod
    def names(about: Mapping[str, Any], kernels: Mapping[str, Any]) -> list[str]:
        """Return the names of what `to_file` gives for such kernels."""
        own = [name for name, kernel in kernels.items() if kernel != "precomputed"]
        return [*own, *(["n_images"] if "n_images" in about else [])]


def _items_to_tensors(name: str, items: Any) -> tuple[dict[str, Array], Any]:
    """Return training items as arrays, whose names begin with `name`, and JSON."""
    if isinstance(items, np.ndarray) and items.ndim == 2 and items.dtype.kind in "fiu":
        return {name: items}, None
    if _are_strings(items) or is_nested(items):
        return {}, {"kind": "strings", "texts": items}
    kind = type(items).__name__
    if _RECORDS.get(kind) is not type(items):
        raise ValueError(
            f"{name} must be an array of numbers, strings, {' or '.join(_RECORDS)} to be "
            f"saved, got {kind}"
        )
    values = {field.name: getattr(items, field.name) for field in fields(items)}
    arrays = {k: v for k, v in values.items() if isinstance(v, np.ndarray)}
    others = {k: v for k, v in values.items() if k not in arrays}
    return {f"{name}.{k}": v for k, v in arrays.items()}, {"kind": kind, **others}


def _are_strings(items: Any) -> bool:
    return isinstance(items, (list, tuple)) and all(isinstance(text, str) for text in items)


def _items_from(name: str, tensors: Contents, about: Any) -> Any:
    if about is None:
        array = tensors[name]
        if array.ndim != 2 or array.dtype.kind not in "fiu":
            raise ValueError(
                f"{name} must be a 2-D array of numbers, got {array.dtype} of shape "
                f"{array.shape}"
            )
        return check_finite(name, tensors.pop(name))
    values = dict(check_mapping(name, about))
    kind = check_choice("kind", values.pop("kind", None), ("strings", *_RECORDS))
    if kind == "strings":
        texts = values["texts"]
        if not (_are_strings(texts) or is_nested(texts)):
            raise ValueError(f"{name} must be strings or lists of them, got {texts!r:.80}")
        return texts
    for key in [key for key in tensors if key.startswith(f"{name}.")]:
        values[key.removeprefix(f"{name}.")] = tensors.pop(key)
    return partial(_RECORDS[kind], **values)()
