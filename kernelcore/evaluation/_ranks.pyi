from kernelcore._validation import Array

def count_along_rows(
    scores: Array,
    gold_scores: Array,
    gold_indices: Array,
    greater: Array,
    tied: Array,
    tied_before: Array,
    ordered: bool,
) -> bool: ...
def count_along_columns(
    scores: Array,
    gold_scores: Array,
    gold_indices: Array,
    greater: Array,
    tied: Array,
    tied_before: Array,
    ordered: bool,
) -> bool: ...
