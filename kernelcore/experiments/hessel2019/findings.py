"""The sections and figures of the study: tests, agreement, difficulty and training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kernelcore.captions.tokens import tokenize
from kernelcore.datasets import Document
from kernelcore.deep import History
from kernelcore.evaluation import LinkResult, Table
from kernelcore.evaluation.significance import fisher_randomization, holm, rank_correlation
from kernelcore.experiments.document_difficulty import auc_correlation, explain_auc
from kernelcore.experiments.hessel2019.photos import Photos
from kernelcore.experiments.hessel2019.systems import MODELS, NO_STRUCT
from kernelcore.experiments.hessel2019.timing import StepTime
from kernelcore.report import ReportFigure, Section, document_links, training_curves

_STRUCTURED = tuple(name for name in MODELS if name != NO_STRUCT)
_ALL_LINKS = ("DC", "TK", "AP")
_FEWEST_FOR_REGRESSION = 60
_SHOWN = {"typical": 0.5, "easier than most": 0.85, "harder than most": 0.1}


def step_section(times: Mapping[str, StepTime], n_negatives: int) -> Section:
    """Tabulate the time of a training step, and the share of the matching in it."""
    base = times["DC"].step
    return Section(
        "Cost of a training step",
        [
            f"The table has median times of a step on a minibatch of {n_negatives + 1} "
            "documents: loss, gradients and optimizer. The matching is the part of a step that "
            f"selects the entries of all {(n_negatives + 1) ** 2} pairs of documents; for AP "
            "it solves the assignment problems. The similarities take turns."
        ],
        [
            Table(
                columns=("similarity", "step (ms)", "of a DC step", "matching (ms)", "share"),
                rows=tuple(
                    (
                        name,
                        f"{1000 * t.step:.1f}",
                        f"{t.step / base:.2f}",
                        f"{1000 * t.matching:.2f}",
                        f"{100 * t.matching / t.step:.1f} %",
                    )
                    for name, t in times.items()
                ),
            )
        ],
    )


def make_sections(
    results: Mapping[str, LinkResult],
    documents: Sequence[Document],
    photos: Photos,
    histories: Mapping[str, History],
    *,
    n_threads: int | None,
) -> list[Section]:
    """Make the sections that the systems of the run allow."""
    sections = []
    structured = {name: results[name] for name in _STRUCTURED if name in results}
    if NO_STRUCT in results and structured:
        sections.append(_against(results[NO_STRUCT], structured, n_threads=n_threads))
    compared = [results[name] for name in _ALL_LINKS if name in results]
    if len(compared) > 1:
        sections.append(_agreement(compared))
    if structured and len(documents) >= _FEWEST_FOR_REGRESSION:
        name = "AP" if "AP" in structured else next(iter(structured))
        sections.append(_difficulty(structured[name], documents, photos))
    if histories:
        sections.append(_training(histories))
    return sections


def figures(
    scores: Mapping[str, Sequence[Any]],
    results: Mapping[str, LinkResult],
    documents: Sequence[Document],
    photos: Photos,
    histories: Mapping[str, History],
) -> list[ReportFigure]:
    """Training curves, and the links of a typical, an easy and a hard document."""
    drawn = []
    if histories:
        drawn.append(
            training_curves(
                {name: history.epochs for name, history in histories.items()},
                {"dev_loss": "Loss between documents", "dev_auc": "AUC within documents"},
            )
        )
    shown = next(name for name in ("AP", *_STRUCTURED, *results) if name in results)
    auc = results[shown].auc
    order = np.argsort(auc, kind="stable")
    judged = order[: np.count_nonzero(~np.isnan(auc))]  # NaN is sorted last
    for kind, quantile in _SHOWN.items():
        place = int(judged[round(quantile * (len(judged) - 1))])
        files = {name: photos.files.get(name) for name in documents[place].images}
        drawn.append(
            document_links(
                documents[place],
                scores[shown][place],
                files,
                system=f"{shown}, {kind}, AUC {100 * auc[place]:.1f}",
            )
        )
    return drawn


def _against(
    baseline: LinkResult, structured: Mapping[str, LinkResult], *, n_threads: int | None
) -> Section:
    measures = list(baseline.per_document)
    judged = ~np.isnan(baseline.auc)
    tests = {
        measure: fisher_randomization(
            [result.per_document[measure][judged] for result in structured.values()],
            baseline.per_document[measure][judged],
            rng=0,
            n_threads=n_threads,
        )
        for measure in measures
    }
    adjusted = holm(np.concatenate([test.p_value for test in tests.values()]))
    adjusted = adjusted.reshape(len(measures), len(structured))
    return Section(
        f"Structured similarities against {NO_STRUCT}",
        [
            "The table has the mean difference over the documents in percentage points, and "
            "the p-value of Fisher's randomisation test. Holm's method adjusts the p-values "
            "for all cells."
        ],
        [
            Table(
                columns=("system", *measures),
                rows=tuple(
                    (
                        name,
                        *(
                            f"{100 * tests[m].difference[j]:+.1f} (p {_p(adjusted[i, j])})"
                            for i, m in enumerate(measures)
                        ),
                    )
                    for j, name in enumerate(structured)
                ),
            )
        ],
    )


def _agreement(compared: Sequence[LinkResult]) -> Section:
    names = [result.system for result in compared]
    correlations = auc_correlation(compared)
    return Section(
        "Do systems fail on the same documents?",
        [
            "The table has Spearman's correlation between the AUCs of two systems over the "
            "documents. The lowest value of the paper on crowdlabelled collections is 0.89."
        ],
        [
            Table(
                columns=("", *names),
                rows=tuple(
                    (name, *(f"{value:.2f}" for value in row))
                    for name, row in zip(names, correlations, strict=True)
                ),
            )
        ],
    )


def _difficulty(result: LinkResult, documents: Sequence[Document], photos: Photos) -> Section:
    explained = explain_auc(
        result.auc,
        [np.array([photos.features[name] for name in d.images]) for d in documents],
        [photos.word_vectors.mean([tokenize(text) for text in d.sentences]) for d in documents],
    )
    signs = ", ".join(
        f"{name} {100 * change:+.2f}" for name, change in explained.spread.coefficients.items()
    )
    return Section(
        f"Why some documents are hard for {result.system}",
        [
            "The AUC of documents is regressed on the spread of their images (features of the "
            "network) and of their sentences (mean word vectors), and on their content (20 "
            "principal components of each). The AUC changes by these points per standard "
            f"deviation: {signs}."
        ],
        [explained.to_table()],
    )


def _training(histories: Mapping[str, History]) -> Section:
    rows = []
    for name, history in histories.items():
        kept = history.epochs[history.best_epoch]
        correlation = float("nan")
        if len(history.epochs) > 1 and "dev_auc" in kept:
            aucs = [epoch["dev_auc"] for epoch in history.epochs]
            correlation = rank_correlation(np.negative(history.dev_losses), aucs).spearman
        rows.append(
            (
                name,
                f"{history.best_epoch + 1} of {len(history.epochs)}",
                f"{kept['dev_loss']:.4f}",
                f"{100 * kept.get('dev_auc', float('nan')):.1f}",
                f"{correlation:.2f}",
            )
        )
    return Section(
        "Training",
        [
            "The epoch with the lowest loss on development documents is kept. The loss "
            "compares whole documents. The AUC of links within documents is measured but does "
            "not choose the epoch. Spearman's correlation compares loss and AUC over the "
            "epochs."
        ],
        [
            Table(
                columns=(
                    "system",
                    "epoch kept",
                    "dev loss",
                    "dev AUC",
                    "Spearman",
                ),
                rows=tuple(rows),
            )
        ],
    )


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
