"""Kernel canonical correlation analysis.

`KCCA` is the estimator. `factorize` does the work that no setting changes, for many estimators
at the price of one small decomposition each, and `partial_gram_schmidt` is the low-rank
factorisation underneath, also of a kernel whose matrix is never held (`KernelColumns`).
`LandmarkFeatures` and `feature_basis` take kernel CCA to as many samples as there is memory
for their features.
"""

from kernelcore.kcca.basis import KernelBasis, kernel_basis
from kernelcore.kcca.estimator import KCCA
from kernelcore.kcca.factorization import Directions, KCCAFactorization, factorize
from kernelcore.kcca.features import LandmarkFeatures, feature_basis
from kernelcore.kcca.gram_schmidt import (
    GramSchmidtFeatures,
    KernelColumns,
    partial_gram_schmidt,
)

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
