"""Rankers: fitted to captioned images, they score every image against every caption.

All follow the `Ranker` protocol. `select_kcca` chooses the settings of `KCCARanker` on a
development set. `borda_scores` combines rankings, and `hub_corrected` lowers the scores of
candidates that are near to everything.
`ChanceLinker` and `ObjectLabelLinker` link the sentences and images of documents instead.
"""

from kernelcore.models.base import Ranker
from kernelcore.models.baselines import ChanceRanker, NearestNeighbourRanker
from kernelcore.models.calibration import ChanceLine
from kernelcore.models.encoders import Encoders
from kernelcore.models.ensemble import borda_scores, hub_corrected
from kernelcore.models.kcca_ranker import KCCARanker
from kernelcore.models.kcca_settings import KCCASelection, select_kcca
from kernelcore.models.links import ChanceLinker, ObjectLabelLinker, imagenet_labels
from kernelcore.models.photo_index import PhotoFile, PhotoIndex
from kernelcore.models.photo_ranker import PhotoRanker
from kernelcore.models.photo_search import Match

__all__ = [
    "ChanceLine",
    "ChanceLinker",
    "ChanceRanker",
    "Encoders",
    "KCCARanker",
    "KCCASelection",
    "Match",
    "NearestNeighbourRanker",
    "ObjectLabelLinker",
    "PhotoFile",
    "PhotoIndex",
    "PhotoRanker",
    "Ranker",
    "borda_scores",
    "hub_corrected",
    "imagenet_labels",
    "select_kcca",
]
