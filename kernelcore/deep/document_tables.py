"""Documents laid out for training: each distinct sentence and image once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from kernelcore._validation import as_real_array, check_finite
from kernelcore.captions.encoded import offsets_of
from kernelcore.datasets import Document
from kernelcore.deep.sentences import Sentences

Rows = npt.NDArray[np.int64]


class Side(NamedTuple):
    """Sentences, or images, of some documents.

    Attributes
    ----------
    distinct : Tensor of int64
        Rows of the table, each once.
    places : Tensor of int64, shape (n_members,)
        Which of the distinct rows each member of each document is, one after another.
    offsets : ndarray of int64, shape (n_documents + 1,)
        Start of each document's members.
    """

    distinct: Tensor
    places: Tensor
    offsets: Rows


@dataclass(frozen=True)
class DocumentTable:
    """Sentences and image features of documents.

    Attributes
    ----------
    sentences : Sentences
        Distinct sentences.
    features : Tensor of float32, shape (n_images, n_features)
        Features of the distinct images.
    sentence_rows, image_rows : tuple of ndarray of int64
        Rows of each document's sentences and images.
    """

    sentences: Sentences
    features: Tensor
    sentence_rows: tuple[Rows, ...]
    image_rows: tuple[Rows, ...]

    @classmethod
    def of(
        cls,
        documents: Sequence[Document],
        features: Mapping[str, npt.ArrayLike],
        encode: Callable[[Sequence[str]], Sentences],
        device: torch.device,
    ) -> DocumentTable:
        """Lay documents out; `encode` turns sentences into word ids."""
        texts = {text: row for row, text in enumerate(_distinct(documents, "sentences"))}
        images = {name: row for row, name in enumerate(_distinct(documents, "images"))}
        return cls(
            encode(list(texts)).to(device),
            torch.from_numpy(stacked_features(list(images), features)).to(device),
            tuple(np.array([texts[text] for text in d.sentences]) for d in documents),
            tuple(np.array([images[name] for name in d.images]) for d in documents),
        )

    def __len__(self) -> int:
        return len(self.sentence_rows)

    def sides(self, documents: Sequence[int]) -> tuple[Side, Side]:
        """Sentences and images of the documents at these positions."""
        return (
            side_of([self.sentence_rows[i] for i in documents]),
            side_of([self.image_rows[i] for i in documents]),
        )

    def link_scores(self, sentences: Tensor, images: Tensor) -> list[npt.NDArray[np.float32]]:
        """Cosines within each document, from vectors of the distinct sentences and images."""
        texts, pictures = sentences.cpu().numpy(), images.cpu().numpy()
        return [
            texts[rows] @ pictures[cols].T
            for rows, cols in zip(self.sentence_rows, self.image_rows, strict=True)
        ]


def side_of(members: Sequence[Rows]) -> Side:
    """Put the members of some documents together, and name each distinct one once."""
    distinct, places = np.unique(np.concatenate(members), return_inverse=True)
    return Side(
        torch.from_numpy(distinct),
        torch.from_numpy(places),
        offsets_of([len(rows) for rows in members]),
    )


def stacked_features(
    images: Sequence[str], features: Mapping[str, npt.ArrayLike]
) -> npt.NDArray[np.float32]:
    """Features of the images as rows of a matrix."""
    missing = [name for name in images if name not in features]
    if missing:
        raise ValueError(
            f"features must have a vector for every image, got none for {len(missing)} "
            f"images, such as {missing[0]!r}"
        )
    matrix = as_real_array("features", [np.asarray(features[name]) for name in images], ndim=2)
    return check_finite("features", matrix.astype(np.float32, copy=False))


def as_documents(name: str, documents: Any) -> tuple[Document, ...]:
    """Return a sequence of documents, at least one, as a tuple."""
    members = tuple(documents)
    for member in members:
        if not isinstance(member, Document):
            raise TypeError(f"{name} must hold documents, got {member!r}")
    if not members:
        raise ValueError(f"{name} must hold at least one document, got none")
    return members


def _distinct(documents: Sequence[Document], part: str) -> list[str]:
    return list(dict.fromkeys(entry for d in documents for entry in getattr(d, part)))
