"""Fisher's randomisation test on 1,000 queries with 100,000 reassignments.

One system against a baseline: `scipy.stats.permutation_test` on paired samples, vectorised, in
batches. Thirty systems at once, which it cannot do: the plain NumPy way for means, one random
sign per query and reassignment and a matrix product in float64. Every way starts from the
ranks and ends with p-values, which must agree within their random error.
"""

import data
import numpy as np
import pytest
from results import target

from kernelcore.evaluation.significance import fisher_randomization
from kernelcore.reference.evaluation import fisher_randomization as reference_test

N_SYSTEMS, N_QUERIES = 30, data.size(1000, 200)
N_REASSIGNMENTS = data.size(100_000, 5000)
BATCH = 1000
STATISTICS = {"mean": np.mean, "median": np.median}


@pytest.fixture(scope="module")
def ranks():
    """Ranks of a baseline and of systems that lose more and more."""
    rng = np.random.default_rng(0)
    baseline = np.ceil(1000 * rng.random(N_QUERIES) ** 3)
    noise = rng.uniform(0.5, 1.5, (N_SYSTEMS, N_QUERIES))
    losses = 1.04 + np.arange(N_SYSTEMS)[:, np.newaxis] / 100
    return np.clip(np.rint(baseline * noise * losses), 1, 1000), baseline


def by_kernelcore(systems, baseline, statistic):
    return fisher_randomization(
        systems, baseline, statistic=statistic, n_reassignments=N_REASSIGNMENTS, rng=0
    ).p_value


def by_scipy(systems, baseline, statistic):
    from scipy import stats

    average = STATISTICS[statistic]
    p_values = [
        stats.permutation_test(
            (system, baseline),
            lambda x, y, axis: average(x, axis=axis) - average(y, axis=axis),
            permutation_type="samples",
            vectorized=True,
            n_resamples=N_REASSIGNMENTS,
            batch=BATCH,
            rng=1,
        ).pvalue
        for system in systems
    ]
    return np.array(p_values)


def by_numpy(systems, baseline):
    rng = np.random.default_rng(2)
    differences = (systems - baseline).T
    observed = abs(differences.sum(axis=0))
    extreme = np.zeros(len(systems))
    for _ in range(0, N_REASSIGNMENTS, BATCH):
        signs = 1.0 - 2.0 * rng.integers(2, size=(BATCH, N_QUERIES), dtype=np.uint8)
        extreme += np.count_nonzero(abs(signs @ differences) >= observed, axis=0)
    return (extreme + 1) / (N_REASSIGNMENTS + 1)


@pytest.mark.ways("kernelcore", "scipy", "numpy, signs and a product")
@pytest.mark.parametrize(
    ("statistic", "n_systems"),
    [("mean", 1), ("mean", N_SYSTEMS), ("median", 1), ("median", N_SYSTEMS)],
)
def test_fisher_randomization(measure, ranks, statistic, n_systems):
    systems, baseline = ranks
    few, short = systems[:3, :12], baseline[:12]
    enumerated = [reference_test(row, short, statistic=statistic) for row in few]
    assert by_kernelcore(few, short, statistic).tolist() == enumerated

    systems = systems[:n_systems]
    ours = by_kernelcore(systems, baseline, statistic)
    assert 0.01 < ours[0] < 0.99
    # Twice the error of one estimate for each of two, and SciPy doubles the smaller tail.
    error = np.sqrt(np.maximum(ours * (1 - ours), 1e-4) / N_REASSIGNMENTS)

    def check(p_values):
        assert (abs(p_values - ours) <= 8 * error).all()

    is_product = n_systems > 1 and statistic == "mean"
    measure(
        f"Fisher randomisation, {statistic}, {n_systems} against one",
        {
            "kernelcore": lambda: by_kernelcore(systems, baseline, statistic),
            "scipy": None if n_systems > 1 else lambda: by_scipy(systems, baseline, statistic),
            "numpy, signs and a product": (lambda: by_numpy(systems, baseline))
            if is_product
            else None,
        },
        check=check,
        n_threads=2,
        shape=f"{N_REASSIGNMENTS:,} reassignments of {N_QUERIES:,} queries",
        targets=[target("seconds <= 10")] if n_systems > 1 else [],
    )
