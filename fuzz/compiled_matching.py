"""Assignments, set similarities and ranks against their definitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fuzz.agree import close, same
from fuzz.draw import (
    Array,
    Rng,
    chance,
    instruction_set,
    laid_out,
    pick,
    real,
    size,
    threads,
)
from fuzz.target import Target
from kernelcore.evaluation import embedding_scores, streamed_ranks
from kernelcore.evaluation.ranks import (
    gold_ranks,
    retrieval_ranks,
)
from kernelcore.matching import (
    Duals,
    k_cardinality_assignments,
    linear_assignment,
    linear_assignments,
    set_similarity,
)
from kernelcore.reference import evaluation as ranks_by_definition
from kernelcore.reference import matching as by_definition
from kernelcore.reference import matching as sets_by_definition

_TIES = ("mean", "min", "max", "ordinal")


def _costs(rng: Rng, shape: tuple[int, int], maximize: bool, dtype: Any) -> Array:
    costs = real(rng, shape, dtype)
    if chance(rng, 0.4):
        forbidden = rng.random(shape) < pick(rng, (0.1, 0.6, 1.0))
        costs = np.where(forbidden, dtype(-np.inf if maximize else np.inf), costs)
    return costs


def _slack(costs: Array, k: int) -> float:
    """Return what rounding may cost k links, as the header bounds it, and the duals."""
    finite = abs(costs[np.isfinite(costs)].astype(np.float64))
    eps = float(np.finfo(costs.dtype).eps)
    tiny = float(np.finfo(costs.dtype).smallest_subnormal)
    return (2 * k + 3) * k * (eps * float(finite.max(initial=0.0)) + tiny)


def _check_links(costs: Array, rows: Array, cols: Array) -> float:
    """Check that these are links; return their sum."""
    if len(rows) != len(cols) or len(set(cols.tolist())) != len(cols):
        raise AssertionError("a column has two links")
    if not (np.diff(rows) > 0).all():
        raise AssertionError(f"rows do not ascend: {rows}")
    linked = costs[rows, cols].astype(np.float64)
    if not np.isfinite(linked).all():
        raise AssertionError("a forbidden pair is linked")
    return float(linked.sum())


def _check_duals(costs: Array, rows: Array, cols: Array, duals: Duals, sign: float) -> None:
    """Check the proof: no other links of that number cost less."""
    slack = 4 * _slack(costs, len(rows) + 1)
    with np.errstate(invalid="ignore"):
        reduced = sign * (
            costs.astype(np.float64)
            - duals.link
            - duals.rows.astype(np.float64)[:, None]
            - duals.cols.astype(np.float64)
        )
    for side, linked in ((sign * duals.rows, rows), (sign * duals.cols, cols)):
        if (side > slack).any() or np.delete(side, linked).any():
            raise AssertionError(f"duals must be 0, or below for what is linked: {side}")
    if reduced.size and not (np.where(np.isnan(reduced), 0.0, reduced) >= -slack).all():
        raise AssertionError(f"a reduced cost is {np.nanmin(reduced)}, below {-slack}")
    close(reduced[rows, cols], np.zeros(len(rows)), "reduced costs of links", absolute=slack)


def _linear_assignment(rng: Rng, folder: Path) -> None:
    maximize, dtype = chance(rng, 0.5), pick(rng, (np.float32, np.float64))
    most = pick(rng, (6, 20, 20, 70))
    problems = [
        _costs(rng, (size(rng, most), size(rng, most)), maximize, dtype)
        for _ in range(int(rng.integers(1, 6)))
    ]
    if chance(rng, 0.3) and problems[0].size:  # one shape: an array of problems
        problems = [_costs(rng, problems[0].shape, maximize, dtype) for _ in problems]
    k = None if chance(rng, 0.4) else size(rng, 20, 1)
    threshold = None
    if chance(rng, 0.4):
        threshold = float(pick(rng, (0.0, np.inf, -np.inf, 1.0, rng.normal())))
    options: dict[str, Any] = {"maximize": maximize, "k": k, "threshold": threshold}
    odd = [laid_out(rng, costs, folder) for costs in problems]
    given: Any = odd
    if len({costs.shape for costs in problems}) == 1 and chance(rng, 0.5):
        given = laid_out(rng, np.array(problems), folder)
    try:
        expected = by_definition.linear_assignments(problems, **options)
    except ValueError:
        try:
            linear_assignments(given, **options)
        except ValueError as error:
            if "must allow" not in str(error):
                raise
        else:
            raise AssertionError("too much is forbidden, and links were made") from None
        return
    with instruction_set(rng):
        found = linear_assignments(given, **options, return_duals=True, n_threads=threads(rng))
    with instruction_set(rng):
        single = [linear_assignment(costs, **options) for costs in odd]
    if found.duals is None:
        raise AssertionError("no duals")
    sign = -1.0 if maximize else 1.0
    for b, costs in enumerate(problems):
        rows, cols = found[b]
        same(rows, single[b][0], "rows of one problem and of many")
        same(cols, single[b][1], "columns of one problem and of many")
        total = _check_links(costs, rows, cols)
        best = sum(float(costs[link]) for link in expected[b])
        slack = 2 * _slack(costs, max(len(rows), len(expected[b])))
        close(found.totals[b], total, "total", absolute=slack)
        if threshold is not None and np.isfinite(threshold):
            limit = float(dtype(threshold))
            slack += 4 * _slack(np.array([limit], dtype), len(rows) + len(expected[b]))
            total -= limit * len(rows)
            best -= limit * len(expected[b])
        elif len(rows) != len(expected[b]):
            raise AssertionError(f"{len(rows)} links instead of {len(expected[b])}")
        close(total, best, "the sum of the best", absolute=slack)
        if threshold is None:
            _check_duals(costs, rows, cols, found.duals[b], sign)


def _k_cardinality(rng: Rng, folder: Path) -> None:
    maximize, dtype = chance(rng, 0.5), pick(rng, (np.float32, np.float64))
    most = pick(rng, (6, 20, 40))
    costs = _costs(rng, (size(rng, most), size(rng, most)), maximize, dtype)
    max_k = None if chance(rng, 0.5) else size(rng, 20, 1)
    with instruction_set(rng):
        found = k_cardinality_assignments(
            laid_out(rng, costs, folder), maximize=maximize, max_k=max_k
        )
    expected = by_definition.k_cardinality_assignments(costs, maximize=maximize)[:max_k]
    if len(found) != len(expected):
        raise AssertionError(f"{len(found)} assignments instead of {len(expected)}")
    for k, links in enumerate(expected, start=1):
        rows, cols = found[k - 1]
        if len(rows) != k:
            raise AssertionError(f"{len(rows)} links instead of {k}")
        best = sum(float(costs[link]) for link in links)
        slack = 2 * _slack(costs, k)
        close(_check_links(costs, rows, cols), best, f"{k} links", absolute=slack)
        close(found.totals[k - 1], best, f"total of {k} links", absolute=slack)


def _offsets(rng: Rng, n: int) -> Array:
    cuts = rng.permutation(np.arange(1, n))[: rng.integers(0, min(n, 4))]
    return np.array([0, *sorted(cuts.tolist()), n])


def _set_similarity(rng: Rng, folder: Path) -> None:
    dtype = pick(rng, (np.float32, np.float64))
    shape = size(rng, 24, 1), size(rng, 24, 1)
    S = np.clip(real(rng, shape, dtype), -1e6, 1e6)
    S[abs(S) < 1e-6] = 0  # the linear programme of the definition has such tolerances
    rows, cols = (_offsets(rng, n) for n in shape)
    method = pick(rng, ("DC", "TK", "AP"))
    k = None if method == "DC" else pick(rng, (None, "half", 1, 2, 5))
    given = [laid_out(rng, array, folder) for array in (S, rows, cols)]
    with instruction_set(rng):
        pairs = set_similarity(
            *given, method=method, k=k, return_selected=True, n_threads=threads(rng)
        )
        plain = set_similarity(S, rows, cols, method=method, k=k, n_threads=1)
    same(plain, pairs.values, "with and without what is selected")
    expected = sets_by_definition.set_similarity(S, rows, cols, method=method, k=k)
    largest = float(abs(S).max())
    eps = float(np.finfo(dtype).eps)
    # Both sides sum two means of up to max(shape) numbers, one rounding for each.
    slack = 2 * (max(shape) + 2) * largest * eps + (_slack(S, min(shape)) + 1e-7 * largest) * (
        method == "AP"
    )
    close(pairs.values, expected, f"{method} against the definition", absolute=slack)
    sums = np.add.reduceat(
        pairs.weights.astype(np.float64) * S[pairs.rows, pairs.cols], pairs.offsets[:-1]
    )
    n = np.diff(pairs.offsets).max()
    close(pairs.values.ravel(), sums, "selected entries", absolute=(n + 2) * 2 * eps * largest)


def _ranks(rng: Rng, folder: Path) -> None:
    dtype = pick(rng, (np.float32, np.float64, np.int32))
    n_images = size(rng, 60, 1)
    owner = np.concatenate([np.arange(n_images), rng.integers(0, n_images, size(rng, 100))])
    owner = rng.permutation(owner) if chance(rng, 0.7) else np.sort(owner)
    if dtype is np.int32:
        scores: Array = rng.integers(-3, 4, (n_images, len(owner))).astype(dtype)
    else:
        scores = real(rng, (n_images, len(owner)), dtype)
        if chance(rng, 0.2):
            scores[rng.random(scores.shape) < 0.1] = pick(rng, (np.inf, -np.inf, -0.0))
    ties = pick(rng, _TIES)
    odd, odd_owner = laid_out(rng, scores, folder), laid_out(rng, owner, folder)
    options: dict[str, Any] = {"ties": ties, "n_threads": threads(rng)}
    with instruction_set(rng):
        both = retrieval_ranks(odd, odd_owner, **options)
        turned = retrieval_ranks(np.asfortranarray(odd), odd_owner, **options)
        gold = [np.flatnonzero(owner == image).tolist() for image in range(n_images)]
        by_gold = gold_ranks(odd, gold, **options)
    by_row = ranks_by_definition.gold_ranks(scores.tolist(), gold, ties=ties)
    by_column = ranks_by_definition.gold_ranks(
        scores.T.tolist(), [[image] for image in owner.tolist()], ties=ties
    )
    same(both.annotation, turned.annotation, "annotation ranks in both orders of memory")
    same(both.search, turned.search, "search ranks in both orders of memory")
    same(by_gold, both.annotation, "annotation ranks from lists of gold candidates")
    close(both.annotation, by_row, "annotation ranks", relative=1e-12)
    close(both.search, by_column, "search ranks", relative=1e-12)


def _streamed(rng: Rng, folder: Path) -> None:
    dtype = pick(rng, (np.float32, np.float64))
    n_images, n_dimensions = size(rng, pick(rng, (20, 600)), 1), size(rng, 40, 1)
    owner = np.concatenate([np.arange(n_images), rng.integers(0, n_images, size(rng, 600))])
    images, texts = (
        rng.integers(-2, 3, (n, n_dimensions)).astype(dtype)
        if chance(rng, 0.5)
        else rng.normal(size=(n, n_dimensions)).astype(dtype)
        for n in (n_images, len(owner))
    )
    similarity = pick(rng, ("dot", "cosine"))
    odd = [laid_out(rng, array, folder) for array in (images, texts, owner)]
    ties = pick(rng, _TIES)
    with instruction_set(rng):
        streamed = streamed_ranks(
            *odd, similarity=similarity, ties=ties, n_threads=threads(rng)
        )
        scores = embedding_scores(images, texts, similarity=similarity, n_threads=1)
        whole = retrieval_ranks(scores, owner, ties=ties, n_threads=1)
    same(streamed.annotation, whole.annotation, "annotation ranks")
    same(streamed.search, whole.search, "search ranks")
    if similarity == "dot":
        wide = [side.astype(np.float64) for side in (images, texts)]
        size_of = abs(wide[0]) @ abs(wide[1]).T
        bound = (n_dimensions + 1) * float(np.finfo(dtype).eps) * size_of
        close(scores, wide[0] @ wide[1].T, "scores", absolute=bound)


TARGETS = (
    Target("matching.linear_assignment", "compiled", _linear_assignment),
    Target("matching.k_cardinality_assignments", "compiled", _k_cardinality),
    Target("matching.set_similarity", "compiled", _set_similarity),
    Target("evaluation.ranks", "compiled", _ranks),
    Target("evaluation.streamed_ranks", "compiled", _streamed),
)
