"""What else the run shows: the pool of single captions, what lies below what, and training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kernelcore.evaluation import ResultTable, RetrievalResult, Table
from kernelcore.experiments.khojasteh2019.systems import CHOICES, SYSTEMS
from kernelcore.experiments.khojasteh2019.training import Scored
from kernelcore.experiments.sections import choices_section, training_figures, training_section
from kernelcore.report import ReportFigure, Section, histograms

_ABOUT_ORDER = (
    "The penalty of a pair is the squared length of what the upper side's vector has in excess "
    "of the lower side's: 0 where the lower side lies below. Vectors of the upper side have "
    "length 1; without an order those of both sides have.",
    "Mean penalties of texts with their own image (true), with other images (mismatched), and "
    "of true pairs by the reverse of the order. Shares: of true pairs, those with a lower "
    "penalty than by the reverse; of mismatched pairs, those with a higher penalty than the "
    "same text with its own image.",
)


def findings(
    captions: Sequence[RetrievalResult], scored: Mapping[str, Scored]
) -> Iterator[Section]:
    """Make the sections: single captions in the pool, order, names, training, our choices."""
    yield Section(
        "All captions in the pool",
        (
            "Every caption is a candidate or a query of its own; the rank is that of the "
            "closest caption of an image.",
        ),
        (ResultTable(captions).to_table(),),
    )
    yield order_section(scored)
    yield Section(
        "Systems",
        (),
        (
            Table(
                columns=("system", "what it is"),
                rows=tuple((name, SYSTEMS[name].about) for name in scored),
                n_labels=2,
            ),
        ),
    )
    yield training_section({name: own.history for name, own in scored.items()})
    yield choices_section(CHOICES)


def order_section(scored: Mapping[str, Scored]) -> Section:
    """Tell of each system what lies below what, for joined and for single captions."""
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
    return Section(
        "What lies below what",
        _ABOUT_ORDER,
        (
            Table(
                columns=(*columns, "below reverse (%)", "below mismatched (%)"),
                rows=tuple(rows),
                n_labels=3,
            ),
        ),
    )


def figures(name: str, scored: Mapping[str, Scored]) -> list[ReportFigure]:
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
    return drawn + training_figures({part: own.history for part, own in scored.items()})
