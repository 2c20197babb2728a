"""Region proposals: boxes from a detector or a grid."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._check import check_integer
from kernelcore._store import read_text
from kernelcore._threads import check_stopped
from kernelcore.images._extractor import FeatureExtractor
from kernelcore.images._networks import FloatArray, OnnxNetwork
from kernelcore.images.read import RGBImage

_DETECTOR_SIZE = 352
_N_COORDINATES = 5  # presence, then offset and size of the box
_LOWEST_SCORE, _LARGEST_OVERLAP = 0.25, 0.45
_LARGEST_LEVEL = 64


class Boxes(NamedTuple):
    """Boxes in one photo, in order of preference."""

    corners: FloatArray
    """Left, top, right and bottom in pixels, shape (n, 4)."""
    scores: FloatArray
    """Confidence of a detector in [0, 1], shape (n,); NaN for boxes without one."""
    labels: npt.NDArray[np.int32]
    """Number of the class that a detector sees, shape (n,); -1 for boxes without one."""


@dataclass(frozen=True)
class Grid:
    r"""Propose overlapping windows of several sizes, the same for every photo.

    Level *k* has :math:`k \times k` windows, each :math:`2 / (k + 1)` as wide and as high as
    the photo, so that neighbours share half of it. Levels come in the order given, windows
    near the centre of the photo first.

    Parameters
    ----------
    levels : sequence of int, default (2, 3, 4, 5)
        Windows along each side: 4 + 9 + 16 + 25 windows.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.images import Grid
    >>> Grid(levels=(2,)).propose(np.zeros((60, 90, 3), np.uint8)).corners
    array([[ 0.,  0., 60., 40.],
           [30.,  0., 90., 40.],
           [ 0., 20., 60., 60.],
           [30., 20., 90., 60.]], dtype=float32)
    """

    levels: Sequence[int] = (2, 3, 4, 5)

    def __post_init__(self) -> None:
        if not isinstance(self.levels, (tuple, list)):
            raise TypeError(f"levels must be a sequence of integers, got {self.levels!r}")
        if not self.levels:
            raise ValueError("levels must hold at least one number, got none")
        for i, level in enumerate(self.levels):
            check_integer(f"levels[{i}]", level, minimum=1, maximum=_LARGEST_LEVEL)

    def propose(self, image: RGBImage) -> Boxes:
        """Propose windows in RGB pixels (h, w, 3)."""
        height, width = image.shape[:2]
        windows = np.concatenate([_windows(int(n)) for n in self.levels])
        return without_scores(windows * [width, height, width, height])

    def identity(self) -> str:
        """Return the levels as text."""
        return f"grid {list(map(int, self.levels))}"


@dataclass(frozen=True)
class FastestDet:
    r"""Propose the objects that a FastestDet network detects, run by ONNX Runtime.

    The network [1]_ predicts for each cell :math:`(i, j)` of a map of :math:`h \times w` cells
    how likely an object has its centre there, the box around it, and the probabilities of the
    classes:

    .. math::

       x = (j + \tanh t_x) / w, \quad y = (i + \tanh t_y) / h, \quad
       \mathrm{width} = \sigma(t_w), \quad \mathrm{height} = \sigma(t_h)

    as fractions of the photo. The score of a box, at least 0.25, is the probability of the
    object times that of its best class. Of boxes of one class whose intersection exceeds 0.45
    of their union, the one that scores highest is kept.

    Parameters
    ----------
    path : path
        The ONNX file; its input has 352 x 352 pixels.
    class_names : sequence of str or path, optional
        Names of the classes, or a text file with a name on each line.

    Raises
    ------
    FileNotFoundError
        If a file is not there.
    ValueError
        If `path` is no ONNX file that can be run.

    References
    ----------
    .. [1] FastestDet, https://github.com/dog-qiuqiu/FastestDet, 2022.
    """

    path: str | os.PathLike[str]
    class_names: Sequence[str] | str | os.PathLike[str] = ()
    _extractor: FeatureExtractor = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.class_names, (str, os.PathLike)):
            lines = read_text(self.class_names).splitlines()
            object.__setattr__(self, "class_names", tuple(filter(None, map(str.strip, lines))))
        network = OnnxNetwork(self.path)
        nothing, one = np.zeros(3, np.float32), np.ones(3, np.float32)
        extractor = FeatureExtractor(network, _DETECTOR_SIZE, nothing, one, 1, 1)
        object.__setattr__(self, "_extractor", extractor)

    def propose(self, image: RGBImage) -> Boxes:
        """Propose objects in RGB pixels (h, w, 3), the most certain first."""
        cv2 = _extras.require("cv2")
        bgr = image[:, :, ::-1]  # as the network was trained
        output = self._extractor.extract([bgr], ["the photo"])[0]
        if output.ndim != 4 or output.shape[1] <= _N_COORDINATES:
            raise ValueError(
                f"{os.fspath(self.path)} must return a map of 5 coordinates and the classes, "
                f"got shape {output.shape}"
            )
        fractions, scores, labels = _decode(output[0])
        height, width = image.shape[:2]
        frame = np.array([width, height], np.float32)
        corners = np.clip(fractions * frame, 0, frame)
        sides = corners[:, 1] - corners[:, 0]
        found = np.flatnonzero((scores >= _LOWEST_SCORE) & (sides >= 1).all(axis=1))
        found = found[np.argsort(-scores[found], kind="stable")]
        rectangles = np.concatenate([corners[found, 0], sides[found]], axis=1)
        kept = cv2.dnn.NMSBoxesBatched(
            rectangles.tolist(), scores[found], labels[found], 0.0, _LARGEST_OVERLAP
        )
        best = found[np.sort(np.asarray(kept, np.intp).ravel())]
        return Boxes(corners[best].reshape(-1, 4), scores[best], labels[best])

    def identity(self) -> str:
        """Return the digest of the file as text."""
        return self._extractor.identity()


def find_regions(
    image: RGBImage, proposers: Sequence[Grid | FastestDet], max_regions: int
) -> Boxes:
    """Find the regions of one photo, the whole of it first.

    Parameters
    ----------
    image : ndarray of uint8, shape (h, w, 3)
        The photo.
    proposers : sequence of Grid or FastestDet
        Asked in turn until there are enough.
    max_regions : int
        Most regions, the whole photo among them.

    Returns
    -------
    Boxes
        Boxes within the photo; none is empty.
    """
    height, width = image.shape[:2]
    frame = np.array([width, height] * 2, np.float32)
    found = [without_scores([[0, 0, width, height]])]
    n_missing = max_regions - 1
    for proposer in proposers:
        check_stopped()
        if n_missing == 0:
            break
        boxes = proposer.propose(image)
        corners = np.clip(boxes.corners, 0, frame)
        there = np.flatnonzero((corners[:, :2] < corners[:, 2:]).all(axis=1))[:n_missing]
        found.append(Boxes(corners[there], boxes.scores[there], boxes.labels[there]))
        n_missing -= len(there)
    return Boxes(*map(np.concatenate, zip(*found, strict=True)))


def _windows(n: int) -> npt.NDArray[np.float64]:
    """Windows of the level n of a grid as fractions of the photo, those at the centre first."""
    at = np.arange(n) - (n - 1) / 2
    y, x = (axis.ravel() for axis in np.meshgrid(at, at, indexing="ij"))
    order = np.argsort(y**2 + x**2, kind="stable")
    starts = (np.stack([x, y], axis=1)[order] + (n - 1) / 2) / (n + 1)
    return np.concatenate([starts, starts + 2 / (n + 1)], axis=1)


def _decode(
    output: FloatArray,
) -> tuple[FloatArray, FloatArray, npt.NDArray[np.int32]]:
    """Give the corners (n, 2, 2) as fractions of the photo, scores and classes of all cells."""
    from scipy.special import expit

    n_rows, n_columns = output.shape[1:]
    presence, t_x, t_y, t_w, t_h = output[:_N_COORDINATES]
    classes = output[_N_COORDINATES:]
    x = (np.arange(n_columns) + np.tanh(t_x)) / n_columns
    y = (np.arange(n_rows)[:, None] + np.tanh(t_y)) / n_rows
    centers = np.stack([x, y], axis=-1).reshape(-1, 2)
    halves = expit(np.stack([t_w, t_h], axis=-1)).reshape(-1, 2) / 2
    corners = np.stack([centers - halves, centers + halves], axis=1)
    scores = (presence * classes.max(axis=0)).ravel()
    return (
        corners.astype(np.float32),
        scores.astype(np.float32),
        classes.argmax(axis=0).ravel().astype(np.int32),
    )


def without_scores(corners: npt.ArrayLike) -> Boxes:
    """Return boxes that come from no detector."""
    boxes = np.asarray(corners, np.float32)
    return Boxes(
        boxes, np.full(len(boxes), np.nan, np.float32), np.full(len(boxes), -1, np.int32)
    )
