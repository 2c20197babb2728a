"""Similarities of nouns by WordNet: by hand, on a database of eleven synsets, and NLTK."""

import itertools
import math
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
from refusals import refuses

from kernelcore.captions import Vocabulary
from kernelcore.lexical import WordNetLin
from kernelcore.lexical.wordnet import NounDatabase

DEBIAN = Path("/usr/share/wordnet")
needs_wordnet = pytest.mark.skipif(
    not (DEBIAN / "data.noun").exists(), reason="needs WordNet: apt-get install wordnet-base"
)

# synset -> (its words, its hypernyms); the first synset of a word is its first sense
SYNSETS = {
    "entity": (["entity"], []),
    "animal": (["animal", "beast"], ["entity"]),
    "pet": (["pet"], ["entity"]),
    "dog": (["dog", "domestic_dog"], ["animal", "pet"]),
    "cat": (["cat"], ["animal", "pet"]),
    "poodle": (["poodle"], ["dog"]),
    "goose": (["goose"], ["animal"]),
    "shirt": (["T-shirt", "tee_shirt"], ["entity"]),
    "Lassie": (["Lassie"], ["@i dog"]),
    "fellow": (["dog", "fellow"], ["entity"]),  # second sense of dog
    "unseen": (["unicorn"], ["animal"]),
}
COUNTS = {
    "dog": 4, "domestic dog": 2, "cat": 6, "poodle": 2, "geese": 2, "tshirt": 4, "the": 99,
}  # fmt: skip
BOTH = pytest.mark.parametrize("measure", ["cosine", "lin"])


@pytest.fixture(scope="module")
def wordnet_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wordnet")
    licence = "  1 A licence, in lines that begin with spaces.  \n"

    def lines(offsets):
        for name, (words, hypernyms) in SYNSETS.items():
            named = " ".join(f"{word} 0" for word in words)
            pointers = [("@i" if "@i" in h else "@", h.removeprefix("@i ")) for h in hypernyms]
            pointers += [("~", "entity"), ("+", "entity")]  # neither of them leads up
            pointed = " ".join(f"{symbol} {offsets[to]:08} n 0000" for symbol, to in pointers)
            head = f"{offsets[name]:08} 03 n {len(words):02x} {named} {len(pointers):03}"
            yield f"{head} {pointed} | gloss; with @ {name}  \n"

    lengths = list(map(len, lines(dict.fromkeys(SYNSETS, 0))))
    starts = itertools.accumulate(lengths, initial=len(licence))
    offsets = dict(zip(SYNSETS, starts, strict=False))
    (folder / "data.noun").write_text(licence + "".join(lines(offsets)))
    senses = {}
    for name, (words, _) in SYNSETS.items():
        for word in words:
            senses.setdefault(word.lower(), []).append(f"{offsets[name]:08}")
    both = ((word, len(found), " ".join(found)) for word, found in sorted(senses.items()))
    index = (f"{word} n {n} 2 @ ~ {n} 1 {found}  \n" for word, n, found in both)
    (folder / "index.noun").write_text(licence + "".join(index))
    (folder / "noun.exc").write_text("geese goose\n")
    return folder


@pytest.fixture(scope="module")
def lin(wordnet_dir):
    return WordNetLin(wordnet_dir, COUNTS)


# share of the 20 nouns that are a kind of the synset
SHARES = {"entity": 20, "animal": 16, "pet": 14, "dog": 8, "cat": 6, "poodle": 2, "goose": 2}


def information(synset):
    return -np.log(SHARES[synset] / 20)


def expected_lin(first, second, common):
    return 2 * information(common) / (information(first) + information(second))


def test_lin_is_the_formula(lin):
    kernel = lin.word_kernel(["dog", "cat", "poodle", "goose", "animal"], measure="lin")
    for *pair, common in (
        ("dog", "cat", "pet"),  # they are pets and animals: pet is the rarer
        ("dog", "poodle", "dog"),
        ("dog", "goose", "animal"),
        ("animal", "goose", "animal"),
    ):
        assert kernel.similarity(*pair) == pytest.approx(expected_lin(*pair, common))


