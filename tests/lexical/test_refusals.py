"""Whatever the lexical similarities cannot use is refused with an error that names it."""

import numpy as np
import pytest
from refusals import refuses, refuses_each
from scipy import sparse

from kernelcore import lexical
from kernelcore.captions import EncodedCaptions
from kernelcore.lexical import WordKernel, WordVectors

PAIRS = EncodedCaptions.from_lists([[[0, 1]], [[1]]])
UNKNOWN = EncodedCaptions.from_lists([[[-1]], [[0]]])
EMPTY = EncodedCaptions.from_lists([[[]], [[0]]])
ONE = WordVectors(["dog"], [[1.0]])
TWO = WordVectors(["dog", "cat"], [[1.5, -0.25], [0.0, 3e-5]])
TAGGED = [[[("dog", "NOUN")], [("dog", "NOUN"), ("run", "VERB")]]]


def kernel(*words):
    return WordKernel(words, np.eye(len(words)))


def align(captions=TAGGED, **options):
    return lexical.Alignment(**options).fit(captions).word_kernel()


def distribute(captions=((("a",),),), **options):
    return lexical.Distributional(**options).fit(captions).word_kernel()


def learn(sentences=(("a", "b", "c"),) * 3, n_dimensions=1, min_count=1, **options):
    options |= {"n_dimensions": n_dimensions, "min_count": min_count}
    lexical.learn_word_vectors(sentences, **options)


OPTIONS = [
    (
        align,
        {"noun_tags": ["NOUN"], "noun_min_count": [0], "noun_min_share": [2], "threshold": [2]}
        | {"verb_min_share": [-1], "verb_min_count": [1.5]},
    ),
    (distribute, {"min_count": [0], "context": ["book"], "threshold": [1.5, "a"]}),
    (
        learn,
        {"sentences": [5, [5], "a dog", ["a dog"], [["a", 3, "b"]], [[["a"]]]]}
        | {"n_dimensions": [0, 3, 2.0, True], "window": [0, 1.5], "min_count": [0, None]},
    ),
    (lambda **o: lexical.ibm1(PAIRS, PAIRS, **o), {"n_iterations": [0]}),
    (lambda **o: lexical.ibm2(PAIRS, PAIRS, **o), {"n_model1_iterations": [-1]}),
    (lambda **o: lexical.combine(kernel("a"), **o), {"how": ["min"], "threshold": [-1]}),
    (lambda **o: lexical.join_word_vectors(ONE, **o), {"words": ["dog", 5, [3], [["dog"]]]}),
    (lambda **o: kernel("a", "b").most_similar("a", **o), {"k": [0]}),
]


@pytest.mark.parametrize(("call", "odd"), OPTIONS)
def test_options_are_refused_by_name(call, odd):
    refuses_each(call, odd)


