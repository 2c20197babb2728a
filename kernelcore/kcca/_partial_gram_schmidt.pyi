import numpy as np
import numpy.typing as npt

from kernelcore._validation import Array

def partial_gram_schmidt(
    K: Array,
    means: npt.NDArray[np.float64],
    features: Array,
    pivots: npt.NDArray[np.intp],
    residual: npt.NDArray[np.float64],
    target: float,
    floor: float,
) -> int: ...
