"""Every example in a docstring does what it says."""

import doctest
import importlib
import pkgutil

import pytest

import kernelcore
from kernelcore._extras import MissingExtraError

NAMES = [module.name for module in pkgutil.walk_packages(kernelcore.__path__, "kernelcore.")]
MODULES = [name for name in NAMES if not name.endswith(("_core", "__main__"))]


@pytest.mark.parametrize("name", ["kernelcore", *MODULES])
def test_examples(name, tmp_path, monkeypatch):
    # An example that writes a file writes it here, with nothing of other tests beside it.
    folder = tmp_path / "examples"
    folder.mkdir()
    monkeypatch.chdir(folder)
    try:
        module = importlib.import_module(name)
    except MissingExtraError as error:
        pytest.skip(str(error))
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    outcome = doctest.testmod(module, optionflags=flags, raise_on_error=False)
    assert outcome.failed == 0, f"{outcome.failed} of {outcome.attempted} examples"
