"""Views of photos: how they are described, and compared with the training photos."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from kernelcore._reading import check_mapping
from kernelcore._validation import check_choice
from kernelcore.images import VisualWords
from kernelcore.models import pyramid_view, vector_view
from kernelcore.models.photo_inputs import PRECOMPUTED, Extractor, Feature
from kernelcore.models.pyramid_view import PyramidView
from kernelcore.models.vector_view import VectorView, network_of

PhotoView: TypeAlias = PyramidView | VectorView
"""Training photos in one description, which turns others into the same and compares them."""


def view_of(feature: Feature) -> PhotoView:
    """Return a view of no photos yet."""
    if isinstance(feature, VisualWords):
        return PyramidView(feature, {})
    extractor = None if isinstance(feature, str) else feature
    return VectorView(extractor, np.empty((0, 0), np.float32))


def check_about(name: str, folder: Path, value: Any) -> Mapping[str, Any]:
    """Return what a file tells of a view, checked; the network is made of its parameters."""
    about = dict(check_mapping(name, value))
    kinds = (pyramid_view.KIND, vector_view.NETWORK, PRECOMPUTED)
    check_choice("kind", about.get("kind"), kinds)
    if about["kind"] == vector_view.NETWORK:
        about["network"] = network_of(folder, check_mapping("params", about["params"]))
    return about


def load_view(folder: Path, about: Mapping[str, Any], given: Extractor | None) -> PhotoView:
    """Read a view; `given` replaces an extractor that was not saved."""
    if about["kind"] == pyramid_view.KIND:
        return PyramidView.load(folder)
    absent = "" if given is not None else str(about.get("absent", ""))
    own_digest = str(about.get("digest", ""))
    return VectorView.load(folder, about.get("network", given), absent, own_digest)
