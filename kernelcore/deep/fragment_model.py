"""What fragment embeddings do once they are learned: score, align, search, and be kept."""

from __future__ import annotations

import os
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from kernelcore._estimator import Estimator, params_to_json
from kernelcore._files import load_tensors, save_tensors
from kernelcore._reading import check_tensor, reading
from kernelcore._validation import check_choice, check_integer
from kernelcore.deep.fragment_space import Captions, FragmentSpace, as_captions, build_space
from kernelcore.deep.randomness import seeded_generator
from kernelcore.deep.region_tables import Regions, RegionTable
from kernelcore.deep.restoring import fill, unfilled
from kernelcore.deep.threads import torch_threads
from kernelcore.deep.training import History

_KIND = "fragment ranker"

_Model = TypeVar("_Model", bound="FragmentModel")


class RegionMatch(NamedTuple):
    """A region that fits a fragment.

    Attributes
    ----------
    image : int
        Position of the image.
    region : int
        Position of the region within the image.
    score : float
        Product of the vectors of region and fragment.
    """

    image: int
    region: int
    score: float


class FragmentModel(Estimator):
    """The fitted half of `FragmentRanker`, which has its parameters."""

    sentence: str
    regions: Regions
    n_components: int
    smoothing: float
    dropout: float
    network: nn.Module | None
    rng: np.random.Generator | int | None
    device: str
    history_: History
    space_: FragmentSpace
    n_relations_: int

    def scores(
        self,
        images: Any,
        captions: Captions,
        *,
        task: Literal["annotation", "search"] = "annotation",
        n_threads: int | None = None,
    ) -> npt.NDArray[np.float32]:
        """Score every image against every caption.

        Parameters
        ----------
        images : RegionFeatures or array_like of shape (n_images, n_features)
        captions : SentenceFragments or SentenceTrees
        task : {"annotation", "search"}, default "annotation"
            The scores are the same for both.
        n_threads : int, optional
            Threads to use; the default is every core this process may run on.

        Returns
        -------
        ndarray of float32, shape (n_images, n_captions)
            :math:`S_{kl}`, at least 0; higher is better.
        """
        check_choice("task", task, ("annotation", "search"))
        table, own = self._items(images, captions)
        with torch_threads(n_threads):
            return self.space_.scores(table, own)

    def alignments(
        self, images: Any, captions: Captions, *, n_threads: int | None = None
    ) -> list[npt.NDArray[np.float32]]:
        """Products of the regions of each image with the fragments of its caption.

        Parameters
        ----------
        images : RegionFeatures or array_like of shape (n_images, n_features)
        captions : SentenceFragments or SentenceTrees
            Caption i belongs to image i.
        n_threads : int, optional
            Threads to use.

        Returns
        -------
        list of ndarray of float32, shape (n_regions, n_fragments)
            A fragment is seen in a region where the product is positive, and best where it
            is greatest.
        """
        table, own = self._items(images, captions)
        if len(table) != len(own):
            raise ValueError(f"captions must be one per image ({len(table)}), got {len(own)}")
        with torch_threads(n_threads):
            return self.space_.products(table, own)

    def search_regions(
        self, images: Any, fragment: Captions, *, k: int = 10, n_threads: int | None = None
    ) -> list[RegionMatch]:
        """Find the regions of all images that fit one fragment best.

        Parameters
        ----------
        images : RegionFeatures or array_like of shape (n_images, n_features)
        fragment : SentenceFragments
            One caption of one fragment, (amod, dog, black) say.
        k : int, default 10
            How many regions to find.
        n_threads : int, optional
            Threads to use.

        Returns
        -------
        list of RegionMatch
            From the greatest product on.
        """
        k = check_integer("k", k, minimum=1)
        table, own = self._items(images, fragment)
        with torch_threads(n_threads):
            columns = self.space_.products_of_all(table, own)
        if columns.shape[1] != 1:
            raise ValueError(f"fragment must hold one fragment, got {columns.shape[1]}")
        best = np.argsort(-columns[:, 0], kind="stable")[:k]
        owners = np.searchsorted(table.offsets, best, side="right") - 1
        return [
            RegionMatch(int(image), int(row - table.offsets[image]), float(columns[row, 0]))
            for image, row in zip(owners, best, strict=True)
        ]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write parameters and weights as a safetensors file, whole or not at all.

        A generator as `rng` and the class of `network` are not kept.
        """
        self._check_fitted("space_")
        tensors = {name: t.cpu().numpy() for name, t in self.space_.state_dict().items()}
        params = {**self.get_params(), "network": None}
        if isinstance(self.rng, np.random.Generator):
            params["rng"] = None
        metadata = {
            "params": params_to_json(params),
            "n_relations": self.n_relations_,
            "epochs": self.history_.epochs,
        }
        save_tensors(path, _KIND, tensors, metadata)

    @classmethod
    def load(
        cls: type[_Model],
        path: str | os.PathLike[str],
        *,
        device: str = "cpu",
        network: nn.Module | None = None,
    ) -> _Model:
        """Read what `save` wrote, onto any device; a damaged file is a ValueError.

        A ranker that was trained with a network needs one of the same structure.
        """
        with reading(path):
            arrays, metadata = load_tensors(path, _KIND)
            ranker = cls.from_json(metadata["params"])
            ranker.set_params(device=device, network=network)
            ranker.history_ = History.of(metadata["epochs"])
            # A relation has a layer of its own: no more are made than the file has tensors.
            most = len(arrays) if ranker.sentence == "fragments" else None
            n_relations = check_integer(
                "n_relations", metadata["n_relations"], minimum=0, maximum=most
            )
            mean = check_tensor("regions.mean", arrays["regions.mean"], (None,), np.float32)
            words = check_tensor(
                "captions.words", arrays["captions.words"], (None, None), np.float32
            )
            with unfilled():
                own = torch.empty(words.shape)
                ranker._build(len(mean), own, n_relations, seeded_generator(0))
            ranker.space_ = fill(ranker.space_, arrays, path, cls.__name__).to(device)
            return ranker

    def _build(
        self, n_features: int, words: Tensor, n_relations: int, generator: torch.Generator
    ) -> None:
        """Make the model with random weights."""
        self.n_relations_ = n_relations
        self.space_ = build_space(
            self.sentence,
            n_features,
            words,
            n_relations,
            self.n_components,
            smoothing=self.smoothing,
            dropout=self.dropout,
            network=self.network,
            generator=generator,
        ).to(words.device)

    def _items(self, images: Any, captions: Captions) -> tuple[RegionTable, Captions]:
        """Check images and captions against what was learned."""
        self._check_fitted("space_")
        table = RegionTable.of("images", images, self.regions)
        self._check_width("images", table)
        own = as_captions("captions", captions, self.sentence)
        sizes = self.n_relations_, len(self.space_.captions.words)
        if (own.n_relations, own.n_words) != sizes:
            raise ValueError(
                f"captions must have {sizes[0]} relations and {sizes[1]} words as those of "
                f"training, got {own.n_relations} and {own.n_words}"
            )
        return table, own

    def _check_width(self, name: str, table: RegionTable) -> None:
        expected = len(self.space_.regions.mean)
        if self.network is None and table.rows.shape[1:] != (expected,):
            raise ValueError(
                f"{name} must have {expected} features, got shape {table.rows.shape[1:]}"
            )
