"""Features whose large entries do not decide alone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kernelcore._validation import as_real_array, check_finite, no_overflow


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
    return of_length_one(np.copysign(np.sqrt(np.abs(rows)), rows))


def of_length_one(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Scale rows to length 1, of any size that they are; a row of zeros stays zeros.

    A power of two brings each row's largest entry to between 1/2 and 1 first, so that no
    square overflows. That changes no other bit.
    """
    _, exponents = np.frexp(np.abs(rows).max(axis=1, keepdims=True, initial=0))
    inner = np.ldexp(rows, -exponents)
    lengths = np.linalg.norm(inner, axis=1, keepdims=True)
    scaled: npt.NDArray[np.float32] = inner / np.where(lengths > 0, lengths, 1)
    return scaled
