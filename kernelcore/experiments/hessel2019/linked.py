"""Scores of one system for the documents of a split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array
from kernelcore.datasets import Document
from kernelcore.deep.training import History


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
    """

    scores: Sequence[Array]
    settings: Mapping[str, Any]
    history: History | None = None


def density(documents: Sequence[Document]) -> float:
    """Mean share of pairs of a document that are true links."""
    shares: npt.NDArray[np.float64] = np.array(
        [len(d.links or ()) / (len(d.sentences) * len(d.images)) for d in documents]
    )
    return float(shares.mean())
