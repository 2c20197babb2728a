from html.parser import HTMLParser

import numpy as np
import pytest

from kernelcore.evaluation import Published, Result, ResultTable, evaluate

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from kernelcore.models import Match
from kernelcore.report import (
    ReportFigure,
    StageRecorder,
    query_examples,
    recall_figure,
    similarity_figure,
    write_found,
    write_html,
    write_markdown,
)

HOSTILE = "<script>alert(1)</script> \"'&amp; {{ 7 * 7 }}"
TERMS = {
    "gold": "The gold items of a query are those that belong to it",
    "R@k": "R@k is the percentage of queries that have a gold item among the first k",
    "median_rank": "median_rank is the middle rank",
}
VOID = {"meta", "img", "source", "br", "link"}


class Page(HTMLParser):
    """Elements with their attributes and text; fails where tags do not nest."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.text = [], [], {}
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.text.setdefault(self.open[-1], []).append(data.strip())

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


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
    stages = StageRecorder()
    with stages.stage(HOSTILE):
        pass
    return {
        "title": HOSTILE,
        "summary": HOSTILE,
        "results": results,
        "examples": [
            example
            for task in ("search", "annotation")
            for example in query_examples(scores, captions, photos, task=task, system=HOSTILE)
        ],
        "figures": [recall_figure(results[:2]), similarity_figure(scores, system=HOSTILE)],
        "stages": stages,
        "settings": {HOSTILE: HOSTILE, "grid": [1, {"x": HOSTILE}]},
    }


@pytest.fixture(scope="module")
def text(parts, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_html(path, **parts)
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
    assert not any(name.startswith("on") for _, found in page.elements for name in found)


def test_everything_is_escaped(page, parts):
    assert page.text["title"] == [HOSTILE]
    assert page.text["h1"] == [HOSTILE]
    assert HOSTILE in page.text["p"]
    assert HOSTILE in page.text["th"]
    assert f"Image search by {HOSTILE}" in page.text["h3"]
    assert f"“{parts['examples'][0].query}”" in page.text["span"]
    assert any(HOSTILE in figure["alt"] for figure in page.all("img"))


def test_results_stand_in_the_table(page, parts):
    table = ResultTable(parts["results"]).to_table()
    cells = page.text["td"]
    for row in table.rows:
        for cell in row[1:]:
            assert cell in cells
    assert table.caption in page.text["p"]
    best = sum(attributes.get("class") == "best" for attributes in page.all("td"))
    assert best == len(table.emphasized) > 0


def test_every_picture_has_its_text_and_size(page, parts):
    pictures = page.all("img")
    shown = len(parts["figures"]) + sum(
        len(example.hits) if example.task == "search" else 1 for example in parts["examples"]
    )
    assert len(pictures) == shown
    for picture in pictures:
        assert picture["alt"].strip()
        assert int(picture["width"]) > 0
        assert int(picture["height"]) > 0
    dark = page.all("source")
    assert len(dark) == len(parts["figures"])
    assert all(source["media"] == "(prefers-color-scheme: dark)" for source in dark)


def test_sections_are_linked(page):
    targets = {attributes["href"] for attributes in page.all("a")}
    assert targets == {"#" + section["id"] for section in page.all("section")}
    assert targets == {"#results", "#figures", "#examples", "#stages", "#settings"}


def test_equal_input_gives_equal_bytes(parts, text, tmp_path):
    write_html(tmp_path / "again.html", **parts)
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == text


def test_a_page_of_results_alone(parts, tmp_path):
    write_html(tmp_path / "short.html", title="Short", results=parts["results"])
    page = Page((tmp_path / "short.html").read_text(encoding="utf-8"))
    assert [section["id"] for section in page.all("section")] == ["results", "settings"]
    assert not page.all("img")


def test_a_failure_leaves_the_old_page(parts, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(ValueError, match="at least one measured result"):
        write_html(path, title="x", results=[])
    with pytest.raises(FileNotFoundError):
        write_html(tmp_path / "missing" / "x.html", title="x", results=parts["results"])
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_markdown_holds_the_same_tables(parts, tmp_path):
    path = tmp_path / "report.md"
    shared = {name: parts[name] for name in ("summary", "results", "stages", "settings")}
    write_markdown(path, title="A # title", **shared)
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    assert lines[0] == r"# A \# title"
    assert [line for line in lines if line.startswith("## ")] == [
        "## Results",
        "## Time and memory",
        "## Settings and versions",
    ]
    assert ResultTable(parts["results"]).to_markdown() in text
    assert "<script>" not in text.replace(r"\<", "")
    assert "| python | " in text
    assert list(tmp_path.iterdir()) == [path]


def test_terms_are_explained_before_the_table_that_has_them(text, tmp_path):
    for term, meaning in TERMS.items():
        assert text.count(meaning) == 1
        assert text.index("<h2>Results") < text.index(meaning) < text.index("<table>"), term
    links = Result({"links": {"AUC": [0.5, 0.7], "p@1": [1.0, 0.0]}}, system="ours")
    write_html(tmp_path / "links.html", title="Links", results=[links])
    other = (tmp_path / "links.html").read_text(encoding="utf-8")
    assert not any(meaning in other for meaning in TERMS.values())


def test_wide_figures_are_moved_sideways_on_a_narrow_screen(parts, page, tmp_path):
    assert not any("class" in attributes for attributes in page.all("figure"))
    wide = ReportFigure(HOSTILE, "A line.", lambda figure: figure.subplots(), (8.2, 2.9))
    write_html(tmp_path / "wide.html", title="x", results=parts["results"], figures=[wide])
    own = Page((tmp_path / "wide.html").read_text(encoding="utf-8"))
    assert own.all("figure") == [{"class": "wide"}]
    region = {"class": "scroll", "tabindex": "0", "role": "region", "aria-label": HOSTILE}
    assert region in own.all("div")


def test_photos_found_by_chance_stand_below_a_line(tmp_path):
    picture = np.zeros((8, 8, 3), np.uint8)
    pytest.importorskip("PIL.Image").fromarray(picture).save(tmp_path / "photo.png")
    rates = {"first": 0.01, "second": 0.2, "third": 0.03}
    matches = [
        Match(i, 0.5, name, by_chance=rate) for i, (name, rate) in enumerate(rates.items())
    ]
    found = [(HOSTILE, matches), ("no line", [Match(0, 0.5, "alone")])]
    write_found(tmp_path / "found.html", found, lambda name: tmp_path / "photo.png")
    text = (tmp_path / "found.html").read_text(encoding="utf-8")
    assert Page(text).text["h2"] == [HOSTILE, "no line"]
    line = text.index("From here on by chance")
    assert text.index("first") < line < text.index("second") < text.index("third")
    assert text.count("From here on by chance") == 1
