"""Assignments, set similarities and ranks against their references, on drawn numbers."""

from typing import Any

import numpy as np
import pytest
import strategies as some
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcore.evaluation.ranks import gold_ranks, retrieval_ranks
from kernelcore.matching import k_cardinality_assignments, linear_assignments, set_similarity
from kernelcore.reference import matching as reference
from kernelcore.reference.evaluation import gold_ranks as gold_by_definition

same = np.testing.assert_array_equal
close = np.testing.assert_allclose


@st.composite
def costs(draw: Any, dtype: Any, maximize: bool) -> Any:
    shape = draw(some.sizes(33)), draw(some.sizes(33))
    found = draw(some.arrays(dtype, shape, some.reals(dtype)))
    forbidden = draw(st.sampled_from([0.0, 0.0, 0.1, 0.6, 1.0]))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    found[rng.random(shape) < forbidden] = -np.inf if maximize else np.inf
    return found


def total(matrix: Any, links: Any) -> float:
    """Sum of links, of which a row and a column have one at most."""
    rows, cols = links
    assert (np.diff(rows) > 0).all()
    assert len(set(cols.tolist())) == len(cols)
    return float(matrix[rows, cols].astype(np.float64).sum())


def best(matrix: Any, links: Any) -> float:
    return sum(float(matrix[link]) for link in links)


def rounding(matrix: Any, n_links: int, threshold: float | None = None) -> float:
    """What it costs that the duals add up along paths, as the header bounds it."""
    info = np.finfo(matrix.dtype)
    values = np.array([*matrix.ravel(), threshold or 0.0], np.float64)
    largest = abs(values[np.isfinite(values)]).max()
    return 8 * (n_links + 2) ** 2 * float(info.eps * largest + info.smallest_subnormal)


@given(data=st.data())
@settings(max_examples=40)
def test_links_are_the_best(data: Any) -> None:
    draw = data.draw
    dtype, maximize = draw(some.FLOATS), draw(st.booleans())
    k = draw(st.none() | some.sizes(20, 1))
    threshold = draw(st.none() | st.sampled_from([0.0, 1.0, -2.5, np.inf, -np.inf]))
    problems = draw(st.lists(costs(dtype, maximize), min_size=1, max_size=4))
    odd = [draw(some.LAYOUTS)(matrix) for matrix in problems]
    options: dict[str, Any] = {"maximize": maximize, "k": k, "threshold": threshold}
    try:
        expected = reference.linear_assignments(problems, **options)
    except ValueError:
        with pytest.raises(ValueError, match="costs"):
            linear_assignments(odd, **options)
        return
    with some.instruction_set(draw(some.ISAS)):
        found = linear_assignments(odd, **options, n_threads=draw(some.THREADS))
    price = threshold if threshold is not None and np.isfinite(threshold) else 0.0
    for b, (matrix, links) in enumerate(zip(problems, expected, strict=True)):
        n_links = len(found[b][0])
        slack = rounding(matrix, max(n_links, len(links)), price)
        sums = total(matrix, found[b]), best(matrix, links)
        close(found.totals[b], sums[0], atol=slack)
        close(sums[0] - n_links * price, sums[1] - len(links) * price, rtol=0, atol=slack)
        if threshold is None:
            assert n_links == len(links)


@given(data=st.data())
@settings(max_examples=20)
def test_links_of_each_number_are_the_best(data: Any) -> None:
    draw, maximize = data.draw, data.draw(st.booleans())
    matrix = draw(costs(draw(some.FLOATS), maximize))
    with some.instruction_set(draw(some.ISAS)):
        found = k_cardinality_assignments(draw(some.LAYOUTS)(matrix), maximize=maximize)
    expected = reference.k_cardinality_assignments(matrix, maximize=maximize)
    assert [len(rows) for rows, _ in found] == [len(links) for links in expected]
    for k, links in enumerate(expected, start=1):
        sums = [total(matrix, found[k - 1]), found.totals[k - 1]]
        close(sums, best(matrix, links), rtol=0, atol=rounding(matrix, k))


@given(data=st.data())
@settings(max_examples=20)
def test_similarities_of_sets(data: Any) -> None:
    draw, dtype = data.draw, data.draw(some.FLOATS)
    sizes = st.lists(st.integers(1, 8), min_size=1, max_size=3)
    ends = [np.cumsum([0, *draw(sizes)]) for _ in "nm"]
    # The linear programme of the reference has absolute tolerances: no tiny numbers.
    numbers = st.integers(-1000, 1000).map(lambda n: n / 64)
    S = draw(some.arrays(dtype, (ends[0][-1], ends[1][-1]), numbers))
    method = draw(st.sampled_from(["DC", "TK", "AP"]))
    k = None if method == "DC" else draw(st.sampled_from([None, "half", 1, 2, 5]))
    options: dict[str, Any] = {"method": method, "k": k}
    odd = [draw(some.LAYOUTS)(array) for array in (S, *ends)]
    with some.instruction_set(draw(some.ISAS)):
        threads: dict[str, Any] = {"n_threads": draw(some.THREADS)}
        found = set_similarity(*odd, **options, **threads, return_selected=True)
        same(set_similarity(S, *ends, **options, n_threads=1), found.values)
    entries = found.weights.astype(np.float64) * S[found.rows, found.cols]
    sums = np.add.reduceat(entries, found.offsets[:-1]).reshape(found.values.shape)
    for expected in (sums, reference.set_similarity(S, *ends, **options)):
        close(found.values, expected, rtol=0, atol=800 * float(np.finfo(dtype).eps) + 1e-6)


@given(data=st.data())
@settings(max_examples=20)
def test_ranks_of_both_directions(data: Any) -> None:
    draw, n_images, dtype = data.draw, data.draw(some.sizes(33, 1)), data.draw(some.FLOATS)
    more = draw(st.lists(st.integers(0, n_images - 1), max_size=60))
    owner = np.array(draw(st.permutations([*range(n_images), *more])))
    kind = some.reals(dtype) | st.sampled_from([np.inf, -np.inf])
    scores = draw(some.arrays(dtype, (n_images, len(owner)), kind))
    odd = draw(some.LAYOUTS)(scores)
    gold = [np.flatnonzero(owner == image).tolist() for image in range(n_images)]
    options: dict[str, Any] = {"ties": draw(some.TIES), "n_threads": draw(some.THREADS)}
    with some.instruction_set(draw(some.ISAS)):
        found = retrieval_ranks(odd, draw(some.LAYOUTS)(owner), **options)
        same(gold_ranks(odd, gold, **options), found.annotation)
    owned = [[image] for image in owner.tolist()]
    ties = options["ties"]
    close(found.annotation, gold_by_definition(scores.tolist(), gold, ties=ties))
    close(found.search, gold_by_definition(scores.T.tolist(), owned, ties=ties))
