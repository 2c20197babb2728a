"""Gram matrices, kernel CCA, ranks and features on a cluster, in stores that survive.

Each function takes an `executor`: a client of Dask, an executor of `concurrent.futures`, or
None for threads of this process. Results lie in a folder, in pieces. A run that was killed is
completed by the same call, and the bytes are the same for every number of workers.
"""

from kernelcore.distributed.evaluating import evaluate
from kernelcore.distributed.gram import gram_to_store, read_gram
from kernelcore.distributed.landmark_kcca import embed, fit_landmark_kcca
from kernelcore.distributed.landmark_model import LandmarkKCCA, LandmarkView
from kernelcore.distributed.landmarks import Landmarks, landmark_features, load_landmarks
from kernelcore.distributed.photos import PhotoFeatures, extract_features, open_features
from kernelcore.distributed.ranks import streamed_ranks
from kernelcore.distributed.rows import RowFiles, open_rows, write_rows
from kernelcore.distributed.search import Best, best_candidates
from kernelcore.distributed.tasks import ClusterLostError, PiecesFailedError

__all__ = [
    "Best",
    "ClusterLostError",
    "LandmarkKCCA",
    "LandmarkView",
    "Landmarks",
    "PhotoFeatures",
    "PiecesFailedError",
    "RowFiles",
    "best_candidates",
    "embed",
    "evaluate",
    "extract_features",
    "fit_landmark_kcca",
    "gram_to_store",
    "landmark_features",
    "load_landmarks",
    "open_features",
    "open_rows",
    "read_gram",
    "streamed_ranks",
    "write_rows",
]
