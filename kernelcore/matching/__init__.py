"""Linear assignment, and set similarities computed from it."""

from kernelcore.matching.assignment import (
    Assignments,
    Duals,
    k_cardinality_assignments,
    linear_assignment,
    linear_assignments,
)
from kernelcore.matching.set_similarity import SetSimilarities, set_similarity

__all__ = [
    "Assignments",
    "Duals",
    "SetSimilarities",
    "k_cardinality_assignments",
    "linear_assignment",
    "linear_assignments",
    "set_similarity",
]
