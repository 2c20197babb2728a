"""`kernelcore evaluate` on embeddings and scores."""

import json

import numpy as np
import pytest

from kernelcore.evaluation import Result, embedding_scores, evaluate

N_IMAGES, PER_IMAGE = 12, 3


@pytest.fixture
def files(tmp_path, monkeypatch):
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
        ("nan", np.full((2, 2), np.nan)),
    ):
        np.save(tmp_path / f"{name}.npy", part)
    (tmp_path / "damaged.npy").write_bytes(b"\x93NUMPY")
    monkeypatch.chdir(tmp_path)
    return tmp_path


IMAGES, CAPTIONS = "--image-vectors a.npy", "--caption-vectors b.npy"
BOTH, SCORES = f"{IMAGES} {CAPTIONS}", "--scores scores.npy"


def test_vectors_scores_and_shards_give_one_result(files, run):
    expected = evaluate(
        image_vectors="a.npy", caption_vectors="b.npy", captions_per_image=3, system="clip"
    )
    words = f"evaluate {BOTH} --captions-per-image 3 --system clip"
    assert run(*words.split()) == (0, f"{expected}\n\n{expected.summary()}\n", "")
    for way in (
        f"{BOTH} --caption-image owner.npy",
        f"{IMAGES} --caption-vectors b0.npy --caption-vectors b1.npy --captions-per-image 3",
        f"{SCORES} --captions-per-image 3",
    ):
        status, _, err = run("evaluate", *way.split(), "--threads", 1, "--json", "out.json")
        assert (status, err) == (0, "")
        np.testing.assert_equal(Result.load("out.json").values, expected.values)


def test_options_reach_the_function(files, run):
    words = f"{BOTH} --captions-per-image 3 --similarity dot --ties max --folds 4 --json -"
    status, out, _ = run("evaluate", *words.split())
    assert status == 0
    assert Result.from_dict(json.loads(out)) == evaluate(
        image_vectors="a.npy",
        caption_vectors="b.npy",
        captions_per_image=3,
        similarity="dot",
        ties="max",
        n_folds=4,
    )
    assert "12 images, 12 captions" in run("evaluate", "--scores", "square.npy")[1]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("", "--model, --image-vectors and --caption-vectors, or --scores must say what"),
        (IMAGES, "--caption-vectors must be given beside --image-vectors"),
        (CAPTIONS, "--image-vectors must be given beside --caption-vectors"),
        (". --model .", "CAPTIONS must be given beside PHOTOS"),
        (". .", "--model must be given beside PHOTOS"),
        (f". . --model . {BOTH}", "--image-vectors must not be given"),
        (f"{BOTH} {SCORES}", "--scores must not be given beside"),
        (f"{BOTH} --pool 0", "--pool must not be given beside --caption-vectors"),
        (f"{BOTH} --skip-damaged", "--skip-damaged must not be given beside"),
        (f"{SCORES} --similarity dot", "--similarity must not"),
    ],
)
def test_what_is_measured_is_one_thing(files, fails, words, complaint):
    assert complaint in fails("evaluate", *words.split(), status=2)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (f"{BOTH} --captions-per-image 4", "captions_per_image must give 36 captions"),
        (BOTH, "caption_image must be given unless there is one caption per image"),
        (f"{BOTH} --captions-per-image 3 --folds 5", "n_folds must divide the number"),
        (f"{BOTH} --caption-image no.npy", "--caption-image: no such file"),
        (f"{BOTH} --caption-image a.npy", "caption_image must be a 1-D array"),
        ("--scores no.npy", "--scores must be an array or"),
        ("--scores damaged.npy", "--scores: damaged"),
        ("--scores nan.npy", "--scores must not hold NaN"),
        (f"{IMAGES} --caption-vectors scores.npy", "--caption-vectors must have as many"),
        (f"{BOTH} --captions-per-image 3 --json .", "--json: "),
    ],
)
def test_errors_name_the_option(files, fails, words, complaint):
    assert fails("evaluate", *words.split()).startswith(f"Error: {complaint}")
