"""Plots of rankings, kernels and what models learn, as functions that return Matplotlib axes.

Each takes plain data or what the package returns. It draws on the axes that it is given, or on
a new figure of pyplot, which notebooks show: `recall_curves` and `rank_histogram` of results,
`similarity_matrix` of scores, `kernel_spectrum` and `canonical_correlations` of kernel CCA,
and `alignments`, `aligned_regions` and `found_regions` of sentence fragments.
The figures of reports are made of the same functions.

Lines differ in colours that people with any colour vision tell apart, and then in dashes. The
fonts and the ground are those of Matplotlib's settings.
"""

from kernelcore.plots.ranking import rank_histogram, recall_curves, similarity_matrix
from kernelcore.plots.regions import aligned_regions, alignments, found_regions
from kernelcore.plots.spectra import canonical_correlations, kernel_spectrum

__all__ = [
    "aligned_regions",
    "alignments",
    "canonical_correlations",
    "found_regions",
    "kernel_spectrum",
    "rank_histogram",
    "recall_curves",
    "similarity_matrix",
]
