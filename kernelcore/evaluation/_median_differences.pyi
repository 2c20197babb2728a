from kernelcore._check import Array

def median_differences(
    swaps: Array,
    values: Array,
    pairs: Array,
    is_second: Array,
    masks: Array,
    block_size: int,
    differences: Array,
) -> None: ...
