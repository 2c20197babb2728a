"""Fixtures, options and hooks of the benchmarks.

Each test of this folder is one benchmark of pytest-benchmark: one way to do a piece of work.
All ways to do the same work on the same number of threads are one group.
"""

import sys
import time
import warnings
from pathlib import Path

import pytest

# Benchmarks run from the sources and share these modules.
sys.path.insert(0, str(Path(__file__).parent))

import data
import peers
import results

LONG = 4.0
"""Seconds from which on a call is measured in one round of the first pass only."""
MOST_ROUNDS = 1000


def pytest_addoption(parser):
    parser.getgroup("benchmark").addoption(
        "--passes",
        type=int,
        default=1,
        help="how often the ways of a group are measured, one after the other; a ratio is "
        "taken within a pass, so that a machine that slows down does not bias it",
    )


def pytest_configure(config):
    # A wrong answer fails the test before its time is taken.
    config.addinivalue_line("filterwarnings", "ignore:Benchmark fixture was not used")


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc):
    """Run all ways of a group in every pass: the way changes fastest, then the pass."""
    if "turn" in metafunc.fixturenames:
        n = metafunc.config.getoption("passes")
        ids = [pytest.HIDDEN_PARAM, *(f"pass {k}" for k in range(2, n + 1))]
        metafunc.parametrize("turn", range(n), ids=ids)
    if "way" in metafunc.fixturenames:
        marker = metafunc.definition.get_closest_marker("ways")
        metafunc.parametrize("way", marker.args if marker else ["kernelcore"], ids=str)


@pytest.fixture(scope="session")
def durations():
    """Seconds of a call by group and way, known after the first pass."""
    return {}


@pytest.fixture
def measure(request, benchmark, way, turn, durations):
    """Measure this test's way to do some work, one of several.

    Called with the name of the work, the ways by name (None for one that is not comparable
    here), and `check`, which raises unless it is given the right answer. `read` brings a way's
    answer into the form that `check` takes; `n_threads` holds for everybody. `shape` describes
    the problem and `size` counts its units of work. `targets` are those of `results.target`;
    `limit` names the limit of bench/roofline.py that a way is held against.
    """

    def run(work, ways, *, check, read=None, n_threads=1, targets=(), limit=None, **about):
        call, peer = ways[way], peers.peer_of(way)
        if call is None:
            pytest.skip(f"{way} is not comparable here")
        if peer and not peers.is_here(peer):
            pytest.skip(f"{peers.PEERS[peer].distribution} is not installed")
        group = f"{work}, {results.threads_of(n_threads)}"
        if durations.get((group, way), 0.0) > LONG:
            pytest.skip(f"takes more than {LONG:g} s: measured in the first pass")
        benchmark.group = group
        benchmark.extra_info |= {
            "work": work,
            "way": str(way),
            "turn": turn + 1,
            "is_peer": bool(peer),
            "n_threads": n_threads if not peer or peers.PEERS[peer].has_threads else 1,
            "instruction_set": results.instruction_set(),
            "targets": [one for one in targets if one["of"] == str(way)],
            "limit": (limit or {}).get(way),
            **about,
        }
        if way == next(iter(ways)):
            benchmark.extra_info["ways"] = [str(name) for name in ways if ways[name]]
        with peers.threads(n_threads), warnings.catch_warnings():
            if peer:  # what peers warn of is theirs
                warnings.simplefilter("ignore")
            seconds, answer = timed(call)
            check((read or {}).get(way, lambda answer: answer)(answer))
            del answer
            # The first call may compile: the next one tells how many rounds there is time for.
            compiles = not peer or peers.PEERS[peer].compiles
            if not benchmark.disabled and (seconds < LONG or compiles):
                seconds = durations.get((group, way)) or timed(call)[0]
            durations[group, way] = seconds
            time_in_all = float(request.config.getoption("benchmark_max_time"))
            rounds = max(1, min(MOST_ROUNDS, int(time_in_all / max(seconds, 1e-9))))
            benchmark.pedantic(call, rounds=rounds)

    return run


def timed(call):
    """Seconds and answer of one call."""
    start = time.perf_counter()
    answer = call()
    return time.perf_counter() - start, answer


@pytest.fixture(scope="session")
def captions():
    """Training captions of Flickr8k where its folder is, elsewhere drawn ones like them."""
    return data.training_captions().select(range(data.size(data.N_IMAGES, 300)))


def pytest_benchmark_update_machine_info(machine_info):
    """Keep what times depend on; a name of the machine is none of it."""
    cpu = machine_info["cpu"]
    machine_info.clear()
    machine_info |= results.machine(cpu.get("brand_raw", ""))


def pytest_benchmark_update_commit_info(commit_info):
    """Keep the commit alone: the folder and the branch are the user's own."""
    for name in ("project", "branch"):
        commit_info.pop(name, None)


def pytest_benchmark_update_json(output_json):
    """Leave one entry for each way: the first pass, and the fastest round of every pass."""
    output_json["benchmarks"] = results.fold(output_json["benchmarks"])
