"""Captioned photos from corpora, from the user's own folder, or generated.

Every loader of pictures returns the same record, `CaptionedImages`, which can also be made of
pairs. Rows that could not be used are named in one `DatasetWarning`. Which captions describe
which pictures beyond their own is read as `RelevanceJudgments`; captions with a picture that
each describes and one that it does not are `BinarySelections`. Documents of several sentences
and several pictures are a `DocumentCollection`.
"""

from kernelcore.datasets.bison import load_bison
from kernelcore.datasets.coco import (
    DirectedJudgments,
    load_coco_captions,
    load_eccv_caption,
    load_karpathy,
)
from kernelcore.datasets.document_builders import build_documents
from kernelcore.datasets.documents import (
    Document,
    DocumentCollection,
    load_documents,
    load_recipeqa,
    load_vist,
)
from kernelcore.datasets.flickr import (
    load_flickr,
    load_flickr_crowd,
    load_flickr_expert,
)
from kernelcore.datasets.folder import load_folder
from kernelcore.datasets.judgments import RelevanceJudgments
from kernelcore.datasets.records import CaptionedImages, CaptionPool, DatasetWarning
from kernelcore.datasets.scenes import Scene, Scenes, Thing, make_scenes
from kernelcore.datasets.selections import (
    BinarySelections,
    SelectionPositions,
    SelectionTriple,
    judged_selections,
    neighbour_selections,
)
from kernelcore.datasets.splits import Leak, find_leaks, random_splits

__all__ = [
    "BinarySelections",
    "CaptionPool",
    "CaptionedImages",
    "DatasetWarning",
    "DirectedJudgments",
    "Document",
    "DocumentCollection",
    "Leak",
    "RelevanceJudgments",
    "Scene",
    "Scenes",
    "SelectionPositions",
    "SelectionTriple",
    "Thing",
    "build_documents",
    "find_leaks",
    "judged_selections",
    "load_bison",
    "load_coco_captions",
    "load_documents",
    "load_eccv_caption",
    "load_flickr",
    "load_flickr_crowd",
    "load_flickr_expert",
    "load_folder",
    "load_karpathy",
    "load_recipeqa",
    "load_vist",
    "make_scenes",
    "neighbour_selections",
    "random_splits",
]
