"""Time of a training step of `DocumentLinker`, and of the matching in it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy.typing as npt
import torch

from kernelcore._progress import Progress, reporting
from kernelcore._validation import check_integer
from kernelcore.datasets import Document
from kernelcore.deep import DocumentLinker, seeded_generator
from kernelcore.deep.documents import DocumentObjective
from kernelcore.deep.layers import torch_threads
from kernelcore.deep.training import adam
from kernelcore.lexical import WordVectors


@dataclass(frozen=True)
class StepTime:
    """Median times of a training step, in seconds.

    Attributes
    ----------
    step : float
        Time of the loss, its gradients and the optimizer.
    matching : float
        Time of the matching of all pairs of documents, which is part of the step.
    """

    step: float
    matching: float


def step_times(
    linkers: Mapping[str, DocumentLinker],
    documents: Sequence[Document],
    features: Mapping[str, npt.ArrayLike],
    *,
    word_vectors: WordVectors | None = None,
    n_steps: int = 20,
    n_threads: int | None = None,
    progress: Progress = False,
) -> dict[str, StepTime]:
    """Time training steps of several linkers, which run alternately.

    Parameters
    ----------
    linkers : mapping of str to DocumentLinker
        Unfitted linkers.
    documents : sequence of Document
        At least two training documents.
    features : mapping of str to array_like of shape (n_features,)
        Features of every image of the documents, by its id.
    word_vectors : WordVectors, optional
        Pretrained word vectors.
    n_steps : int, default 20
        Timed steps of each linker, after one warm-up step.
    n_threads : int, optional
        Number of threads. The default is every core that this process may use.
    progress : bool or callable, default False
        Show a progress bar.

    Returns
    -------
    dict of str to StepTime

    Examples
    --------
    >>> from kernelcore.datasets import Document
    >>> from kernelcore.deep import DocumentLinker
    >>> from kernelcore.experiments.hessel2019.timing import step_times
    >>> features = {"dog.jpg": [1.0, 0.0], "cat.jpg": [0.0, 1.0]}
    >>> documents = [Document(str(i), ("a dog", "a cat"), tuple(features)) for i in range(4)]
    >>> linkers = {name: DocumentLinker(similarity=name, min_count=1) for name in ("DC", "AP")}
    >>> times = step_times(linkers, documents, features, n_steps=2)
    >>> all(0 < t.matching < t.step for t in times.values())
    True
    """
    check_integer("n_steps", n_steps, minimum=1)
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in linkers}
    objectives = {}
    for name, linker in linkers.items():
        generator = seeded_generator(0, linker.device)
        objectives[name] = linker.objective(
            documents, documents[:2], features, word_vectors, generator, n_threads=n_threads
        )
    optimizers = {name: adam(o.space.parameters()) for name, o in objectives.items()}
    with torch_threads(n_threads), reporting(progress, "time training steps") as report:
        for step in range(n_steps + 1):
            for name, objective in objectives.items():
                seconds[name].append(_time(objective, optimizers[name], step))
            if report is not None:
                report(step + 1, n_steps + 1)
    return {
        name: StepTime(*(median(column) for column in zip(*rows[1:], strict=True)))
        for name, rows in seconds.items()
    }


def _time(
    objective: DocumentObjective, optimizer: torch.optim.Optimizer, seed: int
) -> tuple[float, float]:
    """Return the time of a step, and of the matching of the same documents."""
    device = objective.training.features.device
    generator = torch.Generator(device).manual_seed(seed)
    batch = objective.batches(objective.batch_size, generator)[0]
    begin = time.perf_counter()
    loss = objective.loss(batch, objective.n_warm_up, generator)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    step = time.perf_counter() - begin
    sides = objective.sides(objective.training, batch, generator)
    with torch.no_grad():
        cosines = objective.cosines(sides, generator)
        begin = time.perf_counter()
        objective.similarities(cosines, sides)
    return step, time.perf_counter() - begin
