"""Sections of the page that are not about the order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from kernelcore.deep.training import History
from kernelcore.evaluation import (
    Result,
    ResultTable,
    Table,
    rank_relevant,
)
from kernelcore.experiments.corpus import Pool
from kernelcore.experiments.khojasteh2019.published import TABLE
from kernelcore.experiments.khojasteh2019.scoring import OrderScores
from kernelcore.experiments.khojasteh2019.systems import PRINTED, SYSTEMS
from kernelcore.experiments.scores import Scores
from kernelcore.experiments.sections import histories_of, training_figures, training_section
from kernelcore.report import ReportFigure, Section
from kernelcore.report.figures import histogram_figure

_LIST_METRICS = ("P@5", "P@10", "recall@10", "F1@10", "mean_average_precision")


def single_section(results: Sequence[Result]) -> Section:
    """Tabulate the ranks of single captions."""
    return Section(
        "All captions in the pool",
        (
            "Every caption is a separate candidate or query. The rank of an image query is "
            "that of its best caption.",
        ),
        (ResultTable(results).to_table(),),
    )


def lists_section(scored: Mapping[str, Scores], pool: Pool) -> Section:
    """Tabulate the measures of ranked lists that the thesis names.

    Parameters
    ----------
    scored : mapping of str to Scores
        Of photos and single captions.
    pool : Pool
    """
    owners = np.unique(pool.photos, return_inverse=True)[1]
    is_own = np.arange(owners.max() + 1)[:, np.newaxis] == owners
    rows = []
    for name, own in scored.items():
        for variant, annotation, search in own.variants(name):
            found = rank_relevant(annotation, is_own).metrics(ks=(5, 10))
            back = rank_relevant(search.T, owners).average_precision()
            values = (*(found[metric] for metric in _LIST_METRICS), back)
            rows.append((variant, *(f"{100 * np.nanmean(value):.1f}" for value in values)))
    heads = [f"annotation {metric}" for metric in _LIST_METRICS]
    return Section(
        "Ranked lists",
        (
            "Measures of chapter 3 of the thesis, in percent: precision at scope k, recall, F1 "
            "and mean average precision. For annotation the captions of the photo are "
            "relevant, five for most photos: with five of them, precision, recall and F1 at 5 "
            "are equal. For search one photo is relevant.",
        ),
        (Table(columns=("system", *heads, "search mean_average_precision"), rows=tuple(rows)),),
    )


def beside_the_thesis(result: Result) -> Section:
    """Tabulate all rows of table 4.1 of the thesis below a result of ours."""
    return Section(
        "Table 4.1 of the thesis",
        (
            "The published rows are on COCO, of which no photos were at hand; the thesis cites "
            "those of other systems from their papers. Other rows than DeepTwt have single "
            "captions.",
        ),
        (ResultTable([result, *TABLE]).to_table(),),
    )


def systems_section(names: Sequence[str]) -> Section:
    """Say what each system is."""
    every = {**SYSTEMS, **PRINTED}
    rows = tuple((name, every[name].about) for name in names)
    return Section(
        "Systems", (), (Table(columns=("system", "what it is"), rows=rows, n_labels=2),)
    )


def figures(name: str, scored: Mapping[str, OrderScores]) -> list[ReportFigure]:
    """Draw the penalties of one system and the training of all."""
    drawn = [
        histogram_figure(
            {
                "true pairs": ordering.true,
                "mismatched pairs": ordering.mismatched,
                "true pairs, reverse order": ordering.reverse,
            },
            title=f"Penalties of {texts}, {name}",
            quantity="penalty of the pair",
        )
        for texts, ordering in scored[name].orderings.items()
    ]
    return drawn + training_figures(order_histories(scored))


def order_histories(scored: Mapping[str, OrderScores]) -> dict[str, History]:
    """Return the histories of the order embeddings, whose dev loss is 1 - mean recall."""
    return histories_of({name: own for name, own in scored.items() if own.orderings})


def training_sections(scored: Mapping[str, OrderScores]) -> Iterator[Section]:
    """Say what each system is, and tabulate its training."""
    histories = order_histories(scored)
    yield systems_section(list(scored))
    yield training_section(
        histories,
        "Joined captions are a pool of 1,000 texts, single captions one of 5,000.",
    )
    yield from _language_sections(scored)


def _language_sections(scored: Mapping[str, OrderScores]) -> Iterator[Section]:
    """Tabulate the training of the language models, whose dev loss is a log-likelihood."""
    histories = histories_of({name: own for name, own in scored.items() if not own.orderings})
    rows = [
        (
            name,
            str(len(history.epochs)),
            str(history.best_epoch + 1),
            f"{history.epochs[history.best_epoch]['perplexity']:.2f}",
            f"{sum(epoch['seconds'] for epoch in history.epochs):.0f}",
        )
        for name, history in histories.items()
    ]
    if rows:
        columns = ("system", "epochs", "best", "perplexity", "seconds")
        yield Section(
            "Training of the language model",
            ("Perplexity: that of a word or the end of a caption on dev, given the photo.",),
            (Table(columns=columns, rows=tuple(rows)),),
        )
