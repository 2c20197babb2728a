"""Dense features of photos: CIELAB colour, oriented energy and SIFT."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._check import check_integer, check_real
from kernelcore._threads import check_stopped, one_blas_thread
from kernelcore.images.read import as_grey, as_rgb, check_pixels

_SCALES, _N_DIRECTIONS = (1.0, 2.0, 4.0), 6
TEXTURE_LENGTH = len(_SCALES) * _N_DIRECTIONS
_RADIUS = 4  # of the filters, in standard deviations
_N_BINS = 4  # spatial bins along each side of a descriptor
_N_ORIENTATIONS = 8
SIFT_LENGTH = _N_BINS**2 * _N_ORIENTATIONS
_CLIP = 0.2
_BAND = 6  # width of a band, in reaches of a descriptor: wider wastes products, narrower calls


class DenseFeatures(NamedTuple):
    """One feature vector at every point of a grid of pixels.

    Attributes
    ----------
    values : ndarray of float32, shape (n_dims, n_y, n_x)
        Dimension d of all points is the plane ``values[d]``.
    y, x : ndarray of intp, shapes (n_y,) and (n_x,)
        Pixel rows and pixel columns of the grid.
    """

    values: npt.NDArray[np.float32]
    y: npt.NDArray[np.intp]
    x: npt.NDArray[np.intp]

    @property
    def points(self) -> npt.NDArray[np.float32]:
        """The same values as rows, shape (n_y * n_x, n_dims), without a copy."""
        points: npt.NDArray[np.float32] = self.values.reshape(len(self.values), -1).T
        return points

    @classmethod
    def of_all_pixels(cls, values: npt.NDArray[np.float32]) -> DenseFeatures:
        """Features of every pixel of an image."""
        return cls(values, np.arange(values.shape[1]), np.arange(values.shape[2]))


def cielab(image: npt.NDArray[np.uint8]) -> DenseFeatures:
    r"""CIELAB colour of every pixel of an sRGB image.

    .. math:: L^* = 116 f(Y / Y_n) - 16, \quad
              a^* = 500 (f(X / X_n) - f(Y / Y_n)), \quad
              b^* = 200 (f(Y / Y_n) - f(Z / Z_n))

    with :math:`f(t) = t^{1/3}` above :math:`(6/29)^3` and its tangent there below, and the
    white point D65. Euclidean distances between such colours are close to the differences
    that people see.

    Parameters
    ----------
    image : ndarray of uint8, shape (h, w), (h, w, 3) or (h, w, 4)
        Grey, RGB or RGBA pixels.

    Returns
    -------
    DenseFeatures
        Planes L* in [0, 100], a* and b* in about [-128, 127], at every pixel. OpenCV computes
        them in float32 to within 0.5 of the formula.

    Raises
    ------
    TypeError
        If `image` is no array of uint8.
    ValueError
        If `image` has another shape or no pixels.

    See Also
    --------
    kernelcore.reference.images.cielab : The formula in NumPy.

    References
    ----------
    .. [1] CIE, "Colorimetry", publication 15, 2004.
    .. [2] IEC 61966-2-1, "Default RGB colour space: sRGB", 1999.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.images import cielab
    >>> cielab(np.full((1, 1), 255, np.uint8)).values.round().ravel()
    array([100.,   0.,   0.], dtype=float32)
    """
    check_pixels("image", image)
    cv2 = _extras.require("cv2")
    lab = cv2.cvtColor(as_rgb(image) / np.float32(255), cv2.COLOR_RGB2Lab)
    return DenseFeatures.of_all_pixels(lab.transpose(2, 0, 1))


def oriented_energy(
    image: npt.NDArray[np.uint8],
    *,
    n_orientations: int = _N_DIRECTIONS,
    scales: Sequence[float] = _SCALES,
) -> DenseFeatures:
    r"""Energy of an edge filter and a bar filter at several orientations and scales.

    .. math:: E_{\sigma,\theta} = \sqrt{ (I * \partial_\theta G_\sigma / c_1)^2
              + (I * \partial_\theta^2 G_\sigma / c_2)^2 }

    with a Gaussian :math:`G_\sigma` and :math:`c_1 = \sqrt{2 / \pi} / \sigma`,
    :math:`c_2 = 4 / (\sigma^2 \sqrt{2 \pi e})`, which give each filter a unit sum of absolute
    values: responses are differences of mean grey levels. Edges answer to the first
    filter and bars to the second; the root of the squares does not depend on which side is
    the darker one.

    Parameters
    ----------
    image : ndarray of uint8, shape (h, w), (h, w, 3) or (h, w, 4)
        Grey, RGB or RGBA pixels, used as grey.
    n_orientations : int, default 6
        Directions :math:`\theta = \pi k / n` across the edge, from the right downwards.
    scales : sequence of float, default (1, 2, 4)
        Standard deviations :math:`\sigma` in pixels.

    Returns
    -------
    DenseFeatures
        ``len(scales) * n_orientations`` planes at every pixel, scale by scale, in units of
        grey levels, from 0 to at most 255. They are not standardised: how strong a texture
        is tells as much as its shape.

    Raises
    ------
    TypeError
        If `image` is no array of uint8 or a number is of the wrong type.
    ValueError
        If `image` has another shape, there is no scale, or a number is too small or large.

    See Also
    --------
    kernelcore.reference.images.oriented_energy : The definition in NumPy.

    Notes
    -----
    Derivatives of a Gaussian are steerable [1]_: those in any direction are sums of two first
    or three second derivatives along the axes, so a scale takes five separable filters
    whatever the number of orientations. Images are mirrored at their borders.

    References
    ----------
    .. [1] W. T. Freeman and E. H. Adelson, "The design and use of steerable filters", IEEE
       Transactions on Pattern Analysis and Machine Intelligence 13(9), 1991.
    .. [2] M. Varma and A. Zisserman, "A statistical approach to texture classification from
       single images", International Journal of Computer Vision 62(1-2), 2005.

    Examples
    --------
    A bright vertical line changes across its width and not along its length.

    >>> import numpy as np
    >>> from kernelcore.images import oriented_energy
    >>> image = np.zeros((9, 9), np.uint8)
    >>> image[:, 4] = 100
    >>> oriented_energy(image, n_orientations=2, scales=[1.0]).values[:, 4, 4].round(1)
    array([41.2,  0. ], dtype=float32)
    """
    check_pixels("image", image)
    n_orientations = check_integer("n_orientations", n_orientations, minimum=1, maximum=180)
    sigmas = [
        check_real(f"scales[{i}]", sigma, minimum=0.3, maximum=100.0)
        for i, sigma in enumerate(scales)
    ]
    if not sigmas:
        raise ValueError("scales must hold at least one standard deviation, got none")
    grey = as_grey(image)
    energies = np.empty((len(sigmas), n_orientations, *grey.shape), dtype=np.float32)
    for sigma, planes in zip(sigmas, energies, strict=True):
        _steer(_derivatives(grey, sigma), planes)
    return DenseFeatures.of_all_pixels(energies.reshape(-1, *grey.shape))


def _derivatives(grey: npt.NDArray[np.float32], sigma: float) -> list[npt.NDArray[np.float32]]:
    """Responses of the first (x, y) and second (xx, xy, yy) derivatives of a Gaussian."""
    cv2 = _extras.require("cv2")
    radius = math.ceil(_RADIUS * sigma)
    at = np.arange(-radius, radius + 1)
    smooth = np.exp(-(at**2) / (2 * sigma**2))
    smooth /= smooth.sum()
    # A correlation with the mirrored filter is the convolution.
    first = at / sigma**2 * smooth
    # The variance of the sampled Gaussian, not sigma^2: a flat image gives no response.
    second = (at**2 - (at**2 * smooth).sum()) / sigma**4 * smooth
    edge = sigma * math.sqrt(math.pi / 2)
    bar = sigma**2 * math.sqrt(2 * math.pi * math.e) / 4

    def respond(
        along_x: npt.NDArray[np.float64], along_y: npt.NDArray[np.float64], gain: float
    ) -> npt.NDArray[np.float32]:
        response: npt.NDArray[np.float32] = cv2.sepFilter2D(
            grey, cv2.CV_32F, gain * along_x, along_y, borderType=cv2.BORDER_REFLECT
        )
        return response

    return [
        respond(first, smooth, edge),
        respond(smooth, first, edge),
        respond(second, smooth, bar),
        respond(first, first, bar),
        respond(smooth, second, bar),
    ]


def _steer(derivatives: list[npt.NDArray[np.float32]], planes: npt.NDArray[np.float32]) -> None:
    """Fill `planes`, one per orientation, with the energy in that direction."""
    x, y, xx, xy, yy = derivatives
    for k, plane in enumerate(planes):
        check_stopped()
        theta = math.pi * k / len(planes)
        c, s = np.float32(math.cos(theta)), np.float32(math.sin(theta))
        edge = c * x + s * y
        bar = c * c * xx + 2 * c * s * xy + s * s * yy
        np.sqrt(edge * edge + bar * bar, out=plane)


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
    kernelcore.reference.images.dense_sift : The definition in NumPy, point by point.

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
    np.minimum(histograms, _CLIP * _lengths(histograms), out=histograms)
    histograms /= np.maximum(_lengths(histograms), np.finfo(np.float32).eps)
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


def _lengths(columns: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    lengths: npt.NDArray[np.float32] = np.sqrt(np.einsum("ij,ij->j", columns, columns))
    return lengths
