"""What models of documents are trained for: true documents before mixed ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import torch
from torch import Tensor

from kernelcore.deep.document_tables import DocumentTable, Side, side_of
from kernelcore.deep.joint_space import JointSpace
from kernelcore.deep.losses import hinge_loss
from kernelcore.deep.randomness import permutation
from kernelcore.deep.similarities import set_similarities
from kernelcore.deep.training import dealt
from kernelcore.evaluation import evaluate_links
from kernelcore.evaluation.links import Links

Sides: TypeAlias = tuple[Side, Side]
"""Sentences and images of the same documents."""

SIMILARITIES = ("AP", "DC", "TK", "NoStruct")

_DEV_SEED = 0
_DEV_DRAWS = 10


class DocumentObjective:
    """Hinge loss of documents against the others of their minibatch.

    Parameters
    ----------
    space : JointSpace
        The model.
    training, dev : DocumentTable
    dev_links : sequence of set of (int, int), or None
        True links of the development documents, to measure how well they are found. Nothing
        is chosen by them.
    similarity : {"AP", "DC", "TK", "NoStruct"}
    k : int or "half" or None
    margin : float
    negatives : {"hardest", "mean", "sum"}
    n_warm_up : int
        Epochs in which the mean over all negatives is taken.
    batch_size : int
        Documents that are compared with one another on development data.
    n_threads : int or None
        Threads of the matching.
    """

    def __init__(
        self,
        space: JointSpace,
        training: DocumentTable,
        dev: DocumentTable,
        *,
        dev_links: Sequence[Links] | None,
        similarity: str,
        k: int | str | None,
        margin: float,
        negatives: str,
        n_warm_up: int,
        batch_size: int,
        n_threads: int | None,
    ) -> None:
        self.space = space
        self.training = training
        self.dev = dev
        self.dev_links = dev_links
        self.similarity = similarity
        self.k = k
        self.margin = margin
        self.negatives = negatives
        self.n_warm_up = n_warm_up
        self.batch_size = batch_size
        self.n_threads = n_threads

    def batches(self, batch_size: int, generator: torch.Generator) -> Sequence[list[int]]:
        """Deal the documents out; one that would be left alone joins the batch before."""
        return dealt(permutation(len(self.training), generator), batch_size)

    def loss(self, batch: list[int], epoch: int, generator: torch.Generator) -> Tensor:
        """Return the loss of some training documents."""
        sides = self.sides(self.training, batch, generator)
        similarities = self.similarities(self.cosines(sides, generator), sides)
        return self._loss(similarities, "mean" if epoch < self.n_warm_up else self.negatives)

    def evaluate(self) -> Mapping[str, float]:
        """Return the mean loss of the development documents, and ``dev_auc`` of their links.

        The minibatches, and what "NoStruct" draws, are the same in every epoch.
        """
        sentences, images = self.space.encode(self.dev.sentences, self.dev.features)
        generator = torch.Generator().manual_seed(_DEV_SEED)
        total = 0.0
        n_draws = _DEV_DRAWS if self.similarity == "NoStruct" else 1
        for _ in range(n_draws):
            for batch in dealt(range(len(self.dev)), self.batch_size):
                texts, pictures = sides = self.sides(self.dev, batch, generator)
                parts = sentences[texts.distinct], images[pictures.distinct]
                similarities = self.similarities(_cosines(*parts, sides), sides)
                total += float(self._loss(similarities, self.negatives)) * len(batch)
        measured = {"dev_loss": total / (n_draws * len(self.dev))}
        if self.dev_links is not None:
            scores = self.dev.link_scores(sentences, images)
            measured["dev_auc"] = evaluate_links(scores, self.dev_links).mean["AUC"]
        return measured

    def sides(
        self, table: DocumentTable, batch: Sequence[int], generator: torch.Generator
    ) -> Sides:
        """Sentences and images to compare: all of them, or one of each at random."""
        members = [[rows[i] for i in batch] for rows in (table.sentence_rows, table.image_rows)]
        if self.similarity == "NoStruct":
            draws = torch.rand((2, len(batch)), generator=generator, device=generator.device)
            members = [
                [rows[[int(draw * len(rows))]] for rows, draw in zip(side, drawn, strict=True)]
                for side, drawn in zip(members, draws.tolist(), strict=True)
            ]
        return side_of(members[0]), side_of(members[1])

    def cosines(self, sides: Sides, generator: torch.Generator) -> Tensor:
        """Encode the sentences and images of training documents and compare all with all."""
        texts, images = (side.distinct for side in sides)
        sentences = self.space.sentences(self.training.sentences.take(texts), generator)
        features = self.training.features[images.to(self.training.features.device)]
        return _cosines(sentences, self.space.images(features, generator), sides)

    def similarities(self, cosines: Tensor, sides: Sides) -> Tensor:
        """Compare every document's sentences with every document's images."""
        if self.similarity == "NoStruct":
            return cosines
        return set_similarities(
            cosines,
            *(side.offsets for side in sides),
            method=self.similarity,
            k=self.k,
            n_threads=self.n_threads,
        )

    def _loss(self, similarities: Tensor, negatives: str) -> Tensor:
        return hinge_loss(similarities, margin=self.margin, negatives=negatives)


def _cosines(sentences: Tensor, images: Tensor, sides: Sides) -> Tensor:
    """Cosines of all members of both sides, from vectors of the distinct ones."""
    # In float32 whatever the encoders computed in: differences of cosines are small.
    with torch.autocast(sentences.device.type, enabled=False):
        cosines = sentences.float() @ images.float().T
    rows, cols = (side.places.to(cosines.device) for side in sides)
    return cosines[rows][:, cols]
