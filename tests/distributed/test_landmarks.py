"""Landmarks over parts of the rows are those of partial Gram-Schmidt."""

import hostile
import numpy as np
import pytest

from kernelcore.distributed import (
    LandmarkKCCA,
    PiecesFailedError,
    embed,
    fit_landmark_kcca,
    landmark_features,
    load_landmarks,
)
from kernelcore.kcca import LandmarkFeatures
from kernelcore.kernels import histogram_intersection

RNG = np.random.default_rng(0)


def clustered(n, n_columns, dtype):
    """Rows in clusters of very different sizes, some of them alike."""
    centres = RNG.gamma(0.3, size=(40, n_columns))
    rows = centres[RNG.integers(0, 40, n)] + RNG.gamma(0.1, size=(n, n_columns)) / 10
    rows[: n // 10] = rows[n // 10 : 2 * (n // 10)]
    return rows.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("tolerance", [0.0, 0.2])
def test_landmarks_are_those_of_one_machine(tmp_path, dtype, tolerance):
    X = clustered(6000, 30, dtype)
    found = landmark_features(
        "histogram_intersection",
        X,
        tmp_path,
        n_landmarks=90,
        tolerance=tolerance,
        shard_rows=4096,
        n_threads=2,
    )
    one = LandmarkFeatures(histogram_intersection, n_landmarks=90, tolerance=tolerance).fit(X)
    landmarks = load_landmarks(tmp_path)
    np.testing.assert_array_equal(landmarks.positions, one.landmarks_)
    assert found.dtype == dtype
    assert 10 < found.n_columns <= 90
    assert (found.n_columns < 90) == (tolerance > 0)
    scale = 3e-3 if dtype == np.float32 else 1e-8
    np.testing.assert_allclose(found.read(0, 6000), one.transform(X), atol=scale)
    np.testing.assert_array_equal(landmarks.transform(X[:5000]), found.read(0, 5000))
    assert not (tmp_path / "rounds").exists()


def test_of_equal_rows_the_first_is_the_landmark(tmp_path):
    """Every residual ties with others: unit rows, five times each, in other parts."""
    X = np.tile(np.eye(20), (300, 1))
    landmark_features("histogram_intersection", X, tmp_path, n_landmarks=50, shard_rows=4096)
    assert load_landmarks(tmp_path).positions.tolist() == list(range(20))


def test_files_choose_no_function_that_is_called(tmp_path):
    """A kernel beyond this package is called only if the caller names it."""
    X = RNG.random((200, 4))
    kernels = {"images": hostile.plain}
    model = fit_landmark_kcca(
        X, X, tmp_path / "s", image_kernel=hostile.plain, n_landmarks=3, n_components=2
    )
    path = tmp_path / "s" / "model.safetensors"
    for read in (
        lambda **given: LandmarkKCCA.load(path, **given),
        lambda **given: embed(tmp_path / "s", "images", X, tmp_path / "e", **given),
    ):
        with pytest.raises(ValueError, match=r"kernel must be given.*hostile:plain"):
            read()
        with pytest.raises(ValueError, match="kernel must be hostile:negative"):
            read(kernels={"images": hostile.negative})
        with pytest.raises(ValueError, match="each key of kernels must be"):
            read(kernels={"photos": hostile.plain})
    again = LandmarkKCCA.load(path, kernels=kernels)
    np.testing.assert_array_equal(again.embed_images(X), model.embed_images(X))
    rows = embed(tmp_path / "s", "images", X, tmp_path / "e", kernels=kernels)
    np.testing.assert_array_equal(rows.read(0, 200), model.embed_images(X))
    with pytest.raises(ValueError, match="kernel must be given"):
        load_landmarks(tmp_path / "s" / "images")
    found = load_landmarks(tmp_path / "s" / "images", kernel="hostile:plain")
    np.testing.assert_array_equal(found.rows, model.images.landmarks.rows)


def test_the_rank_ends_the_choice(tmp_path):
    X = RNG.normal(size=(500, 3))
    found = landmark_features("hostile:plain", X, tmp_path, n_landmarks=100)
    assert found.n_columns == 3
    np.testing.assert_allclose(
        found.read(0, 500) @ found.read(0, 500).T, X @ X.T, rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"kernel": hostile.negative}, PiecesFailedError, "kernel must not be negative"),
        ({"kernel": hostile.wrong_shape}, PiecesFailedError, "must have shape"),
        ({"X": np.zeros((5, 2))}, ValueError, "kernel must not be zero"),
        ({"X": [[np.nan]]}, ValueError, "X must be finite"),
        ({"n_landmarks": 0}, ValueError, "n_landmarks must be"),
        ({"tolerance": 2.0}, ValueError, "tolerance must be"),
        ({"shard_rows": 5000}, ValueError, "shard_rows must be a power of two"),
    ],
)
def test_bad_input_is_named(tmp_path, changes, error, message):
    given = {"kernel": "histogram_intersection", "X": np.eye(4)} | changes
    with pytest.raises(error, match=message):
        landmark_features(given.pop("kernel"), given.pop("X"), tmp_path / "s", **given)


def test_a_model_is_saved_and_read(tmp_path):
    X = RNG.random((400, 5))
    Y = np.hstack([X[:, :3] + RNG.random((400, 3)) / 10, RNG.random((400, 2))])
    model = fit_landmark_kcca(
        X, Y, tmp_path / "s", n_landmarks=30, n_components=3, regularization=(0.1, 0.2)
    )
    again = LandmarkKCCA.load(tmp_path / "s" / "model.safetensors")
    np.testing.assert_array_equal(again.embed_images(X), model.embed_images(X))
    np.testing.assert_array_equal(again.embed_captions(Y), model.embed_captions(Y))
    rows = embed(tmp_path / "s", "images", X, tmp_path / "e")
    np.testing.assert_array_equal(rows.read(0, 400), model.embed_images(X))
    u, v = model.embed_images(X), model.embed_captions(Y)
    found = [np.corrcoef(u[:, k], v[:, k])[0, 1] for k in range(3)]
    np.testing.assert_allclose(found, model.correlations, atol=0.05)
    assert model.correlations[0] > 0.8
    with pytest.raises(ValueError, match="rows must have 5 columns"):
        model.embed_images(X[:, :2])
    path = tmp_path / "s" / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-9] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"model\.safetensors"):
        LandmarkKCCA.load(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"caption_image": [0]}, "caption_image must have one entry per caption"),
        ({"regularization": -1.0}, "regularization must be"),
        ({"n_components": 0}, "n_components must be"),
        ({"n_components": 99}, "n_components must be at most"),
        ({"tolerance": -1.0}, "tolerance must be"),
        ({"tolerance": 1.0}, "tolerance must be below 1"),
        ({"images": np.ones((20, 3))}, "images: features must not be constant"),
        ({"captions": np.ones((20, 3))}, "captions: features must not be constant"),
    ],
)
def test_bad_settings_are_named(tmp_path, changes, message):
    given = {"images": RNG.random((20, 3)), "captions": RNG.random((20, 3))} | changes
    images, captions = given.pop("images"), given.pop("captions")
    with pytest.raises(ValueError, match=message):
        fit_landmark_kcca(images, captions, tmp_path, **given)
