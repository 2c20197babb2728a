"""The real corpus as the studies of trained systems read it."""

import warnings
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cv2")

from kernelcore.datasets import DatasetWarning
from kernelcore.experiments.corpus import Corpus
from kernelcore.experiments.judged import Questions
from kernelcore.experiments.judges import Judges
from kernelcore.experiments.result_files import read_files
from kernelcore.experiments.steps import Store

pytestmark = pytest.mark.realdata
RESULTS = Path(__file__).resolve().parents[2] / "bench" / "results"


@pytest.fixture(scope="module")
def corpus(data_root):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DatasetWarning)
        return Corpus.read(data_root / "flickr8k")


@pytest.fixture(scope="module")
def vectors(corpus):
    return corpus.word_vectors(None)


def test_splits_have_five_captions_of_each_photo(corpus):
    sizes = [len(corpus.pools[split].texts) for split in ("train", "dev", "test")]
    assert sizes == [30_000, 5_000, 5_000]
    assert (np.bincount(corpus.pools["test"].numbers) == 1000).all()


def test_captions_have_about_as_many_relations_as_the_paper_keeps(corpus, vectors, tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("spacy")
    from kernelcore.experiments.fragments import FragmentSteps

    captions = FragmentSteps(
        {split: pool.texts[:3000] for split, pool in corpus.pools.items()}, vectors.words,
        Store(tmp_path), spacy_model="", n_threads=1, progress=False,
    )  # fmt: skip
    words, pairs = (captions.step(kind, "test").value() for kind in ("words", "bigrams"))
    assert 9 < words.counts.mean() < 13
    assert pairs.counts.mean() == pytest.approx(words.counts.mean() - 1, abs=0.5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::kernelcore.datasets.DatasetWarning")
def test_a_stored_result_is_computed_again(corpus):
    stored = read_files(RESULTS, "hodosh2013")["agreement of judges"].numbers
    judges = Judges.of(corpus.folder, corpus.in_splits(), "test", 2)
    found = judges.agreement()
    assert found.keys() == stored.keys()
    for measure, numbers in found.items():
        assert numbers == pytest.approx(stored[measure], rel=1e-9)


@pytest.mark.filterwarnings("ignore::kernelcore.datasets.DatasetWarning")
def test_triples_of_flickr8k(corpus, vectors):
    owners = np.unique(corpus.pools["test"].photos, return_inverse=True)[1]
    own = (np.arange(1000)[:, np.newaxis] == owners).astype(np.float32)
    found = Questions.of(corpus, vectors, "test").results("own photos", own).values()
    assert [result.facts["n_triples"] for result in found] == [3010, 1418, 581]
    # a caption that is right for other photos, too, ties there
    shares = [result.mean["selection"]["accuracy"] for result in found]
    assert shares[0] < shares[1] < shares[2] == 1
