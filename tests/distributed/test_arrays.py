"""Inputs of every kind, results that are damaged or of another call, and tasks that fail."""

import json
import multiprocessing
from functools import partial

import numpy as np
import pytest
from runs import fails_at_first, fails_for_some, holds, kills_once

from kernelcore.datasets import make_scenes
from kernelcore.distributed import (
    best_candidates,
    embed,
    extract_features,
    fit_landmark_kcca,
    gram_to_zarr,
    streamed_ranks,
)
from kernelcore.errors import UnreadableImagesWarning
from kernelcore.images import CNN
from kernelcore.kernels import histogram_intersection

zarr = pytest.importorskip("zarr")

X = np.random.default_rng(0).random((50, 4))
SMALL = CNN(input_size=64)


def gram(folder, X=X, Y=None, kernel=histogram_intersection, **options):
    return gram_to_zarr(kernel, X, Y, folder, tile=16, **options)


def test_inputs_of_every_kind(tmp_path):
    expected = gram(tmp_path / "K")[:]
    np.save(tmp_path / "X.npy", X)
    stored = zarr.create_array(str(tmp_path / "X"), data=X, chunks=(7, 3))
    dask = pytest.importorskip("dask.array")
    kinds = [X.tolist(), tmp_path / "X.npy", stored, str(tmp_path / "X"), np.asfortranarray(X)]
    for number, one in enumerate([*kinds, dask.from_array(X, chunks=(20, 2))]):
        value = np.array(one) if isinstance(one, list) else one
        found = gram(tmp_path / f"K{number}", value)
        np.testing.assert_array_equal(found[:], expected)


def test_results_of_one_call_are_inputs_of_the_next(tmp_path):
    model = fit_landmark_kcca(X, X, tmp_path / "m", n_landmarks=5, n_components=2)
    rows = embed(model, "images", X, tmp_path / "rows")
    ranks = streamed_ranks(rows, tmp_path / "rows", tmp_path / "ranks")
    assert (ranks.search == 1).all()


def test_the_result_of_another_call_is_refused(tmp_path):
    gram(tmp_path / "K")
    for changes in (
        {"X": X[:49]},
        {"X": X + 1e-9},
        {"Y": X},
        {"kernel": partial(histogram_intersection)},
    ):
        with pytest.raises(ValueError, match="K must be a new folder or one that the same"):
            gram(tmp_path / "K", **changes)
    streamed_ranks(X, X, tmp_path / "ranks")
    with pytest.raises(ValueError, match="must be a new folder"):
        streamed_ranks(X, X, tmp_path / "ranks", caption_image=np.arange(50)[::-1])
    with pytest.raises(ValueError, match="must be a new folder"):
        streamed_ranks(X, X, tmp_path / "ranks", ties="ordinal")


def test_a_flipped_bit_is_an_error_that_names_the_chunk(tmp_path):
    whole = gram(tmp_path / "K")[:]
    chunk = tmp_path / "K" / "c" / "1" / "2"
    content = bytearray(chunk.read_bytes())
    content[9] ^= 8
    chunk.write_bytes(content)
    with pytest.raises(RuntimeError, match="chunk 1/2"):
        best_candidates(whole[:3], tmp_path / "K", tmp_path / "best")
    chunk.unlink()
    with pytest.raises(ValueError, match="15 files"):
        best_candidates(whole[:3], tmp_path / "K", tmp_path / "other")
    np.testing.assert_array_equal(gram(tmp_path / "K")[:], whole)


@pytest.mark.parametrize(
    "change",
    [
        {"shape": [10**15, 10**15]},
        {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2**40, 2**20]}}},
        {"data_type": "complex64"},
        {"codecs": [{"name": "nothing"}]},
    ],
)
def test_metadata_are_bounded_by_what_lies_on_the_disk(tmp_path, change):
    gram(tmp_path / "K")
    path = tmp_path / "K" / "zarr.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match="K"):
        best_candidates(X, tmp_path / "K", tmp_path / "best")


def test_a_second_writer_is_refused(tmp_path):
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    process = context.Process(target=holds, args=(tmp_path / "K", ready))
    process.start()
    assert ready.wait(60)
    with pytest.raises(RuntimeError, match="another call is writing into"):
        gram(tmp_path / "K")
    process.kill()
    process.join()
    gram(tmp_path / "K")


def test_a_task_is_tried_three_times(tmp_path):
    kernel = partial(fails_at_first, folder=tmp_path)
    np.testing.assert_array_equal(
        gram(tmp_path / "K", kernel=kernel)[:], gram(tmp_path / "other")[:]
    )


@pytest.mark.parametrize("with_client", [False, True])
def test_the_first_task_that_failed_is_named_and_the_others_go_on(
    tmp_path, with_client, request
):
    client = request.getfixturevalue("client") if with_client else None
    rows = X.copy()
    rows[16, 0] = 0
    message = r"4 of 16 tiles failed 3 times, .*/c/1/\d: ArithmeticError: no value"
    with pytest.raises(RuntimeError, match=message):
        gram(tmp_path / "K", rows, X, fails_for_some, client=client)
    assert len([p for p in (tmp_path / "K" / "c").rglob("*") if p.is_file()]) == 12


def test_a_worker_that_dies_is_replaced(tmp_path, client):
    kernel = partial(kills_once, folder=tmp_path)
    found = gram(tmp_path / "K", kernel=kernel, client=client)
    np.testing.assert_array_equal(found[:], gram(tmp_path / "other")[:])


def test_progress_counts_tasks(tmp_path):
    told = []
    gram(tmp_path / "K", progress=lambda *step: told.append(step))
    assert told[-1] == (10, 10)


