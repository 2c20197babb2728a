"""CIELAB colour of every pixel."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore.images.decode import as_rgb, check_pixels
from kernelcore.images.dense import DenseFeatures


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
    kernelcore.reference.cielab.cielab : The formula in NumPy.

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
