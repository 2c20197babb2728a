import re
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
    "dog": 4,
    "domestic dog": 2,
    "cat": 6,
    "poodle": 2,
    "geese": 2,
    "tshirt": 4,
    "the": 99,
}


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
            yield (
                name,
                (
                    f"{offsets[name]:08} 03 n {len(words):02x} {named} "
                    f"{len(pointers):03} {pointed} | gloss; with @ {name}  \n"
                ),
            )

    offsets = dict.fromkeys(SYNSETS, 0)
    at = len(licence)
    for name, line in lines(offsets):
        offsets[name] = at
        at += len(line)
    (folder / "data.noun").write_text(licence + "".join(line for _, line in lines(offsets)))
    senses = {}
    for name, (words, _) in SYNSETS.items():
        for word in words:
            senses.setdefault(word.lower(), []).append(f"{offsets[name]:08}")
    (folder / "index.noun").write_text(
        licence
        + "".join(
            f"{word} n {len(found)} 2 @ ~ {len(found)} 1 {' '.join(found)}  \n"
            for word, found in sorted(senses.items())
        )
    )
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
    # dog and cat are pets and animals: pet is the rarer
    assert kernel.similarity("dog", "cat") == pytest.approx(expected_lin("dog", "cat", "pet"))
    assert kernel.similarity("dog", "poodle") == pytest.approx(
        expected_lin("dog", "poodle", "dog")
    )
    assert kernel.similarity("dog", "goose") == pytest.approx(
        expected_lin("dog", "goose", "animal")
    )
    assert kernel.similarity("animal", "goose") == pytest.approx(
        expected_lin("animal", "goose", "animal")
    )


def test_the_word_kernel_is_the_cosine_of_vectors_of_hypernyms(lin):
    def vector(sense, hypernyms):
        own = {sense: 1.0}
        return own | {h: expected_lin(sense, h, h) for h in hypernyms}

    def cosine(u, v):
        return sum(u[k] * v[k] for k in u.keys() & v.keys()) / np.sqrt(
            sum(x * x for x in u.values()) * sum(x * x for x in v.values())
        )

    dog = vector("dog", ["animal", "pet"])
    poodle = vector("poodle", ["dog", "animal", "pet"])
    goose = vector("goose", ["animal"])
    kernel = lin.word_kernel(["dog", "poodle", "goose"])
    assert kernel.similarity("dog", "poodle") == pytest.approx(cosine(dog, poodle))
    assert kernel.similarity("dog", "goose") == pytest.approx(cosine(dog, goose))
    assert kernel.similarity("poodle", "goose") == pytest.approx(cosine(poodle, goose))


@pytest.mark.parametrize("measure", ["cosine", "lin"])
def test_words_of_one_synset_are_the_same(lin, measure):
    words = [
        "tshirt",
        "T-shirt",
        "tee shirt",
        "dog",
        "Domestic_Dog",
        "dogs",
        "unicorn",
        "unicorns",
    ]
    kernel = lin.word_kernel(words, measure=measure).to_dense()
    group = np.array([0, 0, 0, 1, 1, 1, 2, 2])
    same = group[:, None] == group[None, :]
    np.testing.assert_allclose(kernel[same], 1, atol=1e-6)
    assert (kernel[~same] < 0.9).all()


@pytest.mark.parametrize("measure", ["cosine", "lin"])
def test_what_has_no_information_is_like_nothing_else(lin, measure):
    words = ["entity", "unicorn", "dog", "the", "zebra", "goose"]
    kernel = lin.word_kernel(words, measure=measure)
    for word in ("entity", "unicorn", "the", "zebra"):
        assert kernel.most_similar(word) == []
    assert kernel.most_similar("dog", 9) == [("goose", kernel.similarity("goose", "dog"))]


