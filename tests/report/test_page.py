from functools import partial

import numpy as np
import pytest
from html_page import Page

from kernelcore.evaluation import Published, ResultTable, evaluate
from kernelcore.evaluation.table import escape_markdown

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from kernelcore import report
from kernelcore.models import Match

HOSTILE = "<script>alert(1)</script> \"'&amp; {{ 7 * 7 }}"


@pytest.fixture(scope="module")
def parts():
    rng = np.random.default_rng(0)
    scores = rng.random((12, 12)) + np.eye(12) * 0.3
    captions = [f"{HOSTILE} {i}" for i in range(12)]
    photos = rng.integers(0, 255, (12, 16, 16, 3), dtype=np.uint8)
    results = [
        evaluate(scores, system=HOSTILE, dataset="toy", settings={"a": HOSTILE}),
        evaluate(rng.random((12, 12)), system="chance", dataset="toy"),
        Published("theirs", "Doe 2013", {"annotation": {"R@1": 0.5}}),
    ]
    stages = report.StageRecorder()
    with stages.stage(HOSTILE):
        pass
    similar = report.similarity_figure(scores, system=HOSTILE)
    ask = partial(report.query_examples, scores, captions, photos, system=HOSTILE)
    return {
        "title": HOSTILE, "summary": HOSTILE, "results": results,
        "examples": [*ask(task="search"), *ask(task="annotation")],
        "figures": [report.recall_figure(results[:2]), similar],
        "stages": stages, "settings": {HOSTILE: HOSTILE, "grid": [1, {"x": HOSTILE}]},
    }  # fmt: skip


@pytest.fixture(scope="module")
def text(parts, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    report.write_html(path, **parts)
    assert [file.name for file in path.parent.iterdir()] == ["report.html"]
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


def test_the_page_needs_nothing_else(page, text):
    assert text.startswith("<!DOCTYPE html>\n")
    assert not page.all("script")
    assert not page.all("link")
    for tag in ("img", "source", "a"):
        for attributes in page.all(tag):
            for name in ("src", "srcset", "href"):
                assert attributes.get(name, "#").startswith(("data:image/", "#"))
    assert "url(" not in text
    assert "@import" not in text
    (policy,) = [meta["content"] for meta in page.all("meta") if "http-equiv" in meta]
    assert policy == "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    assert not any(name.startswith("on") for found in page.elements for name in found)


def test_everything_is_escaped(page, parts):
    assert page.texts("title") == [HOSTILE]
    assert page.texts("h1") == [HOSTILE]
    assert HOSTILE in page.texts("p")
    assert HOSTILE in page.texts("th")
    assert f"Image search by {HOSTILE}" in page.texts("h3")
    assert f"“{parts['examples'][0].query}”" in page.texts("span")
    assert any(HOSTILE in figure["alt"] for figure in page.all("img"))


def test_a_failure_leaves_the_old_page(parts, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(ValueError, match="at least one measured result"):
        report.write_html(path, title="x", results=[])
    with pytest.raises(FileNotFoundError):
        report.write_html(tmp_path / "missing" / "x.html", title="x", results=parts["results"])
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_every_picture_has_its_text_and_size(page, parts):
    figures, pictures = parts["figures"], page.all("img")
    shown = [len(e.hits) if e.task == "search" else 1 for e in parts["examples"]]
    assert len(pictures) == len(figures) + sum(shown)
    for picture in pictures:
        assert picture["alt"].strip()
        assert min(int(picture["width"]), int(picture["height"])) > 0
    dark = [source["media"] for source in page.all("source")]
    assert dark == ["(prefers-color-scheme: dark)"] * len(figures)


def test_equal_input_gives_equal_bytes_and_less_input_fewer_sections(parts, text, tmp_path):
    report.write_html(tmp_path / "again.html", **parts)
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == text
    report.write_html(tmp_path / "short.html", title="Short", results=parts["results"])
    page = Page((tmp_path / "short.html").read_text(encoding="utf-8"))
    assert [section["id"] for section in page.all("section")] == ["results", "settings"]
    assert not page.all("img")


def test_markdown_holds_the_same_tables(parts, tmp_path):
    path = tmp_path / "report.md"
    shared = {name: parts[name] for name in ("summary", "results", "stages", "settings")}
    report.write_markdown(path, title="A # title", **shared)
    text = path.read_text(encoding="utf-8")
    assert text.startswith(f"# A \\# title\n\n{escape_markdown(HOSTILE)}\n")
    assert text.count("\n## ") == 3
    assert ResultTable(parts["results"]).to_markdown() in text
    assert "<script>" not in text.replace(r"\<", "")
    assert list(tmp_path.iterdir()) == [path]


def test_results_stand_in_the_table_and_sections_are_linked(page, parts):
    table = ResultTable(parts["results"]).to_table()
    assert {cell for row in table.rows for cell in row[1:]} <= set(page.texts("td"))
    assert " ".join(table.caption.split()) in page.texts("p")
    best = sum(attributes.get("class") == "best" for attributes in page.all("td"))
    assert best == len(table.emphasized) > 0
    targets = {attributes["href"] for attributes in page.all("a")}
    assert targets == {"#" + section["id"] for section in page.all("section")}
    assert len(targets) == 5


def test_photos_found_by_chance_stand_below_a_line(tmp_path):
    picture = np.zeros((8, 8, 3), np.uint8)
    pytest.importorskip("PIL.Image").fromarray(picture).save(tmp_path / "photo.png")
    rates = {"first": 0.01, "second": 0.2, "third": 0.03}
    matches = [Match(0, 0.5, name, by_chance=rate) for name, rate in rates.items()]
    found = [(HOSTILE, matches), ("no line", [Match(0, 0.5, "alone")])]
    report.write_found(tmp_path / "found.html", found, lambda name: tmp_path / "photo.png")
    text = (tmp_path / "found.html").read_text(encoding="utf-8")
    assert Page(text).texts("h2") == [HOSTILE, "no line"]
    before, after = text.split("From here on by chance")
    assert "first" in before
    assert after.index("second") < after.index("third")
