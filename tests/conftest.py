"""Fixtures shared by all tests."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from kernelcore import _core

# The same examples in every run: a failure is of the change that it is seen with. Others are
# drawn by HYPOTHESIS_PROFILE=default.
settings.register_profile("steady", derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


@pytest.fixture(scope="session")
def data_root() -> Path:
    """Folder of the real corpora, or a skip that says how to name one."""
    default = Path(__file__).parents[2] / "shared" / "data"
    root = Path(os.environ.get("KERNELCORE_DATA", default))
    if not root.is_dir():
        pytest.skip("no real data: set KERNELCORE_DATA to the folder that holds flickr8k/")
    return root


@pytest.fixture(autouse=True, scope="session")
def away_from_the_sources(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Run in a folder of its own: a Python started here finds the installed package."""
    before = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("cwd"))
    # A shell that runs tests in the background ignores Ctrl-C, and so would every child.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    os.chdir(before)


@pytest.fixture(params=_core.supported_isas())
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run the test once on every instruction set this processor has."""
    before = _core.active_isa()
    _core.select_isa(request.param)
    yield request.param
    _core.select_isa(before)
