"""Photos as histograms of visual words, and as features of a convolutional network.

`VisualWords` learns codebooks from training photos and turns photos into
`SpatialHistograms`, which the kernels compare. `read_image`, `cielab`, `oriented_energy`,
`dense_sift` and `Codebook` are its parts. `CNN` runs a trained network on
photos, `RegionCNN` on regions of them.
"""

from kernelcore.errors import (
    UnreadableImageError,
    UnreadableImagesError,
    UnreadableImagesWarning,
)
from kernelcore.images._extractor import square_roots
from kernelcore.images.cnn import CNN, CNNFeatures
from kernelcore.images.codebook import Codebook, learn_codebook
from kernelcore.images.dense import DenseFeatures, cielab, dense_sift, oriented_energy
from kernelcore.images.proposals import Boxes, FastestDet, Grid
from kernelcore.images.pyramid import SpatialHistograms
from kernelcore.images.read import read_image
from kernelcore.images.regions import RegionCNN, RegionFeatures
from kernelcore.images.words import ImageFeatures, VisualWords

__all__ = [
    "CNN",
    "Boxes",
    "CNNFeatures",
    "Codebook",
    "DenseFeatures",
    "FastestDet",
    "Grid",
    "ImageFeatures",
    "RegionCNN",
    "RegionFeatures",
    "SpatialHistograms",
    "UnreadableImageError",
    "UnreadableImagesError",
    "UnreadableImagesWarning",
    "VisualWords",
    "cielab",
    "dense_sift",
    "learn_codebook",
    "oriented_energy",
    "read_image",
    "square_roots",
]
