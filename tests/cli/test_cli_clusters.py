"""Commands on clusters: describe, verify, and evaluate with a store."""

import json

import numpy as np
import pytest

from kernelcore.cli import main
from kernelcore.datasets import make_scenes


@pytest.fixture
def scenes(tmp_path):
    make_scenes(6, rng=0, size=(64, 64)).write(tmp_path / "scenes")
    return tmp_path / "scenes"


@pytest.fixture
def embeddings(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "a.npy", rng.normal(size=(8, 4)))
    np.save(tmp_path / "b.npy", rng.normal(size=(16, 4)))
    return [
        *("evaluate", "--image-vectors", str(tmp_path / "a.npy")),
        *("--caption-vectors", str(tmp_path / "b.npy"), "--captions-per-image", "2"),
    ]


def test_describe_writes_what_features_takes(scenes, tmp_path, capsys):
    store = tmp_path / "store"
    damaged = sorted(scenes.rglob("*.png"))[2]
    damaged.write_bytes(b"no photo")
    arguments = ["describe", str(scenes), "--store", str(store), "--shard", "2"]
    assert main(arguments) == 0
    found = capsys.readouterr()
    assert "Described 5 photos." in found.out
    assert "1 photos cannot be read" in found.out
    assert damaged.name in found.err
    assert np.load(store / "features.npy").shape == (5, 1280)
    names = (store / "features.txt").read_text().splitlines()
    assert len(names) == 5
    assert not any(damaged.name in name for name in names)
    assert main(["verify", str(store)]) == 0
    assert "3 pieces as written, 3 computed again" in capsys.readouterr().out


def test_dry_runs_do_nothing(scenes, tmp_path, embeddings, capsys):
    store = tmp_path / "store"
    assert main(["describe", str(scenes), "--store", str(store), "--dry-run"]) == 0
    assert "features of photos" in capsys.readouterr().out
    assert main([*embeddings, "--dry-run", "--workers", "7"]) == 0
    assert "7 workers" in capsys.readouterr().out
    assert not store.exists()


@pytest.mark.slow
def test_a_dry_run_asks_the_cluster_for_its_workers(embeddings, capsys):
    distributed = pytest.importorskip("distributed")
    about = {"n_workers": 3, "threads_per_worker": 1, "host": "127.0.0.1"}
    with distributed.LocalCluster(**about, dashboard_address="127.0.0.1:0") as cluster:
        address = cluster.scheduler_address
        assert main([*embeddings, "--dry-run", "--cluster", address]) == 0
    assert "3 workers" in capsys.readouterr().out


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


def test_verify_names_damage(scenes, tmp_path, capsys):
    store = tmp_path / "store"
    assert main(["describe", str(scenes), "--store", str(store), "--shard", "3"]) == 0
    path = store / "rows" / "000001.npy"
    path.write_bytes(path.read_bytes()[:-1])
    capsys.readouterr()
    assert main(["verify", str(store), "--repair"]) == 1
    assert "piece 1" in capsys.readouterr().out
    assert main(["describe", str(scenes), "--store", str(store), "--shard", "3"]) == 0
    assert main(["verify", str(store)]) == 0


def test_verify_names_its_argument(tmp_path, capsys):
    assert main(["verify", str(tmp_path)]) == 1
    assert "STORE: " in capsys.readouterr().err
