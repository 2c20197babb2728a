"""The reference has every public name, and the docstring of each has an example."""

import re

from names import public_names
from pages import DOCS

# Their examples stand in the docstring that theirs names, or need a program or a file.
WITHOUT_EXAMPLE: set[str] = set()


def listed_names():
    """Names in the tables of the reference, with their modules."""
    found = []
    for page in sorted((DOCS / "api").glob("*.rst")):
        module = ""
        for line in page.read_text("utf-8").splitlines():
            if given := re.match(r"\.\. currentmodule:: (\S+)", line):
                module = given[1]
            elif entry := re.match(r"   (\w[\w.]*)$", line):
                found.append(f"{module}.{entry[1]}" if module else entry[1])
    return found


def test_every_public_name_is_in_the_reference():
    listed = set(listed_names())
    missing = [min(names, key=len) for names in public_names() if not names & listed]
    assert not missing


def test_nothing_is_listed_twice():
    listed = listed_names()
    assert len(listed) > 150
    assert len(listed) == len(set(listed))


def test_every_page_of_the_reference_is_reached():
    index = (DOCS / "api" / "index.md").read_text("utf-8")
    for page in (DOCS / "api").glob("*.rst"):
        assert f"\n{page.stem}\n" in index
        assert f"]({page.name})" in index
