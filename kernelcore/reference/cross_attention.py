"""Similarity of images and captions by cross attention, pair by pair."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float64]


def cross_attention(
    contexts: Sequence[Vectors],
    queries: Sequence[Vectors],
    *,
    temperature: float,
    pooling: str = "logsumexp",
    sharpness: float = 6.0,
) -> Vectors:
    """Similarity of every set of contexts with every set of queries.

    Parameters
    ----------
    contexts, queries : sequence of ndarray of shape (n_members, n_components)
        Vectors of length 1.
    temperature : float
    pooling : {"logsumexp", "mean"}
    sharpness : float

    Returns
    -------
    ndarray of shape (n_context_sets, n_query_sets)
    """
    result = np.empty((len(contexts), len(queries)))
    for i, context in enumerate(contexts):
        for j, query in enumerate(queries):
            raised = np.array([[max(c @ q, 0.1 * (c @ q)) for q in query] for c in context])
            raised /= np.sqrt((raised**2).sum(axis=1, keepdims=True))
            cosines = []
            for q, column in zip(query, raised.T, strict=True):
                weights = np.exp(temperature * column)
                attended = (weights / weights.sum()) @ context
                cosines.append(q @ attended / np.linalg.norm(attended))
            if pooling == "mean":
                result[i, j] = np.mean(cosines)
            else:
                powers = np.exp(sharpness * np.array(cosines))
                result[i, j] = np.log(powers.sum()) / sharpness
    return result
