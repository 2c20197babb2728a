"""`evaluate` from scores and from embeddings, in every form they come in."""

import copy
import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernelcore
from kernelcore.datasets import load_eccv_caption
from kernelcore.evaluation import (
    Result,
    _inputs,
    embedding_scores,
    evaluate,
    rank_relevant,
    tiles,
)
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


def test_the_package_has_it_at_the_top():
    assert kernelcore.evaluate is evaluate


def gold_of(owner, n_images):
    return [np.flatnonzero(owner == image).tolist() for image in range(n_images)]


@given(
    seed=st.integers(0, 2**32 - 1),
    n_images=st.integers(1, 6),
    extra=st.integers(0, 6),
    ties=st.sampled_from(TIE_RULES),
    layout=st.sampled_from(["C", "F", "half", "pieces", "two", "vectors"]),
)
@settings(max_examples=120, deadline=None)
def test_all_metrics_equal_the_definitions(seed, n_images, extra, ties, layout):
    """Whole numbers: products are exact, and there are many ties."""
    rng = np.random.default_rng(seed)
    images, captions = (rng.integers(-1, 2, (n, 2)) for n in (n_images, n_images + extra))
    owner = rng.permutation(np.r_[np.arange(n_images), rng.integers(0, n_images, extra)])
    table = (images @ captions.T).astype(np.float32)
    arguments = {
        "C": [table],
        "F": [np.asfortranarray(table)],
        "half": [table.astype(np.float16)],
        "pieces": [[table[:1], table[1:]] if n_images > 1 else table],
        "two": [table, np.asfortranarray(table)],
        "vectors": [],
    }[layout]
    given_vectors = (
        {"image_vectors": images, "caption_vectors": captions, "similarity": "dot"}
        if layout == "vectors"
        else {}
    )
    result = evaluate(
        *arguments, **given_vectors, caption_image=owner, ties=ties, ks=(1, 3), n_threads=2
    )
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


def all_orders_ndcg(row, relevant, k):
    """Mean over many random orders of tied items."""
    rng = np.random.default_rng(1)
    values = []
    for _ in range(4000):
        order = np.lexsort((rng.random(len(row)), -row))
        gains = np.isin(order[:k], relevant) / np.log2(np.arange(2, min(k, len(row)) + 2))
        best = (1 / np.log2(np.arange(2, min(k, len(relevant)) + 2))).sum()
        values.append(gains.sum() / best)
    return np.mean(values)


@pytest.mark.parametrize("k", [1, 2, 4, 9])
def test_ndcg_is_the_expectation_over_the_orders_of_ties(k):
    row = np.array([3.0, 2.0, 2.0, 2.0, 1.0, 1.0])
    relevant = [1, 2, 5]
    found = rank_relevant(row[np.newaxis], [relevant]).ndcg_at_k(k)[0]
    assert found == pytest.approx(all_orders_ndcg(row, relevant, k), abs=0.01)


def test_metrics_equal_those_of_pytrec_eval(vectors):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    images, captions = (part.astype(np.float64) for part in vectors)
    result = evaluate(image_vectors=images, caption_vectors=captions, captions_per_image=3)
    scores = embedding_scores(images, captions)
    measures = {"success.1,5,10", "recip_rank", "map", "ndcg_cut.1,5,10"}
    golds = (gold_of(OWNER, N_IMAGES), [[image] for image in OWNER.tolist()])
    for task, table, gold in zip(TASKS, (scores, scores.T), golds, strict=True):
        run = {
            str(q): {f"{c:04}": float(score) for c, score in enumerate(row)}
            for q, row in enumerate(table)
        }
        qrels = {str(q): {f"{c:04}": 1 for c in own} for q, own in enumerate(gold)}
        by_query = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)
        mean = {
            name: np.mean([values[name] for values in by_query.values()])
            for name in by_query["0"]
        }
        metrics = result.mean[task]
        for k in (1, 5, 10):
            assert metrics[f"R@{k}"] == pytest.approx(mean[f"success_{k}"])
            assert metrics[f"nDCG@{k}"] == pytest.approx(mean[f"ndcg_cut_{k}"])
        assert metrics["mean_reciprocal_rank"] == pytest.approx(mean["recip_rank"])
        assert metrics["mean_average_precision"] == pytest.approx(mean["map"])


def tensors(images, captions):
    torch = pytest.importorskip("torch")
    return (torch.from_numpy(part) for part in (images, captions))


