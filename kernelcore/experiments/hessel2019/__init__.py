"""Unsupervised discovery of multimodal links (Hessel, Lee and Mimno, EMNLP 2019).

Captioned photos are put together to documents of several sentences and several images. The
systems learn from documents whose links they do not see, and are measured by how well they
find the links inside other documents.

Collections, features and sizes are not those of the paper: photos and captions come from
Flickr8k or Flickr30k, features from EfficientNet-Lite0, word vectors from GloVe or a file, and
`SIZE` is for two CPU cores.
"""

from kernelcore.experiments.hessel2019.protocol import run
from kernelcore.experiments.hessel2019.systems import (
    SIZE,
    SYSTEMS,
    VARIANTS,
    Size,
    System,
    Variant,
)

__all__ = ["SIZE", "SYSTEMS", "VARIANTS", "Size", "System", "Variant", "run"]
