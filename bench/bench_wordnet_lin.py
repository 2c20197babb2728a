"""Lin's similarity of 5,000 nouns, and NLTK's of as many pairs as it does in a while.

`extra_info` holds the number of pairs of words, so that rates compare.
"""

import shutil
import warnings
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from kernelcore.lexical import WordNetLin

WORDNET = Path("/usr/share/wordnet")
N_WORDS, N_PEER_WORDS = 5_000, 60

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


def information_content(wordnet, counts):
    content = {"n": {0: 0.0}}
    for word, count in counts.items():
        sense = wordnet.synsets(word, pos="n")[0]
        content["n"][0] += count
        for above in {s for path in sense.hypernym_paths() for s in path}:
            content["n"][above.offset()] = content["n"].get(above.offset(), 0.0) + count
    return content


@pytest.mark.parametrize("measure", ["cosine", "lin"])
def test_kernelcore(benchmark, counts, measure):
    benchmark.group = "Lin's similarity"
    benchmark.extra_info["pairs"] = N_WORDS * (N_WORDS - 1) // 2
    kernel = benchmark.pedantic(
        lambda: WordNetLin(WORDNET, counts).word_kernel(counts, measure=measure), rounds=2
    )
    assert len(kernel) == N_WORDS


def test_nltk(benchmark, counts, nltk_reader):
    content = information_content(nltk_reader, counts)
    some = list(counts)[:N_PEER_WORDS]
    senses = [nltk_reader.synsets(word, pos="n")[0] for word in some]
    benchmark.group = "Lin's similarity"
    benchmark.extra_info["pairs"] = N_PEER_WORDS * (N_PEER_WORDS - 1) // 2
    theirs = benchmark.pedantic(
        lambda: [a.lin_similarity(b, content) for a, b in combinations(senses, 2)], rounds=1
    )
    ours = WordNetLin(WORDNET, counts).word_kernel(some, measure="lin")
    for (a, b), similarity in zip(combinations(some, 2), theirs, strict=True):
        assert ours.similarity(a, b) == pytest.approx(similarity, abs=1e-5)
