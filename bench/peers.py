"""Peers: the libraries beside which we measure, and how to limit their threads."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from threadpoolctl import threadpool_limits


@dataclass(frozen=True)
class Peer:
    """A library that does the same work.

    Attributes
    ----------
    distribution : str
        What to install.
    module : str
        What to import.
    has_threads : bool
        Whether it takes a number of threads for what we compare. The others run on one,
        whatever they are given.
    compiles : bool
        Whether the first call takes longer than the others.
    """

    distribution: str
    module: str
    has_threads: bool = False
    compiles: bool = False


PEERS = {
    "cca-zoo": Peer("cca-zoo", "cca_zoo.nonparametric", has_threads=True),
    "faiss": Peer("faiss-cpu", "faiss", has_threads=True),
    "lapjv": Peer("lapjv", "lapjv"),
    "lapx": Peer("lapx", "lap"),
    "nltk": Peer("nltk", "nltk"),
    "numba": Peer("numba", "numba", has_threads=True, compiles=True),
    "numpy": Peer("numpy", "numpy", has_threads=True),
    "opencv": Peer("opencv-python-headless", "cv2", has_threads=True),
    "pycocoevalcap": Peer("pycocoevalcap", "pycocoevalcap"),
    "ranx": Peer("ranx", "ranx", compiles=True),
    "scikit-learn": Peer("scikit-learn", "sklearn.metrics.pairwise", has_threads=True),
    "scipy": Peer("scipy", "scipy"),
    "sil-thot": Peer("sil-thot", "thot.alignment"),
    "strkernels": Peer("strkernels", "strkernels"),
    "torch": Peer("torch", "torch", has_threads=True),
    "torchmetrics": Peer("torchmetrics", "torchmetrics", has_threads=True),
}


def peer_of(way: object) -> str | None:
    """Name of the peer that a way belongs to ("numpy, by sorting"); None if it is ours."""
    name = str(way).partition(",")[0]
    return name if name in PEERS else None


def is_here(name: str) -> bool:
    """Whether the peer can be imported; imports it, so that nobody pays for that later."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            importlib.import_module(PEERS[name].module)
        except ImportError:
            return False
    return True


def versions() -> dict[str, str]:
    """Version of each peer that is installed."""
    found = {}
    for name, peer in PEERS.items():
        try:
            found[name] = version(peer.distribution)
        except PackageNotFoundError:
            continue
    return found


@contextmanager
def threads(n_threads: int) -> Iterator[None]:
    """Give every library that is loaded the same number of threads."""
    with ExitStack() as before:
        before.enter_context(threadpool_limits(n_threads))
        for module, getter, setter in (
            ("torch", "get_num_threads", "set_num_threads"),
            ("numba", "get_num_threads", "set_num_threads"),
            ("cv2", "getNumThreads", "setNumThreads"),
            ("faiss", "omp_get_max_threads", "omp_set_num_threads"),
        ):
            if (loaded := sys.modules.get(module)) is not None:
                before.callback(getattr(loaded, setter), getattr(loaded, getter)())
                getattr(loaded, setter)(n_threads)
        yield
