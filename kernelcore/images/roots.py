"""Features whose large entries do not decide alone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kernelcore._validation import as_real_array, check_finite, no_overflow

_TINY = 1e-12


def square_roots(features: npt.ArrayLike) -> npt.NDArray[np.float32]:
    r"""Take signed square roots of the entries, and scale rows to length 1.

    .. math::

        \frac{r}{\lVert r \rVert},
        \quad r_j = \operatorname{sign}(x_j) \sqrt{\lvert x_j \rvert}

    Activations of a network are mostly small, with a few that are large; products and
    distances of the roots listen to all of them.

    Parameters
    ----------
    features : array_like of shape (n_rows, n_features)

    Returns
    -------
    ndarray of float32, shape (n_rows, n_features)
        A row of zeros stays zeros.

    Raises
    ------
    TypeError, ValueError
        If the features are not rows of finite real numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.images import square_roots
    >>> square_roots(np.array([[9.0, -16.0], [0.0, 0.0]], np.float32))
    array([[ 0.6, -0.8],
           [ 0. ,  0. ]], dtype=float32)
    """
    checked = check_finite("features", as_real_array("features", features, ndim=2))
    with no_overflow("features", "fit into float32"):
        rows = checked.astype(np.float32, copy=False)
    roots = np.copysign(np.sqrt(np.abs(rows)), rows)
    scaled: npt.NDArray[np.float32] = roots / np.maximum(
        np.linalg.norm(roots, axis=1, keepdims=True), _TINY
    )
    return scaled
