"""Which texts lie below which images: penalties of pairs, their table, and a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelcore.deep import OrderRanker
from kernelcore.evaluation import Table
from kernelcore.evaluation.significance import fisher_randomization
from kernelcore.report import Section

Penalties = npt.NDArray[np.float32]
Values = npt.NDArray[np.float64]

_ABOUT_ORDER = (
    "The penalty of a pair compares the vectors of its upper and lower side. It is the "
    "squared length of the positive part of the upper vector minus the lower vector, and 0 if "
    "the lower side lies below the upper side. Upper vectors have length 1, unless the system "
    "is as printed. In systems without an order, all vectors have length 1.",
    "The table has mean penalties of texts with their own image (true), of texts with other "
    "images (mismatched), and of true pairs with upper and lower side exchanged (reverse). "
    "The ratio is the mean over texts of the true penalty divided by the mean mismatched one. "
    "The first share is that of true pairs whose "
    "penalty is lower than their reverse penalty; it says little where one side has free "
    "lengths. The second share is that of mismatched pairs whose penalty is higher than that "
    "of the same text with its own image. A true pair with a penalty above 0 does not lie in "
    "the order: it is only nearer to it than others. The spread is the mean squared distance "
    "of the vectors to their mean, divided by their mean square; it is 0 if all are equal.",
)


@dataclass(frozen=True)
class Ordering:
    """Penalties of pairs of an image and a text, by the order that a system is trained for.

    Attributes
    ----------
    below : {"texts", "images", "none"}
        The side that should lie below; "none" for a system that compares by cosines, whose
        penalties are those of texts that do not lie below images.
    true, reverse : ndarray of float32, shape (n_texts,)
        Penalty of each text with its own image, by the order and by its reverse.
    mismatched : ndarray of float32, shape (n_images - 1, n_texts)
        Penalties of each text with all other images.
    spread_of_images, spread_of_texts : float
        Mean squared distance of the vectors to their mean, divided by their mean square. It
        is 0 if all vectors are equal.
    """

    below: str
    true: Penalties
    reverse: Penalties
    mismatched: Penalties
    spread_of_images: float
    spread_of_texts: float

    @classmethod
    def of(
        cls,
        ranker: OrderRanker,
        images: npt.ArrayLike,
        texts: Sequence[str],
        owners: npt.ArrayLike,
        *,
        n_threads: int | None = None,
    ) -> Ordering:
        """Compute the penalties of all pairs.

        Parameters
        ----------
        ranker : OrderRanker
        images : array_like of shape (n_images, n_features)
        texts : sequence of str
        owners : array_like of int, shape (n_texts,)
            The image of each text.
        n_threads : int, optional
            Threads to use; the default is every core this process may run on.

        Returns
        -------
        Ordering
        """
        is_reverse = ranker.similarity == "images below"
        along, against = (
            ranker.penalties(images, texts, reverse=way, n_threads=n_threads)
            for way in (is_reverse, not is_reverse)
        )
        own = np.asarray(owners), np.arange(len(texts))
        others = np.ones(along.shape, bool)
        others[own] = False
        mismatched = along.T[others.T].reshape(len(texts), len(along) - 1).T
        below = {"images below": "images", "cosine": "none"}.get(ranker.similarity, "texts")
        vectors = (
            ranker.embed_images(images, n_threads=n_threads),
            ranker.embed_captions(texts, n_threads=n_threads),
        )
        return cls(below, along[own], against[own], mismatched, *map(_spread, vectors))

    @property
    def less_than_reverse(self) -> float:
        """Share of true pairs with a lower penalty than by the reverse of the order."""
        return float((self.true < self.reverse).mean())

    @property
    def has_ratios(self) -> bool:
        """Whether each text that has a penalty with its own image has one with another."""
        return bool((self.mismatched.any(axis=0) | (self.true == 0)).all())

    @property
    def ratios(self) -> Values:
        """Penalty of each text with its own image, divided by the mean of its others.

        It is 1 if all penalties of the text are 0, and means nothing without `has_ratios`.
        """
        others = self.mismatched.mean(axis=0, dtype=np.float64)
        is_zero = (others == 0) & (self.true == 0)
        return np.where(is_zero, 1, self.true / np.where(others == 0, 1, others))

    @property
    def shares(self) -> Values:
        """For each text, share of other images with a higher penalty than its own image.

        Equal penalties count half.
        """
        more, same = self.mismatched > self.true, self.mismatched == self.true
        shares: Values = more.mean(axis=0) + same.mean(axis=0) / 2
        return shares


def _spread(vectors: npt.NDArray[np.float32]) -> float:
    """Mean squared distance of rows to their mean, divided by their mean square."""
    rows = vectors.astype(np.float64)
    square = np.square(rows).sum()
    return float(np.square(rows - rows.mean(axis=0)).sum() / square) if square else 0.0


def order_section(orderings: Mapping[str, Mapping[str, Ordering]]) -> Section:
    """Tabulate the mean penalties of each system, for each kind of texts."""
    rows = [
        (
            name,
            texts,
            one.below,
            f"{one.true.mean():.3f}",
            f"{one.mismatched.mean():.3f}",
            f"{one.ratios.mean():.2f}" if one.has_ratios else "n/a",
            f"{one.reverse.mean():.3f}",
            f"{100 * one.less_than_reverse:.1f}",
            f"{100 * one.shares.mean():.1f}",
            f"{one.spread_of_images:.3f}",
            f"{one.spread_of_texts:.3f}",
        )
        for name, own in orderings.items()
        for texts, one in own.items()
    ]
    columns = ("system", "texts", "trained below", "true", "mismatched", "ratio", "reverse")
    shares = ("below reverse (%)", "below mismatched (%)")
    spreads = ("spread of images", "spread of texts")
    table = Table(columns=(*columns, *shares, *spreads), rows=tuple(rows), n_labels=3)
    return Section("Which texts are nearer to lying below which images", _ABOUT_ORDER, (table,))


def comparison_section(
    measures: Mapping[str, Sequence[Values]],
    names: tuple[str, str],
    *,
    n_threads: int | None,
) -> Section:
    """Compare a system with an order and one without it.

    Parameters
    ----------
    measures : mapping of str to (with, without)
        Values of each measure, one for each photo.
    names : (str, str)
        The two systems.
    n_threads : int, optional
    """
    rows = []
    for measure, (ours, theirs) in measures.items():
        test = fisher_randomization(ours, theirs, rng=0, n_threads=n_threads)
        rows.append(
            (
                measure,
                f"{ours.mean():.2f}",
                f"{theirs.mean():.2f}",
                f"{float(test.difference):+.2f}",
                f"{float(test.p_value):.2g}",
            )
        )
    return Section(
        "With and without the order",
        (
            "Joined captions. The two systems differ in their similarity, in the "
            "margin, and in the lengths of the vectors of texts. "
            "The test of the difference is Fisher's randomisation test over photos, with "
            "100,000 reassignments. It says nothing about other runs of training.",
        ),
        (
            Table(
                columns=("measure", *names, "difference", "p"),
                rows=tuple(rows),
            ),
        ),
    )