@pytest.mark.parametrize(
    "form", ["half", "memory map", "shards", "files", "tensors", "strided"]
)
def test_every_form_gives_the_ranks_of_float32(vectors, tmp_path, form):
    images, captions = vectors
    expected = evaluate(
        image_vectors=images.astype(np.float32),
        caption_vectors=captions.astype(np.float32),
        caption_image=OWNER,
    )
    for name, part in (("a", images), ("b", captions[:40]), ("c", captions[40:])):
        np.save(tmp_path / f"{name}.npy", part)
    np.save(tmp_path / "d.npy", np.asfortranarray(captions))
    forms = {
        "half": lambda: (images, captions),
        "memory map": lambda: (np.load(tmp_path / "a.npy", mmap_mode="r"), tmp_path / "d.npy"),
        "shards": lambda: ([images[:1], images[1:]], (captions[:40], captions[40:])),
        "files": lambda: (
            str(tmp_path / "a.npy"),
            [tmp_path / "b.npy", str(tmp_path / "c.npy")],
        ),
        "tensors": lambda: tensors(images, captions),
        "strided": lambda: (np.repeat(images, 2, axis=1)[:, ::2], captions[::-1][::-1]),
    }
    first, second = forms[form]()
    result = evaluate(image_vectors=first, caption_vectors=second, captions_per_image=3)
    same(result, expected)
    assert result.settings == {"similarity": "cosine"}


def test_bfloat16_is_read_as_float32_from_tensors_and_arrays(vectors):
    torch = pytest.importorskip("torch")
    images, captions = (
        torch.from_numpy(part.astype(np.float32)).bfloat16() for part in vectors
    )
    expected = evaluate(
        image_vectors=images.float().numpy(),
        caption_vectors=captions.float().numpy(),
        caption_image=OWNER,
    )
    options = {"caption_image": OWNER}
    same(evaluate(image_vectors=images, caption_vectors=captions, **options), expected)
    images.requires_grad_()  # the values are taken without their gradient
    turned = captions.T.contiguous().T  # strided
    same(evaluate(image_vectors=images, caption_vectors=turned, **options), expected)
    assert as_rows("x", images).dtype == np.float32
    ml_dtypes = pytest.importorskip("ml_dtypes")
    arrays = (
        part.detach().float().numpy().astype(ml_dtypes.bfloat16) for part in (images, captions)
    )
    first, second = arrays
    same(evaluate(image_vectors=first, caption_vectors=second, **options), expected)
    with pytest.raises(
        TypeError, match=r"image_vectors must hold real numbers, got dtype \|V2"
    ):
        evaluate(image_vectors=first.view("V2"), caption_vectors=second, **options)


def test_types_are_kept_and_half_precision_never_becomes_float64():
    for dtype, expected in (
        ("f2", "f4"),
        ("f4", "f4"),
        (">f4", "f4"),
        ("f8", "f8"),
        ("i4", "f8"),
    ):
        rows = as_rows("x", np.ones((3, 2), dtype))
        assert rows.dtype == rows.take(np.arange(2)).dtype == np.dtype(expected)
    assert as_rows("x", [np.ones((1, 2), "f2"), np.ones((1, 2), "f4")]).dtype == np.float32
    ones = np.ones((2, 3), np.float16)
    assert embedding_scores(ones, ones).dtype == np.float32


def test_a_tensor_on_another_device_is_refused_with_what_to_write():
    class Remote:
        def __array__(self, *arguments, **options):
            raise TypeError("can't convert cuda:0 tensor to numpy. Use Tensor.cpu() first.")

    with pytest.raises(TypeError, match=r"^image_vectors must be .* Use Tensor\.cpu\(\)"):
        evaluate(image_vectors=Remote(), caption_vectors=np.ones((1, 1)))


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