def test_photos_that_fail_are_zeros_and_can_be_tried_again(tmp_path):
    make_scenes(5, rng=0, size=(64, 64)).write(tmp_path / "scenes")
    photos = sorted((tmp_path / "scenes").rglob("*.png"))
    extract = partial(extract_features, photos, SMALL, tmp_path / "s", chunk_photos=2)
    whole = [path.read_bytes() for path in photos]
    for place in (0, 1, 3):
        photos[place].write_bytes(b"no photo")
    with pytest.warns(UnreadableImagesWarning, match=photos[3].name):
        found = extract()
    assert found.failed.tolist() == [True, True, False, True, False]
    assert found.features[:].any(axis=1).tolist() == [False, False, True, False, True]
    for path, content in zip(photos, whole, strict=True):
        path.write_bytes(content)
    assert extract().failed.sum() == 3
    again = extract(retry_failed=True)
    assert not again.failed.any()
    np.testing.assert_array_equal(again.features[:], SMALL.transform(photos).features)
    with pytest.raises(ValueError, match="must be a new folder"):
        extract_features(photos, CNN(input_size=96), tmp_path / "s")


PAIR = {"image_vectors": np.ones((2, 3)), "caption_vectors": np.ones((4, 3))}
OWNER = {"caption_image": [0, 0, 1, 1]}
VIEWS = {"images": X[:20], "captions": X[:20, :3]}


@pytest.mark.parametrize(
    ("function", "given", "changes", "error", "message"),
    [
        (gram_to_zarr, {"X": X, "Y": None}, {"kernel": "linear"}, TypeError, "kernel must be"),
        (gram, {}, {"X": np.zeros((0, 3))}, ValueError, "X must"),
        (gram, {}, {"X": np.full((2, 2), np.nan)}, ValueError, "X must be finite"),
        (gram, {}, {"kernel": lambda X, Y: X}, RuntimeError, "must have shape"),
        (
            gram,
            {},
            {"kernel": lambda X, Y: np.full((len(X), len(Y)), np.nan)},
            RuntimeError,
            "must be finite",
        ),
        (gram, {}, {"X": "nothing.npy"}, FileNotFoundError, "X must be an array, a .npy file"),
        (gram, {}, {"Y": "nowhere"}, FileNotFoundError, "Y must be an array, a .npy file"),
        (streamed_ranks, PAIR, {"caption_vectors": np.zeros((4, 2))}, ValueError, "dimensions"),
        (streamed_ranks, PAIR, {"caption_image": [0, 0, 0, 9]}, ValueError, "caption_image"),
        (streamed_ranks, PAIR, {}, ValueError, "caption_image must be given"),
        (streamed_ranks, PAIR, {"similarity": "l2"}, ValueError, "similarity must be"),
        (streamed_ranks, PAIR, {"ties": "none"}, ValueError, "ties must be"),
        (streamed_ranks, PAIR, {"block_rows": 0}, ValueError, "block_rows must be"),
        (
            streamed_ranks,
            PAIR | OWNER,
            {"image_vectors": np.full((2, 3), np.inf)},
            ValueError,
            "image_vectors must be finite",
        ),
        (
            streamed_ranks,
            {name: np.full_like(one, 1e300) for name, one in PAIR.items()} | OWNER,
            {"similarity": "dot"},
            ValueError,
            "must have products within float64",
        ),
        (best_candidates, {"queries": X, "candidates": X}, {"k": 0}, ValueError, "k must be"),
        (
            best_candidates,
            {"queries": X, "candidates": X[:, :3]},
            {},
            ValueError,
            "candidates must have as many dimensions",
        ),
        (
            extract_features,
            {"extractor": SMALL},
            {"photos": []},
            ValueError,
            "photos must hold",
        ),
        (
            extract_features,
            {"extractor": SMALL},
            {"photos": [b"abc"]},
            TypeError,
            r"photos\[0\] must be a path",
        ),
        (
            extract_features,
            {"photos": ["a.png"]},
            {"extractor": CNN(network=object())},
            TypeError,
            "extractor must have a network that workers",
        ),
        (fit_landmark_kcca, VIEWS, {"regularization": -1.0}, ValueError, "regularization must"),
        (fit_landmark_kcca, VIEWS, {"n_components": 99}, ValueError, "n_components must be"),
        (fit_landmark_kcca, VIEWS, {"n_landmarks": 0}, ValueError, "n_landmarks must be"),
        (fit_landmark_kcca, VIEWS, {"sample_rows": 0}, ValueError, "sample_rows must be"),
        (
            fit_landmark_kcca,
            VIEWS,
            {"images": np.ones((20, 3))},
            ValueError,
            "images: features",
        ),
        (
            fit_landmark_kcca,
            VIEWS,
            {"images": np.zeros((20, 3))},
            ValueError,
            "must not be zero",
        ),
        (
            embed,
            {"rows": X, "view": "images"},
            {"model": "model"},
            TypeError,
            "model must be a LandmarkKCCA",
        ),
    ],
)
def test_bad_input_is_named(tmp_path, function, given, changes, error, message):  # noqa: PLR0917
    name = "folder" if function is gram else "path"
    with pytest.raises(error, match=message):
        function(**given | changes, **{name: tmp_path / "s"})


def test_files_with_nan_are_named_by_their_task(tmp_path):
    vectors = np.ones((4, 3))
    vectors[2, 1] = np.nan
    np.save(tmp_path / "a.npy", vectors)
    message = r"s/gold/c/1: .*image_vectors must be finite, got nan at \[2, 1\]"
    with pytest.raises(RuntimeError, match=message):
        streamed_ranks(tmp_path / "a.npy", np.ones((4, 3)), tmp_path / "s", block_rows=2)
