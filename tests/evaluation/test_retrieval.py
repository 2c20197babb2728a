"""`evaluate` from scores and from embeddings, in every form they come in."""

import copy
import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refuses

from kernelcore.evaluation import _inputs, embedding_scores, evaluate, rank_relevant
from kernelcore.evaluation._inputs import as_rows
from kernelcore.evaluation.ranks import TIE_RULES
from kernelcore.reference.evaluation import gold_ranks as reference_ranks

TASKS = ("annotation", "search")
N_IMAGES, PER_IMAGE = 30, 3
OWNER = np.repeat(np.arange(N_IMAGES), PER_IMAGE)


@pytest.fixture
def vectors():
    rng = np.random.default_rng(0)
    images = rng.standard_normal((N_IMAGES, 6)).astype(np.float16)
    captions = (images[OWNER] + 2 * rng.standard_normal((len(OWNER), 6))).astype(np.float16)
    return images, captions


def same(result, expected):
    for task, own in expected.values.items():
        np.testing.assert_equal(dict(result.values[task]), dict(own))
    assert result.tie_effect == expected.tie_effect


def gold_of(owner, n_images):
    return [np.flatnonzero(owner == image).tolist() for image in range(n_images)]


@given(
    seed=st.integers(0, 2**32 - 1), n_images=st.integers(1, 6), extra=st.integers(0, 6),
    ties=st.sampled_from(TIE_RULES),
    layout=st.sampled_from(["C", "F", "half", "pieces", "two", "vectors"]),
)  # fmt: skip
@settings(max_examples=120, deadline=None)
def test_all_metrics_equal_the_definitions(seed, n_images, extra, ties, layout):
    """Whole numbers: products are exact, and there are many ties."""
    rng = np.random.default_rng(seed)
    images, captions = (rng.integers(-1, 2, (n, 2)) for n in (n_images, n_images + extra))
    owner = rng.permutation(np.r_[np.arange(n_images), rng.integers(0, n_images, extra)])
    table = (images @ captions.T).astype(np.float32)
    arguments = {
        "C": [table], "F": [np.asfortranarray(table)], "half": [table.astype(np.float16)],
        "pieces": [[table[:1], table[1:]] if n_images > 1 else table],
        "two": [table, np.asfortranarray(table)], "vectors": [],
    }[layout]  # fmt: skip
    options = {"caption_image": owner, "ties": ties, "ks": (1, 3), "n_threads": 2}
    if layout == "vectors":
        options |= {"image_vectors": images, "caption_vectors": captions, "similarity": "dot"}
    result = evaluate(*arguments, **options)
    golds = (gold_of(owner, n_images), [[image] for image in owner.tolist()])
    for task, scores, gold in zip(TASKS, (table, table.T), golds, strict=True):
        values = result.values[task]
        ranks = np.array(reference_ranks(scores.tolist(), gold, ties=ties))
        assert values["mean_rank"] == pytest.approx(ranks)
        assert values["median_rank"].tolist() == values["mean_rank"].tolist()
        assert values["mean_reciprocal_rank"] == pytest.approx(1 / ranks)
        assert values["R@3"].tolist() == (ranks <= 3).tolist()
        assert result.n_relevant[task].tolist() == list(map(len, gold))
        assert set(result.n_candidates[task]) == {scores.shape[1]}
        ranked = rank_relevant(scores, gold, ties=ties)
        assert values["mean_average_precision"] == pytest.approx(ranked.average_precision())
        assert values["nDCG@3"] == pytest.approx(ranked.ndcg_at_k(3))


def test_types_are_kept_and_half_precision_never_becomes_float64():
    kept = {"f2": "f4", "f4": "f4", ">f4": "f4", "f8": "f8", "i4": "f8"}
    for dtype, expected in kept.items():
        rows = as_rows("x", np.ones((3, 2), dtype))
        assert rows.dtype == rows.take(np.arange(2)).dtype == np.dtype(expected)
    assert as_rows("x", [np.ones((1, 2), "f2"), np.ones((1, 2), "f4")]).dtype == np.float32
    ones = np.ones((2, 3), np.float16)
    assert embedding_scores(ones, ones).dtype == np.float32