@pytest.mark.parametrize("source", ["scores", "vectors"])
def test_folds_are_means_over_pools_of_their_own(vectors, source, monkeypatch):
    monkeypatch.setattr(tiles, "TILE", (8, 12))
    images, captions = (part.astype(np.float32) for part in vectors)
    order = np.random.default_rng(2).permutation(len(OWNER))
    captions, owner = captions[order], OWNER[order]
    scores = embedding_scores(images, captions)

    def measure(rows, columns, caption_image, **options):
        if source == "scores":
            return evaluate(scores[rows][:, columns], caption_image=caption_image, **options)
        return evaluate(
            image_vectors=images[rows],
            caption_vectors=captions[columns],
            caption_image=caption_image,
            **options,
        )

    result = measure(slice(None), slice(None), owner, n_folds=3, system="x")
    assert isinstance(result, Result)
    assert (result.facts["n_folds"], result.facts["n_images"]) == (3, N_IMAGES)
    folds = [
        measure(
            slice(start, start + 10),
            owner // 10 == start // 10,
            owner[owner // 10 == start // 10] - start,
        )
        for start in (0, 10, 20)
    ]
    for task in TASKS:
        for numbers in ("mean", "chance", "tie_effect"):
            found = getattr(result, numbers)[task]
            for name, value in found.items():
                parts = [getattr(fold, numbers)[task][name] for fold in folds]
                assert value == pytest.approx(np.mean(parts))
        positions = np.arange(30) if task == "annotation" else np.arange(90)
        fold_of = (positions if task == "annotation" else owner) // 10
        assert result.fold[task].tolist() == fold_of.tolist()
        for number, fold in enumerate(folds):  # each query has the place it came in
            here = result.values[task]["mean_rank"][fold_of == number]
            assert here.tolist() == fold.values[task]["mean_rank"].tolist()
    with pytest.raises(ValueError, match=r"n_folds must divide the number of images \(30\)"):
        measure(slice(None), slice(None), owner, n_folds=4)


def test_the_effect_of_ties_is_that_of_the_rules():
    scores = np.random.default_rng(3).integers(0, 4, (12, 36)).astype(np.float32)
    results = {rule: evaluate(scores, captions_per_image=3, ties=rule) for rule in TIE_RULES}
    for task in TASKS:
        best, worst = (results[rule].mean[task] for rule in ("min", "max"))
        for result in results.values():
            expected = {f"R@{k}": best[f"R@{k}"] - worst[f"R@{k}"] for k in (1, 5, 10)}
            assert result.tie_effect[task] == pytest.approx(expected)
    effect = max(max(of.values()) for of in results["mean"].tie_effect.values())
    assert effect > 0
    assert f"ties move R@k by at most {100 * effect:.1f}" in str(results["mean"])


def test_vectors_by_position(vectors):
    images, captions = vectors
    by_name = evaluate(image_vectors=images, caption_vectors=captions, captions_per_image=3)
    assert evaluate(images, captions, captions_per_image=3) == by_name
    dot = evaluate(images, captions, captions_per_image=3, similarity="dot")
    assert dot.settings == {"similarity": "dot"}


def test_errors_name_the_argument(vectors, tmp_path):
    images, captions = vectors
    both = {"image_vectors": images, "caption_vectors": captions}
    for match, arguments in (
        ("annotation_scores must be given, .* got none of them", {}),
        ("caption_vectors, got image_vectors", {"image_vectors": images}),
        ("caption_vectors, got caption_vectors", {"caption_vectors": captions}),
        (
            "got annotation_scores and image_vectors and caption_vectors",
            {**both, "annotation_scores": np.eye(2)},
        ),
        ("caption_vectors, got search_scores", {"search_scores": np.eye(2)}),
        (
            "captions_per_image must not be given beside caption_image",
            {**both, "captions_per_image": 3, "caption_image": OWNER},
        ),
        (
            "captions_per_image must give 90 captions to 30 images, got 4",
            {**both, "captions_per_image": 4},
        ),
        ("similarity must be one of 'cosine', 'dot'", {**both, "similarity": "l2"}),
        (
            "similarity must be omitted unless vectors are given, got 'dot'",
            {"annotation_scores": np.eye(2), "similarity": "dot"},
        ),
        (
            r"search_scores must have the shape of annotation_scores, \(2, 2\), got \(3, 3\)",
            {"annotation_scores": np.eye(2), "search_scores": np.eye(3)},
        ),
        (
            r"caption_image must be given .*, got shape \(3, 2\); vectors of as many",
            {"annotation_scores": np.ones((3, 2)), "search_scores": np.ones((3, 2))},
        ),
        ("n_folds must be an integer >= 1", {"annotation_scores": np.eye(2), "n_folds": 0}),
        (
            "caption_vectors must have as many dimensions as image_vectors",
            {**both, "caption_vectors": captions[:, 1:], "captions_per_image": 3},
        ),
        (
            r"image_vectors must have shards of equally many columns, got \[5, 6\]",
            {**both, "image_vectors": [images, images[:, 1:]]},
        ),
        (
            r"image_vectors must not be empty, got shape \(0, 6\)",
            {**both, "image_vectors": images[:0]},
        ),
        (
            r"caption_vectors\[1\] must be a 2-D array",
            {**both, "caption_vectors": [captions, tmp_path / "x.npy"]},
        ),
    ):
        np.save(tmp_path / "x.npy", np.ones(3))
        with pytest.raises(ValueError, match=match):
            evaluate(**arguments)
    bad = captions.copy()
    bad[77, 2] = np.inf
    with pytest.raises(
        ValueError, match=r"caption_vectors must be finite, got inf at \[77, 2\]"
    ):
        evaluate(**{**both, "caption_vectors": [bad[:50], bad[50:]]}, captions_per_image=3)
    with pytest.raises(
        FileNotFoundError, match=r"image_vectors must be an array or a \.npy file"
    ):
        evaluate(image_vectors=tmp_path / "no.npy", caption_vectors=captions)


def test_nan_is_named_by_its_place_in_the_whole_matrix(monkeypatch):
    monkeypatch.setattr(_inputs, "_PIECE_BYTES", 64)
    scores = np.zeros((9, 9), np.float16)
    scores[7, 3] = np.nan
    with pytest.raises(ValueError, match=r"annotation_scores must not hold NaN, .* \[7, 3\]"):
        evaluate(scores)


def test_files_that_are_no_matrices_are_refused_by_name(tmp_path):
    path = tmp_path / "x.npy"
    for content, match in (
        (b"", "must be an array of NumPy"),
        (b"\x93NUMPY\x01\x00", "must be an array of NumPy"),
    ):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=f"x.npy {match}"):
            as_rows("scores", path)
    np.save(path, np.ones((4, 4)))
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(ValueError, match=r"x\.npy is truncated: it must hold 128 bytes"):
        as_rows("scores", path)
    np.save(path, np.array([["a"]]))
    with pytest.raises(ValueError, match="must hold real numbers"):
        as_rows("scores", path)


