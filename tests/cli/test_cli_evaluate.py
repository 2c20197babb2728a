"""`kernelcore evaluate` on embeddings and scores."""

import json

import numpy as np
import pytest

from kernelcore.evaluation import Result, embedding_scores, evaluate

N_IMAGES, PER_IMAGE = 12, 3


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    images = rng.standard_normal((N_IMAGES, 5)).astype(np.float16)
    captions = np.repeat(images, PER_IMAGE, axis=0)
    captions += rng.standard_normal(captions.shape).astype(np.float16)
    for name, part in (
        ("a", images),
        ("b", captions),
        ("b0", captions[:10]),
        ("b1", captions[10:]),
        ("scores", embedding_scores(images, captions)),
        ("owner", np.repeat(np.arange(N_IMAGES), PER_IMAGE)),
        ("square", np.eye(N_IMAGES)),
    ):
        np.save(tmp_path / f"{name}.npy", part)
    return tmp_path


@pytest.fixture
def words(files):
    return [
        "evaluate",
        "--image-vectors",
        files / "a.npy",
        "--caption-vectors",
        files / "b.npy",
    ]


@pytest.fixture
def expected(files):
    return evaluate(
        image_vectors=files / "a.npy",
        caption_vectors=files / "b.npy",
        captions_per_image=3,
        system="clip",
    )


def test_vectors_scores_and_shards_give_one_result(files, words, run, expected):
    status, out, err = run(*words, "--captions-per-image", 3, "--system", "clip")
    assert (status, err) == (0, "")
    assert out == f"{expected}\n\n{expected.summary()}\n"
    ways = (
        [*words, "--caption-image", files / "owner.npy"],
        [*words[:4], files / "b0.npy", "--caption-vectors", files / "b1.npy"],
        ["evaluate", "--scores", files / "scores.npy"],
    )
    for way in ways:
        more = [] if "--caption-image" in way else ["--captions-per-image", 3]
        status, out, err = run(*way, *more, "--threads", 1, "--json", files / "out.json")
        assert (status, err) == (0, "")
        result = Result.load(files / "out.json")
        np.testing.assert_equal(result.values, expected.values)


def test_options_reach_the_function(files, words, run):
    status, out, _ = run(
        *words, "--captions-per-image", 3, "--similarity", "dot", "--ties", "max",
        "--folds", 4, "--json", "-",
    )  # fmt: skip
    assert status == 0
    result = Result.from_dict(json.loads(out))
    assert result == evaluate(
        image_vectors=files / "a.npy",
        caption_vectors=files / "b.npy",
        captions_per_image=3,
        similarity="dot",
        ties="max",
        n_folds=4,
    )


def test_one_caption_each_needs_no_owner(files, run):
    status, out, _ = run("evaluate", "--scores", files / "square.npy")
    assert status == 0
    assert "12 images, 12 captions" in out


def test_what_is_measured_is_one_thing(files, words, fails):
    vectors = words[1:]
    for given, complaint in (
        ([], "--model, --image-vectors and --caption-vectors, or --scores must say what"),
        (vectors[:2], "--caption-vectors must be given beside --image-vectors"),
        (vectors[2:], "--image-vectors must be given beside --caption-vectors"),
        ([files, "--model", files], "CAPTIONS must be given beside PHOTOS"),
        ([files, files], "--model must be given beside PHOTOS"),
        (
            [files, files, "--model", files, *vectors],
            "--image-vectors must not be given",
        ),
        (
            [*vectors, "--scores", files / "a.npy"],
            "--scores must not be given beside",
        ),
        ([*vectors, "--pool", 2], "--pool must not be given beside --caption-vectors"),
        ([*vectors, "--pool", 0], "--pool must not be given beside --caption-vectors"),
        ([*vectors, "--skip-damaged"], "--skip-damaged must not be given beside"),
        (
            ["--scores", files / "a.npy", "--similarity", "dot"],
            "--similarity must not",
        ),
    ):
        assert complaint in fails("evaluate", *given, status=2)


def test_errors_name_the_option(files, words, fails):
    (files / "damaged.npy").write_bytes(b"\x93NUMPY")
    np.save(files / "nan.npy", np.full((2, 2), np.nan))
    for given, complaint in (
        ([*words, "--captions-per-image", 4], "--captions-per-image must give 36 captions"),
        (words, "--caption-image must be given unless there is one caption per image"),
        ([*words, "--captions-per-image", 3, "--folds", 5], "--folds must divide the number"),
        ([*words, "--caption-image", files / "no.npy"], "--caption-image: no such file"),
        ([*words, "--caption-image", files / "a.npy"], "--caption-image must be a 1-D array"),
        (
            ["evaluate", "--scores", files / "no.npy"],
            "--scores must be an array or",
        ),
        (
            ["evaluate", "--scores", files / "damaged.npy"],
            f"--scores: {files}/damaged",
        ),
        (
            ["evaluate", "--scores", files / "nan.npy"],
            "--scores must not hold NaN",
        ),
        (
            [*words[:3], "--caption-vectors", files / "scores.npy"],
            "--caption-vectors must have as many dimensions as --image-vectors (5)",
        ),
        ([*words, "--captions-per-image", 3, "--json", files], "--json: "),
    ):
        assert fails(*given).startswith(f"Error: {complaint}")
