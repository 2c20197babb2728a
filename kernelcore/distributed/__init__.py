"""Out-of-core Gram matrices, kernel CCA, ranks and features on Dask; interrupted runs resume.

Each function takes a `client` of Dask; without one, threads of this process do the work. Inputs
are arrays, ``.npy`` files and Zarr arrays, results are Zarr arrays with a checksum for each
chunk. The same call completes a run that was killed. The bytes are the same for every number of
workers.
"""

from kernelcore import _extras

_extras.require("zarr")

from kernelcore.distributed.features import extract_features  # noqa: E402
from kernelcore.distributed.gram import gram_to_zarr  # noqa: E402
from kernelcore.distributed.kcca import LandmarkKCCA, embed, fit_landmark_kcca  # noqa: E402
from kernelcore.distributed.ranks import evaluate, streamed_ranks  # noqa: E402
from kernelcore.distributed.search import best_candidates  # noqa: E402

__all__ = [
    "LandmarkKCCA",
    "best_candidates",
    "embed",
    "evaluate",
    "extract_features",
    "fit_landmark_kcca",
    "gram_to_zarr",
    "streamed_ranks",
]
