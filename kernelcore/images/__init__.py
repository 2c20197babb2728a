"""Photos as spatial histograms of visual words: colour, texture and dense SIFT."""

from kernelcore.images.pyramid import SpatialHistograms

__all__ = ["SpatialHistograms"]
