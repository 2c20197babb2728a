"""Features of photos: extractors, descriptions of training photos, and their kernels."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from kernelcore._check import (
    Array,
    as_float32,
    as_ordered_list,
    as_real_array,
    as_strings,
    check_choice,
    check_finite,
)
from kernelcore._estimator import params_to_json
from kernelcore._ragged import n_items
from kernelcore._store import (
    check_mapping,
    check_tensor,
    digest,
    load_tensors,
    reading,
    save_tensors,
)
from kernelcore._threads import cached_property, one_blas_thread
from kernelcore.images import CNN, CNNFeatures, SpatialHistograms, VisualWords, square_roots
from kernelcore.images._extractor import of_length_one
from kernelcore.images._lite import LITE
from kernelcore.images._networks import LITE0
from kernelcore.images.read import ImageSources, check_sources
from kernelcore.kernels import average, power, spatial_pyramid
from kernelcore.models.saving import MODEL

Scaling: TypeAlias = Literal["square_roots", "length"]
"""Scaling of feature vectors: `kernelcore.images.square_roots`, or length 1 alone."""

SCALINGS: tuple[Scaling, ...] = ("square_roots", "length")
_LEAST_SPREAD = 1e-12  # more than the rounding between equal rows of length 1

_WORDS, _NETWORK, _VECTORS = "visual words", "network", "photo vectors"
_WORDS_FILE, _NETWORK_FILE = "visual_words.safetensors", "network.onnx"
_VECTORS_FILE = "vectors.safetensors"


Feature: TypeAlias = VisualWords | CNN | Literal["precomputed"]
"""How photos are described; "precomputed" where callers give the vectors themselves."""

PRECOMPUTED: Literal["precomputed"] = "precomputed"

Photos: TypeAlias = ImageSources | CNNFeatures | npt.ArrayLike
"""Photos as files or pixels, or their vectors."""

Described: TypeAlias = Mapping[str, SpatialHistograms] | npt.NDArray[np.float32]
"""Photos as one feature describes them: histograms by name, or one vector per photo."""

Rows: TypeAlias = npt.NDArray[np.intp]


def check_feature(features: Any) -> Feature:
    """Return the description of photos, visual words by default."""
    if features is None:
        return VisualWords()
    is_name = isinstance(features, str) and features == PRECOMPUTED
    if not (is_name or isinstance(features, (VisualWords, CNN))):
        raise TypeError(
            f'features must be VisualWords(), CNN() or "precomputed", got {features!r:.80}'
        )
    feature: Feature = features
    return feature


def check_photos(name: str, photos: Any, feature: Feature) -> Any:
    """Return photos as a sequence, or their vectors as a matrix where these are expected."""
    if isinstance(feature, str):
        return as_vectors(name, photos)
    is_array = isinstance(photos, np.ndarray) and photos.ndim > 0
    if not is_array and (isinstance(photos, (str, bytes)) or not isinstance(photos, Sequence)):
        photos = as_ordered_list(name, photos, "be a sequence of photos")
    check_sources(name, photos)
    return photos


def as_vectors(name: str, value: Any) -> npt.NDArray[np.float32]:
    """Check vectors of photos: rows of finite real numbers that fit into float32."""
    from kernelcore.evaluation._inputs import as_rows

    rows = value.features if isinstance(value, CNNFeatures) else value
    if not (isinstance(rows, np.ndarray) and rows.size):  # files, shards and tensors
        rows = as_rows(name, rows).matrix()
    return as_float32(name, check_finite(name, as_real_array(name, rows, ndim=2)))


def checked_names(photos: Any, names: Any) -> list[str]:
    """Return the name of each photo; without `names` its path, or its number if it has none."""
    n_photos = n_items(photos)
    if names is not None:
        found = as_strings("names", names)
        if len(found) != n_photos:
            raise ValueError(
                f"names must have one entry per photo ({n_photos}), got {len(found)}"
            )
        return found
    has_paths = isinstance(photos, np.ndarray) and photos.dtype.kind in "OU"
    is_list = isinstance(photos, (list, tuple)) or has_paths
    return [
        str(os.fspath(photo)) if isinstance(photo, (str, os.PathLike)) else f"photo {i}"
        for i, photo in enumerate(photos if is_list else range(n_photos))
    ]


class FeatureKernel:
    r"""Radial basis function of rows, with a width from the training rows.

    .. math:: k(x, y) = \exp(-\lVert x - y \rVert^2 / s)

    with s the mean squared distance of the training rows.

    Parameters
    ----------
    rows : ndarray of float32, shape (n_training, n_features)
        Training rows.

    Raises
    ------
    ValueError
        If all training rows are equal.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.models.photo_features import FeatureKernel
    >>> kernel = FeatureKernel(np.array([[1.0, 0.0], [0.0, 1.0]], np.float32))
    >>> kernel.gram().round(3)
    array([[1.   , 0.135],
           [0.135, 1.   ]], dtype=float32)
    """

    def __init__(self, rows: npt.NDArray[np.float32]) -> None:
        self._mean = rows.mean(axis=0, dtype=np.float64).astype(np.float32)
        self._rows, self._squares = self._centred(rows)
        self.spread = 2.0 * float(self._squares.mean(dtype=np.float64))
        if self.spread < _LEAST_SPREAD:
            raise ValueError("images must not all have the same feature vector after scaling")

    def gram(self, X: npt.NDArray[np.float32] | None = None) -> npt.NDArray[np.float32]:
        """Compare rows with the training rows; these with each other by default.

        Parameters
        ----------
        X : ndarray of float32, shape (n_rows, n_features), optional

        Returns
        -------
        ndarray of float32, shape (n_rows, n_training)
        """
        rows, squares = (self._rows, self._squares) if X is None else self._centred(X)
        with one_blas_thread():
            products = rows @ self._rows.T
        squared = squares[:, np.newaxis] + self._squares - np.float32(2.0) * products
        squared = np.maximum(squared, np.float32(0.0))
        kernel: npt.NDArray[np.float32] = np.exp(-squared / np.float32(self.spread))
        if X is None:
            np.fill_diagonal(kernel, 1.0)  # without the rounding of the difference
        return kernel

    def _centred(
        self, rows: npt.NDArray[np.float32]
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Subtract the mean of the training rows; return the rows and their squared lengths.

        The mean changes no distance, but cancelling it later would leave rounding errors.
        """
        centred = rows - self._mean
        return centred, np.einsum("ij,ij->i", centred, centred)


