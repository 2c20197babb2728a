"""Results of linking side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kernelcore._validation import (
    as_list,
    check_flag,
)
from kernelcore.evaluation.labelled_result import differing_facts, shared_facts
from kernelcore.evaluation.links import LinkResult
from kernelcore.evaluation.table import Table


@dataclass(frozen=True)
class PublishedLinks:
    """A row of a published table, to stand beside results of our own.

    Attributes
    ----------
    system : str
        Name of the system in the publication.
    source : str
        The publication and its collection, short: "MSCOCO, Hessel et al. 2019".
    auc : float or None
        As a share in [0, 1]; None where it is not published.
    precision : mapping of int to float
        p@C as a share in [0, 1], by C; what is not published is left out.
    """

    system: str
    source: str
    auc: float | None = None
    precision: Mapping[int, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the row as plain values."""
        return {
            "kind": "published links",
            "system": self.system,
            "source": self.source,
            "AUC": self.auc,
            **{f"p@{cutoff}": share for cutoff, share in self.precision.items()},
        }


def link_table(
    results: Sequence[LinkResult | PublishedLinks], *, standard_errors: bool = False
) -> Table:
    """Put results of linking side by side, in percent.

    What all measured results share stands once, in the caption; what differs gets a column.
    Where nothing differs, the best measured value of a column is bold; published numbers are
    printed, not judged.

    Parameters
    ----------
    results : sequence of LinkResult or PublishedLinks
        One row each; at least one was measured.
    standard_errors : bool, default=False
        Print the standard error behind every measured mean.

    Returns
    -------
    Table

    Raises
    ------
    TypeError
        If something else is among the results.
    ValueError
        If nothing was measured, or results have different cutoffs.

    Examples
    --------
    >>> from kernelcore.evaluation import PublishedLinks, evaluate_links, link_table
    >>> scores, links = [[[0.9, 0.3], [0.4, 0.2]]] * 2, [{(0, 0)}, {(0, 1)}]
    >>> ours = evaluate_links(scores, links, cutoffs=(1,), system="ours", dataset="toy")
    >>> theirs = PublishedLinks("theirs", "Doe 2019", auc=0.875)
    >>> print(link_table([ours, theirs], standard_errors=True))  # doctest: +ELLIPSIS
    system                     AUC          p@1
    ours               66.7 ± 33.3  50.0 ± 50.0
    theirs (Doe 2019)         87.5          n/a
    In percent; toy, 2 documents, 2 judged, kernelcore ...; ± standard error
    """
    results = as_list("results", results)
    for result in results:
        if not isinstance(result, (LinkResult, PublishedLinks)):
            raise TypeError(
                "results must hold LinkResult or PublishedLinks objects, "
                f"got {type(result).__name__}"
            )
    measured = [result for result in results if isinstance(result, LinkResult)]
    if not measured:
        raise ValueError("results must hold at least one measured result, got none")
    cutoffs = sorted({tuple(result.precision) for result in measured})
    if len(cutoffs) > 1:
        raise ValueError(
            f"results must report p@C at the same C, got {' and '.join(map(str, cutoffs))}"
        )
    with_errors = check_flag("standard_errors", standard_errors)
    names = list(measured[0].per_document)
    differing = differing_facts(measured)
    comparable = len(measured) > 1 and not differing
    best = {name: max(result.mean[name] for result in measured) for name in names}
    n_labels = 1 + len(differing)
    note = "; ± standard error" if with_errors else ""
    rows, emphasized = [], set()
    for i, result in enumerate(results):
        means = _means(result)
        rows.append(
            (
                _name(result),
                *(str(getattr(result, fact, "")) for fact in differing),
                *(_cell(result, name, with_errors) for name in names),
            )
        )
        if comparable and isinstance(result, LinkResult):
            emphasized |= {
                (i, n_labels + j) for j, name in enumerate(names) if means[name] == best[name]
            }
    return Table(
        columns=("system", *differing, *names),
        rows=tuple(rows),
        n_labels=n_labels,
        emphasized=frozenset(emphasized),
        caption=f"In percent; {shared_facts(measured)}{note}",
    )


def _means(result: LinkResult | PublishedLinks) -> Mapping[str, float]:
    if isinstance(result, LinkResult):
        return result.mean
    means = {f"p@{cutoff}": share for cutoff, share in result.precision.items()}
    return means if result.auc is None else {"AUC": result.auc, **means}


def _name(result: LinkResult | PublishedLinks) -> str:
    if isinstance(result, PublishedLinks):
        return f"{result.system} ({result.source})"
    return result.system or "(unnamed)"


def _cell(result: LinkResult | PublishedLinks, name: str, with_errors: bool) -> str:
    means = _means(result)
    if name not in means:
        return "n/a"
    cell = f"{100 * means[name]:.1f}"
    if with_errors and isinstance(result, LinkResult):
        cell += f" ± {100 * result.standard_error[name]:.1f}"
    return cell