PAIR, EYE = ["a", "b"], np.eye(2)
REFUSED = [
    *((TypeError, "images, captions", align, odd) for odd in ([[["dog"]]], [[[("dog", 1)]]])),
    (TypeError, "images, captions", align, [[[("dog",)]]]),
    (ValueError, "Alignment", lexical.Alignment().word_kernel),
    (ValueError, "Distributional", lexical.Distributional().word_kernel),
    (ValueError, "n_dimensions", learn, []),
    (ValueError, "n_dimensions", lexical.learn_word_vectors, [PAIR]),  # none is frequent
    (ValueError, "2 and 1", lexical.ibm1, PAIRS, PAIRS.select([0])),
    (ValueError, "source", lexical.ibm1, UNKNOWN, PAIRS),
    (TypeError, "target", lexical.ibm2, PAIRS, [[0]]),
    (ValueError, "empty side", lexical.ibm1, EMPTY, EncodedCaptions.from_lists([[[0]], [[]]])),
    (ValueError, "parts", lexical.join_word_vectors),
    (TypeError, r"parts\[1\]", lexical.join_word_vectors, ONE, [[1.0]]),
    (ValueError, "WordKernel", lexical.combine),
    (TypeError, "kernels", lexical.combine, np.eye(3)),
    (ValueError, "words", lexical.combine, kernel("a", "b"), kernel("b", "a")),
    (ValueError, "word", kernel("a").most_similar, "emu"),
    (TypeError, "words", WordKernel, "ab", EYE),
    (TypeError, "words", WordKernel, ["a", 1], EYE),
    (ValueError, "words", WordKernel, ["a", "a"], EYE),
    (ValueError, "matrix", WordKernel, ["a"], EYE),
    (TypeError, "matrix", WordKernel, PAIR, [["x", "y"]] * 2),
    (ValueError, "matrix", WordKernel, PAIR, [[1, 2], [3]]),
    (ValueError, "matrix", WordKernel, PAIR, [[1, np.nan], [np.nan, 1]]),
    (ValueError, "matrix .* by 0.1", WordKernel, PAIR, [[1, 0.2], [0.3, 1]]),
    (ValueError, "matrix .* by 0.1", WordKernel, PAIR, [[1, 0], [0, 0.9]]),
    (ValueError, "matrix .* 1.5", WordKernel, PAIR, [[1, 1.5], [1.5, 1]]),
    (ValueError, "matrix", WordKernel, PAIR, sparse.csr_array([[1, np.inf], [np.inf, 1]])),
    (ValueError, "matrix", WordKernel, PAIR, sparse.csr_array((2, 2))),
    (TypeError, "matrix", WordKernel, PAIR, sparse.csr_array(EYE * 1j)),
    (ValueError, "vectors", WordVectors, ["dog"], EYE),
    (ValueError, "vectors", WordVectors, ["dog"], [[np.nan]]),
    (ValueError, "vectors", WordVectors, ["dog"], [[1e300]]),  # no float32
    (ValueError, "words", WordVectors, ["dog", "dog"], EYE),
    (KeyError, "newt", TWO.__getitem__, "newt"),
    (TypeError, "sequences of words", TWO.mean, ["dog"]),
    (FileNotFoundError, "none", lexical.load_word_vectors, "none"),
    (FileNotFoundError, "none", lexical.read_tagged_corpus, "none"),
]


@pytest.mark.parametrize("row", REFUSED)
def test_everything_else_is_refused_by_name(row):
    refuses(*row)


@pytest.mark.parametrize("token", ["dog", "/nn", "dog/", "/"])
def test_a_token_without_a_tag_is_named(tmp_path, token):
    (tmp_path / "corpus.txt").write_text(f"a/at\nthe/at {token}\n")
    refuses(ValueError, r"corpus\.txt.* 2", lexical.read_tagged_corpus, tmp_path / "corpus.txt")


@pytest.mark.parametrize(
    ("content", "named"),
    [
        *(("", "none"), ("dog\n", "line 1"), ("dog 1 2\ncat 1\n", "line 2")),
        *(("dog 1 2\ncat 1 x\n", "line 2"), ("dog 1 2\ncat 1 nan\n", "nan for 'cat'")),
        *(("dog 1 2\ncat inf 1\n", "inf for 'cat'"), ("dog 1e999\n", "inf for 'dog'")),
        *(("3 2\ndog 1 2\ncat 1 2\n", "3 words, got 2"), ("dog 1 2\n\udcff 1 2\n", "UTF-8")),
        *(("1 2\ndog 1 2\ncat 1 2\n", "1 words, got 2"), ("1 2\ndog \0\0\0", "line 2")),
        *((f"dog {'1' * 2**21}\n", "2097152"), (f"{'9' * 5000} 3\ndog 1\n", "5000")),
        ("1 99999999999999999999\ndog 1\n", "line 2 must hold a word and 9{20} numbers"),
    ],
    ids=lambda value: ascii(value)[:20],
)
def test_damaged_files_of_vectors_are_refused_by_name(tmp_path, content, named):
    (tmp_path / "a.txt").write_text(content, encoding="utf-8", errors="surrogateescape")
    refuses(ValueError, rf"a\.txt[^|]*{named}", lexical.load_word_vectors, tmp_path / "a.txt")
