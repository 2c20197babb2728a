"""Whole files of models, results and caches, how they are read, and what must then work."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from fuzz.seed_files import Files, Readers, file, saved, text, written
from kernelcore._store import json_value, read_text, reading
from kernelcore.captions import (
    CaptionNormalizer,
    EncodedCaptions,
    FragmentExtractor,
    SentenceFragments,
    SentenceTrees,
    Vocabulary,
)
from kernelcore.datasets import (
    RelevanceJudgments,
    make_scenes,
)
from kernelcore.evaluation import (
    Result,
    evaluate,
    evaluate_links,
    evaluate_relevance,
)
from kernelcore.experiments.scores import Scores
from kernelcore.experiments.steps import Kind, Store
from kernelcore.images import SpatialHistograms, VisualWords
from kernelcore.images._describe import FeatureCache
from kernelcore.kcca import KCCA, KernelBasis, kernel_basis
from kernelcore.kernels import bag_of_words, spatial_pyramid, word_sequence
from kernelcore.lexical import (
    WordKernel,
)
from kernelcore.models import KCCARanker, PhotoFile, PhotoIndex, PhotoRanker

_SMALL = 64  # sizes up to which what was read is used, too
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(6, 3)), RNG.normal(size=(6, 2))
CAPTIONS = [[["dog", "run"], ["dog"]], [["dog", "swim"]], [["cat"], ["a", "cat", "sit"]]]
VOCABULARY = Vocabulary.from_captions(CAPTIONS)
SCORES = np.eye(6) + 0.1 * np.arange(6)


def _kcca() -> KCCA:
    return KCCA(2).fit(X @ X.T, Y @ Y.T)


def _use_kcca(folder: Path) -> None:
    kcca = KCCA.load(folder / "x.safetensors")
    n = len(kcca.x_scores_)
    with np.errstate(all="ignore"):
        assert kcca.transform_x(np.zeros((1, n))).shape == (1, len(kcca.correlations_))
        assert kcca.transform_y(np.zeros((1, n))).shape == (1, len(kcca.correlations_))


def _ranker() -> KCCARanker:
    return KCCARanker(2).fit(X @ X.T, Y @ Y.T)


def _use_ranker(folder: Path) -> None:
    ranker = KCCARanker.load(folder / "x.safetensors")
    n = len(ranker.kcca_.x_scores_)
    with np.errstate(all="ignore"):
        assert ranker.scores(np.zeros((1, n)), np.zeros((2, n))).shape == (1, 2)


def _use_basis(folder: Path) -> None:
    basis = KernelBasis.load(folder / "x.safetensors")
    with np.errstate(all="ignore"):
        rows = basis.coordinates(np.zeros((1, len(basis.vectors))))
    assert rows.shape == (1, len(basis.eigenvalues))


def _use_captions(folder: Path) -> None:
    captions = EncodedCaptions.load(folder / "x.safetensors")
    assert len(captions.select(np.arange(len(captions)))) == len(captions)
    if captions.n_words < _SMALL:
        bag_of_words(captions, word_weights=np.ones(captions.n_words))
        word_sequence(captions, word_weights=np.ones(captions.n_words))


def _captions() -> EncodedCaptions:
    return VOCABULARY.encode(CAPTIONS)


def _trees() -> SentenceTrees:
    return SentenceTrees([0, 1, 2, 3], [0, 1, 2, 2], [1, 2, -1, -1], [0, 3, 4], 3, 4)


def _use_histograms(folder: Path) -> None:
    histograms = SpatialHistograms.load(folder / "x.safetensors")
    if len(histograms):
        spatial_pyramid(histograms.mirrored())


def _use_words(folder: Path) -> None:
    words = VisualWords.load(folder / "x.safetensors")
    words.get_params()


def _use_word_kernel(folder: Path) -> None:
    kernel = WordKernel.load(folder / "x.safetensors")
    if len(kernel):
        kernel.most_similar(kernel.words[0])
        kernel.over([*kernel.words, "another"])


def _model(folder: Path) -> None:
    scenes = make_scenes(12, size=(32, 32))
    words = VisualWords(n_words={"colour": 4, "sift": 3}, n_sample_images=4, n_levels=1)
    ranker = PhotoRanker(features=words, n_components_grid=(2,), regularization_grid=(0.1,))
    ranker.fit(scenes.images, scenes.dataset.captions, n_threads=1).save(folder / "model")


def _vector_model(folder: Path) -> None:
    ranker = PhotoRanker(
        "precomputed",
        caption_kernel="similar_words",
        n_components_grid=(2,),
        regularization_grid=(0.1,),
        hub_neighbors_grid=(2,),
    )
    captions = make_scenes(12, size=(32, 32)).dataset.captions
    ranker.fit(RNG.normal(size=(12, 3)), captions, n_threads=1).save(folder / "model")


def _use_vector_model(folder: Path) -> None:
    ranker = PhotoRanker.load(folder / "model")
    view = ranker.training_.photos
    with np.errstate(all="ignore"):
        ranker.scores(np.ones((2, np.shape(view.photos)[1])), ["A dog."])
    assert ranker.fingerprint


def _use_model(folder: Path) -> None:
    ranker = PhotoRanker.load(folder / "model")
    assert isinstance(ranker.training_.photos.photos, dict)
    with np.errstate(all="ignore"):
        ranker.scores([np.zeros((32, 32, 3), np.uint8)], ["A dog."])
    assert ranker.fingerprint


def _visual_words() -> VisualWords:
    words = VisualWords(n_words={"colour": 4, "sift": 3}, n_sample_images=4)
    return words.fit(make_scenes(4, size=(32, 32)).images, n_threads=1)


def _histograms() -> SpatialHistograms:
    return SpatialHistograms.from_finest(RNG.integers(1, 9, (3, 4, 5)), 2)


def _cached(folder: Path) -> None:
    FeatureCache(folder, "key").save("ab" * 20, {"colour": np.arange(6, dtype=np.uint16)})


def _use_cache(folder: Path) -> None:
    kept = FeatureCache(folder, "key").load("ab" * 20)
    assert kept is None or kept["colour"].tolist() == [0, 1, 2, 3, 4, 5]


def _extractor() -> Files:
    extractor = FragmentExtractor("bigrams").fit(["A dog runs.", "The dog"])
    return {"x.json": json.dumps(extractor.to_dict()).encode()}


def _state(load: Callable[[Any], Any]) -> Callable[[Path], Any]:
    """Return what gives a stored JSON value to a function, by way of a reader that names it."""

    def read(folder: Path) -> Any:
        with reading(folder / "x.json"):
            return load(json_value(read_text(folder / "x.json")))

    return read


_ENTRIES: tuple[tuple[Kind[Any], Any], ...] = (
    (Kind.json("a", 1), {"x": [1, 2.5, "s"]}),
    (Kind.array("b", 1), np.arange(3)),
)


def _store(folder: Path) -> None:
    store = Store(folder / "store")
    for form, value in _ENTRIES:
        store.value(form.name, "k", partial(copy, value), form.save, form.load)


def _use_store(folder: Path) -> None:
    store = Store(folder / "store")
    for form, value in _ENTRIES:
        made = store.value(form.name, "k", partial(copy, value), form.save, form.load)
        assert made is not None


def _relevance() -> Result:
    ids = [str(n) for n in range(6)]
    gold = RelevanceJudgments.from_pairs("gold", zip(ids, ids, strict=True), np.ones(6))
    return evaluate_relevance(SCORES, judgments=gold, threshold=1)


def _photo_index() -> PhotoIndex:
    files = [PhotoFile(9, 8, f"{i:032x}") for i in range(2)]
    return PhotoIndex(["a.jpg", "b.jpg"], [[0.5, 0.1], [0.2, 0.3]], model="1f0e", files=files)


READERS: Readers = {
    "models.PhotoRanker.load": (lambda: written(_model), _use_model),
    "models.PhotoRanker.load of vectors": (lambda: written(_vector_model), _use_vector_model),
    "models.KCCARanker.load": (saved(_ranker), _use_ranker),
    "models.PhotoIndex.load": (
        saved(_photo_index, "index"),
        file(PhotoIndex.load, "index"),
    ),
    "kcca.KCCA.load": (saved(_kcca), _use_kcca),
    "kcca.KernelBasis.load": (saved(lambda: kernel_basis(X @ X.T)), _use_basis),
    "images.VisualWords.load": (saved(_visual_words), _use_words),
    "images.SpatialHistograms.load": (saved(_histograms), _use_histograms),
    "images.FeatureCache.load": (lambda: written(_cached), _use_cache),
    "captions.EncodedCaptions.load": (
        saved(lambda: VOCABULARY.encode(CAPTIONS)),
        _use_captions,
    ),
    "captions.SentenceFragments.load": (
        saved(lambda: SentenceFragments([0, 1, 0], [2, 0, 1], [1, 2, 0], [0, 2, 2, 3], 2, 3)),
        file(SentenceFragments.load),
    ),
    "captions.SentenceTrees.load": (
        saved(
            lambda: SentenceTrees([0, 1, 2, 3], [0, 1, 2, 2], [1, 2, -1, -1], [0, 3, 4], 3, 4)
        ),
        lambda folder: SentenceTrees.load(folder / "x.safetensors").select([]).heights,
    ),
    "captions.Vocabulary.load": (
        saved(lambda: VOCABULARY, "x.json"),
        lambda folder: Vocabulary.load(folder / "x.json").encode([[["dog", "newt"]]]),
    ),
    "captions.CaptionNormalizer.from_dict": (
        text(x__json=CaptionNormalizer().fit([["A dog."]]).to_dict()),
        _state(CaptionNormalizer.from_dict),
    ),
    "captions.FragmentExtractor.from_dict": (_extractor, _state(FragmentExtractor.from_dict)),
    "lexical.WordKernel.load-dense": (
        saved(lambda: WordKernel(["a", "b"], [[1, 0.5], [0.5, 1]])),
        _use_word_kernel,
    ),
    "lexical.WordKernel.load-sparse": (
        saved(lambda: WordKernel(list("abc"), sparse.csr_array(np.eye(3)[::1]))),
        _use_word_kernel,
    ),
    "evaluation.Result.load": (
        saved(lambda: evaluate(SCORES), "x.json"),
        lambda folder: str(Result.load(folder / "x.json")),
    ),
    "evaluation.Result.load of folds": (
        saved(lambda: evaluate(SCORES, n_folds=2), "x.json"),
        lambda folder: str(Result.load(folder / "x.json")),
    ),
    "evaluation.Result.load of relevance": (
        saved(_relevance, "x.json"),
        lambda folder: str(Result.load(folder / "x.json")),
    ),
    "evaluation.Result.load of links": (
        saved(
            lambda: evaluate_links(
                [[[1.0, 0.2], [0.1, 0.9]]] * 2, [{(0, 0)}] * 2, images=[["a"], ["b"]]
            ),
            "x.json",
        ),
        lambda folder: str(Result.load(folder / "x.json")),
    ),
    "experiments.Store": (lambda: written(_store), _use_store),
    "experiments.Scores.load": (
        saved(lambda: Scores(SCORES, SCORES, {"k": 1})),
        file(Scores.load),
    ),
}
