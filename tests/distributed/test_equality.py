"""Results have the same bits for every executor, number of workers and size of shards."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from clusters import local_cluster
from runs import RUNS, SHARDS, contents, digests, histograms, owner, vectors

from kernelcore.distributed import load_landmarks
from kernelcore.evaluation import streamed_ranks
from kernelcore.images import CNN
from kernelcore.kcca import KCCA, LandmarkFeatures, feature_basis
from kernelcore.kernels import histogram_intersection


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Results and files of each function in this process, with the smallest shards."""
    found = {}
    for name, run in RUNS.items():
        folder = tmp_path_factory.mktemp(name)
        found[name] = run(folder, None, SHARDS[0]), contents(folder), folder
    return found


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("size", [SHARDS[1], pytest.param(SHARDS[2], marks=pytest.mark.slow)])
def test_size_of_shards_changes_nothing(plain, name, size, tmp_path):
    assert digests(RUNS[name](tmp_path, None, size)) == digests(plain[name][0])


@pytest.mark.parametrize("name", RUNS)
def test_two_workers_write_the_same_bytes(plain, name, tmp_path, client):
    assert digests(RUNS[name](tmp_path, client, SHARDS[0])) == digests(plain[name][0])
    assert contents(tmp_path) == plain[name][1]


@pytest.mark.slow
def test_processes_write_the_same_bytes(plain, tmp_path):
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        for name, run in RUNS.items():
            found = run(tmp_path / name, executor, SHARDS[0])
            assert digests(found) == digests(plain[name][0])


@pytest.mark.slow
@pytest.mark.parametrize("n_workers", [1, 4])
def test_any_number_of_workers_writes_the_same_bytes(plain, n_workers, tmp_path):
    distributed = pytest.importorskip("distributed")
    with local_cluster(n_workers) as cluster, distributed.Client(cluster) as client:
        for name, run in RUNS.items():
            for size in SHARDS:
                folder = tmp_path / f"{name}-{size}"
                found = run(folder, client, size)
                assert digests(found) == digests(plain[name][0]), (name, size)


def test_a_second_call_reads_what_is_there(plain):
    for name, run in RUNS.items():
        _, files, folder = plain[name]
        times = {path: path.stat().st_mtime_ns for path in folder.rglob("done/*.json")}
        assert digests(run(folder, None, SHARDS[0])) == digests(plain[name][0])
        assert contents(folder) == files
        for path, time in times.items():
            assert path.stat().st_mtime_ns == time


def test_gram_is_that_of_the_kernel(plain):
    X, Y = histograms(700, 12, 0), histograms(300, 12, 1)
    expected = histogram_intersection(X, Y)
    np.testing.assert_array_equal(plain["gram"][0]["gram"], expected.astype(np.float32))
    expected = histogram_intersection(X)
    np.testing.assert_array_equal(
        plain["symmetric_gram"][0]["gram"], expected.astype(np.float32)
    )


def test_zarr_reads_the_gram_matrix(plain):
    zarr = pytest.importorskip("zarr")
    for name in ("gram", "symmetric_gram"):
        results, _, folder = plain[name]
        array = zarr.open_array(str(folder / "gram.zarr"), mode="r")
        np.testing.assert_array_equal(array[:], results["gram"])


def test_landmarks_are_those_of_one_machine(plain):
    X = histograms(9000, 12, 2)
    one = LandmarkFeatures(histogram_intersection, n_landmarks=20).fit(X)
    results, _, folder = plain["features"]
    found = load_landmarks(folder)
    np.testing.assert_array_equal(found.positions, one.landmarks_)
    np.testing.assert_allclose(found.triangle, one.triangle_, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(results["features"], one.transform(X), rtol=1e-8, atol=1e-8)


def test_kcca_is_that_of_one_machine(plain):
    """Over the same features; components may have other signs."""
    results, _, folder = plain["kcca"]
    parts = {}
    for view in ("images", "captions"):
        path = folder / "model" / view / "features" / "rows"
        parts[view] = np.concatenate([np.load(file) for file in sorted(path.glob("*.npy"))])
    Fx, Fy = parts["images"][owner()], parts["captions"]
    kcca = KCCA(4).fit(feature_basis(Fx), feature_basis(Fy))
    np.testing.assert_allclose(results["correlations"], kcca.correlations_, rtol=1e-8)
    expected, found = kcca.transform_y(Fy), results["projections"]
    signs = np.sign((expected * found).sum(axis=0))
    np.testing.assert_allclose(found * signs, expected, rtol=1e-4, atol=1e-6)


def test_ranks_are_those_of_one_machine(plain):
    expected = streamed_ranks(vectors(4500, 16, 5), vectors(9000, 16, 6), owner())
    results = plain["ranks"][0]
    np.testing.assert_array_equal(results["annotation"], expected.annotation)
    np.testing.assert_array_equal(results["search"], expected.search)


def test_features_of_photos_are_those_of_the_network(plain):
    results, _, folder = plain["photos"]
    scenes = sorted((folder / "scenes").rglob("*.png"))
    np.testing.assert_array_equal(
        results["features"], CNN(input_size=64).transform(scenes).features
    )
