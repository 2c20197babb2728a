"""Oriented energy: how strongly an image changes, by orientation and scale."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._parallel import check_stopped
from kernelcore._validation import check_integer, check_real
from kernelcore.images.decode import as_grey, check_pixels
from kernelcore.images.dense import DenseFeatures

DEFAULT_SCALES = (1.0, 2.0, 4.0)

_RADIUS = 4  # of the filters, in standard deviations


def oriented_energy(
    image: npt.NDArray[np.uint8],
    *,
    n_orientations: int = 6,
    scales: Sequence[float] = DEFAULT_SCALES,
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
    kernelcore.reference.oriented_energy.oriented_energy : The definition in NumPy.

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
    sigmas = check_scales(scales)
    grey = as_grey(image)
    energies = np.empty((len(sigmas), n_orientations, *grey.shape), dtype=np.float32)
    for sigma, planes in zip(sigmas, energies, strict=True):
        _steer(_derivatives(grey, sigma), planes)
    return DenseFeatures.of_all_pixels(energies.reshape(-1, *grey.shape))


def check_scales(scales: Sequence[float]) -> tuple[float, ...]:
    """Return the standard deviations of the filters if they are usable."""
    sigmas = tuple(
        check_real(f"scales[{i}]", sigma, minimum=0.3, maximum=100.0)
        for i, sigma in enumerate(scales)
    )
    if not sigmas:
        raise ValueError("scales must hold at least one standard deviation, got none")
    return sigmas


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
