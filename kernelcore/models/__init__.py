"""Rankers: fitted to captioned images, they score every image against every caption.

All follow the `Ranker` protocol. `GridSearch` tries parameters of any of them on a development
set; `select_kcca` searches the settings of `KCCARanker` from a factorisation that is there.
`HubCorrection` lowers the scores of candidates that are near to everything.
`ChanceLinker` and `ObjectLabelLinker` link the sentences and images of documents instead.
"""

from kernelcore.models.base import FittedSettings, Ranker, SharesFit, Task
from kernelcore.models.baselines import (
    ChanceLinker,
    ChanceRanker,
    NearestNeighbourRanker,
    ObjectLabelLinker,
    imagenet_labels,
)
from kernelcore.models.chance import ChanceLine
from kernelcore.models.encoders import Encoders
from kernelcore.models.ensemble import BordaEnsemble, borda_scores
from kernelcore.models.grid_search import GridSearch
from kernelcore.models.hubs import HubCorrection, hub_corrected
from kernelcore.models.kcca_ranker import KCCARanker
from kernelcore.models.kcca_settings import KCCASelection, KCCASetting, select_kcca
from kernelcore.models.kernel_items import Similarity
from kernelcore.models.photo_index import PhotoFile, PhotoIndex
from kernelcore.models.photo_ranker import PhotoRanker
from kernelcore.models.photo_search import Match

__all__ = [
    "BordaEnsemble",
    "ChanceLine",
    "ChanceLinker",
    "ChanceRanker",
    "Encoders",
    "FittedSettings",
    "GridSearch",
    "HubCorrection",
    "KCCARanker",
    "KCCASelection",
    "KCCASetting",
    "Match",
    "NearestNeighbourRanker",
    "ObjectLabelLinker",
    "PhotoFile",
    "PhotoIndex",
    "PhotoRanker",
    "Ranker",
    "SharesFit",
    "Similarity",
    "Task",
    "borda_scores",
    "hub_corrected",
    "imagenet_labels",
    "select_kcca",
]
