import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("cv2")

from kernelcore.datasets import make_scenes
from kernelcore.experiments import hodosh2013
from kernelcore.experiments.hodosh2013 import SYSTEMS, Grid

SMALL = Grid(
    powers=(1.0, 2.0),
    n_components=(5, 10, 1000),
    regularization=((0.1, 1.0),),
    correlation_power=(0.0, 2.0),
    max_rank=60,
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("flickr")
    make_scenes(300, seed=1, size=(64, 80)).write(folder)
    return folder


@pytest.fixture(scope="module")
def study(corpus, tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")
    return hodosh2013.run(corpus, systems=list(SYSTEMS), grid=SMALL, cache_dir=cache)


def by_name(study):
    return {result.system: result for result in study.results}


def test_every_system_runs_and_says_how(study):
    results = by_name(study)
    assert set(SYSTEMS) < set(results)
    for name, system in SYSTEMS.items():
        result = results[name]
        assert (result.split, result.pool) == ("test", "caption #2")
        assert (result.n_images, result.n_captions) == (60, 60)
        assert result.settings["text"] == system.text
        if system.ranker == "kcca":
            assert result.settings["power"] in SMALL.powers
            # Both numbers of components that fit, both weightings: four points of the grid,
            # each of which may win by each of the three recalls.
            assert len(result.settings["annotation"]) == 12
            assert all(s["n_components"] in (5, 10) for s in result.settings["search"])


def test_kernel_cca_beats_nearest_neighbour_and_chance(study):
    results = by_name(study)
    best, nearest = results["BoW5^sqrt-idf"], results["NN_F1^idf"]
    for task in ("annotation", "search"):
        # Recalls of few queries tie easily; mean ranks do not.
        assert getattr(best, task).mean_rank < 0.8 * getattr(nearest, task).mean_rank
        assert getattr(best, task).recall[10] > 0.4  # chance: 10 of 60
        assert getattr(best, task).median_rank < 17  # chance: 30.5


def test_what_is_published_stands_beside_and_nothing_else_is_claimed(study):
    text = str(study)
    assert "Tri5Sem (Hodosh et al. 2013)" in text
    assert "8.3" in text
    assert "peak MiB" in text


def test_a_second_run_from_the_cache_gives_the_same_results(corpus, study, tmp_path):
    again = hodosh2013.run(
        corpus, systems=["BoW5"], grid=SMALL, cache_dir=tmp_path, n_threads=1
    )
    assert by_name(again)["BoW5"].to_dict() == by_name(study)["BoW5"].to_dict()


def test_nothing_is_chosen_on_the_reported_split(corpus, study):
    """The winners are the same whichever split is reported, so they come from dev."""
    on_dev = hodosh2013.run(corpus, systems=["BoW5"], split="dev", grid=SMALL)
    ours, theirs = by_name(on_dev)["BoW5"], by_name(study)["BoW5"]
    assert ours.split == "dev"
    for key in ("power", "annotation", "search"):
        assert ours.settings[key] == theirs.settings[key]
    assert not np.array_equal(ours.search.ranks, theirs.search.ranks)


def test_the_pool_is_the_caption_of_that_number(corpus, study):
    other = hodosh2013.run(corpus, systems=["NN_F1"], pool=0, grid=SMALL)
    ours, theirs = by_name(other)["NN_F1"], by_name(study)["NN_F1"]
    assert ours.pool == "caption #0"
    assert not np.array_equal(ours.search.ranks, theirs.search.ranks)


def test_write_leaves_a_page_tables_and_json(study, tmp_path):
    pytest.importorskip("jinja2")
    study.write(tmp_path / "new" / "folder")
    folder = tmp_path / "new" / "folder"
    assert "BoW5" in (folder / "report.html").read_text(encoding="utf-8")
    assert "| BoW5 |" in (folder / "results.md").read_text(encoding="utf-8")
    document = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert len(document["results"]) == len(SYSTEMS) + 1
    assert sorted(path.name for path in folder.iterdir()) == [
        "report.html",
        "results.json",
        "results.md",
    ]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"systems": ["BoW6"]}, ValueError, "systems must be one of 'NN_F1', .* got 'BoW6'"),
        ({"split": "train"}, ValueError, "split must be one of 'test', 'dev', got 'train'"),
        ({"pool": 7}, ValueError, "7"),
    ],
)
def test_wrong_options_are_named(corpus, options, error, message):
    with pytest.raises(error, match=message):
        hodosh2013.run(corpus, **{"grid": SMALL, **options})


def test_a_corpus_without_photos_is_refused(corpus, tmp_path):
    alone = tmp_path / "no photos" / "below or beside"
    alone.mkdir(parents=True)
    for path in corpus.glob("*.txt"):
        (alone / path.name).write_bytes(path.read_bytes())
    with pytest.raises(FileNotFoundError, match="300 of 300"):
        hodosh2013.run(alone, grid=SMALL)


@pytest.mark.slow
@pytest.mark.realdata
@pytest.mark.filterwarnings("ignore::kernelcore.datasets.DatasetWarning")
def test_flickr8k(data_root, tmp_path):
    """What the bag-of-words system must reach on the real corpus, both directions."""
    grid = replace(hodosh2013.GRID, powers=(1.0,))
    study = hodosh2013.run(
        data_root / "flickr8k", systems=["NN_F1^idf", "BoW5"], grid=grid, cache_dir=tmp_path
    )
    results = by_name(study)
    for task in ("annotation", "search"):
        best, nearest = (getattr(results[name], task) for name in ("BoW5", "NN_F1^idf"))
        assert best.recall[10] >= 0.25
        assert best.median_rank <= 42
        assert nearest.recall[10] < 0.5 * best.recall[10]
