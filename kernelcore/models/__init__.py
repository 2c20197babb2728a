"""Rankers: fitted to captioned images, they score every image against every caption.

All follow the `Ranker` protocol. `select_kcca` searches the settings of `KCCARanker` from one
factorisation.
"""

from kernelcore.models.base import Ranker, Similarity, Task
from kernelcore.models.chance import ChanceRanker
from kernelcore.models.ensemble import BordaEnsemble, borda_scores
from kernelcore.models.kcca_grid import KCCASetting
from kernelcore.models.kcca_ranker import KCCARanker
from kernelcore.models.nearest_neighbour import NearestNeighbourRanker
from kernelcore.models.photo_index import Match, PhotoIndex
from kernelcore.models.photo_ranker import PhotoRanker
from kernelcore.models.selection import KCCASelection, select_kcca

__all__ = [
    "BordaEnsemble",
    "ChanceRanker",
    "KCCARanker",
    "KCCASelection",
    "KCCASetting",
    "Match",
    "NearestNeighbourRanker",
    "PhotoIndex",
    "PhotoRanker",
    "Ranker",
    "Similarity",
    "Task",
    "borda_scores",
    "select_kcca",
]
