"""
Do two systems differ?
======================

Two systems that are measured on the same queries give pairs, and tests of pairs see much
smaller differences than intervals do.
"""

# %%
# Four systems of increasing strength, with the same noise:

import matplotlib.pyplot as plt
import numpy as np

from kernelcore.evaluation import compare, evaluate
from kernelcore.evaluation.overlap import equivalence_test, overlap_test
from kernelcore.evaluation.significance import (
    fisher_randomization,
    holm,
    mcnemar,
    paired_bootstrap,
)

rng = np.random.default_rng(0)
noise = rng.normal(size=(300, 300))
results = []
for strength in (1.6, 2.0, 2.1, 2.6):
    own = noise + 0.6 * rng.normal(size=noise.shape) + strength * np.eye(300)
    results.append(evaluate(own, system=f"strength {strength}"))

# %%
# `compare` tests all pairs: systems with a common letter do not differ on these queries. With a
# baseline it tests all others against it. That a difference is not significant does not show
# that two systems are equal; a margin asks for that.

options = {"rng": 0, "n_reassignments": 10_000}
print(compare(results, metrics=["R@1", "R@5"], **options))
comparison = compare(results, baseline="strength 2.0", margin=0.05, **options)
print(comparison)

# %%
# The tests themselves take successes, or any number per query.

weak, strong = (results[i].values["search"]["mean_rank"] for i in (0, 3))
test = mcnemar(strong <= 5, weak <= 5)
randomised = fisher_randomization(strong, weak, statistic="mean", rng=0)
bootstrap = paired_bootstrap(strong, weak, rng=0)
print(f"McNemar p = {test.p_value:.2g}, randomisation p = {randomised.p_value:.2g}")
print(f"mean ranks differ by {bootstrap.low:.1f} to {bootstrap.high:.1f}")

# %%
# Of 20 comparisons without any difference, one has p below 0.05. Holm's correction takes care
# of it.

equals = rng.normal(size=(20, 300))  # values of 300 queries
p_values = fisher_randomization(
    equals, rng.normal(size=300), n_reassignments=2000, rng=0
).p_value
figure, ax = plt.subplots(layout="constrained")
ax.plot(np.sort(p_values), "o", label="p-values")
ax.plot(np.sort(holm(p_values)), "x", label="corrected by Holm")
ax.axhline(0.05, color="grey", linestyle=":")
ax.set(xlabel="comparison", ylabel="p")
ax.legend()

# %%
# Queries that share items, such as documents with common photos, are not independent. The
# standard error then counts what they share.

photos = [(f"photo {i // 2}",) for i in range(300)]
print(overlap_test(strong, weak, photos).p_value)
print(equivalence_test(strong, weak, margin=50, items=photos).p_value)
