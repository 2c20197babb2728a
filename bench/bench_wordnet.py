"""Lin's similarity of nouns of WordNet, beside NLTK's."""

import shutil
import warnings
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from common import size

from kernelcore.lexical import WordNetLin

WORDNET = Path("/usr/share/wordnet")

pytestmark = pytest.mark.skipif(
    not (WORDNET / "data.noun").exists(), reason="needs WordNet: apt-get install wordnet-base"
)


def drawn_nouns(n):
    """Nouns drawn from the index, with the frequencies of natural text (Zipf's law)."""
    lines = (WORDNET / "index.noun").read_text(encoding="utf-8").splitlines()
    nouns = [line.split()[0] for line in lines if not line.startswith(" ")]
    drawn = np.random.default_rng(0).choice([n for n in nouns if n.isalpha()], n, False)
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


def lin_by_nltk(reader, counts, words):
    """Similarities of all pairs; the counts of concepts are made beforehand."""
    content = {"n": {0: 0.0}}
    for word, count in counts.items():
        sense = reader.synsets(word, pos="n")[0]
        content["n"][0] += count
        for above in {s for path in sense.hypernym_paths() for s in path}:
            content["n"][above.offset()] = content["n"].get(above.offset(), 0.0) + count

    def similarities():
        senses = [reader.synsets(word, pos="n")[0] for word in words]
        return [a.lin_similarity(b, content) for a, b in combinations(senses, 2)]

    return similarities


@pytest.mark.parametrize("peer", ["kernelcore", "kernelcore, cosine"])
@pytest.mark.parametrize("n", [1250, 2500, 5000])
def test_lin(benchmark, peer, n):
    """WordNet is read and the concepts are counted within the time."""
    counts = drawn_nouns(size(n, 500))
    benchmark.extra_info["work"] = "Lin's similarity, from the files of WordNet"
    benchmark.extra_info["size"] = f"{len(counts):,} nouns"
    measure = "cosine" if "cosine" in peer else "lin"

    def word_kernel():
        return WordNetLin(WORDNET, counts).word_kernel(counts, measure=measure)

    assert len(word_kernel()) == len(counts)
    benchmark(word_kernel)


@pytest.mark.parametrize("peer", ["kernelcore", "nltk, lin_similarity"])
@pytest.mark.parametrize("n", [50, 100, 200])
def test_lin_of_pairs(benchmark, nltk_reader, peer, n):
    """WordNet is read and the concepts are counted before."""
    counts = drawn_nouns(size(5000, 500))
    some = list(counts)[: size(n, 20)]
    benchmark.extra_info["work"] = "Lin's similarity"
    benchmark.extra_info["size"] = f"{len(some)} nouns"
    lin, by_nltk = WordNetLin(WORDNET, counts), lin_by_nltk(nltk_reader, counts, some)
    kernel = lin.word_kernel(some, measure="lin")
    found = [kernel.similarity(a, b) for a, b in combinations(some, 2)]
    np.testing.assert_allclose(found, by_nltk(), atol=1e-5)
    if peer == "kernelcore":
        benchmark(lin.word_kernel, some, measure="lin")
    else:
        benchmark(by_nltk)
