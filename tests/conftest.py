"""Fixtures shared by all tests."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from kernelcore import _core, _extras, _parallel
from kernelcore._parallel import resolve_n_threads

_MOST_PROCESSES = 4  # each takes up to 2 GB

# The same examples in every run: a failure is of the change that it is seen with. Others are
# drawn by HYPOTHESIS_PROFILE=default. How long one takes depends on what else the machine does.
settings.register_profile("steady", derandomize=True, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Deal the files of the whole suite out to a few processes; -n 0 keeps it in one.

    Tests of a file stay together: they share what is costly to set up.
    """
    option = config.option
    is_whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    is_open = getattr(option, "numprocesses", 0) is None and not option.usepdb
    if is_whole and is_open and "PYTEST_XDIST_WORKER" not in os.environ:
        n_processes = min(resolve_n_threads(None), _MOST_PROCESSES)
        if n_processes > 1:
            option.numprocesses, option.dist = n_processes, "loadfile"


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


@pytest.fixture(autouse=True, scope="session")
def small_problems_use_all_threads() -> Iterator[None]:
    """Give small problems all threads that tests ask for: they look at what threads do."""
    before = _parallel._WORK_PER_THREAD
    _parallel._WORK_PER_THREAD = 1e-9
    yield
    _parallel._WORK_PER_THREAD = before


@pytest.fixture(autouse=True, scope="session")
def as_from_an_index() -> Iterator[None]:
    """Name the package alone in messages about extras, wherever the tests have it from."""
    before = _extras._source
    _extras._source = lambda: ""
    yield
    _extras._source = before


@pytest.fixture(params=_core.supported_isas())
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run the test once on every instruction set this processor has."""
    before = _core.active_isa()
    _core.select_isa(request.param)
    yield request.param
    _core.select_isa(before)
