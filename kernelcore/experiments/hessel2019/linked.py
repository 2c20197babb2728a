"""Scores of one system for the documents of a split, and their correction for hubs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from kernelcore._validation import Array
from kernelcore.datasets import Document
from kernelcore.deep import DocumentLinker, History
from kernelcore.deep.losses import hinge_loss
from kernelcore.experiments.scores import hub_corrected_name
from kernelcore.models.hubs import mean_of_largest

_BANK = 2000  # training items by which hubs are corrected
_N_NEIGHBORS = 30
_N_DRAWS = 20  # of one pair from each document
_WIDEST = 2.0  # a margin that no difference of cosines exceeds


@dataclass(frozen=True, eq=False)
class Linked:
    """Scores of one system for the documents of a split.

    Attributes
    ----------
    scores : sequence of ndarray of shape (n_sentences, n_images)
        One matrix per document.
    settings : mapping of str to Any
    history : History or None
        Losses of each epoch, for a system that is trained.
    corrected : sequence of such ndarrays, or None
        The scores after `hub_corrected`.
    gains : mapping of str to float, or None
        See `pair_gains`, for a system that is trained.
    """

    scores: Sequence[Array]
    settings: Mapping[str, Any]
    history: History | None = None
    corrected: Sequence[Array] | None = None
    gains: Mapping[str, float] | None = None

    def variants(self, name: str) -> Iterator[tuple[str, Sequence[Array]]]:
        """Yield the name and scores of the system, then those corrected for hubs."""
        yield name, self.scores
        if self.corrected is not None:
            yield hub_corrected_name(name), self.corrected


def hub_corrected(
    linker: DocumentLinker,
    scores: Sequence[Array],
    documents: Sequence[Document],
    known: Sequence[Document],
    features: Mapping[str, Array],
    *,
    n_threads: int | None,
) -> list[Array]:
    r"""Lower the scores of sentences and images that are near to all training items.

    .. math::

        s'(x, y) = 2 s(x, y) - \frac1k \sum_{v \in N_k(x)} s(x, v)
                 - \frac1k \sum_{u \in N_k(y)} s(u, y)

    over the k nearest training images of the sentence x and training sentences of the image y.

    Parameters
    ----------
    linker : DocumentLinker
        Trained.
    scores : sequence of ndarray of shape (n_sentences, n_images)
        Its scores for `documents`.
    documents, known : sequence of Document
        The documents of the scores, and training documents.
    features : mapping of str to ndarray
        Features of all images.
    n_threads : int or None

    See Also
    --------
    kernelcore.models.hub_corrected : The same for rankings.
    """
    rng = np.random.default_rng(0)
    sentences, images = (_distinct(documents, part) for part in ("sentences", "images"))
    banks = [_distinct(known, part) for part in ("sentences", "images")]
    drawn = [tuple(bank[i] for i in rng.permutation(len(bank))[:_BANK]) for bank in banks]
    pairs = (
        Document("sentences", sentences, drawn[1]),
        Document("images", drawn[0], images),
    )
    to_bank, from_bank = linker.link_scores(pairs, features, n_threads=n_threads)
    of_sentence = dict(zip(sentences, mean_of_largest(to_bank, _N_NEIGHBORS), strict=True))
    nearness = mean_of_largest(np.ascontiguousarray(from_bank.T), _N_NEIGHBORS)
    of_image = dict(zip(images, nearness, strict=True))
    return [
        2 * own
        - np.array([[of_sentence[text]] for text in document.sentences])
        - np.array([of_image[name] for name in document.images])
        for document, own in zip(documents, scores, strict=True)
    ]


def pair_gains(
    linker: DocumentLinker,
    documents: Sequence[Document],
    features: Mapping[str, Array],
    *,
    n_threads: int | None,
) -> dict[str, float]:
    r"""Tell whether a loss of single pairs, as in NoStruct, prefers a model to equal cosines.

    One sentence and one image of each document are drawn. If cosines differ little, all hinges
    of the loss are above 0, and it is

    .. math:: 2 \alpha - g, \qquad g = \frac1b \sum_i (S_{ii} - n_i) + (S_{ii} - n'_i)

    for the hardest negatives, or the mean of all, :math:`n_i` and :math:`n'_i` of a row and of
    a column. Equal cosines have g = 0. If g is negative for a model that finds links, the loss
    prefers equal cosines to the same model with cosines of a smaller spread.

    Parameters
    ----------
    linker : DocumentLinker
        Trained in any way.
    documents : sequence of Document
        At least as many as are in a minibatch.
    features : mapping of str to ndarray
    n_threads : int or None

    Returns
    -------
    dict of str to float
        Mean g with the "hardest" negative and with the "mean" of all.
    """
    rng = np.random.default_rng(0)
    size = min(linker.n_negatives + 1, len(documents))
    found: dict[str, list[float]] = {"hardest": [], "mean": []}
    for _ in range(_N_DRAWS):
        order = rng.permutation(len(documents))[: len(documents) // size * size]
        drawn = [documents[i] for i in order]
        texts, names = (
            tuple(own[int(rng.integers(len(own)))] for own in side)
            for side in ([d.sentences for d in drawn], [d.images for d in drawn])
        )
        (cosines,) = linker.link_scores(
            [Document("drawn", texts, names)], features, n_threads=n_threads
        )
        for start in range(0, len(drawn), size):
            block = torch.tensor(cosines[start : start + size, start : start + size])
            for negatives, gains in found.items():
                loss = hinge_loss(block, margin=_WIDEST, negatives=negatives)
                gains.append(2 * _WIDEST - float(loss))
    return {name: float(np.mean(gains)) for name, gains in found.items()}


def spread_of_scores(scores: Sequence[Array]) -> float:
    """Mean standard deviation of the scores within a document."""
    return float(np.mean([own.std() for own in scores]))


def density(documents: Sequence[Document]) -> float:
    """Mean share of pairs of a document that are true links."""
    shares: npt.NDArray[np.float64] = np.array(
        [len(d.links or ()) / (len(d.sentences) * len(d.images)) for d in documents]
    )
    return float(shares.mean())


def _distinct(documents: Sequence[Document], part: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain(*(getattr(document, part) for document in documents))))
