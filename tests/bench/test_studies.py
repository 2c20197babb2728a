"""The pages of the studies and their stored results."""

import json

import pytest
import report
import results

from kernelcore.evaluation import Published, Table, evaluate
from kernelcore.experiments.study import StudyResults
from kernelcore.report import Section, StageRecorder


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Output of a run, and empty folders for the stored results and the pages."""
    monkeypatch.setattr(results, "FOLDER", tmp_path / "results")
    monkeypatch.setattr(report, "DOCS", tmp_path / "docs")
    (tmp_path / "results").mkdir()
    (tmp_path / "docs" / "experiments").mkdir(parents=True)
    table = Table(columns=("addition", "gain"), rows=(("hubs", "+1.0"),))
    found = StudyResults(
        title="A study",
        results=[evaluate([[0.9, 0.1], [0.8, 0.3]], system="toy")],
        stages=StageRecorder(),
        sections=[Section("Additions", ["What they are worth."], [table])],
    )
    found.write(tmp_path / "run")
    return tmp_path


def page_of(folder):
    return (folder / "docs" / "experiments" / "hu2019.md").read_text(encoding="utf-8")


def test_a_run_is_stored_with_all_its_tables(folders):
    report.store_study("hu2019", folders / "run")
    document = json.loads((folders / "results" / "hu2019.json").read_text(encoding="utf-8"))
    assert [result["system"] for result in document["results"]] == ["toy"]
    for task, recall in (("annotation", 0.5), ("search", 1.0)):  # and nothing of each query
        kept = document["results"][0][task]
        assert kept["R@1"] == recall
        assert not set(report.PER_QUERY) & kept.keys()
    (section,) = document["sections"]
    assert (section["title"], section["paragraphs"]) == ("Additions", ["What they are worth."])
    assert section["tables"][0]["rows"] == [["hubs", "+1.0"]]
    assert page_of(folders) == (folders / "run" / "results.md").read_text(encoding="utf-8")


def test_findings_of_a_page_outlive_a_new_run(folders):
    report.store_study("hu2019", folders / "run")
    path = folders / "docs" / "experiments" / "hu2019.md"
    findings = "## Findings\n\n- Hubs cost a point.\n\n"
    written = page_of(folders).replace("## Results\n", f"{findings}## Results\n")
    path.write_text(written.replace("+1.0", "+9.0"), encoding="utf-8")
    report.store_study("hu2019", folders / "run")
    assert page_of(folders) == written


def test_captions_of_a_corpus_are_left_out(folders):
    quoting = Table(
        columns=("caption of the image", report.QUOTING),
        rows=(("A dog .", "A cat ."),),
        caption="1 of 2",
    )
    other = Table(columns=("filter", "lost"), rows=(("0.25", "4.3"),))
    found = StudyResults(
        title="A study",
        results=[evaluate([[0.9, 0.1], [0.8, 0.3]], system="toy")],
        stages=StageRecorder(),
        sections=[Section("Filters", ["Text."], [other, quoting]), Section("Next", ["More."])],
    )
    found.write(folders / "run")
    report.store_study("hu2019", folders / "run")
    stored = (folders / "results" / "hu2019.json").read_text(encoding="utf-8")
    for text in (stored, page_of(folders)):
        assert "A cat" not in text
        assert "1 of 2" not in text
        assert all(kept in text for kept in ("4.3", "Text.", "Next", "More."))


def test_the_readme_shows_only_its_own_systems(folders):
    """Neither others of ours, nor published rows, which may have the same name."""
    shown = "SCAN i2t"
    rows = [evaluate([[0.9, 0.1], [0.8, 0.3]], system=name) for name in ("toy", shown)]
    published = Published(shown, source="A paper", values={"annotation": {"R@1": 0.05}})
    found = StudyResults(title="A", results=[*rows, published], stages=StageRecorder())
    found.write(folders / "run")
    report.store_study("hu2019", folders / "run")
    assert report._stored("hu2019") == rows[1:]


def test_an_unknown_study_is_refused(capsys):
    with pytest.raises(SystemExit):
        report.main(["--study", "hu2020", "folder"])
    assert "--study" in capsys.readouterr().err
