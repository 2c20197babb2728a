"""Kernel canonical correlation analysis.

`KCCA` is the estimator. `factorize` does the work that settings share, so that each of many
settings costs one small decomposition. `partial_gram_schmidt` is the low-rank factorisation
underneath, which also takes a kernel without its whole matrix (`KernelColumns`). For many
samples `LandmarkFeatures` and `feature_basis` take time and memory linear in their number.
"""

from kernelcore.kcca.basis import KernelBasis, feature_basis, kernel_basis
from kernelcore.kcca.gram_schmidt import (
    GramSchmidtFeatures,
    KernelColumns,
    partial_gram_schmidt,
)
from kernelcore.kcca.kcca import KCCA, Directions, KCCAFactorization, factorize
from kernelcore.kcca.landmarks import LandmarkFeatures

__all__ = [
    "KCCA",
    "Directions",
    "GramSchmidtFeatures",
    "KCCAFactorization",
    "KernelBasis",
    "KernelColumns",
    "LandmarkFeatures",
    "factorize",
    "feature_basis",
    "kernel_basis",
    "partial_gram_schmidt",
]
