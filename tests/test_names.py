"""One name for one thing, and one type for one name, in all public signatures."""

from functools import partial

import numpy as np
import pytest
from public_api import defined_callables, exported_callables, parameters_of
from refusals import refuses

from kernelcore._check import drawn_seed
from kernelcore.captions import FragmentExtractor
from kernelcore.datasets import Document, build_documents, make_scenes, random_splits
from kernelcore.images import VisualWords, learn_codebook
from kernelcore.kcca import LandmarkFeatures
from kernelcore.models import ChanceLinker, ChanceRanker, ObjectLabelLinker, PhotoRanker

CALLABLES = {name: parameters_of(found) for name, found in defined_callables().items()}
OTHER_NAMES_OF_RNG = {"seed", "random_state", "random_seed", "generator"}
# torch's own class of sources, in its functions and so in whatever passes one on to them.
TORCH_GENERATORS = {"Generator", "Generator | None"}

EXPORTED = {name: parameters_of(found) for name, found in exported_callables().items()}


def test_the_sweep_sees_what_it_is_for():
    assert len(CALLABLES) > 700
    for name in (
        "kernelcore.experiments.demo.run",
        "kernelcore.experiments.hu2019.Hu2019",
        "kernelcore.datasets.scenes.make_scenes",
        "kernelcore.deep.base.TorchRanker.fit",
    ):
        assert name in CALLABLES


def test_randomness_is_called_rng():
    def is_torch(parameter):
        written = getattr(parameter.annotation, "__forward_arg__", str(parameter.annotation))
        return written.removeprefix("torch.") in TORCH_GENERATORS

    others = {
        f"{name}({parameter})"
        for name, own in CALLABLES.items()
        for parameter in own.values()
        if parameter.name in OTHER_NAMES_OF_RNG
        and not (parameter.name == "generator" and is_torch(parameter))
    }
    assert others == set()


@pytest.mark.parametrize(
    ("parameter", "callables", "least", "written"),
    [
        ("rng", EXPORTED, 20, ["np.random.Generator | int | None"]),
        ("word_vectors", CALLABLES, 10, ["WordVectors", "WordVectors | None"]),
    ],
)
def test_a_name_has_one_type(parameter, callables, least, written):
    with_it = {name: own for name, own in callables.items() if parameter in own}
    kinds = {name: str(own[parameter].annotation) for name, own in with_it.items()}
    assert len(kinds) > least
    assert {n: kind for n, kind in kinds.items() if kind not in written} == {}


def test_nobody_is_told_of_progress_unless_asked():
    defaults = [own["progress"].default for own in EXPORTED.values() if "progress" in own]
    assert len(defaults) > 30
    assert set(defaults) == {False}


def test_a_source_becomes_a_number():
    assert drawn_seed("rng", 7) == 7
    assert drawn_seed("rng", np.int32(7)) == 7
    one, same = (drawn_seed("rng", np.random.default_rng(1)) for _ in range(2))
    assert one == same == int(np.random.default_rng(1).integers(2**63))
    assert drawn_seed("rng", None) != drawn_seed("rng", None)
    first, second = (make_scenes(2, None, size=(32, 32)).images for _ in range(2))
    assert (first != second).any()
    for odd, error in ((-1, ValueError), (0.5, TypeError), ("0", TypeError)):
        refuses(error, "rng", drawn_seed, "rng", odd)


@pytest.mark.parametrize("odd", [np.eye(2), {"dog": [1.0, 0.0]}, "glove.txt"])
def test_other_word_vectors_are_refused_with_the_way_to_make_them(odd):
    deep = pytest.importorskip("kernelcore.deep")
    texts = [["a dog", "a cat"]] * 4
    cut = FragmentExtractor("words").fit_transform(["a dog", "a cat"] * 2)
    documents = [Document(str(i), ("a dog", "a cat"), ("a", "b")) for i in range(4)]
    fits = [
        (ranker.fit, np.eye(4, 3), texts)
        for ranker in (
            *(deep.EmbeddingRanker(), deep.CrossAttentionRanker(), deep.OrderRanker()),
            *(deep.FragmentRanker(sentence="mean"), deep.Captioner()),
        )
    ]
    fits += [
        (deep.FragmentRanker(sentence="mean").fit, np.eye(4, 3), cut),
        (
            partial(deep.DocumentLinker(min_count=1).fit, dev=documents),
            documents,
            {"a": [1.0, 0.0], "b": [0.0, 1.0]},
        ),
    ]
    way = r"kernelcore\.lexical\.WordVectors\(words, vectors\) makes them"
    for fit, *given in fits:
        refuses(TypeError, f"word_vectors must .* {way}", fit, *given, word_vectors=odd)
    for wrong in (odd, None):
        refuses(TypeError, "word_vectors", ObjectLabelLinker(wrong, n_labels=1).fit)


ROWS = np.random.default_rng(0).normal(size=(6, 3))
SCENES = make_scenes(6, size=(32, 32))
DOCUMENTS = [Document("0", ("a dog", "a cat"), ("a", "b"))]


def linear(X, Y=None):
    return X @ (X if Y is None else Y).T


def deep_ranker(rng):
    deep = pytest.importorskip("kernelcore.deep")
    texts = ["a dog", "a cat"] * 3
    deep.EmbeddingRanker(n_epochs=1, n_components=3, min_count=1, rng=rng).fit(ROWS, texts)


DRAWING = {
    "build_documents": lambda rng: build_documents(
        SCENES.dataset, n_pairs=1, n_distractor_images=0, n_distractor_captions=0, rng=rng
    ),
    "make_scenes": lambda rng: make_scenes(1, rng=rng),
    "random_splits": lambda rng: random_splits(SCENES.dataset, 0.5, 0.25, 0.25, rng=rng),
    "VisualWords": lambda rng: VisualWords(
        n_words={"colour": 2}, n_sample_points=20, rng=rng
    ).fit(list(SCENES.images)),
    "learn_codebook": lambda rng: learn_codebook(ROWS, 2, rng=rng),
    "LandmarkFeatures": lambda rng: LandmarkFeatures(
        linear, n_landmarks=3, choice="random", rng=rng
    ).fit(ROWS),
    "ChanceRanker": lambda rng: ChanceRanker(rng).scores(ROWS, ROWS),
    "ChanceLinker": lambda rng: ChanceLinker(rng).link_scores(DOCUMENTS),
    "PhotoRanker": lambda rng: PhotoRanker("precomputed", rng=rng).fit(
        ROWS, [own[0] for own in SCENES.dataset.captions]
    ),
    "EmbeddingRanker": deep_ranker,
}


@pytest.mark.parametrize("name", DRAWING)
def test_whatever_is_no_source_is_refused_by_name(name):
    for odd in ("0", 0.5, [1, 2], -1):
        refuses(ValueError if odd == -1 else TypeError, "rng", DRAWING[name], odd)
    for source in (0, np.int64(3), np.random.default_rng(0), None):
        DRAWING[name](source)
