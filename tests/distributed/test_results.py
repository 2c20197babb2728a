"""Results are those of one machine, with the same bytes for every number of workers."""

import sys

import kills
import numpy as np
import pytest
import runs
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refuses
from runs import RUNS, contents, digests

import kernelcore
from kernelcore.captions import EncodedCaptions
from kernelcore.distributed import (
    LandmarkKCCA,
    best_candidates,
    embed,
    evaluate,
    fit_landmark_kcca,
    gram_to_zarr,
    streamed_ranks,
)
from kernelcore.evaluation import streamed_ranks as ranks_on_one_machine
from kernelcore.images import CNN
from kernelcore.kcca import KCCA, LandmarkFeatures, feature_basis
from kernelcore.kernels import histogram_intersection, word_sequence

zarr = pytest.importorskip("zarr")

RNG = np.random.default_rng(0)


def linear(X, Y):
    return X.astype(np.float64) @ Y.astype(np.float64).T


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Results and files of each function in this process."""
    found = {}
    for name, run in RUNS.items():
        folder = tmp_path_factory.mktemp(name.replace(" ", "-"))
        found[name] = run(folder, None), contents(folder), folder
    return found


@pytest.mark.parametrize("name", RUNS)
def test_two_workers_write_the_same_bytes(plain, name, tmp_path, client):
    assert digests(RUNS[name](tmp_path, client)) == digests(plain[name][0])
    assert contents(tmp_path) == plain[name][1]


@pytest.mark.slow
@pytest.mark.parametrize("n_workers", [1, 4])
def test_any_number_of_workers_writes_the_same_bytes(plain, n_workers, tmp_path):
    distributed = pytest.importorskip("distributed")
    with runs.local_cluster(n_workers) as cluster, distributed.Client(cluster) as client:
        for name, run in RUNS.items():
            folder = tmp_path / name
            assert digests(run(folder, client)) == digests(plain[name][0]), name
            assert contents(folder) == plain[name][1], name


@pytest.mark.parametrize("run", [runs.ranks, runs.search, runs.photos])
def test_the_size_of_blocks_changes_nothing(plain, run, tmp_path):
    assert digests(run(tmp_path, None, 13_000)) == digests(plain[run.__name__][0])


def test_tasks_of_fewer_rows_change_nothing_of_note(plain, tmp_path, monkeypatch):
    monkeypatch.setattr("kernelcore.distributed.kcca._TASK_ROWS", 4096)
    monkeypatch.setattr("kernelcore.distributed.search._CANDIDATES", 2048)
    assert digests(runs.search(tmp_path / "best", None)) == digests(plain["search"][0])
    found, expected = runs.kcca(tmp_path, None), plain["kcca"][0]
    signs = np.sign((found["projections"] * expected["projections"]).sum(axis=0))
    np.testing.assert_allclose(found["correlations"], expected["correlations"], rtol=1e-7)
    signed = found["projections"] * signs
    np.testing.assert_allclose(signed, expected["projections"], rtol=1e-4, atol=1e-6)


def test_a_second_call_reads_what_is_there(plain):
    for name, run in RUNS.items():
        results, files, folder = plain[name]
        times = {path: path.stat().st_mtime_ns for path in folder.rglob("c/**/*")}
        assert digests(run(folder, None)) == digests(results)
        assert contents(folder) == files
        assert all(path.stat().st_mtime_ns == time for path, time in times.items())


def test_gram_is_that_of_the_kernel(plain):
    X, Y = runs.histograms(700, 12, 0), runs.histograms(300, 12, 1)
    for name, second in (("gram", Y), ("symmetric gram", None)):
        expected = histogram_intersection(X, second).astype(np.float32)
        np.testing.assert_array_equal(plain[name][0]["gram"], expected)
        np.testing.assert_array_equal(zarr.open_array(plain[name][2], mode="r")[:], expected)


def test_captions_in_memory_have_a_gram_matrix_too(tmp_path):
    captions = EncodedCaptions.from_lists(RNG.integers(0, 9, (40, 2, 5)).tolist(), n_words=9)
    K = gram_to_zarr(word_sequence, captions, None, tmp_path, tile=16)
    np.testing.assert_array_equal(K[:], word_sequence(captions).astype(np.float32))


def test_kcca_is_that_of_one_machine(plain):
    """Over the same features; components may have other signs."""
    features = LandmarkFeatures(histogram_intersection, n_landmarks=12)
    Fx, Fy = (features.fit_transform(rows) for rows in runs.views())
    kcca = KCCA(4).fit(feature_basis(Fx[runs.owner()]), feature_basis(Fy))
    results = plain["kcca"][0]
    np.testing.assert_allclose(results["correlations"], kcca.correlations_, rtol=1e-7)
    expected, found = kcca.transform_y(Fy), results["projections"]
    signs = np.sign((expected * found).sum(axis=0))
    np.testing.assert_allclose(found * signs, expected, rtol=1e-4, atol=1e-6)


def test_features_of_photos_are_those_of_the_network(plain):
    results, _, folder = plain["photos"]
    scenes = sorted((folder / "scenes").rglob("*.png"))
    expected = CNN(input_size=64).transform(scenes).features
    np.testing.assert_array_equal(results["features"], expected)


def drawn(rng, n, n_columns, dtype):
    """Vectors of few values, so that many scores are equal."""
    values = rng.integers(-2, 3, size=(n, n_columns))
    return (values + 2 * (dtype == np.uint8)).astype(dtype)


SIMILARITIES = st.sampled_from(["cosine", "dot"])
TIES = st.sampled_from(["mean", "min", "max", "ordinal"])


@settings(max_examples=12)
@given(
    seed=st.integers(0, 1000),
    block_rows=st.integers(5, 40),
    options=st.fixed_dictionaries({"similarity": SIMILARITIES, "ties": TIES}),
    dtypes=st.tuples(*[st.sampled_from([np.float16, np.float32, np.float64, np.uint8])] * 2),
)
def test_ranks_are_those_of_one_machine(tmp_path_factory, seed, block_rows, options, dtypes):
    rng = np.random.default_rng(seed)
    n_images = int(rng.integers(1, 12))
    owner = np.concatenate([np.arange(n_images), rng.integers(0, n_images, 20)])
    rng.shuffle(owner)
    pair = drawn(rng, n_images, 3, dtypes[0]), drawn(rng, len(owner), 3, dtypes[1])
    folder = tmp_path_factory.mktemp("ranks")
    more = {"caption_image": owner, "block_rows": block_rows, "n_threads": 1}
    found = streamed_ranks(*pair, folder, **more, **options)
    expected = ranks_on_one_machine(*pair, owner, **options)
    np.testing.assert_array_equal(found.annotation, expected.annotation)
    np.testing.assert_array_equal(found.search, expected.search)


def test_all_metrics_are_those_of_evaluate(tmp_path):
    images, captions = RNG.normal(size=(30, 6)), RNG.normal(size=(90, 6))
    pool = {"caption_image": np.repeat(np.arange(30), 3), "system": "ours"}
    np.save(tmp_path / "b.npy", captions)
    found = evaluate(images, tmp_path / "b.npy", tmp_path / "s", block_rows=17, **pool)
    expected = kernelcore.evaluate(image_vectors=images, caption_vectors=captions, **pool)
    assert found == expected


@pytest.mark.parametrize("order", ["ascending", "descending", "level"])
@pytest.mark.parametrize("k", [1, 12, 6000])
def test_the_best_candidates_are_exact_in_any_order(tmp_path, order, k):
    """Small integers have exact scores: every tie of a sort is a tie here."""
    rows = RNG.integers(-3, 4, size=(5000, 4)).astype(np.float32)
    rows[:, 0] = 0.0
    if order != "level":
        rows[:, 0] = np.arange(5000) // 7 * (1 if order == "ascending" else -1)
    queries = np.hstack([np.ones((9, 1)), RNG.integers(-2, 3, size=(9, 3))]).astype(np.float32)
    best = best_candidates(queries, rows, tmp_path, k=k, similarity="dot", n_threads=1)
    scores = queries @ rows.T
    positions = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(best.positions, positions)
    np.testing.assert_array_equal(best.scores, np.take_along_axis(scores, positions, axis=1))


def test_a_model_is_saved_and_read_with_the_kernels_of_the_caller(tmp_path):
    X = RNG.random((400, 5))
    Y = np.hstack([X[:, :3] + RNG.random((400, 3)) / 10, RNG.random((400, 2))])
    kernels = linear, histogram_intersection
    options = {"kernels": kernels, "n_landmarks": 30, "n_components": 3}
    model = fit_landmark_kcca(X, Y, tmp_path / "s", **options)
    path = tmp_path / "s" / "model.safetensors"
    again = LandmarkKCCA.load(path, kernels=kernels)
    np.testing.assert_array_equal(again.embed("images", X), model.embed("images", X))
    np.testing.assert_array_equal(again.embed("captions", Y), model.embed("captions", Y))
    rows = embed(again, "images", X, tmp_path / "e")
    np.testing.assert_array_equal(rows[:], model.embed("images", X))
    u, v = model.embed("images", X), model.embed("captions", Y)
    found = [np.corrcoef(u[:, k], v[:, k])[0, 1] for k in range(3)]
    np.testing.assert_allclose(found, model.kcca.correlations_, atol=0.05)
    assert model.kcca.correlations_[0] > 0.8
    refuses(ValueError, ".*kernels", LandmarkKCCA.load, path)
    refuses(ValueError, "rows .*5", model.embed, "images", X[:, :2])
    content = bytearray(path.read_bytes())
    content[-9] ^= 1
    path.write_bytes(content)
    refuses(ValueError, r".*model\.safetensors", LandmarkKCCA.load, path, kernels=kernels)


def test_vectors_of_counts_and_of_half_precision(tmp_path):
    counts = RNG.integers(0, 256, size=(60, 8)).astype(np.uint8)
    best = best_candidates(counts, counts.astype(np.float16), tmp_path, k=1)
    np.testing.assert_array_equal(best.positions[:, 0], np.arange(60))
    np.testing.assert_allclose(best.scores, 1.0)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks for workers in /proc")
def test_after_kills_at_random_moments_the_next_run_completes_with_the_same_bytes():
    pytest.importorskip("distributed")
    counts = kills.run(21, seed=0)
    assert sum(counts.values()) == 21
    assert sum(n for what, n in counts.items() if "too late" not in what) > 10
