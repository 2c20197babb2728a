"""What is measured, and what a run that goes on leaves out."""

import pytest
import results
import run

pytest.importorskip("pytest_benchmark")


def test_a_file_that_cannot_be_collected_ends_the_run(tmp_path, monkeypatch):
    """Without it the other benchmarks would be measured, and nobody would miss this one."""
    (tmp_path / "test_broken.py").write_text("import no_such_module", encoding="utf-8")
    (tmp_path / "test_whole.py").write_text("def test_it():\n    pass\n", encoding="utf-8")
    monkeypatch.setattr(run, "BENCH", tmp_path)
    with pytest.raises(SystemExit, match="no_such_module"):
        run.collect([])


@pytest.mark.parametrize(("commit", "measured"), [("12ab, changed", ["a"]), ("12ab", [])])
def test_a_part_of_this_commit_is_left_out_but_not_of_changed_sources(
    monkeypatch, commit, measured
):
    selection = "-m not slow -k "
    monkeypatch.setattr(run, "collect", lambda _: ["a::test_it"])
    monkeypatch.setattr(results, "commit", lambda: commit)
    monkeypatch.setattr(results, "load", lambda: {"runs": {f"a {selection}": commit}})
    seen = []
    monkeypatch.setattr(run, "measure", lambda part, *_: not seen.append(part))
    monkeypatch.setattr("sys.argv", ["run.py", "--resume"])
    monkeypatch.setattr(run.data, "SMALL", False)
    run.main()
    assert seen == measured
