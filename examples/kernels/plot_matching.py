"""
Assignments and similarities of sets
====================================

An assignment links the rows and columns of a matrix with the greatest sum. It compares sets,
such as the sentences and the images of a document.
"""

# %%
# Five sentences and eight images:

import matplotlib.pyplot as plt
import numpy as np

from kernelcore.matching import (
    Duals,
    k_cardinality_assignments,
    linear_assignment,
    linear_assignments,
    set_similarity,
)

rng = np.random.default_rng(0)
similarity = rng.random((5, 8))
rows, cols = linear_assignment(similarity, maximize=True)
few_rows, few_cols = linear_assignment(similarity, maximize=True, threshold=0.8)

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.imshow(similarity, cmap="Greys")
ax.scatter(cols, rows, s=250, facecolors="none", edgecolors="tab:orange", label="all links")
ax.scatter(few_cols, few_rows, marker="x", color="tab:red", label="worth 0.8 or more")
ax.set(xlabel="image", ylabel="sentence")
ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)

# %%
# The best one, two, three ... links, and a proof that no others are better:

best = k_cardinality_assignments(similarity, maximize=True)
print(best.totals.round(2))
*links, proof = linear_assignment(similarity, maximize=True, return_duals=True)
assert isinstance(proof, Duals)
print(proof)

# %%
# Many problems in one call:

many = linear_assignments(rng.random((1000, 5, 8)))
print(len(many), many.totals.mean().round(3))

# %%
# Three sets of sentences beside two sets of images, from one matrix:

S = rng.random((9, 8))
print(set_similarity(S, [0, 2, 6, 9], [0, 4, 8], method="AP").round(2))
details = set_similarity(S, [0, 2, 6, 9], [0, 4, 8], method="AP", return_selected=True)
print(details.gradient(np.ones((3, 2))).round(2))
