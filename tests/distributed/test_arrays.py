"""Inputs of every kind, results that are damaged or of another call, and tasks that fail."""

import json
import multiprocessing
from functools import partial

import numpy as np
import pytest
from refusals import refuses
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
    refuses(ValueError, ".*rows must be a new", embed, model, "captions", X, tmp_path / "rows")
    ranks = streamed_ranks(rows, tmp_path / "rows", tmp_path / "ranks")
    assert (ranks.search == 1).all()


def test_the_result_of_another_call_is_refused(tmp_path):
    gram(tmp_path / "K")
    others = [{"X": X[:49]}, {"X": X + 1e-9}, {"Y": X}]
    for changes in (*others, {"kernel": partial(histogram_intersection)}):
        refuses(ValueError, ".*K must be a new folder", gram, tmp_path / "K", **changes)
    path = tmp_path / "best"
    best_candidates(X, X, path)
    refuses(ValueError, ".*new folder", best_candidates, X, X, path, similarity="dot")
    path = tmp_path / "ranks"
    streamed_ranks(X, X, path)
    for changes in ({"caption_image": np.arange(50)[::-1]}, {"ties": "ordinal"}):
        refuses(ValueError, ".*ranks.* new folder", streamed_ranks, X, X, path, **changes)


def test_a_flipped_bit_is_an_error_that_names_the_chunk(tmp_path):
    whole = gram(tmp_path / "K")[:]
    chunk = tmp_path / "K" / "c" / "1" / "2"
    content = bytearray(chunk.read_bytes())
    content[9] ^= 8
    chunk.write_bytes(content)
    read = partial(best_candidates, whole[:3], tmp_path / "K")
    refuses(RuntimeError, ".*chunk 1/2", read, tmp_path / "best")
    chunk.unlink()
    refuses(ValueError, ".*15 files", read, tmp_path / "other")
    np.testing.assert_array_equal(gram(tmp_path / "K")[:], whole)
    chunk.write_bytes(b"")  # as a power cut may leave it
    np.testing.assert_array_equal(gram(tmp_path / "K")[:], whole)


def test_metadata_are_bounded_by_what_lies_on_the_disk(tmp_path):
    gram(tmp_path / "K")
    path = tmp_path / "K" / "zarr.json"
    metadata, chunks = json.loads(path.read_text()), {"chunk_shape": [2**40, 2**20]}
    for change in (
        {"shape": [10**15, 10**15]},
        {"chunk_grid": {"name": "regular", "configuration": chunks}},
        {"data_type": "complex64"},
        {"codecs": [{"name": "nothing"}]},
    ):
        path.write_text(json.dumps(metadata | change))
        refuses(ValueError, ".*K", best_candidates, X, tmp_path / "K", tmp_path / "best")


def test_a_second_writer_is_refused(tmp_path):
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    process = context.Process(target=holds, args=(tmp_path / "K", ready))
    process.start()
    assert ready.wait(60)
    refuses(RuntimeError, ".*another call", gram, tmp_path / "K")
    process.kill()
    process.join()
    gram(tmp_path / "K")


def test_a_task_is_tried_three_times(tmp_path):
    found = gram(tmp_path / "K", kernel=partial(fails_at_first, folder=tmp_path))
    np.testing.assert_array_equal(found[:], gram(tmp_path / "other")[:])


@pytest.mark.parametrize("with_client", [False, True])
def test_the_first_task_that_failed_is_named_and_others_go_on(tmp_path, with_client, request):
    client = request.getfixturevalue("client") if with_client else None
    rows = X.copy()
    rows[16, 0] = 0
    named = r".*4 of 16 .* 3 times, .*/c/1/\d: ArithmeticError: no value"
    refuses(RuntimeError, named, gram, tmp_path / "K", rows, X, fails_for_some, client=client)
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
    with pytest.warns(UnreadableImagesWarning, match=rf"(?s)3 of 5 .*{photos[3].name}"):
        found = extract()
    assert found.failed.tolist() == [True, True, False, True, False]
    assert found.features[:].any(axis=1).tolist() == [False, False, True, False, True]
    for path, content in zip(photos, whole, strict=True):
        path.write_bytes(content)
    assert extract().failed.sum() == 3
    again = extract(retry_failed=True)
    assert not again.failed.any()
    np.testing.assert_array_equal(again.features[:], SMALL.transform(photos).features)
    other = CNN(input_size=96)
    refuses(ValueError, ".*new folder", extract_features, photos, other, tmp_path / "s")


