"""`evaluate` with a store and on a cluster."""

import json

import numpy as np
import pytest

from kernelcore.cli import main


@pytest.fixture
def embeddings(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "a.npy", rng.normal(size=(8, 4)))
    np.save(tmp_path / "b.npy", rng.normal(size=(16, 4)))
    return [
        *("evaluate", "--image-vectors", str(tmp_path / "a.npy")),
        *("--caption-vectors", str(tmp_path / "b.npy"), "--captions-per-image", "2"),
    ]


def test_evaluate_in_a_store_prints_the_same(embeddings, tmp_path, capsys):
    assert main([*embeddings, "--json", "-"]) == 0
    expected = json.loads(capsys.readouterr().out)
    for _ in range(2):
        assert main([*embeddings, "--json", "-", "--store", str(tmp_path / "s")]) == 0
        assert json.loads(capsys.readouterr().out) == expected


@pytest.mark.slow
def test_evaluate_with_workers_prints_the_same(embeddings, tmp_path, capsys):
    pytest.importorskip("distributed")
    assert main([*embeddings, "--json", "-"]) == 0
    expected = json.loads(capsys.readouterr().out)
    store = str(tmp_path / "s")
    assert main([*embeddings, "--json", "-", "--store", store, "--workers", "2"]) == 0
    assert json.loads(capsys.readouterr().out) == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--workers", "2"], "--store must be given beside --cluster or --workers"),
        (["--cluster", "tcp://127.0.0.1:1"], "--store must be given beside"),
        (["--store", "s", "--folds", "2"], "--folds must not be given beside --store"),
        (
            ["--store", "s", "--workers", "1", "--cluster", "tcp://127.0.0.1:1"],
            "--workers must not be given beside --cluster",
        ),
    ],
)
def test_options_that_do_not_fit_are_named(embeddings, options, message, capsys):
    assert main([*embeddings, *options]) == 2
    assert message in capsys.readouterr().err
