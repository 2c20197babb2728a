"""Dense SIFT: histograms of gradient orientations around every point of a grid."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._blas import one_blas_thread
from kernelcore._parallel import check_stopped
from kernelcore._validation import check_integer, check_real
from kernelcore.images.decode import as_grey, check_pixels
from kernelcore.images.dense import DenseFeatures

_N_BINS = 4  # spatial bins along each side of a descriptor
_N_ORIENTATIONS = 8
SIFT_LENGTH = _N_BINS**2 * _N_ORIENTATIONS
_CLIP = 0.2

_BAND = 6  # width of a band, in reaches of a descriptor: wider wastes products, narrower calls


def dense_sift(
    image: npt.NDArray[np.uint8], *, step: int = 2, bin_size: float = 3.0
) -> DenseFeatures:
    r"""SIFT descriptors on a regular grid, upright and at one scale.

    A descriptor has :math:`4 \times 4` spatial bins of 8 orientations around its point
    :math:`(y, x)`. The gradient :math:`g` of a pixel at
    :math:`(y + u s, x + v s)`, with :math:`s` the `bin_size`, adds

    .. math:: \lVert g \rVert \, e^{-(u^2 + v^2) / 8} \, \Lambda(u - u_i) \, \Lambda(v - v_j)
              \, \Lambda\!\left( \tfrac{8}{2 \pi} (\angle g - \theta_k) \right), \quad
              \Lambda(t) = \max(0, 1 - |t|)

    to the bin centred at :math:`u_i, v_j \in \{-1.5, -0.5, 0.5, 1.5\}` with orientation
    :math:`\theta_k = 2 \pi k / 8`. The vector is scaled to unit length, cut at 0.2 and
    scaled again [1]_. The gradient is the central difference of grey levels, zero on the
    image's outermost pixels; angles run from the right over the top.

    Parameters
    ----------
    image : ndarray of uint8, shape (h, w), (h, w, 3) or (h, w, 4)
        Grey, RGB or RGBA pixels, used as grey.
    step : int, default 2
        Distance of neighbouring grid points in pixels.
    bin_size : float, default 3.0
        Side of a spatial bin in pixels.

    Returns
    -------
    DenseFeatures
        128 planes, ordered by bin row, bin column and orientation, of unit length at each
        point, or zero where the image is flat. The grid keeps ``2 * bin_size`` pixels, half
        a descriptor, from the border, or less where that would leave no point: the smallest
        image has one.

    Raises
    ------
    TypeError
        If `image` is no array of uint8 or `step` no integer.
    ValueError
        If `image` has another shape, `step` is less than 1 or `bin_size` less than 0.5.

    See Also
    --------
    kernelcore.reference.dense_sift.dense_sift : The definition in NumPy, point by point.

    Notes
    -----
    The orientations of all pixels are computed once. As the weights are products of a
    function of the row and one of the column, all descriptors together are two matrix
    products for each orientation. The values agree with OpenCV's ``SIFT.compute`` for
    upright keypoints of size ``2 * bin_size / 3`` on an image it does not blur, to its
    rounding to bytes.

    References
    ----------
    .. [1] D. G. Lowe, "Distinctive image features from scale-invariant keypoints",
       International Journal of Computer Vision 60(2), 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.images import dense_sift
    >>> image = np.tile(np.arange(0, 64, 2, dtype=np.uint8), (32, 1))  # brighter to the right
    >>> sift = dense_sift(image, step=8, bin_size=3)
    >>> sift.values.shape, sift.x
    ((128, 3, 3), array([ 6, 14, 22]))
    >>> sift.values[:, 1, 1].reshape(4, 4, 8).sum(axis=(0, 1)).round(2)
    array([4., 0., 0., 0., 0., 0., 0., 0.], dtype=float32)
    """
    check_pixels("image", image)
    step = check_integer("step", step, minimum=1)
    bin_size = check_real("bin_size", bin_size, minimum=0.5)
    grey = as_grey(image)
    y, x = (_grid(length, step, bin_size) for length in grey.shape)
    with one_blas_thread():
        histograms = _pool(_orientation_maps(grey), y, x, bin_size)
    _normalise(histograms)
    return DenseFeatures(histograms.reshape(-1, len(y), len(x)), y, x)


def _grid(length: int, step: int, bin_size: float) -> npt.NDArray[np.intp]:
    margin = min(int(_N_BINS / 2 * bin_size), (length - 1) // 2)
    return np.arange(margin, length - margin, step)


def _orientation_maps(grey: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Gradient magnitude of each pixel, shared between the two nearest orientations."""
    cv2 = _extras.require("cv2")
    dx, dy = np.zeros_like(grey), np.zeros_like(grey)
    dx[1:-1, 1:-1] = grey[1:-1, 2:] - grey[1:-1, :-2]
    dy[1:-1, 1:-1] = grey[:-2, 1:-1] - grey[2:, 1:-1]
    magnitude, position = cv2.cartToPolar(dx, dy)
    position *= np.float32(_N_ORIENTATIONS / (2 * np.pi))
    maps = np.empty((_N_ORIENTATIONS, *grey.shape), dtype=np.float32)
    for k, plane in enumerate(maps):
        np.abs(np.subtract(position, np.float32(k), out=plane), out=plane)
        if k == 0:  # the last orientation is as near to the first as the second is
            np.minimum(plane, _N_ORIENTATIONS - plane, out=plane)
        np.maximum(np.subtract(1, plane, out=plane), 0, out=plane)
        np.multiply(plane, magnitude, out=plane)
    return maps


