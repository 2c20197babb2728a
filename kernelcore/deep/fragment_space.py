"""A space of image regions and sentence fragments, and how alike wholes are in it."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from kernelcore.captions import SentenceFragments, SentenceTrees
from kernelcore.captions.encoded import offsets_of
from kernelcore.deep.fragment_encoders import FragmentEncoder, MeanEncoder, RegionEncoder
from kernelcore.deep.fragment_losses import Offsets, of_images, of_sentences
from kernelcore.deep.region_tables import RegionTable
from kernelcore.deep.tree_encoder import TreeEncoder

Captions: TypeAlias = SentenceFragments | SentenceTrees

SENTENCES = ("fragments", "mean", "tree")

_IMAGES_AT_ONCE = 32
_CAPTIONS_AT_ONCE = 512
_FRAGMENTS_AT_ONCE = 8192


class FragmentSpace(nn.Module):
    """A space of regions and fragments.

    Parameters
    ----------
    regions : RegionEncoder
    captions : FragmentEncoder, MeanEncoder or TreeEncoder
        Their vectors have the same length.
    smoothing : float
        See `fragment_similarities`.
    """

    def __init__(
        self,
        regions: RegionEncoder,
        captions: FragmentEncoder | MeanEncoder | TreeEncoder,
        smoothing: float,
    ) -> None:
        super().__init__()
        self.regions = regions
        self.captions = captions
        self.smoothing = smoothing

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return self.regions.mean.device

    def standardize(
        self, mean: npt.NDArray[np.float32], spread: npt.NDArray[np.float32]
    ) -> None:
        """Take these from the features of images, and divide by these, from now on."""
        self.regions.standardize(mean, spread)

    def encode(
        self, captions: Captions, rows: Tensor, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Offsets]:
        """Return the products of all regions with all fragments, and the fragments' offsets."""
        fragments, offsets = self.captions(captions)
        return self.regions(rows, generator) @ fragments.T, offsets

    @torch.no_grad()
    def scores(self, table: RegionTable, captions: Captions) -> npt.NDArray[np.float32]:
        """Similarity of every image with every caption, block by block."""
        result = np.empty((len(table), len(captions)), np.float32)
        fragments, offsets, places = self._distinct(captions)
        for images in _blocks(len(table), _IMAGES_AT_ONCE):
            rows, region_offsets = table.take(images, self.device)
            regions = self.regions(rows)
            means = torch.cat(
                [
                    of_images(regions @ part.T, region_offsets)
                    for part in torch.split(fragments, _FRAGMENTS_AT_ONCE)
                ],
                dim=1,
            )
            for columns in _blocks(len(captions), _CAPTIONS_AT_ONCE):
                own = offsets[columns[0] : columns[-1] + 2]
                block = of_sentences(
                    means[:, places[own[0] : own[-1]]], own - own[0], self.smoothing
                )
                part = result[images[0] : images[-1] + 1, columns[0] : columns[-1] + 1]
                part[:] = block.cpu().numpy()
        return result

    def _distinct(self, captions: Captions) -> tuple[Tensor, Offsets, Tensor]:
        """Encode every fragment once, however many captions have it.

        Beside the vectors, return the offsets of the captions' fragments and which vector
        each of these has.
        """
        if not (
            isinstance(captions, SentenceFragments)
            and isinstance(self.captions, FragmentEncoder)
        ):
            vectors, offsets = self.captions(captions)
            return vectors, offsets, torch.arange(len(vectors), device=self.device)
        ids = np.stack([captions.relation_ids, captions.first_ids, captions.second_ids])
        (relations, heads, dependents), places = np.unique(ids, axis=1, return_inverse=True)
        vectors, _ = self.captions(
            SentenceFragments(
                relations,
                heads,
                dependents,
                offsets_of([len(relations)]),
                n_relations=captions.n_relations,
                n_words=captions.n_words,
            )
        )
        return vectors, captions.offsets, torch.from_numpy(places.ravel()).to(self.device)

    def image_vectors(self, table: RegionTable) -> Tensor:
        """Encode images of one region each."""
        blocks = _blocks(len(table), _IMAGES_AT_ONCE)
        return torch.cat([self.regions(table.take(own, self.device)[0]) for own in blocks])

    def caption_vectors(self, captions: Captions) -> Tensor:
        """Encode captions of one vector each, so that products with images' are the scores."""
        vectors: Tensor = self.captions(captions)[0] / (1 + self.smoothing)
        return vectors

    @torch.no_grad()
    def products(self, table: RegionTable, captions: Captions) -> list[npt.NDArray[np.float32]]:
        """Products of the regions of image i with the fragments of caption i, for every i."""
        fragments, offsets = self.captions(captions)
        found = []
        for image in range(len(table)):
            rows, _ = table.take(np.array([image]), self.device)
            own = fragments[offsets[image] : offsets[image + 1]]
            found.append((self.regions(rows) @ own.T).cpu().numpy())
        return found

    @torch.no_grad()
    def products_of_all(
        self, table: RegionTable, captions: Captions
    ) -> npt.NDArray[np.float32]:
        """Products of the regions of all images with the fragments of all captions."""
        fragments, _ = self.captions(captions)
        parts = [
            self.regions(table.take(images, self.device)[0]) @ fragments.T
            for images in _blocks(len(table), _IMAGES_AT_ONCE)
        ]
        return torch.cat(parts).cpu().numpy()


def build_space(
    sentence: str,
    n_features: int,
    embedding: Tensor,
    n_relations: int,
    n_components: int,
    *,
    smoothing: float,
    dropout: float,
    network: nn.Module | None,
    generator: torch.Generator,
) -> FragmentSpace:
    """Make a space with random weights; `sentence` says what stands for a sentence."""
    regions = RegionEncoder(
        n_features, n_components, dropout=dropout, network=network, generator=generator
    )
    captions: FragmentEncoder | MeanEncoder | TreeEncoder
    if sentence == "mean":
        captions = MeanEncoder(embedding, n_components, generator=generator)
    else:
        kind = TreeEncoder if sentence == "tree" else FragmentEncoder
        captions = kind(embedding, n_relations, n_components, generator=generator)
    return FragmentSpace(regions, captions, smoothing)


def _blocks(n: int, size: int) -> list[npt.NDArray[np.intp]]:
    return [np.arange(start, min(start + size, n)) for start in range(0, n, size)]