def test_scores_in_half_precision_are_never_copied_as_a_whole(monkeypatch):
    monkeypatch.setattr(_inputs, "_PIECE_BYTES", 1 << 16)
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((300, 1500)).astype(np.float16)
    expected = evaluate(scores.astype(np.float32), captions_per_image=5)
    evaluate(scores, captions_per_image=5)
    tracemalloc.start()
    try:
        result = evaluate(scores, captions_per_image=5)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    same(result, expected)
    assert peak < 0.7 * scores.size * 4


def test_every_form_gives_the_ranks_of_float32(vectors, tmp_path):
    images, captions = vectors
    single = [part.astype(np.float32) for part in vectors]
    expected = evaluate(*single, caption_image=OWNER)
    for name, part in (("a", images), ("b", captions[:40]), ("c", captions[40:])):
        np.save(tmp_path / f"{name}.npy", part)
    np.save(tmp_path / "d.npy", np.asfortranarray(captions))
    forms = [
        vectors,
        (np.load(tmp_path / "a.npy", mmap_mode="r"), tmp_path / "d.npy"),
        ([images[:1], images[1:]], (captions[:40], captions[40:])),
        (str(tmp_path / "a.npy"), [tmp_path / "b.npy", str(tmp_path / "c.npy")]),
        (np.repeat(images, 2, axis=1)[:, ::2], captions[::-1][::-1]),
    ]
    for first, second in forms:
        result = evaluate(image_vectors=first, caption_vectors=second, captions_per_image=3)
        same(result, expected)
        assert result.settings == {"similarity": "cosine"}
        assert evaluate(first, second, captions_per_image=3) == result  # by position
    dot = evaluate(images, captions, captions_per_image=3, similarity="dot")
    assert dot.settings == {"similarity": "dot"}


def test_tensors_and_bfloat16(vectors):
    torch = pytest.importorskip("torch")
    halves = [torch.from_numpy(part) for part in vectors]
    same(evaluate(*halves, caption_image=OWNER), evaluate(*vectors, caption_image=OWNER))
    images, captions = (part.float().bfloat16() for part in halves)
    expected = evaluate(*(x.float().numpy() for x in (images, captions)), caption_image=OWNER)
    images.requires_grad_()  # the values are taken without their gradient
    turned = captions.T.contiguous().T  # strided
    same(evaluate(images, turned, caption_image=OWNER), expected)
    assert as_rows("x", images).dtype == np.float32
    brain = pytest.importorskip("ml_dtypes").bfloat16
    arrays = [part.detach().float().numpy().astype(brain) for part in (images, captions)]
    same(evaluate(*arrays, caption_image=OWNER), expected)
    refuses(TypeError, "x", as_rows, "x", arrays[0].view("V2"))


def test_files_that_are_no_matrices_are_refused_by_name(vectors, tmp_path):
    images, captions = vectors
    path = tmp_path / "x.npy"
    refuses(FileNotFoundError, "annotation_scores", evaluate, path)
    np.save(path, np.ones(3))
    shards = {"image_vectors": images, "caption_vectors": [captions, path]}
    refuses(ValueError, r"caption_vectors\[1\]", evaluate, **shards)
    np.save(path, np.array([["a"]]))
    refuses(ValueError, r"x\.npy", as_rows, "scores", path)
    for content in (b"", b"\x93NUMPY\x01\x00"):
        path.write_bytes(content)
        refuses(ValueError, r"x\.npy", as_rows, "scores", path)
    for n in (5, 2**31, 2**62):  # the header of a file that is longer
        header = {"descr": "<f4", "fortran_order": False, "shape": (n, n)}
        with path.open("wb") as file:
            np.lib.format.write_array_header_1_0(file, header)
            file.write(b"\0" * 96)
        refuses(ValueError, r"x\.npy is truncated", evaluate, path)


