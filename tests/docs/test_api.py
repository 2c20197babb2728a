"""The reference has every public name."""

import re
from collections import defaultdict

from pages import DOCS
from public_api import exported_callables


def public_names():
    """Full names of each public function and class; some packages share one.

    Studies are commands first: a page of the reference has each of them as a whole.
    """
    names, kept = defaultdict(set), []  # kept: none has the number of one that is gone
    for name, value in exported_callables().items():
        owner, _, last = name.rpartition(".")
        is_method = owner.rpartition(".")[2][:1].isupper()
        if is_method or ".experiments." in name or getattr(value, "__name__", last) != last:
            continue
        kept.append(value)
        names[id(value)].add(name)
    return list(names.values())


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
