"""What studies of trained systems share: drawn scenes as a corpus, and a cache."""

import sys
from pathlib import Path

import pytest

from kernelcore.datasets import make_scenes
from kernelcore.report import ReportFigure

sys.path.insert(0, str(Path(__file__).parent))  # for `outside` and `small_corpus`

from small_corpus import VECTORS, write_corpus


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Twenty-eight scenes in the layout of Flickr8k."""
    folder = tmp_path_factory.mktemp("flickr")
    make_scenes(28, rng=1, size=(64, 80)).write(folder)
    return folder


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def trains_nothing(monkeypatch):
    """Whatever would be trained fails."""
    deep = pytest.importorskip("kernelcore.deep")

    def refuse(*_, **__):
        raise AssertionError("trained again")

    monkeypatch.setattr(deep.base.TorchRanker, "fit", refuse)
    monkeypatch.setattr(deep.DocumentLinker, "fit", refuse)


@pytest.fixture(autouse=True)
def in_one_theme(monkeypatch):
    """Draw the figures of pages once each: themes have tests of their own."""
    to_png = ReportFigure.to_png
    light = {}

    def once(figure, theme="light"):
        if figure not in light:
            light[figure] = to_png(figure)
        return light[figure]

    monkeypatch.setattr(ReportFigure, "to_png", once)


@pytest.fixture
def folder(tmp_path):
    """Six photos in the layout of Flickr8k, for questions that are answered by hand."""
    write_corpus(tmp_path)
    return tmp_path


@pytest.fixture
def six(folder):
    corpus = pytest.importorskip("kernelcore.experiments.corpus")
    return corpus.Corpus.read(folder)


@pytest.fixture
def vectors(folder, six):
    (folder / "vectors.txt").write_text(VECTORS, encoding="utf-8")
    return six.word_vectors(folder / "vectors.txt")
