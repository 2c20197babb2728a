"""`n_threads` in all public signatures: one form, one meaning, and it reaches all calls."""

import inspect

import numpy as np
import pytest
from public_api import exported_callables, parameters_of
from refusals import refuses

from kernelcore import _threads
from kernelcore.datasets import Document, make_scenes
from kernelcore.images import VisualWords
from kernelcore.kcca import KCCA, factorize
from kernelcore.kcca import kcca as kcca_module
from kernelcore.kernels import prepare
from kernelcore.models import PhotoRanker
from kernelcore.report import query_examples

CALLABLES = exported_callables().items()
TAKING = {name: found for name, found in CALLABLES if "n_threads" in parameters_of(found)}


@pytest.mark.parametrize("name", TAKING)
def test_it_is_optional_and_given_by_name(name):
    own = parameters_of(TAKING[name])["n_threads"]
    assert own.kind is inspect.Parameter.KEYWORD_ONLY
    assert own.default is None
    assert str(own.annotation) == "int | None"


@pytest.fixture
def asked(monkeypatch):
    """Whatever leaves the number of threads to the default fails."""
    monkeypatch.setenv("KERNELCORE_NUM_THREADS", "of the caller")


def test_a_photo_ranker_hands_it_on(monkeypatch):
    scenes = make_scenes(30, size=(40, 40))
    words = VisualWords(n_words={"colour": 6}, n_sample_images=6, n_sample_points=50)
    few = {"n_components_grid": (2,), "regularization_grid": (0.3,)}
    ranker = PhotoRanker(words, **few).fit(scenes.images[:20], scenes.dataset.captions[:20])
    photos, sentences = list(scenes.images[20:]), ["a dog chases a cat", "a red ball"]

    def results(**options):
        ranked = {"k": 2, "calibrated": True, **options}
        return [
            ranker.scores(photos, sentences, **options),
            ranker.search(sentences, photos, **ranked),
            ranker.annotate(photos, sentences, **ranked),
            ranker.embed_images(photos, **options),
            ranker.embed_captions(sentences, **options),
        ]

    before, one = results(), {"n_threads": 1}
    ranker._foreign = None
    monkeypatch.setenv("KERNELCORE_NUM_THREADS", "of the caller")
    after = results(**one)
    for old, new in zip(before, after, strict=True):
        np.testing.assert_array_equal(np.array(old, object), np.array(new, object))
    index = ranker.index(photos, **one)
    assert ranker.scores(index, sentences, **one).tobytes() == before[0].tobytes()
    refuses(ValueError, "KERNELCORE_NUM_THREADS", ranker.embed_captions, sentences)


@pytest.mark.usefixtures("asked")
def test_examples_hand_it_on():
    photos = np.zeros((2, 8, 8, 3), np.uint8)
    for task in ("search", "annotation"):
        options = {"task": task, "n_examples": 1, "n_threads": 1}
        found = query_examples(np.eye(2), ["a dog", "a cat"], photos, **options)
        assert [example.rank for example in found] == [1.0, 1.0]


@pytest.mark.usefixtures("asked")
def test_deep_systems_hand_it_on():
    deep = pytest.importorskip("kernelcore.deep")
    small, one = {"n_epochs": 1, "n_components": 3, "rng": 0}, {"n_threads": 1}
    texts, rows = [["a dog", "a cat"]] * 6, np.eye(6, 4)
    for ranker in (
        *(deep.EmbeddingRanker, deep.CrossAttentionRanker, deep.OrderRanker),
        *(deep.FragmentRanker, deep.Captioner),
    ):
        own = {"sentence": "mean"} if ranker is deep.FragmentRanker else {"min_count": 1}
        fitted = ranker(batch_size=4, **small, **own).fit(rows, texts, **one)
        fitted.scores(rows, ["a dog"], **one)
    features = {"a": [1.0, 0.0], "b": [0.0, 1.0]}
    content = ("a dog", "a cat"), ("a", "b"), frozenset({(0, 0)})
    documents = [Document(str(i), *content) for i in range(4)]
    linker = deep.DocumentLinker(min_count=1, **small)
    linker.fit(documents, features, dev=documents, **one)
    linker.link_scores(documents, features, **one)


def test_only_large_kernels_are_factorised_side_by_side(monkeypatch):
    monkeypatch.setattr(_threads, "_WORK_PER_THREAD", 1e6)
    started = []

    def watched(work, items, n_threads, **options):
        started.append(n_threads)
        return _threads.in_threads(work, items, n_threads, **options)

    monkeypatch.setattr(kcca_module, "in_threads", watched)
    rows = np.random.default_rng(0).normal(size=(300, 300))
    K = rows @ rows.T
    for decomposition in ("gram_schmidt", "eigen"):
        factorize(K[:20, :20], K[:20, :20], decomposition=decomposition, n_threads=8)
        factorize(K, K, decomposition=decomposition, n_threads=1)
    factorize(K, K, max_rank=2, n_threads=8)
    KCCA(n_threads=8).fit(K[:20, :20], K[:20, :20])
    assert not started
    for decomposition in ("gram_schmidt", "eigen"):
        factorize(K, K, decomposition=decomposition, n_threads=8)
    factorize(prepare(K), K.tolist(), n_threads=8)
    assert started == [2, 2, 2]
