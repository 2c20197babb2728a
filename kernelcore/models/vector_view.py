"""Training photos as vectors, and how others are compared with them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from kernelcore._estimator import params_to_json
from kernelcore._files import digest, load_tensors, save_tensors
from kernelcore._parallel import resolve_n_threads
from kernelcore._progress import Progress
from kernelcore._reading import check_tensor, reading
from kernelcore._validation import Array
from kernelcore.images import CNN
from kernelcore.images._describe import OnError, report_failures, unreadable_files
from kernelcore.images._networks import LITE0
from kernelcore.images.decode import DEFAULT_MAX_PIXELS
from kernelcore.models.feature_kernel import SCALINGS, FeatureKernel, Scaling, scaled
from kernelcore.models.pairs import count, take_images
from kernelcore.models.photo_inputs import (
    PRECOMPUTED,
    Extractor,
    Feature,
    Photos,
    Rows,
    among,
    as_vectors,
    is_matrix,
)

NETWORK = "network"
_VECTORS = "vectors.safetensors"
_NETWORK = "network.onnx"
_KIND = "photo vectors"


@dataclass(frozen=True, eq=False)
class VectorView:
    """Photos as vectors, of a network say, compared by `FeatureKernel`.

    Attributes
    ----------
    extractor : CNN, Extractor or None
        Turns photos into vectors; None where callers give vectors.
    vectors : ndarray of float32, shape (n_training, n_features)
        Training photos.
    absent : str
        What the extractor was, where a file could not hold it.
    network_digest : str
        Of the ONNX file that described the training photos.
    """

    extractor: CNN | Extractor | None
    vectors: npt.NDArray[np.float32]
    absent: str = ""
    network_digest: str = ""
    _kernels: dict[Scaling, FeatureKernel] = field(default_factory=dict, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def n_features(self) -> int:
        """Length of the vectors."""
        return int(self.vectors.shape[1])

    @property
    def feature(self) -> Feature:
        """The extractor, or "precomputed" where there is none."""
        return PRECOMPUTED if self.extractor is None else self.extractor

    @property
    def scalings(self) -> tuple[Scaling | None, ...]:
        """Roots for a network, whose activations are mostly small; unknown vectors try both."""
        return SCALINGS[:1] if isinstance(self.extractor, CNN) else SCALINGS

    def fit(self, photos: Photos, **options: Any) -> VectorView:
        """Return the view with the digest of its network: there is nothing to learn."""
        return replace(self, network_digest=self._digest_of_network())

    def describe(
        self,
        photos: Photos,
        *,
        cache_dir: str | os.PathLike[str] | None = None,
        on_error: OnError = "raise",
        n_threads: int | None = None,
        progress: Progress = False,
    ) -> tuple[npt.NDArray[np.float32], Rows]:
        """Run the extractor; a network takes a matrix for what it said itself.

        An extractor of others may trust that it can read what it is given: "skip" leaves out
        files that cannot be read before it is asked.
        """
        if self.extractor is None or (isinstance(self.extractor, CNN) and is_matrix(photos)):
            vectors = self.given(photos)
            rows = np.arange(len(vectors))
        elif isinstance(self.extractor, CNN):
            self._check_network()
            described = self.extractor.transform(
                cast(Any, photos),  # checked there
                cache_dir=cache_dir,
                on_error=on_error,
                n_threads=n_threads,
                progress=progress,
            )
            vectors, rows = described.features, described.rows
        else:
            rows = np.arange(count(photos))
            if on_error == "skip" and not (is_matrix(photos) or isinstance(photos, Mapping)):
                failures = unreadable_files(
                    cast(Any, photos),
                    DEFAULT_MAX_PIXELS,
                    resolve_n_threads(n_threads),
                    progress,
                )
                report_failures(failures, len(rows), on_error)
                rows = np.delete(rows, list(failures))
                photos = take_images(photos, rows) if failures else photos
            name = f"transform of {type(self.extractor).__name__}"
            vectors = as_vectors(name, cast(Extractor, self.extractor).transform(photos))
            if len(vectors) != len(rows):
                raise ValueError(
                    f"{name} must give one row for each photo ({len(rows)}), got {len(vectors)}"
                )
        n_features = self.vectors.shape[1]
        if len(self) and vectors.shape[1] != n_features:
            raise ValueError(
                f"images must have the features of the training photos ({n_features}), "
                f"got {vectors.shape[1]}"
            )
        return vectors, rows

    def given(self, photos: Any) -> npt.NDArray[np.float32]:
        """Return the vectors that a caller gives."""
        try:
            return as_vectors("images", photos)
        except (TypeError, ValueError, OSError) as error:
            if not self.absent:
                raise
            raise ValueError(
                f"images must be vectors: no file could hold the {self.absent} that described "
                f"photos; give it to load as features ({error})"
            ) from error

    def of(self, description: npt.NDArray[np.float32]) -> VectorView:
        """Return the view of other training photos."""
        return replace(self, vectors=np.array(description))

    def know(self, description: npt.NDArray[np.float32]) -> npt.NDArray[np.bool_]:
        """Find the photos that have the vector of a training photo."""
        return among(description, self.vectors)

    def gram(
        self,
        description: npt.NDArray[np.float32] | None = None,
        *,
        scaling: Scaling | None = None,
        n_threads: int | None = None,
        progress: Progress = False,
    ) -> Array:
        """Radial basis function of the scaled vectors."""
        how = scaling or SCALINGS[0]
        if how not in self._kernels:
            self._kernels.clear()  # one copy of the vectors is enough
            self._kernels[how] = FeatureKernel(scaled(self.vectors, how))
        return self._kernels[how].gram(
            None if description is None else scaled(description, how)
        )

    def about(self) -> dict[str, Any]:
        """Return the network with its parameters, or what no file can hold by its name."""
        if self.extractor is None:
            return {"kind": PRECOMPUTED, "absent": self.absent}
        if isinstance(self.extractor, CNN):
            params = params_to_json(self.extractor.get_params(deep=False))
            if self._onnx_file() is not None:
                params["network"] = _NETWORK
            if isinstance(params["network"], str):
                return {"kind": NETWORK, "params": params, "digest": self.network_digest}
        return {"kind": PRECOMPUTED, "absent": type(self.extractor).__name__}

    def save(self, folder: Path) -> None:
        """Write the vectors, and a copy of the ONNX file that made them."""
        save_tensors(folder / _VECTORS, _KIND, {"vectors": self.vectors}, {})
        network = self._onnx_file()
        if network is not None:
            self._check_network()
            shutil.copyfile(network, folder / _NETWORK)
            # It may name other files, which are not copied: then it does not run here.
            network_of(folder, params_to_json(self._copied_params())).make_lens()

    def _copied_params(self) -> dict[str, Any]:
        return {**cast(CNN, self.extractor).get_params(deep=False), "network": _NETWORK}

    def _digest_of_network(self) -> str:
        network = self._onnx_file()
        return "" if network is None else digest(network.read_bytes())

    def _check_network(self) -> None:
        """Raise if the ONNX file is not the one that described the training photos."""
        if self.network_digest and self._digest_of_network() != self.network_digest:
            raise ValueError(
                f"{self._onnx_file()} must be the network that described the training photos, "
                "and it has changed since"
            )

    def _onnx_file(self) -> Path | None:
        network = self.extractor.network if isinstance(self.extractor, CNN) else LITE0
        if isinstance(network, (str, os.PathLike)) and os.fspath(network) != LITE0:
            return Path(network)
        return None

    @classmethod
    def load(
        cls, folder: Path, extractor: CNN | Extractor | None, absent: str, network_digest: str
    ) -> VectorView:
        """Read what `save` wrote; a damaged file is a ValueError."""
        with reading(folder / _VECTORS):
            tensors, about = load_tensors(folder / _VECTORS, _KIND)
            about.exactly()
            vectors = tensors.exactly("vectors")["vectors"]
            check_tensor("vectors", vectors, (None, None), np.float32)
        view = cls(extractor, vectors, absent, network_digest)
        view._check_network()
        return view


def network_of(folder: Path, params: Mapping[str, Any]) -> CNN:
    """Return the network that `VectorView.about` told of."""
    network = params["network"]
    if network not in (LITE0, _NETWORK):
        raise ValueError(f"network must be {LITE0!r} or {_NETWORK!r}, got {network!r:.80}")
    named = os.fspath(folder / _NETWORK) if network == _NETWORK else LITE0
    cnn = CNN().set_params(**{**params, "network": named})
    cnn.check_params()
    return cnn
