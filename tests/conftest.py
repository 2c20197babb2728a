"""Fixtures shared by all tests."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# `python -m pytest` puts the folder of the sources first, where extensions are only if they are
# built in place: without them the installed package is the one to test.
ROOT = Path(__file__).parents[1]
if not any(path.suffix in {".so", ".pyd"} for path in ROOT.glob("kernelcore/_core.*")):
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != ROOT]

from kernelcore import _core, _threads  # noqa: E402
from kernelcore._threads import available_cores, resolve_n_threads  # noqa: E402

sys.path.insert(0, str(Path(__file__).parent))  # for `public_api`

_MOST_PROCESSES = 4  # each takes up to 2 GB
# Files that take longest: they are dealt out first, so that processes end together.
_LONGEST = (
    "test_studies.py", "test_interrupts.py", "test_files.py", "test_custom.py", "test_demo.py",
    "test_doctests.py", "test_processes.py", "test_results.py", "test_searching.py",
    "test_faults.py", "test_photo_ranker.py", "test_commands.py", "test_hodosh2013.py",
)  # fmt: skip

# Examples follow from the test and from constants in the modules that are loaded, not from
# chance, and take as long as the machine allows. HYPOTHESIS_PROFILE=thorough draws 1,000 random
# ones of each property, whatever number it asks for.
settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("thorough", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(specs: list[object]) -> None:
    """Processes that share the work share the cores: none waits for a core of another.

    Set here, as BLAS asks when it is loaded. Tests that are about threads say how many.
    """
    share = max(1, available_cores() // len(specs))
    for library in ("KERNELCORE", "OMP", "OPENBLAS"):
        os.environ.setdefault(f"{library}_NUM_THREADS", str(share))


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
            option.loadscopereorder = False  # by their number of tests


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Bring the longest files to the front, in the processes that share the work."""
    if settings.get_current_profile_name() == "thorough":
        for item in items:
            function = getattr(item, "function", None)
            if getattr(function, "is_hypothesis_test", False):
                function._hypothesis_internal_use_settings = settings()
    if "PYTEST_XDIST_WORKER" in os.environ:
        place = {name: number for number, name in enumerate(_LONGEST)}
        items.sort(key=lambda item: place.get(item.path.name, len(place)))


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
    before = _threads._WORK_PER_THREAD
    _threads._WORK_PER_THREAD = 1e-9
    yield
    _threads._WORK_PER_THREAD = before


@pytest.fixture(params=_core.supported_isas())
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run the test once on every instruction set this processor has."""
    before = _core.active_isa()
    _core.select_isa(request.param)
    yield request.param
    _core.select_isa(before)
