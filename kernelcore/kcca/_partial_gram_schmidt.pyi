import numpy as np
import numpy.typing as npt

from kernelcore._check import Array

def next_pivot(
    residual: npt.NDArray[np.float64], rank: int, target: float, unit: float, slack: float
) -> int: ...
def orthogonalize_block(
    block: Array,
    candidates: npt.NDArray[np.intp],
    features: Array,
    pivots: npt.NDArray[np.intp],
    first: int,
    residual: npt.NDArray[np.float64],
    target: float,
    unit: float,
    slack: float,
    stop: npt.NDArray[np.uint8],
) -> int: ...
