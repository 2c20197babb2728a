"""Dependency trees: what they hold, refuse, and how captions become them."""

import numpy as np
import pytest
from refusals import refuses, refuses_each

from kernelcore.captions import (
    FragmentExtractor,
    SentenceFragments,
    SentenceTrees,
    Vocabulary,
    parse_trees,
)
from kernelcore.captions.normalize import english_pipeline


def trees(**changes):
    parts = {
        "word_ids": [0, 1, 2, -7, 3, 0], "relation_ids": [0, 1, 2, 2, 0, 0],
        "heads": [1, 2, -1, 2, -1, 0], "offsets": [0, 4, 4, 6], "n_relations": 3, "n_words": 4,
    }  # fmt: skip
    return SentenceTrees(**{**parts, **changes})


def test_parents_and_heights():
    own = trees()
    np.testing.assert_array_equal(own.parents, [1, 2, -1, 2, -1, 4])
    np.testing.assert_array_equal(own.heights, [0, 1, 2, 0, 1, 0])
    np.testing.assert_array_equal(own.counts, [4, 0, 2])
    assert len(own) == 3


def test_what_is_no_tree_is_refused():
    odd = {
        "heads": [[1, 2]], "relation_ids": [[0], [0, 1, 3, 2, 0, 0]],
        "word_ids": [[0, 1, 4, 2, 3, 0], [0.5] * 6], "offsets": [[0, 4, 5]],
    }  # fmt: skip
    refuses_each(trees, odd)
    for rule, heads in (
        ("cycle", [1, 0, -1, 2, -1, 0]),
        ("one root", [1, 2, -1, -1, -1, 0]),
        ("one root", [1, 2, 3, 2, -1, 0]),
        ("within", [1, 4, -1, 2, -1, 0]),
        ("within", [1, 2, -2, 2, -1, 0]),
    ):
        refuses(ValueError, f"heads.* {rule}", trees, heads=heads)


def test_parsed_captions_have_the_edges_of_their_fragments():
    pytest.importorskip("spacy")
    model = english_pipeline()
    captions = ["A black dog runs.", "Two men, one tall, play in the snow. They smile!", "..."]
    extractor = FragmentExtractor(collapsed=False, min_share=0.0, spacy_model=model)
    fragments = extractor.fit_transform(captions)
    vocabulary = extractor.vocabulary_
    parsed = parse_trees(captions, vocabulary, extractor.relations_, spacy_model=model)
    assert len(parsed) == 3
    assert parsed.counts[2] == 0
    assert parsed.n_relations == len(extractor.relations_) + 1
    words = vocabulary.decode(parsed.word_ids)
    assert words[:4] == ["a", "black", "dog", "runs"]
    heads = parsed.word_ids[parsed.parents]
    assert isinstance(fragments, SentenceFragments)
    edges = zip(fragments.relation_ids, fragments.first_ids, fragments.second_ids, strict=True)
    assert set(edges) <= set(zip(parsed.relation_ids, heads, parsed.word_ids, strict=True))
    # the root of the second sentence hangs under that of the first
    assert (parsed.heads == -1).sum() == 2


def test_words_and_relations_without_an_id():
    pytest.importorskip("spacy")
    vocabulary = Vocabulary(["dog"], [1], [1], 1)
    parsed = parse_trees(["A dog runs"], vocabulary, ["det"], spacy_model=english_pipeline())
    assert parsed.word_ids[1] == 0
    assert (parsed.word_ids[[0, 2]] < 0).all()
    np.testing.assert_array_equal(parsed.relation_ids, [0, 1, 1])


def test_a_chain_of_many_words_is_read_in_no_time():
    n = 20_000
    heads = np.arange(-1, n - 1)
    zeros = np.zeros(n, int)
    own = SentenceTrees(zeros, zeros, heads, [0, n], 1, 1)
    np.testing.assert_array_equal(own.heights, np.arange(n)[::-1])
    heads[:3] = [-1, 2, 1]
    refuses(ValueError, "heads", SentenceTrees, zeros, zeros, heads, [0, n], 1, 1)