@pytest.mark.parametrize("n", [5, 2**20, 2**31, 2**62])
def test_a_file_shorter_than_its_header_says_is_named(tmp_path, n):
    path = tmp_path / "x.npy"
    header = {"descr": "<f4", "fortran_order": False, "shape": (n, n)}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        file.write(b"\0" * 96)
    with pytest.raises(ValueError, match=r"x\.npy is truncated: it must hold \d+ bytes"):
        evaluate(path)


@pytest.mark.realdata
def test_chance_in_the_folds_of_coco(data_root):
    own = load_eccv_caption(data_root / "coco" / "eccv_caption", "original").search
    owner = np.empty(25000, dtype=np.intp)
    owner[own.captions] = own.images
    rng = np.random.default_rng(0)
    scores = rng.random((5000, 25000), dtype=np.float32)
    result = evaluate(scores, caption_image=owner, n_folds=5)
    assert result.facts == {"n_images": 5000, "n_captions": 25000, "ties": "mean", "n_folds": 5}
    assert set(result.n_candidates["annotation"]) == {5000}
    assert set(result.n_candidates["search"]) == {1000}
    assert result.mean["search"]["median_rank"] == pytest.approx(500.5, abs=10)
    # The best of 5 among 5,000 in random order stands at (N + 1) / (m + 1) on average
    assert result.mean["annotation"]["mean_rank"] == pytest.approx(5001 / 6, rel=0.05)
    assert result.mean["search"]["R@10"] == pytest.approx(0.01, abs=0.003)


def test_metrics_that_nobody_asked_for_yet_are_there_in_copies_and_pickles():
    scores = np.random.default_rng(0).normal(size=(6, 12))
    asked = evaluate(scores, captions_per_image=2)
    assert asked.summary()
    for copied in (
        dict,
        lambda own: {**own},
        lambda own: dict(own.items()),
        lambda own: dict(zip(own, own.values(), strict=True)),
        lambda own: {name: own.get(name) for name in own},
        lambda own: pickle.loads(pickle.dumps(own)),
        copy.deepcopy,
    ):
        own = evaluate(scores, captions_per_image=2).values["search"]
        np.testing.assert_equal(copied(own), asked.values["search"])
        np.testing.assert_equal(own, dict(asked.values["search"]))
    own = evaluate(scores, captions_per_image=2).values["search"]
    assert "function" not in repr(own)
    with pytest.raises(ValueError, match="read-only"):
        own["nDCG@5"][0] = 2