PAIR = {"image_vectors": np.ones((2, 3)), "caption_vectors": np.ones((4, 3))}
OWNER = PAIR | {"caption_image": [0, 0, 1, 1]}
LARGE = {name: np.full_like(one, 1e300) for name, one in PAIR.items()}
VIEWS = {"images": X[:20], "captions": X[:20, :3]}
ROWS = {"queries": X, "candidates": X}
PHOTOS = {"photos": ["a.png"], "extractor": SMALL}
VALUE, TYPE, MISSING, FAILED = ValueError, TypeError, FileNotFoundError, RuntimeError
ONLY_NAN = {"kernel": lambda X, Y: np.full((len(X), len(Y)), np.nan)}
REFUSED = [
    (TYPE, "kernel", gram_to_zarr, {"X": X, "Y": None, "kernel": "linear"}),
    (VALUE, "X", gram, {"X": np.zeros((0, 3))}),
    (VALUE, "X .*finite", gram, {"X": np.full((2, 2), np.nan)}),
    (FAILED, ".*shape", gram, {"kernel": lambda X, Y: X}), (FAILED, ".*finite", gram, ONLY_NAN),
    (MISSING, "X", gram, {"X": "nothing.npy"}), (MISSING, "Y", gram, {"Y": "nowhere"}),
    (VALUE, ".*dimensions", streamed_ranks, PAIR | {"caption_vectors": np.zeros((4, 2))}),
    (VALUE, "caption_image", streamed_ranks, PAIR | {"caption_image": [0, 0, 0, 9]}),
    (VALUE, "caption_image .*given", streamed_ranks, PAIR),
    (VALUE, "similarity", streamed_ranks, PAIR | {"similarity": "l2"}),
    (VALUE, "ties", streamed_ranks, PAIR | {"ties": "none"}),
    (VALUE, "block_rows", streamed_ranks, PAIR | {"block_rows": 0}),
    (
        VALUE, "image_vectors", streamed_ranks,
        OWNER | {"image_vectors": np.full((2, 3), np.inf)},
    ),
    (VALUE, ".*float64", streamed_ranks, OWNER | LARGE | {"similarity": "dot"}),
    (VALUE, "k", best_candidates, ROWS | {"k": 0}),
    (VALUE, "candidates .*dimensions", best_candidates, ROWS | {"candidates": X[:, :3]}),
    (VALUE, "photos", extract_features, PHOTOS | {"photos": []}),
    (TYPE, r"photos\[0\]", extract_features, PHOTOS | {"photos": [b"abc"]}),
    (TYPE, "extractor", extract_features, PHOTOS | {"extractor": CNN(network=object())}),
    (VALUE, "regularization", fit_landmark_kcca, VIEWS | {"regularization": -1.0}),
    (VALUE, "n_components", fit_landmark_kcca, VIEWS | {"n_components": 99}),
    (VALUE, "n_landmarks", fit_landmark_kcca, VIEWS | {"n_landmarks": 0}),
    (VALUE, "sample_rows", fit_landmark_kcca, VIEWS | {"sample_rows": 0}),
    (VALUE, "images: features", fit_landmark_kcca, VIEWS | {"images": np.ones((20, 3))}),
    (VALUE, ".*zero", fit_landmark_kcca, VIEWS | {"images": np.zeros((20, 3))}),
    (TYPE, "model", embed, {"model": "model", "view": "images", "rows": X}),
]  # fmt: skip


@pytest.mark.parametrize(("error", "named", "function", "given"), REFUSED)
def test_bad_input_is_named(tmp_path, error, named, function, given):
    place = {"folder" if function is gram else "path": tmp_path / "s"}
    refuses(error, named, function, **given, **place)


def test_files_with_nan_are_named_by_their_task(tmp_path):
    path, vectors = tmp_path / "a.npy", np.ones((4, 3))
    vectors[2, 1] = np.nan
    np.save(path, vectors)
    named = r".*s/gold/c/1: .*image_vectors .*nan at \[2, 1\]"
    pair = path, np.ones((4, 3))
    refuses(RuntimeError, named, streamed_ranks, *pair, tmp_path / "s", block_rows=2)
