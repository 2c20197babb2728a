"""Training items of kernel rankers: their Gram matrices, kernels with new items, and files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, check_choice, check_finite, check_integer
from kernelcore._store import Contents, check_mapping
from kernelcore.captions import EncodedCaptions
from kernelcore.images import SpatialHistograms
from kernelcore.kernels.gram import as_gram
from kernelcore.kernels.prepared import n_items
from kernelcore.models.base import Owners, is_nested, owners_of

Similarity: TypeAlias = Callable[..., npt.ArrayLike] | Literal["precomputed"]
"""A function of (X, Y=None) that returns a matrix (n_X, n_Y), or "precomputed"."""

_RECORDS = {kind.__name__: kind for kind in (EncodedCaptions, SpatialHistograms)}


class Repeats(NamedTuple):
    """Training images with several captions each: every pair is a training item.

    Attributes
    ----------
    n_images : int
        Distinct images, which kernels are computed with.
    caption_image : ndarray of intp, shape (n_captions,)
        The image of each caption.
    """

    n_images: int
    caption_image: Owners

    @classmethod
    def of(cls, images: Any, captions: Any, caption_image: Any) -> Repeats | None:
        """Check the arguments of `fit`; return None where item i of both belongs together."""
        if caption_image is None:
            return None
        n_images = n_items(images)
        return cls(n_images, owners_of(caption_image, n_images, n_items(captions)))

    def gram(self, K: Array) -> Array:
        """Repeat rows and columns of the training images' kernel."""
        return K[np.ix_(self.caption_image, self.caption_image)]

    def columns(self, K: Array) -> Array:
        """Repeat the columns of a kernel of new images with the training images."""
        if K.shape[1] != self.n_images:
            raise ValueError(
                f"images must have one column per training image ({self.n_images}), "
                f"got shape {K.shape}"
            )
        return K[:, self.caption_image]


def training_gram(
    name: str, similarity: Similarity, items: Any, repeats: Repeats | None = None
) -> Array:
    """Similarities of the training items with one another."""
    if similarity == "precomputed":
        K = as_gram(name, items, square=True)
    else:
        K = as_gram(name, _checked(name, similarity)(items))
    return K if repeats is None else repeats.gram(K)


def rows_against(
    name: str,
    similarity: Similarity,
    items: Any,
    training: Any,
    repeats: Repeats | None = None,
) -> Array:
    """Similarities of items, one row each, with the training items that `fit` was given."""
    if similarity == "precomputed":
        K = as_gram(name, items)
    else:
        K = as_gram(name, _checked(name, similarity)(items, training))
    return K if repeats is None else repeats.columns(K)


def _checked(name: str, similarity: Similarity) -> Callable[..., npt.ArrayLike]:
    if not callable(similarity):
        raise TypeError(
            f'the similarity of {name} must be a function or "precomputed", got {similarity!r}'
        )
    return similarity


class KernelItems(NamedTuple):
    """Training images and captions that kernels compare new ones with.

    Attributes
    ----------
    images, captions : collection or None
        None where the kernel is precomputed.
    repeats : Repeats or None
        Which image each caption belongs to, where images have several.
    """

    images: Any
    captions: Any
    repeats: Repeats | None

    @classmethod
    def of(
        cls,
        images: Any,
        captions: Any,
        repeats: Repeats | None,
        *,
        image_kernel: Similarity,
        text_kernel: Similarity,
    ) -> KernelItems:
        """Keep the items whose kernel is not precomputed."""
        return cls(
            None if image_kernel == "precomputed" else images,
            None if text_kernel == "precomputed" else captions,
            repeats,
        )

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
    ) -> KernelItems:
        """Restore the items from the output of `to_file`; `kernels` are by kind of items."""
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
        """Return the names of the JSON entries that `to_file` makes for such kernels."""
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
