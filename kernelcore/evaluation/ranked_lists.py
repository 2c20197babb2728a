"""Ranked lists of ids in place of scores: where the relevant items of every query stand."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import Any

import numpy as np

from kernelcore._validation import as_list, check_integer
from kernelcore.evaluation.ranked_relevance import RankedRelevance


def rank_lists(
    lists: Sequence[Sequence[Hashable]],
    relevant: Sequence[Collection[Hashable]],
    *,
    n_candidates: int | None = None,
) -> RankedRelevance:
    """Find where the relevant items of every query stand, from ranked lists of ids.

    Parameters
    ----------
    lists : sequence of sequences
        Ids that each query retrieved, the best first, none twice. Lists may be cut off.
    relevant : sequence of collections
        Ids that are relevant to each query. One that the list does not name was not found.
    n_candidates : int, optional
        Candidates that there were; by default the length of the longest list.

    Returns
    -------
    RankedRelevance
        With ``ties="ordinal"``: the lists say in which order tied items stand.

    Raises
    ------
    ValueError
        If there is not one collection per list, a list names an item twice or is longer than
        `n_candidates`, all lists are empty, or no query has a relevant item.

    Examples
    --------
    >>> from kernelcore.evaluation import rank_lists
    >>> rank_lists([["a", "b", "c"]], [{"b", "z"}]).average_precision()
    array([0.25])
    """
    lists = [as_list("lists", ids) for ids in as_list("lists", lists)]
    relevant = as_list("relevant", relevant)
    if len(lists) != len(relevant):
        raise ValueError(
            f"relevant must have one entry per list ({len(lists)}), got {len(relevant)}"
        )
    longest = max((len(ids) for ids in lists), default=0)
    n_candidates = check_integer(
        "n_candidates", longest if n_candidates is None else n_candidates, minimum=1
    )
    if longest > n_candidates:
        raise ValueError(f"lists must have at most {n_candidates} ids, got one of {longest}")
    query, before, n_relevant = [], [], []
    for number, (ids, items) in enumerate(zip(lists, relevant, strict=True)):
        distinct, wanted = as_set("lists", ids), as_set("relevant", items)
        if len(distinct) != len(ids):
            raise ValueError(f"lists must name an item once, got one twice in list {number}")
        n_relevant.append(len(wanted))
        found = [place for place, entry in enumerate(ids) if entry in wanted]
        query += [number] * len(found)
        before += found
    if not any(n_relevant):
        raise ValueError("relevant must name at least one item for one of the queries")
    ones = np.ones(len(query), dtype=np.int64)
    return RankedRelevance(
        np.array(query, dtype=np.int64),
        np.array(before, dtype=np.int64),
        ones,
        ones,
        np.array(n_relevant, dtype=np.int64),
        n_candidates,
        "ordinal",
    )


def as_set(name: str, items: Any) -> set[Hashable]:
    """Return the distinct items of a collection."""
    try:
        return set(as_list(name, items))
    except TypeError as error:
        raise TypeError(f"{name} must hold collections of hashable items: {error}") from None
