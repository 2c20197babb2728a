"""Lin's similarity of 5,000 nouns, and beside NLTK's of as many as it does in a while."""

import shutil
import warnings
from itertools import combinations
from pathlib import Path

import data
import numpy as np
import pytest
from results import target

from kernelcore.lexical import WordNetLin

WORDNET = Path("/usr/share/wordnet")
N_WORDS, N_PEER_WORDS = data.size(5_000, 500), data.size(200, 20)

pytestmark = pytest.mark.skipif(
    not (WORDNET / "data.noun").exists(), reason="needs WordNet: apt-get install wordnet-base"
)


@pytest.fixture(scope="module")
def counts():
    """Nouns drawn from the index, with the frequencies of natural text (Zipf's law)."""
    lines = (WORDNET / "index.noun").read_text(encoding="utf-8").splitlines()
    nouns = [line.split()[0] for line in lines if not line.startswith(" ")]
    drawn = np.random.default_rng(0).choice([n for n in nouns if n.isalpha()], N_WORDS, False)
    return {str(noun): 1 + 10_000 // rank for rank, noun in enumerate(drawn, 1)}


@pytest.fixture(scope="module")
def nltk_reader(tmp_path_factory):
    """NLTK's reader over the same files, laid out as it wants them."""
    nltk = pytest.importorskip("nltk")
    reader = pytest.importorskip("nltk.corpus.reader.wordnet")
    root = tmp_path_factory.mktemp("nltk")
    folder = root / "corpora" / "wordnet"
    folder.mkdir(parents=True)
    for file in filter(Path.is_file, WORDNET.iterdir()):
        shutil.copy(file, folder)
    (folder / "index.sense").touch()
    (folder / "lexnames").write_text("".join(f"{i:02}\tname{i}\t1\n" for i in range(45)))
    nltk.data.path.append(str(root))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it misses the multilingual WordNet
        return reader.WordNetCorpusReader(str(folder), None)


@pytest.fixture(scope="module")
def content(counts, nltk_reader):
    return information_content(nltk_reader, counts)


def information_content(wordnet, counts):
    content = {"n": {0: 0.0}}
    for word, count in counts.items():
        sense = wordnet.synsets(word, pos="n")[0]
        content["n"][0] += count
        for above in {s for path in sense.hypernym_paths() for s in path}:
            content["n"][above.offset()] = content["n"].get(above.offset(), 0.0) + count
    return content


def lin_of_nltk(reader, content, words):
    senses = [reader.synsets(word, pos="n")[0] for word in words]
    return [a.lin_similarity(b, content) for a, b in combinations(senses, 2)]


@pytest.mark.ways("kernelcore", "kernelcore, cosine")
def test_all_nouns(measure, counts, nltk_reader, content):
    some = list(counts)[:20]
    expected = lin_of_nltk(nltk_reader, content, some)

    def by_kernelcore(similarity):
        kernel = WordNetLin(WORDNET, counts).word_kernel(counts, measure=similarity)
        return similarity, kernel

    def check(answer):
        similarity, kernel = answer
        assert len(kernel) == N_WORDS
        if similarity == "lin":
            found = [kernel.similarity(a, b) for a, b in combinations(some, 2)]
            np.testing.assert_allclose(found, expected, atol=1e-5)

    measure(
        "Lin's similarity",
        {
            "kernelcore": lambda: by_kernelcore("lin"),
            "kernelcore, cosine": lambda: by_kernelcore("cosine"),
        },
        check=check,
        shape=f"{N_WORDS:,} nouns",
        size=N_WORDS * (N_WORDS - 1) / 2,
        unit="pairs",
        targets=[target("seconds <= 10")],
    )


@pytest.mark.ways("kernelcore", "nltk")
def test_beside_nltk(measure, counts, nltk_reader, content):
    """WordNet is read and the concepts are counted before."""
    some = list(counts)[:N_PEER_WORDS]
    lin = WordNetLin(WORDNET, counts)
    expected = lin_of_nltk(nltk_reader, content, some)

    def check(found):
        np.testing.assert_allclose(found, expected, atol=1e-5)

    measure(
        "Lin's similarity, beside NLTK",
        {
            "kernelcore": lambda: lin.word_kernel(some, measure="lin"),
            "nltk": lambda: lin_of_nltk(nltk_reader, content, some),
        },
        read={
            "kernelcore": lambda kernel: [
                kernel.similarity(a, b) for a, b in combinations(some, 2)
            ]
        },
        check=check,
        shape=f"{N_PEER_WORDS} nouns",
        size=N_PEER_WORDS * (N_PEER_WORDS - 1) / 2,
        unit="pairs",
    )
