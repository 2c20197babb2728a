"""Captioned pictures from corpora, from the user's own folder, or drawn.

Every loader of pictures returns the same record, `CaptionedImages`, and names rows that it
could not use in one `DatasetWarning`. Which captions describe which pictures beyond their own
is read as `RelevanceJudgments`. Documents of several sentences and several pictures are a
`DocumentCollection`.
"""

from kernelcore.datasets.coco import load_coco_captions
from kernelcore.datasets.document_builders import build_documents
from kernelcore.datasets.document_files import load_documents, save_documents
from kernelcore.datasets.documents import Document, DocumentCollection
from kernelcore.datasets.eccv_caption import DirectedJudgments, load_eccv_caption
from kernelcore.datasets.flickr import load_flickr, write_flickr
from kernelcore.datasets.flickr_judgments import load_flickr_crowd, load_flickr_expert
from kernelcore.datasets.folder import load_folder, random_splits
from kernelcore.datasets.judgments import RelevanceJudgments
from kernelcore.datasets.karpathy import load_karpathy
from kernelcore.datasets.records import CaptionedImages, DatasetWarning
from kernelcore.datasets.scenes import Scene, Scenes, Thing, make_scenes

__all__ = [
    "CaptionedImages",
    "DatasetWarning",
    "DirectedJudgments",
    "Document",
    "DocumentCollection",
    "RelevanceJudgments",
    "Scene",
    "Scenes",
    "Thing",
    "build_documents",
    "load_coco_captions",
    "load_documents",
    "load_eccv_caption",
    "load_flickr",
    "load_flickr_crowd",
    "load_flickr_expert",
    "load_folder",
    "load_karpathy",
    "make_scenes",
    "random_splits",
    "save_documents",
    "write_flickr",
]