@pytest.mark.parametrize("source", ["scores", "vectors"])
def test_folds_are_means_over_pools_of_their_own(vectors, source):
    images, captions = (part.astype(np.float32) for part in vectors)
    order = np.random.default_rng(2).permutation(len(OWNER))
    captions, owner = captions[order], OWNER[order]
    scores = embedding_scores(images, captions)

    def measure(rows, columns, caption_image, **options):
        parts = images[rows], captions[columns]
        given = parts if source == "vectors" else [scores[rows][:, columns]]
        return evaluate(*given, caption_image=caption_image, **options)

    result = measure(slice(None), slice(None), owner, n_folds=3)
    assert (result.facts["n_folds"], result.facts["n_images"]) == (3, N_IMAGES)
    folds = []
    for start in (0, 10, 20):
        here = owner // 10 == start // 10
        folds.append(measure(slice(start, start + 10), here, owner[here] - start))
    for task, fold_of in zip(TASKS, (np.arange(30) // 10, owner // 10), strict=True):
        for numbers in ("mean", "chance", "tie_effect"):
            for name, value in getattr(result, numbers)[task].items():
                parts = [getattr(fold, numbers)[task][name] for fold in folds]
                assert value == pytest.approx(np.mean(parts))
        assert result.fold[task].tolist() == fold_of.tolist()
        for number, fold in enumerate(folds):  # each query has the place it came in
            here = result.values[task]["mean_rank"][fold_of == number]
            assert here.tolist() == fold.values[task]["mean_rank"].tolist()


def test_the_effect_of_ties_is_that_of_the_rules():
    scores = np.random.default_rng(3).integers(0, 4, (12, 36)).astype(np.float32)
    results = {rule: evaluate(scores, captions_per_image=3, ties=rule) for rule in TIE_RULES}
    for task in TASKS:
        best, worst = (results[rule].mean[task] for rule in ("min", "max"))
        expected = {f"R@{k}": best[f"R@{k}"] - worst[f"R@{k}"] for k in (1, 5, 10)}
        assert expected["R@5"] > 0
        for result in results.values():
            assert result.tie_effect[task] == pytest.approx(expected)


def test_vectors_in_half_precision_tie_less_than_their_scores():
    """As embeddings of CLIP do, these lie close together: products in half precision tie."""
    rng = np.random.default_rng(0)
    images = rng.standard_normal((400, 64)) + 6
    captions = np.repeat(images, 5, axis=0) + 2 * rng.standard_normal((2000, 64))
    both = (part / np.linalg.norm(part, axis=1, keepdims=True) for part in (images, captions))
    images, captions = (part.astype(np.float16) for part in both)
    exact = captions.astype(np.float64) @ images.T.astype(np.float64)
    result = evaluate(images, captions, captions_per_image=5, similarity="dot")
    own = exact[np.arange(2000), np.arange(2000) // 5]
    ranks = 1 + (exact > own[:, np.newaxis]).sum(axis=1)
    assert result.values["search"]["mean_rank"].tolist() == ranks.tolist()
    assert max(result.tie_effect["search"].values()) < 0.001
    in_half = evaluate(exact.T.astype(np.float16), captions_per_image=5)
    assert in_half.tie_effect["search"]["R@1"] > 0.02


def test_metrics_that_nobody_asked_for_yet_are_there_in_copies_and_pickles():
    scores = np.random.default_rng(0).normal(size=(6, 12))
    asked = evaluate(scores, captions_per_image=2)
    assert asked.summary()
    for copied in (
        dict,
        lambda own: dict(own.items()),
        lambda own: {name: own.get(name) for name in own},
        lambda own: pickle.loads(pickle.dumps(own)),
        copy.deepcopy,
    ):
        own = evaluate(scores, captions_per_image=2).values["search"]
        np.testing.assert_equal(copied(own), asked.values["search"])
    with pytest.raises(ValueError, match="read-only"):
        own["nDCG@5"][0] = 2