def test_the_word_kernel_is_the_cosine_of_vectors_of_hypernyms(lin):
    def vector(sense, hypernyms):
        own = {sense: 1.0}
        return own | {h: expected_lin(sense, h, h) for h in hypernyms}

    def cosine(u, v):
        lengths = (math.hypot(*own.values()) for own in (u, v))
        return sum(u[k] * v[k] for k in u.keys() & v.keys()) / math.prod(lengths)

    above = {"dog": ["animal", "pet"], "poodle": ["dog", "animal", "pet"], "goose": ["animal"]}
    vectors = {name: vector(name, names) for name, names in above.items()}
    kernel = lin.word_kernel(vectors)
    for first, second in itertools.combinations(vectors, 2):
        expected = cosine(vectors[first], vectors[second])
        assert kernel.similarity(first, second) == pytest.approx(expected)


@BOTH
def test_words_of_one_synset_are_the_same(lin, measure):
    words = ["tshirt", "T-shirt", "tee shirt", "dog", "Domestic_Dog", "dogs"]
    words += ["unicorn", "unicorns"]
    kernel = lin.word_kernel(words, measure=measure).to_dense()
    group = np.array([0, 0, 0, 1, 1, 1, 2, 2])
    same = group[:, None] == group[None, :]
    np.testing.assert_allclose(kernel[same], 1, atol=1e-6)
    assert (kernel[~same] < 0.9).all()


@BOTH
def test_what_has_no_information_is_like_nothing_else(lin, measure):
    words = ["entity", "unicorn", "dog", "the", "zebra", "goose"]
    kernel = lin.word_kernel(words, measure=measure)
    for word in ("entity", "unicorn", "the", "zebra"):
        assert kernel.most_similar(word) == []
    assert kernel.most_similar("dog", 9) == [("goose", kernel.similarity("goose", "dog"))]


@BOTH
def test_a_corpus_of_one_sense_has_no_information(wordnet_dir, measure):
    lin = WordNetLin(wordnet_dir, {"dog": 3})
    kernel = lin.word_kernel(["dog", "pet", "cat"], measure=measure)
    np.testing.assert_array_equal(kernel.to_dense(), np.eye(3))


def test_instances_count_as_kinds(wordnet_dir):
    counts = {"lassie": 2, "poodle": 2, "cat": 4}
    lin = WordNetLin(wordnet_dir, counts)
    kernel = lin.word_kernel(counts, measure="lin")
    # half of the corpus are dogs, a quarter is Lassie
    assert kernel.similarity("lassie", "poodle") == pytest.approx(1 / 2)
    assert kernel.similarity("lassie", "cat") == 0


def words_of(directory, word):
    nouns = NounDatabase(directory)
    sense = nouns.first_sense(word)
    return () if sense is None else nouns.synset(sense).words


def test_senses(wordnet_dir):
    senses = {
        "dog": ("dog", "domestic_dog"), "lassie": ("Lassie",), "geese": ("goose",),
        "poodles": ("poodle",), "teeshirt": ("T-shirt", "tee_shirt"), "zebra": (),
    }  # fmt: skip
    for word, expected in senses.items():
        assert words_of(wordnet_dir, word) == expected


def test_the_threshold_cuts_small_similarities(wordnet_dir, lin):
    words = ["dog", "cat", "goose"]
    for measure in ("cosine", "lin"):
        free = lin.word_kernel(words, measure=measure)
        least = free.similarity("dog", "goose")
        assert least < free.similarity("dog", "cat")
        cut = WordNetLin(wordnet_dir, COUNTS, threshold=least + 1e-3)
        kernel = cut.word_kernel(words, measure=measure)
        assert kernel.similarity("dog", "goose") == 0
        assert kernel.similarity("dog", "cat") == free.similarity("dog", "cat")


def test_counts_may_be_a_vocabulary(wordnet_dir, lin):
    vocabulary = Vocabulary.from_captions([[["dog"] * 6 + ["cat"] * 6 + ["poodle"] * 2]])
    counts = dict(zip(vocabulary.words, vocabulary.counts.tolist(), strict=True))
    first = WordNetLin(wordnet_dir, vocabulary).word_kernel(vocabulary)
    second = WordNetLin(wordnet_dir, counts).word_kernel(vocabulary)
    np.testing.assert_array_equal(first.to_dense(), second.to_dense())


