"""`evaluate` from scores and from embeddings, in every form they come in."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernelcore
from kernelcore.evaluation import (
    FoldedResult,
    GoldPlaces,
    RankingMetrics,
    RetrievalResult,
    _inputs,
    embedding_scores,
    evaluate,
    rank_relevant,
    tiles,
)
from kernelcore.evaluation._inputs import as_rows
from kernelcore.evaluation.metrics import bootstrap_interval, mean_reciprocal_rank, median_rank
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
    for task in TASKS:
        ours, theirs = getattr(result, task), getattr(expected, task)
        assert ours.ranks.tolist() == theirs.ranks.tolist()
        assert ours.places.greater.tolist() == theirs.places.greater.tolist()
        assert ours.places.tied.tolist() == theirs.places.tied.tolist()


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
        metrics = getattr(result, task)
        ranks = reference_ranks(scores.tolist(), gold, ties=ties)
        assert metrics.ranks == pytest.approx(ranks)
        assert metrics.recall[3] == np.mean(np.array(ranks) <= 3)
        assert metrics.n_relevant.tolist() == list(map(len, gold))
        sorted_ = rank_relevant(scores, gold, ties=ties)
        assert metrics.relevance.average_precision() == pytest.approx(
            sorted_.average_precision()
        )
        assert metrics.relevance.ndcg_at_k(3) == pytest.approx(sorted_.ndcg_at_k(3))
        greater = [
            sum(row > row[c]) for row, own in zip(scores, gold, strict=True) for c in own
        ]
        tied = [sum(row == row[c]) for row, own in zip(scores, gold, strict=True) for c in own]
        assert metrics.places.greater.tolist() == greater
        assert metrics.places.tied.tolist() == tied


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
        metrics = getattr(result, task)
        for k in (1, 5, 10):
            assert metrics.recall[k] == pytest.approx(mean[f"success_{k}"])
            assert metrics.ndcg[k] == pytest.approx(mean[f"ndcg_cut_{k}"])
        assert metrics.mean_reciprocal_rank == pytest.approx(mean["recip_rank"])
        assert metrics.mean_average_precision == pytest.approx(mean["map"])


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
        device = "cuda:0"

        def __dlpack_device__(self):
            return (2, 0)

    with pytest.raises(
        TypeError,
        match=r"image_vectors must be in the memory of the CPU, got a "
        r"tensor on cuda:0: give image_vectors\.cpu\(\)",
    ):
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
    assert isinstance(result, FoldedResult)
    assert (result.n_folds, result.n_images, result.system) == (3, N_IMAGES, "x")
    folds = [
        measure(
            slice(start, start + 10),
            owner // 10 == start // 10,
            owner[owner // 10 == start // 10] - start,
        )
        for start in (0, 10, 20)
    ]
    for task in TASKS:
        metrics, parts = getattr(result, task), [getattr(fold, task) for fold in folds]
        for name in ("mean_average_precision", "mean_rank", "median_rank"):
            mean = np.mean([getattr(part, name) for part in parts])
            assert getattr(metrics, name) == pytest.approx(mean)
        for name in ("recall", "ndcg", "chance_recall", "tie_effect"):
            mean = np.mean([getattr(part, name)[5] for part in parts])
            assert getattr(metrics, name)[5] == pytest.approx(mean)
    assert FoldedResult.from_json(result.to_json()) == result
    assert result.summary().rows[0][0] == "R@1"
    with pytest.raises(ValueError, match=r"n_folds must divide the number of images \(30\)"):
        measure(slice(None), slice(None), owner, n_folds=4)


def test_ties_by_every_rule_follow_from_one_result():
    scores = np.random.default_rng(3).integers(0, 4, (12, 36)).astype(np.float32)
    results = {rule: evaluate(scores, captions_per_image=3, ties=rule) for rule in TIE_RULES}
    for task in TASKS:
        ordinal = getattr(results["ordinal"], task)
        for rule in TIE_RULES:
            expected = getattr(results[rule], task)
            assert ordinal.places.ranks(rule).tolist() == expected.ranks.tolist()
            assert expected.tie_effect == getattr(results["mean"], task).tie_effect
        best, worst = (getattr(results[rule], task).recall for rule in ("min", "max"))
        assert ordinal.tie_effect == {k: best[k] - worst[k] for k in (1, 5, 10)}
        with pytest.raises(ValueError, match="'ordinal'"):
            getattr(results["mean"], task).places.ranks("ordinal")
    effect = max(
        effect
        for task in TASKS
        for effect in getattr(results["mean"], task).tie_effect.values()
    )
    assert effect > 0
    assert f"ties move R@k by at most {100 * effect:.1f}" in str(results["mean"])


def test_pool_and_chance_are_printed(vectors):
    result = evaluate(np.eye(4), system="perfect")
    assert "4 images, 4 captions" in str(result)
    assert "chance: annotation 25 100 100, search 25 100 100" in str(result)
    assert result.rsum == 6
    other = evaluate(np.eye(2), system="small")
    table = kernelcore.evaluation.ResultTable([result, other])
    assert "chance of perfect: annotation 25 100 100" in str(table)
    assert "chance of small: annotation 50 100 100" in str(table)


def test_a_result_without_places_is_read_and_printed():
    document = evaluate([[0.5, 0.5], [0.1, 0.9]], system="old").to_dict()
    for task in TASKS:
        for name in ("greater", "tied"):
            del document[task][name]
    old = RetrievalResult.from_dict(document)
    assert old.annotation.places is None
    assert not old.annotation.has_places
    assert "ties move" not in str(old)
    assert "mean_average_precision" not in old.to_dict()["search"]
    assert [row[0] for row in old.summary().rows][-1] == "MRR"
    for what in ("relevance", "mean_average_precision", "tie_effect", "ndcg"):
        with pytest.raises(ValueError, match="places must be known"):
            getattr(old.annotation, what)


def test_the_summary_has_intervals_as_the_bootstrap_draws_them(vectors):
    images, captions = vectors
    result = evaluate(image_vectors=images, caption_vectors=captions, captions_per_image=3)
    table = result.summary(n_resamples=50, confidence=0.9, rng=7)
    rows = {row[0]: row[1:] for row in table.rows}
    assert table.columns[1:5] == ("value", "90%", "ties", "chance")
    ranks = result.annotation.ranks
    for name, metric in (("median rank", median_rank), ("mean rank", np.mean)):
        low, high = bootstrap_interval(metric, ranks, n_resamples=50, confidence=0.9, rng=7)
        assert rows[name][:2] == (f"{metric(ranks):.1f}", f"{low:.1f} to {high:.1f}")
    low, high = bootstrap_interval(
        mean_reciprocal_rank, ranks, n_resamples=50, confidence=0.9, rng=7
    )
    assert rows["MRR"][1] == f"{low:.3f} to {high:.3f}"
    assert rows["R@5"][4] == f"{100 * result.search.recall[5]:.1f}"
    assert rows["R@5"][7] == f"{100 * 5 / 30:.2f}"
    assert rows["mean rank"][3] == f"{91 / 4:.1f}"
    assert rows["MAP"][0] == f"{100 * result.annotation.mean_average_precision:.1f}"
    assert table._repr_html_() == table.to_html()
    assert "<table>" in result._repr_html_()


def test_without_recalls_no_chance_is_printed():
    assert "chance" not in str(evaluate(np.eye(3), ks=()))


def test_errors_name_the_argument(vectors, tmp_path):
    images, captions = vectors
    both = {"image_vectors": images, "caption_vectors": captions}
    for match, arguments in (
        ("annotation_scores must be given, or image_vectors and caption_vectors", {}),
        ("caption_vectors must be given beside image_vectors", {"image_vectors": images}),
        ("image_vectors must be given beside caption_v", {"caption_vectors": captions}),
        (
            "image_vectors must not be given beside annotation_scores",
            {**both, "annotation_scores": np.eye(2)},
        ),
        ("annotation_scores must be given beside search_scores", {"search_scores": np.eye(2)}),
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
            r"got \(90, 6\); vectors are given by name, image_vectors= and caption_vectors=",
            {
                "annotation_scores": images,
                "search_scores": captions,
                "captions_per_image": 3,
            },
        ),
        (
            "caption_vectors must have as many dimensions as image_vectors",
            {**both, "caption_vectors": captions[:, 1:]},
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


def test_places_are_checked():
    fitting = {"n_gold": [1, 2], "greater": [0, 1, 2], "tied": [1, 1, 1]}
    assert GoldPlaces(**fitting).ranks("mean").tolist() == [1, 2]
    for match, wrong in (
        ("n_gold must be >= 1, got 0", {"n_gold": [0, 3]}),
        ("greater must be >= 0, got -1", {"greater": [0, -1, 2]}),
        ("tied must be >= 1, got 0", {"tied": [1, 0, 1]}),
        (r"tied must have one entry per gold candidate \(3\)", {"tied": [1, 1]}),
        ("ties must be one of", None),
    ):
        with pytest.raises(ValueError, match=match):
            GoldPlaces(**{**fitting, **(wrong or {})}).ranks(
                "best" if wrong is None else "mean"
            )
    places = GoldPlaces(**fitting)
    for match, n_relevant, n_candidates in (
        ("as many gold candidates", [2, 1], 5),
        (r"end at n_candidates \(2\), got 3", [1, 2], 2),
    ):
        with pytest.raises(ValueError, match=match):
            RankingMetrics([1, 2], n_relevant, n_candidates, places=places)
    with pytest.raises(TypeError, match="places must be GoldPlaces, got dict"):
        RankingMetrics([1, 2], [1, 2], 5, places=fitting)


@pytest.mark.parametrize("n", [5, 2**20, 2**31, 2**62])
def test_a_file_shorter_than_its_header_says_is_named(tmp_path, n):
    path = tmp_path / "x.npy"
    header = {"descr": "<f4", "fortran_order": False, "shape": (n, n)}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        file.write(b"\0" * 96)
    with pytest.raises(ValueError, match=r"x\.npy is truncated: it must hold \d+ bytes"):
        evaluate(path)
