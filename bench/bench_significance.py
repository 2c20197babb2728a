"""Fisher's randomisation test with 100,000 reassignments.

One system against a baseline: `scipy.stats.permutation_test` on paired samples, vectorised, in
batches. Thirty systems at once, which it cannot do: the plain NumPy way for means, one random
sign per query and reassignment and a matrix product in float64. Every way starts from the
ranks and ends with p-values, which must agree within their random error.
"""

import numpy as np
import pytest
from common import size

from kernelcore.evaluation.significance import fisher_randomization
from kernelcore.reference.evaluation import fisher_randomization as reference

N_REASSIGNMENTS, BATCH = size(100_000, 5000), 1000
STATISTICS = {"mean": np.mean, "median": np.median}


def drawn_ranks(n_queries, n_systems):
    """Ranks of systems that lose more and more, and of a baseline."""
    rng = np.random.default_rng(0)
    baseline = np.ceil(1000 * rng.random(n_queries) ** 3)
    noise = rng.uniform(0.5, 1.5, (30, n_queries))[:n_systems]
    losses = 1.04 + np.arange(n_systems)[:, np.newaxis] / 100
    return np.clip(np.rint(baseline * noise * losses), 1, 1000), baseline


def by_kernelcore(systems, baseline, statistic):
    options = {"statistic": statistic, "n_reassignments": N_REASSIGNMENTS, "rng": 0}
    return fisher_randomization(systems, baseline, **options).p_value


def by_scipy(systems, baseline, statistic):
    from scipy import stats

    average = STATISTICS[statistic]
    found = stats.permutation_test(
        (systems[0], baseline),
        lambda x, y, axis: average(x, axis=axis) - average(y, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=N_REASSIGNMENTS,
        batch=BATCH,
        rng=1,
    )
    return np.array([found.pvalue])


def by_numpy(systems, baseline, statistic):
    rng = np.random.default_rng(2)
    differences = (systems - baseline).T
    observed = abs(differences.sum(axis=0))
    extreme = np.zeros(len(systems))
    for _ in range(0, N_REASSIGNMENTS, BATCH):
        signs = 1.0 - 2.0 * rng.integers(2, size=(BATCH, len(baseline)), dtype=np.uint8)
        extreme += np.count_nonzero(abs(signs @ differences) >= observed, axis=0)
    return (extreme + 1) / (N_REASSIGNMENTS + 1)


PEERS = {
    "kernelcore": by_kernelcore,
    "scipy.stats.permutation_test": by_scipy,
    "numpy, signs and a product": by_numpy,
}


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("n_threads", [2])
@pytest.mark.parametrize("n_queries", [250, 500, 1000])
@pytest.mark.parametrize(
    ("statistic", "n_systems"), [("mean", 1), ("mean", 30), ("median", 1), ("median", 30)]
)
def test_fisher(benchmark, peer, statistic, n_systems, n_queries, n_threads):  # noqa: PLR0917
    if peer.startswith("scipy") and n_systems > 1:
        pytest.skip("SciPy takes one system at a time")
    if peer.startswith("numpy") and (n_systems == 1 or statistic == "median"):
        pytest.skip("the product is for means of many systems")
    n_queries = size(n_queries, 200)
    benchmark.extra_info["work"] = f"Fisher randomisation, {statistic}, {n_systems} against one"
    benchmark.extra_info["size"] = f"{N_REASSIGNMENTS:,} reassignments of {n_queries:,} queries"
    systems, baseline = drawn_ranks(n_queries, n_systems)
    few, short = drawn_ranks(12, min(3, n_systems))
    enumerated = [reference(row, short, statistic=statistic) for row in few]
    assert by_kernelcore(few, short, statistic).tolist() == enumerated
    ours = by_kernelcore(systems, baseline, statistic)
    assert 0.001 < ours[0] < 0.999
    # Twice the error of one estimate for each of two, and SciPy doubles the smaller tail.
    error = np.sqrt(np.maximum(ours * (1 - ours), 1e-4) / N_REASSIGNMENTS)
    assert (abs(PEERS[peer](systems, baseline, statistic) - ours) <= 8 * error).all()
    benchmark(PEERS[peer], systems, baseline, statistic)
