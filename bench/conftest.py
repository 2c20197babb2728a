"""What all benchmarks share: the peers, their versions and threads, and what is stored.

A benchmark runs once for each `peer`, named by the function that is called. The checks of its
answer come before the clock starts.
"""

import importlib.metadata
import re
import sys
import warnings
from functools import cache

import common
import pytest
from threadpoolctl import threadpool_limits

OWN_POOLS = {
    "torch": "set_num_threads",
    "numba": "set_num_threads",
    "cv2": "setNumThreads",
    "faiss": "omp_set_num_threads",
}
"""How libraries with threads of their own are told their number."""


distributions = cache(importlib.metadata.packages_distributions)
"""Distributions that each module comes from."""


@pytest.fixture(autouse=True)
def same_conditions(request, benchmark):
    """Skip a peer that is not installed; give everybody the same threads, and note both."""
    params = dict(request.node.callspec.params) if hasattr(request.node, "callspec") else {}
    peer, n_threads = params.pop("peer", "kernelcore"), params.get("n_threads", 1)
    module = re.match(r"\w+", peer)[0]
    pytest.importorskip(module, exc_type=ImportError)
    others = ", ".join(str(value) for value in params.values())
    benchmark.group = f"{request.node.originalname} {others}".rstrip()
    about = {"peer": peer, "n_threads": n_threads}
    if module != "kernelcore":
        about["version"] = importlib.metadata.version(distributions()[module][0])
    benchmark.extra_info |= about
    for name in OWN_POOLS.keys() & sys.modules.keys():
        getattr(sys.modules[name], OWN_POOLS[name])(n_threads)
    with threadpool_limits(n_threads), warnings.catch_warnings():
        if module != "kernelcore":  # what peers warn of is theirs
            warnings.simplefilter("ignore")
        yield


def pytest_benchmark_update_machine_info(machine_info):
    """Keep what times depend on."""
    machine_info.clear()
    machine_info |= common.machine()


def pytest_benchmark_update_commit_info(commit_info):
    """Keep the commit alone: the folder and the branch are the user's own."""
    for name in ("project", "branch"):
        commit_info.pop(name, None)


def pytest_benchmark_update_json(output_json):
    """Leave out the time of every single round."""
    for one in output_json["benchmarks"]:
        one["stats"].pop("data", None)