class PhotoKernel:
    """Kernel of photos with the training photos.

    Histograms of visual words are compared by the spatial pyramid kernel, the mean over their
    features; vectors by `FeatureKernel`.

    Parameters
    ----------
    training : Described
        Training photos.
    scaling : {"square_roots", "length"} or None
        Of vectors; a row of zeros stays zeros.
    exponent : float, default 1.0
        Power of the kernel.
    """

    def __init__(
        self, training: Described, scaling: Scaling | None, exponent: float = 1.0
    ) -> None:
        self.scaling, self.exponent = scaling, exponent
        self._training: Mapping[str, SpatialHistograms] | FeatureKernel = (
            training if isinstance(training, Mapping) else FeatureKernel(self._scaled(training))
        )

    def gram(self, photos: Described | None = None, **run: Any) -> Array:
        """Compare photos with the training photos; these with each other by default.

        Parameters
        ----------
        photos : Described, optional
        **run
            Threads and progress.

        Returns
        -------
        ndarray of float32, shape (n_photos, n_training)
        """
        if isinstance(self._training, FeatureKernel):
            vectors = cast("Array | None", photos)
            gram = self._training.gram(None if vectors is None else self._scaled(vectors))
        else:
            grams = []
            for name, known in self._training.items():
                pair = (known,) if photos is None else (cast(Any, photos)[name], known)
                grams.append(spatial_pyramid(*pair, dtype=np.float32, **run))
            gram = average(grams)
        return gram if self.exponent == 1.0 else power(gram, self.exponent)

    def _scaled(self, rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        return of_length_one(rows) if self.scaling == "length" else square_roots(rows)


@dataclass(frozen=True, eq=False)
class PhotoFeature:
    """Training photos as a feature describes them, and the extractor for other photos.

    Attributes
    ----------
    extractor : VisualWords, CNN or None
        Turns photos into histograms or vectors; None where callers give vectors.
    photos : Described
        Training photos.
    network_digest : str
        Of the ONNX file that described the training photos.
    sources : sequence of str
        Path or number of each photo; not saved.
    """

    extractor: VisualWords | CNN | None
    photos: Described
    network_digest: str = ""
    sources: Sequence[str] = ()

    @classmethod
    def fit(cls, feature: Feature, photos: Photos, **options: Any) -> tuple[PhotoFeature, Rows]:
        """Learn codebooks unless the extractor has some, and describe the photos.

        Parameters
        ----------
        feature : Feature
        photos : Photos
            Checked by `check_photos`.
        **options
            Those of `describe`.

        Returns
        -------
        PhotoFeature
        rows : ndarray of intp
            The photo behind each row.
        """
        extractor = None if isinstance(feature, str) else feature
        if isinstance(extractor, VisualWords) and not hasattr(extractor, "codebooks_"):
            learning = {name: value for name, value in options.items() if name != "cache_dir"}
            extractor = VisualWords(**extractor.get_params())
            extractor._learn(cast(Any, photos), **learning)  # `describe` warns about files
        fitted = cls(extractor, np.empty((0, 0), np.float32), _network_digest(extractor))
        described, rows = fitted.describe("images", photos, **options)
        own = described if isinstance(described, Mapping) else np.array(described)
        names = checked_names(photos, None)
        return replace(fitted, photos=own, sources=[names[i] for i in rows]), rows

    @property
    def feature(self) -> Feature:
        """The feature as `PhotoRanker` takes it, without codebooks."""
        if isinstance(self.extractor, VisualWords):
            return VisualWords(**self.extractor.get_params())
        return PRECOMPUTED if self.extractor is None else self.extractor

    @property
    def scalings(self) -> tuple[Scaling | None, ...]:
        """Square roots for a network, as most activations are small; both for other vectors."""
        if isinstance(self.extractor, VisualWords):
            return (None,)
        return SCALINGS[:1] if isinstance(self.extractor, CNN) else SCALINGS

    def describe(self, name: str, photos: Photos, **options: Any) -> tuple[Described, Rows]:
        """Describe photos, and return the photo behind each row.

        Parameters
        ----------
        name : str
            Name of the photos in errors.
        photos : Photos
            Checked by `check_photos`.
        **options
            How photos are read; see `PhotoRanker.index`.
        """
        vectors, rows = cast(Array, photos), np.arange(n_items(photos))
        if self.extractor is not None:
            self._check_network()
            described = self.extractor.transform(cast(ImageSources, photos), **options)
            rows = described.rows
            if not isinstance(described, CNNFeatures):
                return dict(described), rows
            vectors = described.features
        n_features = 0 if isinstance(self.photos, Mapping) else self.photos.shape[1]
        if len(self.photos) and vectors.shape[1] != n_features:
            raise ValueError(
                f"{name} must have the features of the training photos ({n_features}), "
                f"got {vectors.shape[1]}"
            )
        return vectors, rows

    def contains(self, described: Described) -> npt.NDArray[np.bool_]:
        """Find the photos whose descriptions equal, bit for bit, those of training photos."""
        known = set(self._digests)
        return np.array([one in known for one in digests_of(described)], dtype=bool)

    def numbers(self) -> Rows:
        """Return a number for each row, the same for rows of the same path or description."""
        number_of: dict[Any, int] = {}
        numbers: Rows = np.empty(n_items(self.photos), np.intp)
        n_photos = 0
        sources: Sequence[Any] = self.sources or range(len(numbers))
        for i, keys in enumerate(zip(sources, self._digests, strict=True)):
            number = min((number_of[k] for k in keys if k in number_of), default=n_photos)
            number_of.update(dict.fromkeys(keys, number))
            numbers[i] = number
            n_photos = max(n_photos, number + 1)
        return numbers

    @cached_property
    def _digests(self) -> list[bytes]:
        return digests_of(self.photos)

    def about(self) -> dict[str, Any]:
        """Return the JSON that `load` needs beside the files."""
        if not isinstance(self.extractor, CNN):
            return {"kind": PRECOMPUTED if self.extractor is None else _WORDS}
        params = params_to_json(self.extractor.get_params(deep=False))
        if _onnx_file(self.extractor) is not None:
            params["network"] = _NETWORK_FILE
        if not isinstance(params["network"], (str, list)):
            raise ValueError(
                "features must be a network of a name or an ONNX file to be saved, got a "
                'module; give its vectors with features="precomputed"'
            )
        return {"kind": _NETWORK, "params": params}

    def save(self, folder: Path) -> None:
        """Write codebooks and histograms, or vectors and a copy of their ONNX file."""
        if isinstance(self.photos, Mapping):
            cast(VisualWords, self.extractor).save(folder / _WORDS_FILE)
            for name, histograms in self.photos.items():
                histograms.save(folder / f"photos-{name}.safetensors")
            return
        save_tensors(folder / _VECTORS_FILE, _VECTORS, {"vectors": self.photos})
        network = _onnx_file(self.extractor)
        if network is not None:
            self._check_network()
            shutil.copyfile(network, folder / _NETWORK_FILE)
            # The network may refer to other files, which are not copied: check that it runs.
            network_of(folder, self.about()["params"]).make_extractor()

    @classmethod
    def load(cls, folder: Path, about: Any) -> PhotoFeature:
        """Read the files of `save` and the output of `about`; damage raises ValueError."""
        with reading(folder.parent / MODEL):
            kind = check_mapping("photos", about).get("kind")
            check_choice("kind", kind, (_WORDS, _NETWORK, PRECOMPUTED))
            network = None
            if kind == _NETWORK:
                network = network_of(folder, check_mapping("params", about["params"]))
        if kind == _WORDS:
            words = VisualWords.load(folder / _WORDS_FILE)
            photos = {}
            for name in words.codebooks_:
                path = folder / f"photos-{name}.safetensors"
                with reading(path):
                    photos[name] = own = SpatialHistograms.load(path)
                    sizes = words.codebooks_[name].n_words, words.n_levels
                    if (own.n_words, own.n_levels) != sizes:
                        raise ValueError(f"it must have the words and levels {sizes}")
            return cls(words, photos)
        with reading(folder / _VECTORS_FILE):
            tensors, others = load_tensors(folder / _VECTORS_FILE, _VECTORS)
            others.exactly()
            vectors = tensors.exactly("vectors")["vectors"]
            check_tensor("vectors", vectors, (None, None), np.float32)
        return cls(network, vectors, _network_digest(network))

    def _check_network(self) -> None:
        """Raise if the ONNX file is not the one that described the training photos."""
        if self.network_digest and _network_digest(self.extractor) != self.network_digest:
            raise ValueError(
                f"{_onnx_file(self.extractor)} must be the network that described the "
                "training photos, and it has changed since"
            )


def digests_of(photos: Described) -> list[bytes]:
    """Return a digest of the description of each photo."""
    parts: list[Any] = [photos]
    if isinstance(photos, Mapping):
        parts = [own.counts for own in photos.values()]
    return [
        b"".join(hashlib.blake2b(row.tobytes(), digest_size=16).digest() for row in rows)
        for rows in zip(*parts, strict=True)
    ]


def _onnx_file(extractor: Any) -> Path | None:
    network = extractor.network if isinstance(extractor, CNN) else LITE0
    if isinstance(network, (str, os.PathLike)) and network not in LITE:
        return Path(network)
    return None


def _network_digest(extractor: Any) -> str:
    network = _onnx_file(extractor)
    return "" if network is None else digest(network.read_bytes())


def network_of(folder: Path, params: Mapping[str, Any]) -> CNN:
    """Return the network that `PhotoFeature.about` described."""
    network = params["network"]
    if network == _NETWORK_FILE:
        network = os.fspath(folder / _NETWORK_FILE)
    elif isinstance(network, list):
        network = tuple(network)
    elif not (isinstance(network, str) and network in LITE):
        known = ", ".join(map(repr, (*LITE, _NETWORK_FILE)))
        raise ValueError(f"network must be one of {known}, or several, got {network!r:.80}")
    cnn = CNN().set_params(**{**params, "network": network})
    cnn.check_params()
    return cnn
