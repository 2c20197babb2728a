"""Kernel canonical correlation analysis.

`KCCA` is the estimator. `factorize` does the work that no setting changes, for many estimators
at the price of one small decomposition each, and `partial_gram_schmidt` is the low-rank
factorisation underneath, also of a kernel whose matrix is never held (`KernelColumns`).
"""

from kernelcore.kcca.basis import KernelBasis, kernel_basis
from kernelcore.kcca.columns import KernelColumns
from kernelcore.kcca.estimator import KCCA
from kernelcore.kcca.factorization import Directions, KCCAFactorization, factorize
from kernelcore.kcca.gram_schmidt import GramSchmidtFeatures, partial_gram_schmidt

__all__ = [
    "KCCA",
    "Directions",
    "GramSchmidtFeatures",
    "KCCAFactorization",
    "KernelBasis",
    "KernelColumns",
    "factorize",
    "kernel_basis",
    "partial_gram_schmidt",
]
