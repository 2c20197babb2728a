"""The sections and figures of the study: tests, agreement, difficulty, training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelcore._threads import cached_property
from kernelcore.captions.tokens import tokenize
from kernelcore.datasets import Document
from kernelcore.deep.training import History
from kernelcore.evaluation import Result, Table
from kernelcore.evaluation.overlap import overlap_test
from kernelcore.evaluation.significance import holm
from kernelcore.experiments.document_difficulty import explain_auc
from kernelcore.experiments.hessel2019.linked import Linked, density
from kernelcore.experiments.hessel2019.photos import Photos
from kernelcore.experiments.hessel2019.systems import MAIN, NO_STRUCT, Variant
from kernelcore.experiments.sections import printed_section, spearman
from kernelcore.report import ReportFigure, Section, link_figure
from kernelcore.report.figures import training_figure

_FEWEST_FOR_REGRESSION = 60
_SHOWN = {"typical": 0.5, "easier than most": 0.85, "harder than most": 0.1}


@dataclass(frozen=True)
class Findings:
    """What a run found.

    Attributes
    ----------
    results : mapping of str to Result
    scored : mapping of str to Linked
    documents : sequence of Document
    photos : Photos
    variant : Variant
    """

    results: Mapping[str, Result]
    scored: Mapping[str, Linked]
    documents: Sequence[Document]
    photos: Photos
    variant: Variant

    @cached_property
    def histories(self) -> dict[str, History]:
        """History of each system that is trained."""
        return {n: own.history for n, own in self.scored.items() if own.history is not None}

    @cached_property
    def shown(self) -> str:
        """The system whose links are drawn and whose difficulties are explained."""
        candidates = (MAIN, *self.histories, *self.results)
        return next(name for name in candidates if name in self.results)

    def sections(self) -> list[Section]:
        """Make the sections that the systems of the run allow."""
        return [section for section in self._sections() if section is not None]

    def _sections(self) -> Iterator[Section | None]:
        published = self.variant.published.rows(self.variant.counterpart)
        yield printed_section(
            list(self.results.values()), published, uncertainty="standard_error"
        )
        for baseline in (NO_STRUCT, MAIN):
            if baseline in self.results and len(self.results) > 1:
                yield self._differences(baseline)
        n_judged = _n_judged(self.results[self.shown])
        if self.histories and n_judged >= _FEWEST_FOR_REGRESSION:
            yield self._difficulty(self.results[self.shown])
        if self.histories:
            yield self._training()

    def figures(self) -> list[ReportFigure]:
        """Draw training curves, and the links of a typical, an easy and a hard document."""
        drawn = []
        if self.histories:
            epochs = {name: history.epochs for name, history in self.histories.items()}
            quantities = {
                "dev_loss": "Loss between documents",
                "dev_auc": "AUC within documents",
            }
            drawn.append(training_figure(epochs, quantities))
        auc, files = _auc(self.results[self.shown]), self.photos.files
        order = np.argsort(auc, kind="stable")
        judged = order[: np.count_nonzero(~np.isnan(auc))]  # NaN is sorted last
        for kind, quantile in _SHOWN.items():
            place = int(judged[round(quantile * (len(judged) - 1))])
            document = self.documents[place]
            drawn.append(
                link_figure(
                    document,
                    self.scored[self.shown].scores[place],
                    {name: files.get(name) for name in document.images},
                    system=f"{self.shown}, {kind}, AUC {100 * auc[place]:.1f}",
                )
            )
        return drawn

    def _differences(self, baseline: str) -> Section:
        own = self.results[baseline]
        others = {name: result for name, result in self.results.items() if name != baseline}
        judged = np.flatnonzero(~np.isnan(_auc(own))).tolist()
        images = [self.documents[i].images for i in judged]
        measures = list(own.values["links"])
        tests = {
            measure: overlap_test(
                [result.values["links"][measure][judged] for result in others.values()],
                own.values["links"][measure][judged],
                images,
            )
            for measure in measures
        }
        p_values = np.concatenate([tests[measure].p_value for measure in measures])
        adjusted = _holm(p_values).reshape(len(measures), len(others))
        return Section(
            f"Differences to {baseline}",
            [
                "The table has the mean difference over the documents in percentage points, "
                "and the p-value of a t-test whose standard error takes into account that "
                "documents share photos. Holm's method adjusts the p-values for all cells."
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
                        for j, name in enumerate(others)
                    ),
                )
            ],
        )

    def _difficulty(self, result: Result) -> Section:
        whole, vectors = self.photos.features["whole"], self.photos.vectors
        explained = explain_auc(
            _auc(result),
            [np.array([whole[name] for name in d.images]) for d in self.documents],
            [vectors.mean([tokenize(text) for text in d.sentences]) for d in self.documents],
            [d.images for d in self.documents],
        )
        signs = ", ".join(
            f"{name} {100 * change:+.2f}"
            for name, change in explained["spread"].coefficients.items()
        )
        published = self.variant.published.explained
        theirs = (
            f"The paper leaves {self.variant.counterpart} out, because all AUCs are large."
            if published is None
            else f"On {self.variant.counterpart} the paper finds {published[0]} % for spread "
            f"and {published[1]} % for spread and content, for AP."
        )
        return Section(
            f"Why some documents are hard for {result.system}",
            [
                "The AUC of documents is regressed on the spread of their images (features of "
                "the network) and of their sentences (mean word vectors), and on their content "
                "(20 principal components of each). The AUC changes by these points per "
                f"standard deviation: {signs}. The F-tests count as many documents as would "
                "give the same standard error of the mean AUC if no photo were shared. So "
                "their p-values are approximate. " + theirs
            ],
            [
                Table(
                    columns=("regressors", "number", "variance", "p-value"),
                    rows=tuple(
                        (
                            name,
                            str(len(of.coefficients)),
                            f"{100 * of.r2:.1f}",
                            f"{of.p_value:.2g}",
                        )
                        for name, of in explained.items()
                    ),
                    caption="Explained variance of the AUC of "
                    f"{_n_judged(result)} documents in percent",
                )
            ],
        )

    def _training(self) -> Section:
        rows = []
        for name, history in self.histories.items():
            kept = history.epochs[history.best_epoch]
            correlation = float("nan")
            if len(history.epochs) > 1 and "dev_auc" in kept:
                aucs = [epoch["dev_auc"] for epoch in history.epochs]
                correlation = float(spearman(np.negative(history.dev_losses), aucs))
            rows.append(
                (
                    name,
                    f"{history.best_epoch + 1} of {len(history.epochs)}",
                    f"{kept['dev_loss']:.4f}",
                    f"{100 * kept.get('dev_auc', float('nan')):.1f}",
                    f"{correlation:.2f}",
                    f"{sum(epoch['seconds'] for epoch in history.epochs):.0f}",
                )
            )
        return Section(
            "Training",
            [
                "The epoch with the lowest loss on development documents is kept. The loss "
                "compares whole documents. The AUC of links within documents is measured but "
                "does not choose the epoch. Spearman's correlation compares loss and AUC over "
                "the epochs. The seconds are those of training.",
                "NoStruct compares one sentence and one image of each document, of which "
                f"{100 * density(self.documents):.1f} % belong together.",
            ],
            [
                Table(
                    columns=(
                        "system",
                        "epoch kept",
                        "dev loss",
                        "dev AUC",
                        "Spearman",
                        "seconds",
                    ),
                    rows=tuple(rows),
                )
            ],
        )


def _holm(p_values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Adjust p-values; all are unknown if one is."""
    if np.isnan(p_values).any():
        return np.full_like(p_values, np.nan)
    return np.asarray(holm(p_values))


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _n_judged(result: Result) -> int:
    return int(np.count_nonzero(~np.isnan(_auc(result))))


def _auc(result: Result) -> npt.NDArray[np.float64]:
    return result.values["links"]["AUC"]
