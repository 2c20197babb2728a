"""Captioned pictures from corpora, from the user's own folder, or drawn.

Every loader returns the same record, `CaptionedImages`, and names rows that it could not use
in one `DatasetWarning`.
"""

from kernelcore.datasets.coco import load_coco_captions
from kernelcore.datasets.flickr import load_flickr, write_flickr
from kernelcore.datasets.folder import load_folder, random_splits
from kernelcore.datasets.karpathy import load_karpathy
from kernelcore.datasets.records import CaptionedImages, DatasetWarning
from kernelcore.datasets.scenes import Scene, Scenes, Thing, make_scenes

__all__ = [
    "CaptionedImages",
    "DatasetWarning",
    "Scene",
    "Scenes",
    "Thing",
    "load_coco_captions",
    "load_flickr",
    "load_folder",
    "load_karpathy",
    "make_scenes",
    "random_splits",
    "write_flickr",
]
