"""A small corpus and a model of it, and ways to run commands."""

import pytest
from corpora import write_corpus

from kernelcore import cli

N_TRAINING, N_TEST = 24, 8


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """Photos and captions of a user: two folders of photos, two files of captions."""
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(folder, N_TRAINING, N_TEST)
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
