"""Gram matrices of images and captions: rows of the result are `X`, columns are `Y`."""

from kernelcore.kernels.bag_of_words import bag_of_words, bag_of_words_f1
from kernelcore.kernels.blocks import GramBlock, gram_blocks
from kernelcore.kernels.custom import CustomKernel, custom
from kernelcore.kernels.gram import GramCenterer, average, normalize, power, ridge
from kernelcore.kernels.histogram_intersection import histogram_intersection
from kernelcore.kernels.prepared import Prepared, prepare
from kernelcore.kernels.spatial_pyramid import spatial_pyramid
from kernelcore.kernels.tag_rank import TagRank, tag_rank
from kernelcore.kernels.word_assignment import word_assignment
from kernelcore.kernels.word_sequence import word_sequence, word_sequence_components

__all__ = [
    "CustomKernel",
    "GramBlock",
    "GramCenterer",
    "Prepared",
    "TagRank",
    "average",
    "bag_of_words",
    "bag_of_words_f1",
    "custom",
    "gram_blocks",
    "histogram_intersection",
    "normalize",
    "power",
    "prepare",
    "ridge",
    "spatial_pyramid",
    "tag_rank",
    "word_assignment",
    "word_sequence",
    "word_sequence_components",
]
