"""Features of regions of photos: proposed boxes, described by a network."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, as_list, check_choice, check_finite, check_integer
from kernelcore._estimator import Estimator
from kernelcore._ragged import Record, column, offsets_of, row_offsets
from kernelcore._store import digest
from kernelcore._threads import Progress, check_stopped
from kernelcore.images._describe import DecodedPhoto, OnError, describe
from kernelcore.images._extractor import FeatureExtractor, JoinedExtractor, pooled
from kernelcore.images._networks import FloatArray
from kernelcore.images.cnn import CNN
from kernelcore.images.proposals import FastestDet, Grid, find_regions
from kernelcore.images.read import ImageSources, RGBImage

Pooling: TypeAlias = Literal["map", "crop"]
_VERSION = 1  # to be raised whenever the same settings come to give other values
_MAP_INPUT_SIZE = 384  # maps of 12 x 12 cells


def average_in_boxes(
    feature_map: FloatArray, corners: FloatArray, size: tuple[int, int]
) -> FloatArray:
    """Average a map over boxes, as if each cell had one value all over.

    Parameters
    ----------
    feature_map : ndarray of float32, shape (d, h, w)
        Cells that tile the photo.
    corners : ndarray of float32, shape (n, 4)
        Left, top, right and bottom of boxes within the photo, not empty.
    size : (int, int)
        Height and width of the photo in the unit of `corners`.

    Returns
    -------
    ndarray of float32, shape (n, d)
    """
    n_features, n_rows, n_columns = feature_map.shape
    columns = _shares(corners[:, 0], corners[:, 2], n_columns, size[1])
    rows = _shares(corners[:, 1], corners[:, 3], n_rows, size[0])
    weights = (rows[:, :, None] * columns[:, None, :]).reshape(len(corners), -1)
    averages = weights @ feature_map.reshape(n_features, -1).T
    return averages.astype(np.float32, copy=False)


def _shares(starts: FloatArray, ends: FloatArray, n_cells: int, length: int) -> FloatArray:
    """Share of each interval that lies in each of the equal cells of a length, (n, n_cells)."""
    edges = np.linspace(0, length, n_cells + 1)
    inside = np.minimum(ends[:, None], edges[1:]) - np.maximum(starts[:, None], edges[:-1])
    inside = np.maximum(inside, 0)
    shares: FloatArray = (inside / inside.sum(axis=1, keepdims=True)).astype(np.float32)
    return shares


def _describe_crops(
    extractor: FeatureExtractor, image: RGBImage, corners: FloatArray, name: str
) -> FloatArray:
    """Run a network on each box of a photo."""
    crops = [
        image[math.floor(top) : math.ceil(bottom), math.floor(left) : math.ceil(right)]
        for left, top, right, bottom in corners.tolist()
    ]
    found = []
    for i in range(0, len(crops), extractor.batch_size):
        check_stopped()
        batch = crops[i : i + extractor.batch_size]
        found.append(pooled(extractor.extract(batch, [name] * len(batch))[0]))
    return np.concatenate(found)


@dataclass(frozen=True, eq=False)
class RegionFeatures(Record):
    """Regions of several photos; those of photo `i` are ``offsets[i]:offsets[i + 1]``.

    Attributes
    ----------
    offsets : ndarray of int64, shape (n_photos + 1,)
        Where the regions of each photo begin and end.
    boxes : ndarray of float32, shape (n_regions, 4)
        Left, top, right and bottom in pixels of the photo as `read_image` returns it. The
        first region of a photo is the whole photo.
    scores : ndarray of float32, shape (n_regions,)
        Confidence of a detector in [0, 1]; NaN for boxes that come from none.
    labels : ndarray of int32, shape (n_regions,)
        Number of the class that a detector sees; -1 for boxes that come from none.
    features : ndarray of float32, shape (n_regions, n_features)
        Mean activations of the network in the box.
    sizes : ndarray of int32, shape (n_photos, 2)
        Height and width of each photo in pixels.
    rows : ndarray of intp, shape (n_photos,)
        Position in the input of each photo: all of them, in order, unless unreadable photos
        were skipped.
    failures : dict of int to str
        Position of each photo that was skipped, and the reason.
    """

    _kind: ClassVar[str] = "region features"
    _axis: ClassVar[str] = "photo"

    offsets: npt.NDArray[np.int64] = field(metadata=row_offsets("photo", "region"))
    boxes: FloatArray = field(metadata=column("region", np.float32, ndim=2))
    scores: FloatArray = field(metadata=column("region", np.float32))
    labels: npt.NDArray[np.int32] = field(metadata=column("region", np.int32))
    features: FloatArray = field(metadata=column("region", np.float32, ndim=2))
    sizes: npt.NDArray[np.int32] = field(metadata=column("photo", np.int32, ndim=2))
    rows: npt.NDArray[np.intp] = field(metadata=column("photo", np.intp))
    failures: dict[int, str]

    def __len__(self) -> int:
        return len(self.sizes)

    def __repr__(self) -> str:
        n_regions, n_features = self.features.shape
        return f"RegionFeatures({len(self)} photos, {n_regions} regions, {n_features} features)"

    def _check(self) -> None:
        for name, width in (("boxes", 4), ("sizes", 2)):
            if getattr(self, name).shape[1] != width:
                raise ValueError(
                    f"{name} must have {width} columns, got shape {getattr(self, name).shape}"
                )
        for name in ("boxes", "features"):
            check_finite(name, getattr(self, name))
        # in a file the positions are strings
        self._set("failures", {int(row): reason for row, reason in self.failures.items()})


class RegionCNN(Estimator):
    """Describe regions of photos, the whole photo first, by a network trained elsewhere.

    Parameters
    ----------
    cnn : CNN, optional
        The network. The default is EfficientNet-Lite0, given photos of 384 x 384 pixels for
        ``pooling="map"`` and regions of 224 x 224 pixels for "crop".
    proposers : sequence of Grid or FastestDet, default (Grid(),)
        Sources of boxes. Boxes of a later one follow those of the earlier ones, up to
        `max_regions`.
    max_regions : int, default 20
        Most regions of a photo, the whole photo among them.
    pooling : {"map", "crop"}, default "map"
        "map" runs the network once and averages its last map over each box, cells that the
        border cuts counting in part [1]_. "crop" cuts each box out and runs the network on
        it [2]_, which is as many times slower as there are regions.

    See Also
    --------
    kernelcore.images.CNN : Describes photos as a whole.

    Notes
    -----
    Boxes are cut at the border of the photo; boxes outside are left out. The notes of `CNN`
    about threads hold here, too.

    References
    ----------
    .. [1] R. Girshick, "Fast R-CNN", ICCV 2015; averages take the place of its maxima.
    .. [2] A. Karpathy, A. Joulin and L. Fei-Fei, "Deep fragment embeddings for bidirectional
       image sentence mapping", NIPS 2014: 19 regions and the whole image.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.images import Grid, RegionCNN
    >>> photos = np.random.default_rng(0).integers(0, 256, (2, 60, 80, 3), np.uint8)
    >>> regions = RegionCNN(proposers=[Grid((2,))]).transform(photos)
    >>> regions
    RegionFeatures(2 photos, 10 regions, 1280 features)
    >>> regions.boxes[regions.offsets[1] :][:2]
    array([[ 0.      ,  0.      , 80.      , 60.      ],
           [ 0.      ,  0.      , 53.333332, 40.      ]], dtype=float32)
    """

    def __init__(
        self,
        cnn: CNN | None = None,
        *,
        proposers: Sequence[Grid | FastestDet] = (Grid(),),
        max_regions: int = 20,
        pooling: Pooling = "map",
    ) -> None:
        self.cnn = cnn
        self.proposers = proposers
        self.max_regions = max_regions
        self.pooling = pooling

    def fit(self, images: Any = None, y: None = None) -> RegionCNN:
        """Return the estimator itself: there is nothing to learn."""
        return self

    def transform(
        self,
        images: ImageSources,
        *,
        cache_dir: str | os.PathLike[str] | None = None,
        on_error: OnError = "raise",
        n_threads: int | None = None,
        progress: Progress = False,
    ) -> RegionFeatures:
        """Find and describe the regions of each photo.

        Parameters
        ----------
        images : sequence of paths, bytes, uint8 arrays or images of Pillow
            Photos; see `read_image` for what each may be.
        cache_dir : path, optional
            Folder that keeps the regions of every photo as soon as they are computed. Photos
            of the same content and settings are not described again. Processes may share it.
        on_error : {"raise", "skip"}, default "raise"
            "raise" raises one error that lists every file that cannot be read. "skip" leaves
            these files out and gives one warning that lists them.
        n_threads : int, optional
            Threads to use, each on photos of its own; the default is every core this process
            may run on. On a CPU the result is the same, bit for bit, for every value.
        progress : bool or callable, default False
            True shows a bar; a callable is called with the batches done and in all.

        Returns
        -------
        RegionFeatures
            Boxes, scores, labels and features, photo after photo.

        Raises
        ------
        MissingExtraError
            If the packages that the network needs are not installed.
        FileNotFoundError
            If the network's file is not there.
        TypeError
            If an image or a parameter is of the wrong kind.
        ValueError
            If there are no images, a parameter has a wrong value, the network returns no maps
            for ``pooling="map"``, or anything that `CNN.transform` refuses.
        UnreadableImagesError
            If files cannot be read and `on_error` is "raise", or if none can.
        """
        extractor = self._extractor()
        max_regions = check_integer("max_regions", self.max_regions, minimum=1)
        settings = [
            _VERSION,
            self.pooling,
            max_regions,
            *(p.identity() for p in self.proposers),
        ]

        def describe_batch(photos: Sequence[DecodedPhoto]) -> Iterator[dict[str, Array]]:
            pixels, _, names = zip(*photos, strict=True)
            maps: FloatArray | None = None
            if self.pooling == "map":
                maps, _ = extractor.extract(pixels, names)
                if maps.ndim != 4:
                    raise ValueError(
                        "pooling='map' needs a network whose output are maps of shape "
                        f"(b, d, h, w), got shape {maps.shape}"
                    )
            for i, (image, name) in enumerate(zip(pixels, names, strict=True)):
                boxes = find_regions(image, self.proposers, max_regions)
                if maps is None:
                    features = _describe_crops(extractor, image, boxes.corners, name)
                else:
                    features = average_in_boxes(maps[i], boxes.corners, image.shape[:2])
                size = np.array([image.shape[:2]], np.int32)
                yield boxes._asdict() | {"features": features, "sizes": size}

        described = describe(
            images,
            describe_batch,
            key=digest(json.dumps(settings).encode(), extractor.identity().encode()),
            batch_size=extractor.batch_size,
            max_pixels=extractor.max_pixels,
            cache_dir=cache_dir,
            on_error=on_error,
            n_threads=n_threads,
            progress=progress,
            description="Running the network",
        )
        described.warn()
        names = ("scores", "labels", "features", "sizes")
        return RegionFeatures._trusted(
            offsets=offsets_of([len(row["corners"]) for row in described.rows]),
            boxes=described.concatenated("corners"),
            **{name: described.concatenated(name) for name in names},
            rows=described.positions,
            failures=described.failures,
        )

    def _extractor(self) -> FeatureExtractor:
        check_choice("pooling", self.pooling, ("map", "crop"))
        for i, proposer in enumerate(as_list("proposers", self.proposers)):
            if not isinstance(proposer, (Grid, FastestDet)):
                raise TypeError(
                    f"proposers[{i}] must be a Grid or FastestDet, got {proposer!r}"
                )
        cnn = self.cnn
        if cnn is None:
            cnn = CNN(input_size=_MAP_INPUT_SIZE) if self.pooling == "map" else CNN()
        if not isinstance(cnn, CNN):
            raise TypeError(f"cnn must be a CNN or None, got {cnn!r}")
        extractor = cnn.make_extractor()
        if isinstance(extractor, JoinedExtractor):
            raise ValueError("cnn must have one network, got several")
        return extractor
