"""Similarities of words in the study: how they are combined, and on what they depend."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from outside import write_outside_corpus
from refusals import refuses

pytest.importorskip("cv2")

from kernelcore.datasets import make_scenes
from kernelcore.experiments import hodosh2013
from kernelcore.experiments.corpus import Corpus, find_outside_corpus
from kernelcore.experiments.steps import Source, Store, compute
from kernelcore.experiments.words import Lexicon, word_kernel

WORDNET = Path("/usr/share/wordnet")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Scenes in the layout of Flickr8k, and captions of others as an outside corpus."""
    folder = tmp_path_factory.mktemp("flickr")
    make_scenes(60, rng=1, size=(32, 32)).write(folder)
    write_outside_corpus(folder)
    return folder


def lexicon_of(corpus, folder, tagger="none", **files):
    """Words of the captions, with the outside corpus."""
    options = {"outside_corpus": corpus / "brown_tagged.txt", "progress": False, **files}
    return Lexicon(Corpus.read(corpus), Store(folder), spacy_model=tagger, **options)


def test_word_similarities_are_combined_as_the_paper_says(corpus, tmp_path):
    """The mean of those by co-occurrence, then the greatest of what is left."""
    lexicon = lexicon_of(corpus, tmp_path)
    one, other = (word_kernel(lexicon.steps([name])) for name in ("D_ic", "D_out"))
    both = word_kernel(lexicon.steps(["D_out", "D_ic"]))
    np.testing.assert_allclose(both.to_dense(), (one.to_dense() + other.to_dense()) / 2, 1e-6)
    most = word_kernel({"A": Source(one, "A"), **lexicon.steps(["D_out"])}).to_dense()
    np.testing.assert_array_equal(most, np.maximum(one.to_dense(), other.to_dense()))
    assert not np.array_equal(most, one.to_dense())
    assert word_kernel(lexicon.steps([])) is None


def test_what_a_similarity_needs_is_missed_before_anything_long_begins(corpus, tmp_path):
    run, options = hodosh2013.run, {"systems": ["Tri5_D_out"], "outside_corpus": "nowhere"}
    refuses(FileNotFoundError, "outside_corpus", run, corpus, tmp_path, **options)
    with pytest.raises(FileNotFoundError, match="wordnet-base"):
        run(corpus, tmp_path, systems=["Tri5_Lin"], wordnet_dir=tmp_path)
    without = lexicon_of(corpus, tmp_path, outside_corpus=None)
    refuses(FileNotFoundError, "outside_corpus", without.steps, ["D_out"])


@pytest.mark.tools
def test_word_similarities_depend_on_the_files_that_they_come_from(corpus, tmp_path):
    if not (WORDNET / "data.noun").is_file():
        pytest.skip("WordNet is not installed")
    dictionary = shutil.copytree(WORDNET, tmp_path / "dict")
    for licence in (b"", b"  a comment of another edition\n"):
        index = dictionary / "index.noun"
        index.write_bytes(licence + index.read_bytes())
        lexicon = lexicon_of(corpus, tmp_path / "kept", wordnet_dir=dictionary)
        compute(lexicon.steps(["Lin"]).values())
    assert len(list((tmp_path / "kept").iterdir())) == 2


def test_a_tagger_matters_to_alignment_alone(corpus, tmp_path):
    for tagger in ("one", "another"):
        compute(lexicon_of(corpus, tmp_path, tagger).steps(["D_ic", "D_out"]).values())
    assert len(list(tmp_path.iterdir())) == 2


def test_the_outside_corpus_is_found_near_the_data(tmp_path):
    data, beside = tmp_path / "flickr8k", tmp_path / "brown"
    for folder in (data, beside):
        folder.mkdir()
    assert find_outside_corpus(data) is None
    for folder in (beside, data):
        (folder / "brown_tagged.txt").touch()
        assert find_outside_corpus(data) == folder / "brown_tagged.txt"


def test_a_list_of_words_matters_by_what_is_in_it(corpus, tmp_path):
    """Neither its folder nor its time does."""
    keys, known = [], ["boy", "girl", "dog", "standing"]
    for place, own in (("one", known), ("other", known), ("longer", [*known, "cat"])):
        path = tmp_path / place / "own.txt"
        path.parent.mkdir()
        path.write_text("\n".join(own), encoding="utf-8")
        lexicon = lexicon_of(corpus, tmp_path / "kept", spelling=path)
        keys.append(lexicon.steps(["D_ic"])["D_ic"].key)
    assert keys[0] == keys[1] != keys[2]
