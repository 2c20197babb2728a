"""`kernelcore evaluate` on embeddings and scores."""

import json

import numpy as np
import pytest

from kernelcore.evaluation import Result, embedding_scores, evaluate
from kernelcore.models import Encoders

N_IMAGES, PER_IMAGE = 12, 3
VECTORS = {"image_vectors": "a.npy", "caption_vectors": "b.npy", "captions_per_image": 3}


@pytest.fixture
def files(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    images = rng.standard_normal((N_IMAGES, 5)).astype(np.float16)
    captions = np.repeat(images, PER_IMAGE, axis=0)
    captions += rng.standard_normal(captions.shape).astype(np.float16)
    parts = {"a": images, "b": captions, "b0": captions[:10], "b1": captions[10:]}
    parts |= {"scores": embedding_scores(images, captions), "square": np.eye(N_IMAGES)}
    owner = np.repeat(np.arange(N_IMAGES), PER_IMAGE)
    parts |= {"owner": owner, "nan": np.full((2, 2), np.nan)}
    for name, part in parts.items():
        np.save(tmp_path / f"{name}.npy", part)
    (tmp_path / "damaged.npy").write_bytes(b"\x93NUMPY")
    monkeypatch.chdir(tmp_path)
    return tmp_path


IMAGES, CAPTIONS = "--image-vectors a.npy", "--caption-vectors b.npy"
BOTH, SCORES = f"{IMAGES} {CAPTIONS}", "--scores scores.npy"


def test_vectors_scores_and_shards_give_one_result(files, run):
    expected = evaluate(**VECTORS, system="clip")
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
    expected = evaluate(**VECTORS, similarity="dot", ties="max", n_folds=4)
    assert Result.from_dict(json.loads(out)) == expected
    assert "12 images, 12 captions" in run("evaluate", "--scores", "square.npy")[1]


def test_encoders_are_measured_like_a_model(files, corpus, run, fails, monkeypatch):
    code = "def {}(items):\n    return [[len(str(one)) % 7, 1, int(str(one)[-5:-4] == '3')]"
    code = "".join(f"{code.format(name)} for one in items]\n" for name in ("texts", "photos"))
    (files / "own_encoders.py").write_text(code)
    monkeypatch.syspath_prepend(files)
    names = "own_encoders:texts", "own_encoders:photos"
    words = ["evaluate", corpus / "new", corpus / "new.tsv", "--pool", 1, "--json", "-"]
    words += ["--caption-encoder", names[0], "--image-encoder", names[1]]
    status, out, err = run(*words)
    assert (status, err) == (0, "")
    assert "--skip-damaged must be left out" in fails(*words, "--skip-damaged", status=2)
    result = Result.from_dict(json.loads(out))
    assert result.system == names[0]
    photos = sorted((corpus / "new").iterdir())
    lines = (corpus / "new.tsv").read_text().splitlines()
    captions = [line.split("\t")[1] for line in lines if "#1\t" in line]
    expected = evaluate(Encoders(*names).scores(list(map(str, photos)), captions))
    np.testing.assert_equal(result.values, expected.values)


ERRORS = f"""
2: --model, --image-vectors and --caption-vectors, or --scores must say what
2 {IMAGES}: --caption-vectors must be given beside --image-vectors
2 {CAPTIONS}: --image-vectors must be given beside --caption-vectors
2 . --model .: CAPTIONS must be given beside PHOTOS
2 . --encoders a: CAPTIONS must be given beside PHOTOS
2 --caption-encoder a:b: PHOTOS must be given beside --caption-encoder
2 . . --encoders a --scores .: --scores must not be given beside --encoders
2 {SCORES} --image-encoder a:b: --image-encoder must not be given beside --scores
2 . .: --model must be given beside PHOTOS
2 . . --model . {BOTH}: --image-vectors must not be given
2 {BOTH} {SCORES}: --scores must not be given beside
2 {BOTH} --pool 0: --pool must not be given beside --caption-vectors
2 {BOTH} --skip-damaged: --skip-damaged must not be given beside
2 {SCORES} --similarity dot: --similarity must not
1 {BOTH} --captions-per-image 4: --captions-per-image must
1 {BOTH}: --caption-image or captions_per_image (--captions-per-image)
1 {BOTH} --captions-per-image 3 --folds 5: --folds must
1 {BOTH} --caption-image no.npy: --caption-image
1 {BOTH} --caption-image a.npy: --caption-image must
1 --scores no.npy: --scores
1 --scores damaged.npy: --scores
1 --scores nan.npy: --scores
1 {IMAGES} --caption-vectors scores.npy: --caption-vectors
1 {BOTH} --captions-per-image 3 --json .: --json
"""


@pytest.mark.parametrize("row", ERRORS.strip().splitlines())
@pytest.mark.usefixtures("files")
def test_errors_name_the_option(fails, row):
    """Of usage, which is that one thing is measured, and of what is in files."""
    words, named = row.split(": ", 1)
    status, *words = words.split()
    error = fails("evaluate", *words, status=int(status))
    assert named in error if status == "2" else error.startswith(f"Error: {named}")
