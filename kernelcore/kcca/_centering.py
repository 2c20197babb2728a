"""Centring of new rows of a view, which are kernel values or features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, check_indices
from kernelcore._store import check_tensor
from kernelcore.kernels.gram import GramCenterer, as_gram


class FeatureCenterer:
    """Subtracts the mean of the training samples' features.

    Attributes
    ----------
    means : ndarray of float64, shape (n_features,)
    """

    def __init__(self, means: npt.NDArray[np.float64]) -> None:
        self.means = means

    def centred(self, features: npt.ArrayLike) -> npt.NDArray[Any]:
        """Centre rows of features, in their own dtype."""
        matrix = as_gram("features", features)
        if matrix.shape[1] != len(self.means):
            raise ValueError(
                f"features must have {len(self.means)} columns as in training, "
                f"got shape {matrix.shape}"
            )
        # Rounded means would shift all rows alike, which would add a direction.
        centred = np.empty_like(matrix)
        np.subtract(matrix, self.means, out=centred, casting="same_kind")
        return centred


Centerer: TypeAlias = GramCenterer | FeatureCenterer


def centering_tensors(centerer: Centerer, prefix: str = "") -> dict[str, Array]:
    """Return the means, named by whether they are of features or of kernel columns."""
    if isinstance(centerer, FeatureCenterer):
        return {f"{prefix}feature_means": centerer.means}
    return {f"{prefix}column_means": centerer.column_means_}


def centerer_from(tensors: Mapping[str, Array], prefix: str = "") -> Centerer:
    """Return the centerer of the output of `centering_tensors`."""
    kind = "feature_means" if f"{prefix}feature_means" in tensors else "column_means"
    means = check_tensor(kind, tensors[prefix + kind], (None,), np.float64)
    if not len(means):
        raise ValueError(f"{prefix}{kind} must not be empty")
    return FeatureCenterer(means) if kind == "feature_means" else GramCenterer.from_means(means)


def width_of(centerer: Centerer) -> int:
    """Return the number of kernel values, or of features, in a row."""
    if isinstance(centerer, FeatureCenterer):
        return len(centerer.means)
    return len(centerer.column_means_)


def columns_from(
    tensors: Mapping[str, Array], centerer: Centerer, prefix: str = ""
) -> npt.NDArray[np.intp]:
    """Return the columns that rows are projected from; check range and uniqueness."""
    name = f"{prefix}columns"
    columns = check_tensor(name, tensors[name], (None,), np.intp)
    check_indices(name, columns, width_of(centerer))
    if len(np.unique(columns)) != len(columns):
        raise ValueError(f"{name} must name a column once")
    return columns