@pytest.mark.parametrize("measure", ["cosine", "lin"])
def test_a_corpus_of_one_sense_has_no_information(wordnet_dir, measure):
    kernel = WordNetLin(wordnet_dir, {"dog": 3}).word_kernel(
        ["dog", "pet", "cat"], measure=measure
    )
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
    assert words_of(wordnet_dir, "dog") == ("dog", "domestic_dog")
    assert words_of(wordnet_dir, "lassie") == ("Lassie",)
    assert words_of(wordnet_dir, "geese") == ("goose",)
    assert words_of(wordnet_dir, "poodles") == ("poodle",)
    assert words_of(wordnet_dir, "teeshirt") == ("T-shirt", "tee_shirt")
    assert words_of(wordnet_dir, "zebra") == ()


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


@pytest.mark.parametrize("missing", ["index.noun", "data.noun", "noun.exc"])
def test_a_missing_database_says_how_to_install_it(tmp_path, missing):
    for name in {"index.noun", "data.noun", "noun.exc"} - {missing}:
        (tmp_path / name).touch()
    with pytest.raises(FileNotFoundError, match=rf"{missing} is missing.*wordnet-base"):
        WordNetLin(tmp_path, {"dog": 1})


def test_damaged_files_are_named(tmp_path, wordnet_dir):
    for name in ("index.noun", "data.noun", "noun.exc"):
        (tmp_path / name).write_bytes((wordnet_dir / name).read_bytes())
    data = (wordnet_dir / "data.noun").read_bytes()
    for broken in (data[:200], b" " + data, data.replace(b" n 01 cat ", b" n zz cat ")):
        (tmp_path / "data.noun").write_bytes(broken)
        with pytest.raises(ValueError, match=r"data\.noun is damaged: no synset at byte \d+"):
            WordNetLin(tmp_path, {"cat": 1})
    (tmp_path / "index.noun").write_text("dog n\n")
    with pytest.raises(ValueError, match=r"index\.noun is damaged: 'dog n'"):
        WordNetLin(tmp_path, {"dog": 1})


@pytest.mark.parametrize(
    ("counts", "error", "message"),
    [
        ({"dog": -1}, ValueError, r"counts\['dog'\] must be an integer >= 0"),
        ({"dog": 1.5}, TypeError, r"counts\['dog'\] must be an integer"),
        ({"the": 5, "dog": 0}, ValueError, "counts"),
    ],
)
def test_bad_counts_are_named(wordnet_dir, counts, error, message):
    refuses(error, message, WordNetLin, wordnet_dir, counts)
    with pytest.raises(ValueError, match="measure"):
        WordNetLin(wordnet_dir, {"dog": 1}).word_kernel(["dog"], measure="path")


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
            assert kernel.similarity(first, second) == pytest.approx(
                a.lin_similarity(b, content), abs=1e-6
            )


def test_files_that_are_no_text_or_lead_in_a_circle(tmp_path):
    licence = "  1 licence\n"
    synset = "%08d 03 n 01 %s 0 001 @ %08d n 0000 | x\n"
    first, length = len(licence), len(synset % (0, "dog", 0))
    second = first + length
    circle = synset % (first, "dog", second) + synset % (second, "cat", first)
    (tmp_path / "data.noun").write_text(licence + circle)
    (tmp_path / "index.noun").write_text(f"dog n 1 1 @ 1 0 {first:08d}\n")
    (tmp_path / "noun.exc").write_text("")
    nouns = NounDatabase(tmp_path)
    assert nouns.ancestors(nouns.first_sense("dog")) == {first, first + length}
    (tmp_path / "index.noun").write_bytes(b"dog\xff n\n")
    with pytest.raises(ValueError, match=r"index\.noun must be UTF-8 text, got byte 0xff"):
        NounDatabase(tmp_path).first_sense("dog")


@pytest.mark.parametrize("name", ["index.noun", "noun.exc"])
def test_a_file_that_is_no_text_is_named(wordnet_dir, tmp_path, name):
    folder = shutil.copytree(wordnet_dir, tmp_path / "wordnet")
    (folder / name).write_bytes(b"\xff " + (wordnet_dir / name).read_bytes())
    with pytest.raises(ValueError, match=re.escape(f"{name} must be UTF-8 text")):
        WordNetLin(folder, {"dog": 1}).word_kernel(["dog", "dogs"])
