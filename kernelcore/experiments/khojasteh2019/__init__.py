"""Order embeddings of images and their joined captions (Khojasteh, 2019).

An image and all its captions as one text are embedded in a partial order: the text should lie
below the image. The thesis' model runs beside three variants: with the variance in the loss,
with cosines instead of an order, and with single captions. The study also reports which side
lies below the other.

Features, training data and sizes are not those of the thesis: see `CHOICES`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._validation import Array
from kernelcore.deep import OrderRanker, join_captions
from kernelcore.evaluation import ResultTable, RetrievalResult, Table, evaluate
from kernelcore.experiments.khojasteh2019.systems import (
    BATCH_SIZE,
    CHOICES,
    N_EPOCHS,
    PUBLISHED,
    SETTINGS,
    SOURCE,
    SYSTEMS,
    THESIS,
    System,
)
from kernelcore.experiments.scores import Scores
from kernelcore.experiments.sections import choices_section
from kernelcore.experiments.study import StudyResults
from kernelcore.experiments.training import (
    TrainedStudy,
    histories_of,
    training_figures,
    training_section,
)
from kernelcore.report import ReportFigure, Section, histograms

__all__ = ["CHOICES", "PUBLISHED", "SYSTEMS", "Khojasteh2019", "System", "run"]

_Penalties = npt.NDArray[np.float32]

_ABOUT_ORDER = (
    "The penalty of a pair compares the vectors of its upper and lower side. It is the "
    "squared length of the positive part of the upper vector minus the lower vector, and 0 if "
    "the lower side lies below the upper side. Upper vectors have length 1. In systems "
    "without an order, all vectors have length 1.",
    "The table has mean penalties of texts with their own image (true), of texts with other "
    "images (mismatched), and of true pairs with upper and lower side exchanged (reverse). "
    "The first share is that of true pairs whose penalty is lower than their reverse penalty. "
    "The second share is that of mismatched pairs whose penalty is higher than that of the "
    "same text with its own image.",
)


@dataclass(frozen=True)
class Ordering:
    """Penalties of pairs of an image and a text, by the order that a system is trained for.

    Attributes
    ----------
    below : {"texts", "images"}
        The side that should lie below.
    true, reverse : ndarray of float32, shape (n_texts,)
        Penalty of each text with its own image, by the order and by its reverse.
    mismatched : ndarray of float32, shape (n_images - 1, n_texts)
        Penalties of each text with all other images.
    """

    below: str
    true: _Penalties
    reverse: _Penalties
    mismatched: _Penalties

    @classmethod
    def of(
        cls,
        ranker: OrderRanker,
        images: npt.ArrayLike,
        texts: Sequence[str],
        owners: npt.ArrayLike,
        *,
        n_threads: int | None,
    ) -> Ordering:
        """Compute the penalties of all pairs; `owners` is the image of each text."""
        is_reverse = ranker.similarity == "images below"
        along, against = (
            ranker.penalties(images, texts, reverse=way, n_threads=n_threads)
            for way in (is_reverse, not is_reverse)
        )
        own = np.asarray(owners), np.arange(len(texts))
        others = np.ones(along.shape, bool)
        others[own] = False
        mismatched = along.T[others.T].reshape(len(texts), len(along) - 1).T
        return cls("images" if is_reverse else "texts", along[own], against[own], mismatched)

    @property
    def less_than_reverse(self) -> float:
        """Share of true pairs with a lower penalty than by the reverse of the order."""
        return float((self.true < self.reverse).mean())

    @property
    def less_than_mismatched(self) -> float:
        """Share of mismatched pairs with a higher penalty than the text has with its own image.

        Equal penalties count half.
        """
        more, same = self.mismatched > self.true, self.mismatched == self.true
        return float(more.mean() + same.mean() / 2)


@dataclass(frozen=True, eq=False)
class OrderScores(Scores):
    """Scores of single captions, scores of joined captions, and the orders of both.

    Attributes
    ----------
    joined : ndarray of float32, shape (n_photos, n_photos)
        Scores of photos and joined captions; text i belongs to photo i.
    orderings : mapping of str to Ordering
        Order of joined and of single captions.
    """

    joined: Array = field(default_factory=lambda: np.zeros((0, 0)))
    orderings: Mapping[str, Ordering] = field(default_factory=dict)


@dataclass(kw_only=True)
class Khojasteh2019(TrainedStudy[OrderScores]):
    """The study of Khojasteh (2019); `TrainedStudy` documents its options.

    Systems of single captions have half as many epochs. Photos have one
    joined description each.
    """

    NAME = "khojasteh2019"
    TITLE = f"Order embeddings, {SOURCE}"
    SYSTEMS = SYSTEMS
    BEFORE = ("captions", "regions of photos")
    AFTER = ("binary image selection",)
    SOURCE, SETTINGS, PUBLISHED = SOURCE, SETTINGS, PUBLISHED

    n_epochs: int = N_EPOCHS
    batch_size: int = BATCH_SIZE

    def prepare(self) -> None:
        """Read the corpus and compute the features of photos."""
        with self.stages.stage("captions"):
            self.read()
        with self.stages.stage("regions of photos"):
            self.describe()

    def score_with(
        self, name: str, *, seed: int, split: str, change: Mapping[str, Any]
    ) -> OrderScores:
        """Train a system and score joined and single captions of a split."""
        system = SYSTEMS[name]
        n_epochs = math.ceil(self.n_epochs * system.epochs)
        params = {
            **self.params,
            "n_epochs": n_epochs,
            **system.options,
            "rng": seed,
            **change,
        }
        captions = {own: self.raw_captions(own) for own in ("train", "dev")}
        ranker = self.train(
            OrderRanker(**params), self.photos, captions, word_vectors=self.embeddings
        )
        pool = self.corpus.pools[split]
        photos, owners = np.unique(pool.photos, return_inverse=True)
        texts = {
            "joined captions": join_captions(pool.texts, owners),
            "single captions": (pool.texts, owners),
        }
        images, run = self.photos.value()[photos], {"n_threads": self.n_threads}
        joined, single = (ranker.scores(images, own, **run) for own, _ in texts.values())
        return OrderScores(
            single,
            single,
            {**params, "best_epoch": ranker.history_.best_epoch + 1},
            history=ranker.history_,
            joined=joined,
            orderings={
                kind: Ordering.of(ranker, images, own, places, **run)
                for kind, (own, places) in texts.items()
            },
        )

    def findings(self, scored: Mapping[str, OrderScores]) -> StudyResults:
        """Evaluate joined captions, single captions and orders."""
        joined = [
            evaluate(
                own.joined,
                system=name,
                pool="joined captions",
                settings=own.settings,
                **self.labels,
            )
            for name, own in scored.items()
        ]
        with self.stages.stage("binary image selection"):
            selections = self.selection_section(scored)
        return StudyResults(
            self.TITLE,
            (*joined, *self.published),
            self.stages,
            sections=(selections, *_sections(self.evaluate(scored), scored)),
            figures=partial(_figures, THESIS if THESIS in scored else self.names[0], scored),
            settings=self.settings_of_run(self.n_epochs),
            summary=(
                "Made by `kernelcore reproduce khojasteh2019`. In the first table, all "
                "captions of an image are joined into one text, as in the thesis. The figures "
                "of the thesis are on COCO. Settings and epochs are chosen on dev."
            ),
        )


run = Khojasteh2019.reproduce


def _sections(
    single: Sequence[RetrievalResult], scored: Mapping[str, OrderScores]
) -> Iterator[Section]:
    yield Section(
        "All captions in the pool",
        (
            "Every caption is a separate candidate or query. The rank of an image query is "
            "that of its best caption.",
        ),
        (ResultTable(single).to_table(),),
    )
    yield _order_section(scored)
    rows = tuple((name, SYSTEMS[name].about) for name in scored)
    yield Section(
        "Systems", (), (Table(columns=("system", "what it is"), rows=rows, n_labels=2),)
    )
    yield training_section(histories_of(scored))
    yield choices_section(CHOICES)


def _order_section(scored: Mapping[str, OrderScores]) -> Section:
    """Tabulate the mean penalties of each system."""
    rows = [
        (
            name,
            texts,
            "none" if own.settings.get("similarity") == "cosine" else ordering.below,
            f"{ordering.true.mean():.3f}",
            f"{ordering.mismatched.mean():.3f}",
            f"{ordering.reverse.mean():.3f}",
            f"{100 * ordering.less_than_reverse:.1f}",
            f"{100 * ordering.less_than_mismatched:.1f}",
        )
        for name, own in scored.items()
        for texts, ordering in own.orderings.items()
    ]
    columns = ("system", "texts", "trained below", "true", "mismatched", "reverse")
    shares = ("below reverse (%)", "below mismatched (%)")
    table = Table(columns=(*columns, *shares), rows=tuple(rows), n_labels=3)
    return Section("Which texts lie below which images", _ABOUT_ORDER, (table,))


def _figures(name: str, scored: Mapping[str, OrderScores]) -> list[ReportFigure]:
    """Draw the penalties of one system and the training of all."""
    drawn = [
        histograms(
            {
                "true pairs": ordering.true,
                "mismatched pairs": ordering.mismatched,
                "true pairs, reverse order": ordering.reverse,
            },
            title=f"Penalties of {texts}, {name}",
            quantity=f"penalty of {ordering.below} that are not below",
        )
        for texts, ordering in scored[name].orderings.items()
    ]
    return drawn + training_figures(histories_of(scored))
