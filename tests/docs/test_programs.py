"""The programs of every page run, print what the page shows and draw its pictures."""

from pathlib import Path

import pytest
from pages import PICTURES, ROOT, is_alike, pages, pictures_of, programs_of, run

from kernelcore.errors import MissingExtraError

PAGES = list(pages())
WORDNET = Path("/usr/share/wordnet/data.noun")
NEEDS_WORDNET = {"captions.md"}
# Each of these takes five seconds or more.
LONG = {
    *("getting_started", "command_line", "deep", "documents", "caption_metrics", "scaling"),
    *("clip_vectors", "images", "index", "kernels", "models"),
}


def name_of(page):
    return page.relative_to(ROOT).with_suffix("").as_posix()


@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=[pytest.mark.slow] if p.stem in LONG else []) for p in PAGES],
    ids=list(map(name_of, PAGES)),
)
def test_the_programs_run(page, tmp_path, monkeypatch):
    if page.name in NEEDS_WORDNET and not WORDNET.is_file():
        pytest.skip("WordNet is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    try:
        printed = run(page)
    except (MissingExtraError, ModuleNotFoundError) as error:
        if str(error.name).startswith("kernelcore"):
            raise
        pytest.skip(str(error))
    for program, output in zip(programs_of(page), printed, strict=True):
        if program.shown is not None:
            assert is_alike(output, program.shown), f"{program.code}\nprints\n{output}"
    for picture in pictures_of(page):
        assert Path(picture).is_file(), f"{page.name} draws no {picture}"
        assert (PICTURES / picture).is_file(), f"{picture} is not among the pictures"


def test_pages_with_programs_are_found():
    assert len(PAGES) > 15


def test_every_drawn_picture_is_shown():
    shown = {name for page in PAGES for name in pictures_of(page)}
    assert {path.name for path in PICTURES.iterdir()} == shown


def test_output_stands_below_its_program(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nprint(1)\n```\n\n```text\n1\n```\n\n"
        "- in a list\n\n  ```python\n  x = 2\n  ```\n\nText.\n\n```text\nno output\n```\n"
    )
    first, second = programs_of(page)
    assert (first.code, first.shown) == ("print(1)\n", "1\n")
    assert (second.code, second.shown) == ("x = 2\n", None)


def test_a_difference_in_the_output_is_seen():
    assert is_alike("-----\nR@1  50.0\n", "----\nR@1 50.0\n")
    assert is_alike("kernelcore 0.2.0.dev0; 3\n", "kernelcore 1.0.1; 3\n")
    assert is_alike("ks:1|ranks:3c40b45d1a18\n", "ks:1|ranks:0123456789ab\n")
    assert is_alike("R@1 50.0\n", "R@1 50.1\n")
    assert is_alike("0.010\n", "0.011\n")
    assert not is_alike("R@1 50.0\n", "R@5 50.0\n")
    assert not is_alike("R@1 50.0\n", "R@1 52.0\n")
    assert not is_alike("R@1 50.0 3\n", "R@1 50.0\n")
    assert not is_alike("0.010\n", "0.014\n")
