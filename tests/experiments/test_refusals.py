"""Options with which no study can run are named before anything long begins."""

import importlib

import pytest
from refusals import refuses

from kernelcore.experiments.hodosh2013 import Grid

pytest.importorskip("torch")
pytest.importorskip("cv2")
pytest.importorskip("spacy")

ODD = [
    ("systems", {"systems": []}),
    ("systems", {"systems": "BoW5"}),
    ("systems", {"systems": ["of nobody"]}),
    ("split", {"split": "train"}),
]
TRAINING = [
    ("n_epochs", {"n_epochs": 0}),
    ("batch_size", {"batch_size": 1}),
    ("rng", {"rng": -1}),
    ("pooling", {"pooling": "mean"}),
]
OWN = {
    "hodosh2013": [],
    "hessel2019": [("variant", {"variant": "hard"}), ("rng", {"rng": -1})],
    "hu2019": TRAINING,
    "karpathy2014": TRAINING,
    "khojasteh2019": TRAINING,
}


@pytest.mark.parametrize("name", OWN)
def test_options_of_no_study_are_named(corpus, name):
    run = importlib.import_module(f"kernelcore.experiments.{name}").run
    for named, options in ODD + OWN[name]:
        refuses(ValueError, named, run, corpus, **options)
    refuses(FileNotFoundError, "nowhere", run, corpus / "nowhere")


def test_a_grid_without_values_is_refused():
    refuses(ValueError, "powers", Grid, powers=())
