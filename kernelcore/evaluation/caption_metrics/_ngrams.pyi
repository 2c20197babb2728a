from kernelcore._check import Array

def count_documents(
    ids: Array, offsets: Array, set_offsets: Array, last_set: Array, counts: Array
) -> None: ...
def count_matches(
    ids: Array, offsets: Array, set_offsets: Array, count: Array, most: Array, matches: Array
) -> None: ...
def add_similarities(
    ids: Array,
    offsets: Array,
    set_offsets: Array,
    weights: Array,
    penalties: Array,
    clip: bool,
    candidate_count: Array,
    count: Array,
    scores: Array,
) -> None: ...
def common_subsequences(
    words: Array, offsets: Array, set_offsets: Array, row: Array, lengths: Array
) -> None: ...
