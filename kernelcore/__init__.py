"""Sentence-based image search and image annotation, framed as ranking.

The subpackages follow the flow of the data: ``datasets`` loads photos and captions,
``images`` and ``captions`` turn them into histograms and word ids, ``kernels`` compares them,
``matching`` links them, ``kcca`` and ``models`` learn to rank, ``evaluation`` measures how
well that works and ``experiments`` wires all of it into published systems. ``search`` answers
queries about a folder of photos, ``web`` shows them in a browser, ``plots`` draws what they
give, and ``distributed`` does the largest parts on a cluster. Subpackages, and the names that
most programs need, are imported on first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernelcore.datasets import load_flickr as load_flickr
    from kernelcore.datasets import make_scenes as make_scenes
    from kernelcore.evaluation import compare as compare
    from kernelcore.evaluation import evaluate as evaluate
    from kernelcore.evaluation import evaluate_links as evaluate_links
    from kernelcore.evaluation import evaluate_relevance as evaluate_relevance
    from kernelcore.evaluation import evaluate_selections as evaluate_selections
    from kernelcore.evaluation.agreement import cohen_kappa as cohen_kappa
    from kernelcore.evaluation.agreement import krippendorff_alpha as krippendorff_alpha
    from kernelcore.kcca import KCCA as KCCA
    from kernelcore.kernels.spatial_pyramid import spatial_pyramid as spatial_pyramid
    from kernelcore.kernels.word_sequence import word_sequence as word_sequence
    from kernelcore.matching import linear_assignment as linear_assignment
    from kernelcore.matching.set_similarity import set_similarity as set_similarity
    from kernelcore.models import Encoders as Encoders
    from kernelcore.models import KCCARanker as KCCARanker
    from kernelcore.models import NearestNeighbourRanker as NearestNeighbourRanker
    from kernelcore.models import PhotoIndex as PhotoIndex
    from kernelcore.models import PhotoRanker as PhotoRanker
    from kernelcore.models import borda_scores as borda_scores

__version__ = "0.2.0.dev0"

_HOMES = {  # of names that most programs need
    "datasets": "load_flickr make_scenes",
    "evaluation": "compare evaluate evaluate_links evaluate_relevance evaluate_selections",
    "evaluation.agreement": "cohen_kappa krippendorff_alpha",
    "kcca": "KCCA",
    "kernels": "spatial_pyramid word_sequence",
    "matching": "linear_assignment set_similarity",
    "models": "Encoders KCCARanker NearestNeighbourRanker PhotoIndex PhotoRanker borda_scores",
}

__all__ = [
    "__version__",
    "captions",
    "datasets",
    "deep",
    "distributed",
    "errors",
    "evaluation",
    "experiments",
    "images",
    "kcca",
    "kernels",
    "lexical",
    "matching",
    "models",
    "plots",
    "report",
    "search",
    "show_config",
    "web",
]
__all__ += [name for names in _HOMES.values() for name in names.split()]


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names.split():
            value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
            globals()[name] = value  # found without this function from now on
            return value
    if name in __all__:  # names that are not defined here are subpackages
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


def show_config() -> dict[str, Any]:
    """Return how this copy of the package was built and what it found at run time.

    Returns
    -------
    dict
        ``version``, ``python``, ``numpy``, ``compiler``, ``instruction_set`` (the one in
        use), ``instruction_sets`` (those built and supported here), ``n_threads`` (the
        default) and ``extras`` (optional package -> installed version, None if absent).

    Examples
    --------
    >>> import kernelcore
    >>> kernelcore.show_config()["version"] == kernelcore.__version__
    True
    """
    import platform

    import numpy as np

    from kernelcore import _core, _extras, _threads

    return {
        "version": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "compiler": _core.compiler(),
        "instruction_set": _core.active_isa(),
        "instruction_sets": _core.supported_isas(),
        "n_threads": _threads.resolve_n_threads(None),
        "extras": _extras.installed_versions(),
    }


def _select_instruction_set() -> None:
    """Load the core; ``KERNELCORE_ISA`` overrides its choice of instruction set."""
    import os

    try:
        from kernelcore import _core
    except ImportError as error:
        raise ImportError(
            "kernelcore's compiled core is missing or does not fit this Python: build it with "
            "`pip install .`, and start Python outside the source folder (or develop with "
            f"`pip install -e .`); looked in {__path__[0]}; the loader said: {error}"
        ) from error
    forced = os.environ.get("KERNELCORE_ISA")
    if forced:
        try:
            _core.select_isa(forced)
        except ValueError as error:
            raise ImportError(f"KERNELCORE_ISA: {error}") from None


_select_instruction_set()
