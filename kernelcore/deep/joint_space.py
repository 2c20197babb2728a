"""An encoder of sentences and one of images, trained together."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from kernelcore.deep.encoders import ImageEncoder, SentenceEncoder
from kernelcore.deep.sentences import Sentences

_ROWS_AT_ONCE = 1024


class JointSpace(nn.Module):
    """A space of sentences and images.

    Parameters
    ----------
    sentences : SentenceEncoder
    images : ImageEncoder
        Their vectors have the same length.
    """

    def __init__(self, sentences: SentenceEncoder, images: ImageEncoder) -> None:
        super().__init__()
        self.sentences = sentences
        self.images = images

    @torch.no_grad()
    def encode(self, sentences: Sentences, features: Tensor) -> tuple[Tensor, Tensor]:
        """Return the vectors of any number of sentences and of images, one a row."""
        # Of like length together: less is computed for what stands after the shorter ones.
        order = torch.argsort(sentences.lengths, stable=True)
        texts = [
            self.sentences(sentences.take(rows)) for rows in torch.split(order, _ROWS_AT_ONCE)
        ]
        back = torch.argsort(order).to(sentences.word_ids.device)
        return torch.cat(texts)[back], self.images(features)
