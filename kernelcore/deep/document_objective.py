"""What models of documents are trained for: true documents before mixed ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from kernelcore.deep.document_tables import DocumentTable, Side, side_of
from kernelcore.deep.joint_space import JointSpace
from kernelcore.deep.losses import hinge_loss
from kernelcore.deep.randomness import permutation
from kernelcore.deep.similarities import set_similarities

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
    similarity : {"AP", "DC", "TK", "NoStruct"}
    k : int or "half" or None
    margin : float
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
        similarity: str,
        k: int | str | None,
        margin: float,
        n_warm_up: int,
        batch_size: int,
        n_threads: int | None,
    ) -> None:
        self.space = space
        self.training = training
        self.dev = dev
        self.similarity = similarity
        self.k = k
        self.margin = margin
        self.n_warm_up = n_warm_up
        self.batch_size = batch_size
        self.n_threads = n_threads

    def batches(self, batch_size: int, generator: torch.Generator) -> Sequence[list[int]]:
        """Deal the documents out; one that would be left alone joins the batch before."""
        return _dealt(permutation(len(self.training), generator), batch_size)

    def loss(self, batch: list[int], epoch: int, generator: torch.Generator) -> Tensor:
        """Return the loss of some training documents."""
        sides = self._sides(self.training, batch, generator)
        texts, images = (side.distinct for side in sides)
        sentences = self.space.sentences(self.training.sentences.take(texts), generator)
        features = self.training.features[images.to(self.training.features.device)]
        pictures = self.space.images(features, generator)
        negatives = "mean" if epoch < self.n_warm_up else "hardest"
        return self._loss(sentences, pictures, sides, negatives)

    def evaluate(self) -> Mapping[str, float]:
        """Return the mean loss of the development documents.

        The minibatches, and what "NoStruct" draws, are the same in every epoch.
        """
        sentences, images = self.space.encode(self.dev.sentences, self.dev.features)
        generator = torch.Generator().manual_seed(_DEV_SEED)
        total = 0.0
        n_draws = _DEV_DRAWS if self.similarity == "NoStruct" else 1
        for _ in range(n_draws):
            for batch in _dealt(range(len(self.dev)), self.batch_size):
                texts, pictures = sides = self._sides(self.dev, batch, generator)
                parts = sentences[texts.distinct], images[pictures.distinct]
                loss = self._loss(*parts, sides, "hardest")
                total += float(loss) * len(batch)
        return {"dev_loss": total / (n_draws * len(self.dev))}

    def _sides(
        self, table: DocumentTable, batch: Sequence[int], generator: torch.Generator
    ) -> tuple[Side, Side]:
        """Sentences and images to compare: all of them, or one of each at random."""
        members = [[rows[i] for i in batch] for rows in (table.sentence_rows, table.image_rows)]
        if self.similarity == "NoStruct":
            draws = torch.rand((2, len(batch)), generator=generator, device=generator.device)
            members = [
                [rows[[int(draw * len(rows))]] for rows, draw in zip(side, drawn, strict=True)]
                for side, drawn in zip(members, draws.tolist(), strict=True)
            ]
        return side_of(members[0]), side_of(members[1])

    def _loss(
        self, sentences: Tensor, images: Tensor, sides: tuple[Side, Side], negatives: str
    ) -> Tensor:
        texts, pictures = sides
        # In float32 whatever the encoders computed in: differences of cosines are small.
        with torch.autocast(sentences.device.type, enabled=False):
            cosines = sentences.float() @ images.float().T
            device = cosines.device
            cosines = cosines[texts.places.to(device)][:, pictures.places.to(device)]
            if self.similarity == "NoStruct":
                similarities = cosines
            else:
                similarities = set_similarities(
                    cosines,
                    texts.offsets,
                    pictures.offsets,
                    method=self.similarity,
                    k=self.k,
                    n_threads=self.n_threads,
                )
            return hinge_loss(similarities, margin=self.margin, negatives=negatives)


def _dealt(order: Sequence[int], batch_size: int) -> list[list[int]]:
    """Cut into batches; what is too few to be compared joins the last one."""
    starts = list(range(0, len(order), batch_size))
    if len(starts) > 1 and len(order) - starts[-1] < 2:
        starts.pop()
    ends = [*starts[1:], len(order)]
    return [list(order[start:end]) for start, end in zip(starts, ends, strict=True)]
