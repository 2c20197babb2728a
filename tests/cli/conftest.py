"""A small corpus and a model of it, and ways to run commands."""

import shutil

import pytest

from kernelcore import cli
from kernelcore.datasets import make_scenes

N_TRAINING, N_TEST = 24, 8


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """Photos and captions of a user: two folders of photos, two files of captions."""
    folder = tmp_path_factory.mktemp("corpus")
    scenes = make_scenes(N_TRAINING + N_TEST, size=(32, 40))
    scenes.write(folder)
    for part, numbers in (
        ("old", range(N_TRAINING)),
        ("new", range(N_TRAINING, N_TRAINING + N_TEST)),
    ):
        (folder / part).mkdir()
        rows = []
        for i in numbers:
            name = scenes.dataset.image_ids[i]
            shutil.copy(folder / "images" / name, folder / part)
            rows += [
                f"{name}#{k}\t{text}\n" for k, text in enumerate(scenes.dataset.captions[i])
            ]
        (folder / f"{part}.tsv").write_text("".join(rows), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def model(corpus):
    words = ["train", corpus / "old", corpus / "old.tsv", "--model", corpus / "model"]
    assert cli.main(list(map(str, words))) == 0
    return corpus / "model"


@pytest.fixture
def run(capsys):
    """Run a command in this process: exit status, stdout and stderr."""

    def run(*words):
        capsys.readouterr()
        status = cli.main(list(map(str, words)))
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


@pytest.fixture
def fails(run):
    """Run a command that must fail, and return its one sentence."""

    def fails(*words, status=1):
        ended, out, err = run(*words)
        assert ended == status, err
        assert out == ""
        assert err.startswith("Error: ")
        assert "Traceback" not in err
        assert err.count("\n") == 1
        return err

    return fails