class _Band(NamedTuple):
    """Neighbouring grid points of one axis, the pixels they reach, and their bins' weights."""

    points: slice
    pixels: slice
    weights: npt.NDArray[np.float32]  # (n_pixels, 4 * n_points), bin by bin


def _make_bands(points: npt.NDArray[np.intp], length: int, bin_size: float) -> list[_Band]:
    """Divide the points of an axis into bands, as the weights of far pixels are zero."""
    reach = (_N_BINS + 1) / 2 * bin_size
    centres = np.arange(_N_BINS)[:, None, None] - (_N_BINS - 1) / 2
    bounds = np.searchsorted(points, np.arange(0, length + _BAND * reach, _BAND * reach))
    bands = []
    for start, end in pairwise(bounds.tolist()):
        if start == end:
            continue
        first = max(0, math.ceil(points[start] - reach))
        last = min(length, math.floor(points[end - 1] + reach) + 1)
        offsets = (np.arange(first, last) - points[start:end, None]) / bin_size
        weights = np.maximum(0.0, 1 - np.abs(offsets - centres)) * np.exp(-(offsets**2) / 8)
        by_pixel = weights.reshape(-1, last - first).T.astype(np.float32)
        bands.append(_Band(slice(start, end), slice(first, last), by_pixel))
    return bands


def _pool(
    maps: npt.NDArray[np.float32],
    y: npt.NDArray[np.intp],
    x: npt.NDArray[np.intp],
    bin_size: float,
) -> npt.NDArray[np.float32]:
    """Sum each orientation over the spatial bins of every grid point: (128, n_points)."""
    height, width = maps.shape[1:]
    bands_y, bands_x = _make_bands(y, height, bin_size), _make_bands(x, width, bin_size)
    shape = (_N_BINS, _N_BINS, _N_ORIENTATIONS, len(y), len(x))
    histograms = np.empty(shape, dtype=np.float32)
    for k, plane in enumerate(maps):
        by_row = np.empty((width, _N_BINS, len(y)), dtype=np.float32)
        check_stopped()
        for band in bands_y:
            sums = plane.T[:, band.pixels] @ band.weights
            by_row[:, :, band.points] = sums.reshape(width, _N_BINS, -1)
        by_column = by_row.reshape(width, -1).T
        for band in bands_x:
            sums = by_column[:, band.pixels] @ band.weights
            by_bin = sums.reshape(_N_BINS, len(y), _N_BINS, -1).swapaxes(1, 2)
            histograms[:, :, k, :, band.points] = by_bin
    return histograms.reshape(-1, len(y) * len(x))


def _normalise(histograms: npt.NDArray[np.float32]) -> None:
    """Scale each column to unit length, cut it at 0.2 and scale it again, in place."""
    np.minimum(histograms, _CLIP * _lengths(histograms), out=histograms)
    histograms /= np.maximum(_lengths(histograms), np.finfo(np.float32).eps)


def _lengths(columns: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    lengths: npt.NDArray[np.float32] = np.sqrt(np.einsum("ij,ij->j", columns, columns))
    return lengths
