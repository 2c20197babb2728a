from kernelcore._check import Array

def link_words(
    source_ids: Array,
    source_offsets: Array,
    target_ids: Array,
    target_offsets: Array,
    link_offsets: Array,
    tokens_by_word: Array,
    word_offsets: Array,
    pair_of_token: Array,
    last_entry: Array,
    links: Array,
    entry_targets: Array,
    entry_offsets: Array,
) -> int: ...
def expected_counts(
    source_offsets: Array,
    target_offsets: Array,
    link_offsets: Array,
    links: Array,
    translations: Array,
    alignment_offsets: Array,
    alignments: Array,
    translation_counts: Array,
    alignment_counts: Array,
) -> float: ...