NAMES = {"index.noun", "data.noun", "noun.exc"}


@pytest.mark.parametrize("missing", sorted(NAMES))
def test_a_missing_database_says_how_to_install_it(tmp_path, missing):
    for name in NAMES - {missing}:
        (tmp_path / name).touch()
    refuses(FileNotFoundError, f"{missing} .*wordnet-base", WordNetLin, tmp_path, {"dog": 1})


def test_damaged_files_are_named(tmp_path, wordnet_dir):
    folder = shutil.copytree(wordnet_dir, tmp_path / "wordnet")
    data = (folder / "data.noun").read_bytes()
    for broken in (data[:200], b" " + data, data.replace(b" n 01 cat ", b" n zz cat ")):
        (folder / "data.noun").write_bytes(broken)
        refuses(ValueError, r"data\.noun .* byte \d+", WordNetLin, folder, {"cat": 1})
    (folder / "index.noun").write_text("dog n\n")
    refuses(ValueError, r"index\.noun .* 'dog n'", WordNetLin, folder, {"dog": 1})


def test_bad_counts_are_named(wordnet_dir):
    refuses(ValueError, r"counts\['dog'\]", WordNetLin, wordnet_dir, {"dog": -1})
    refuses(TypeError, r"counts\['dog'\]", WordNetLin, wordnet_dir, {"dog": 1.5})
    refuses(ValueError, "counts", WordNetLin, wordnet_dir, {"the": 5, "dog": 0})
    lin = WordNetLin(wordnet_dir, {"dog": 1})
    refuses(ValueError, "measure", lin.word_kernel, ["dog"], measure="path")


@pytest.mark.tools
@needs_wordnet
def test_wordnet_knows_its_nouns():
    lin = WordNetLin(DEBIAN, {"dog": 5, "cat": 4, "car": 3, "truck": 2, "idea": 1})
    assert words_of(DEBIAN, "dog")[:2] == ("dog", "domestic_dog")
    assert words_of(DEBIAN, "mice") == ("mouse",)
    assert "T-shirt" in words_of(DEBIAN, "tshirt")
    kernel = lin.word_kernel(["dog", "cat", "car", "truck", "idea"])
    assert kernel.most_similar("dog", 1)[0][0] == "cat"
    assert kernel.most_similar("car", 1)[0][0] == "truck"


@pytest.mark.tools
@needs_wordnet
def test_lin_agrees_with_nltk(tmp_path, monkeypatch):
    reader = pytest.importorskip("nltk.corpus.reader.wordnet")
    monkeypatch.setattr("nltk.data.path", [str(tmp_path)])  # where it may read files
    folder = tmp_path / "corpora" / "wordnet"
    folder.mkdir(parents=True)
    for file in filter(Path.is_file, DEBIAN.iterdir()):  # it follows no links
        shutil.copy(file, folder)
    (folder / "index.sense").touch()
    (folder / "lexnames").write_text("".join(f"{i:02}\tname{i}\t1\n" for i in range(45)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it misses the multilingual WordNet
        nltk = reader.WordNetCorpusReader(str(folder), None)
    counts = {"dog": 50, "cat": 7, "rider": 9, "bike": 30, "grass": 20, "man": 60, "run": 8}
    counts |= {"ball": 25, "water": 14, "child": 33, "swim": 5, "mountain": 6, "poodle": 1}
    senses = {word: nltk.synsets(word, pos="n")[0] for word in counts}
    content = {"n": dict.fromkeys(range(1), 0.0)}
    for word, sense in senses.items():
        for above in {sense, *sense.closure(lambda s: s.hypernyms() + s.instance_hypernyms())}:
            content["n"][above.offset()] = content["n"].get(above.offset(), 0) + counts[word]
        content["n"][0] += counts[word]
    kernel = WordNetLin(DEBIAN, counts).word_kernel(counts, measure="lin")
    for first, a in senses.items():
        for second, b in senses.items():
            expected = pytest.approx(a.lin_similarity(b, content), abs=1e-6)
            assert kernel.similarity(first, second) == expected
