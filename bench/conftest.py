"""What all benchmarks share: the peers, their versions and threads, and what is stored.

A benchmark runs for each `peer`, named by the function that is called. The checks of its answer
come before the clock starts. All peers of a row take turns, as processors change their clock
within seconds; one that is far slower takes one turn.
"""

import re
import sys
import warnings
from functools import cache
from importlib import metadata
from itertools import groupby

import common
import pytest
from threadpoolctl import threadpool_limits

OWN_POOLS = {  # how libraries with threads of their own are told their number
    "torch": "set_num_threads",
    "numba": "set_num_threads",
    "cv2": "setNumThreads",
    "faiss": "omp_set_num_threads",
}
FAR = 10  # times as slow: no change of the clock makes up for it
fastest = {}  # round of the first turn, by row and peer

distributions = cache(metadata.packages_distributions)  # by module


def peer_and_others(item):
    """The peer of a benchmark, and its other parameters."""
    params = dict(item.callspec.params) if hasattr(item, "callspec") else {}
    return params.pop("peer", "kernelcore"), params


@pytest.hookimpl(trylast=True)  # after -k, so that no benchmark follows itself
def pytest_collection_modifyitems(config, items):
    rows = groupby(items, lambda item: (item.originalname, peer_and_others(item)[1]))
    if not config.getoption("benchmark_disable"):
        items[:] = [item for _, row in rows for item in take_turns([*row])]


def take_turns(row):
    for item in row:
        item.add_marker(pytest.mark.benchmark(min_rounds=2, max_time=0.35))
    return row * (3 if len(row) > 1 else 1)


@pytest.fixture(autouse=True)
def same_conditions(request, benchmark):
    """Skip a peer that is not installed; give everybody the same threads, and note both."""
    peer, params = peer_and_others(request.node)
    n_threads = params.get("n_threads", 1)
    module = re.match(r"\w+", peer)[0]
    pytest.importorskip(module, exc_type=ImportError)
    others = ", ".join(str(value) for value in params.values())
    benchmark.group = f"{request.node.originalname} {others}".rstrip()
    ours, theirs = (fastest.get((benchmark.group, one), 0.0) for one in ("kernelcore", peer))
    if theirs > FAR * ours > 0:
        pytest.skip(f"more than {FAR} times as slow in the first turn")
    benchmark.extra_info |= {"peer": peer, "n_threads": n_threads}
    if module != "kernelcore":
        benchmark.extra_info["version"] = metadata.version(distributions()[module][0])
    for name in OWN_POOLS.keys() & sys.modules.keys():
        getattr(sys.modules[name], OWN_POOLS[name])(n_threads)
    with threadpool_limits(n_threads), warnings.catch_warnings():
        if module != "kernelcore":  # what peers warn of is theirs
            warnings.simplefilter("ignore")
        yield
    if benchmark.stats is not None:
        fastest.setdefault((benchmark.group, peer), benchmark.stats.stats.min)


def pytest_benchmark_update_machine_info(machine_info):
    """Keep what times depend on."""
    machine_info.clear()
    machine_info |= common.machine()


def pytest_benchmark_update_commit_info(commit_info):
    """Keep the commit alone: the folder and the branch are the user's own."""
    for name in ("project", "branch"):
        commit_info.pop(name, None)


def pytest_benchmark_update_json(output_json):
    """Keep the best of the turns of each benchmark, without the time of every single round."""
    best = {}
    for one in output_json["benchmarks"]:
        one["stats"].pop("data", None)
        before = best.setdefault(one["fullname"], one)
        if one["stats"]["min"] < before["stats"]["min"]:
            best[one["fullname"]] = one
    output_json["benchmarks"] = [*best.values()]
