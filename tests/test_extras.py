"""Errors about optional packages."""

import sys

import pytest

from kernelcore import _extras
from kernelcore.errors import MissingExtraError


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(
        MissingExtraError,
        match=r'matplotlib, .*not installed: pip install "kernelcore\[plot\]"',
    ):
        _extras.require("matplotlib")


def test_every_extra_is_one_of_the_package():
    from importlib.metadata import metadata

    known = set(metadata("kernelcore").get_all("Provides-Extra"))
    assert {extra for _, extra in _extras._EXTRAS.values()} <= known
