import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import roc_auc_score

from kernelcore.evaluation import evaluate_links


def pairs(truth):
    return {(int(i), int(j)) for i, j in np.argwhere(truth)}


levels = st.sampled_from([-2.0, -0.5, 0.0, 0.25, 0.5, 1.0])  # few, so that scores tie
sizes = st.tuples(st.integers(1, 5), st.integers(1, 5))


@st.composite
def documents(draw):
    shape = draw(sizes)
    dtype = draw(st.sampled_from([np.float64, np.float32]))
    scores = draw(hnp.arrays(dtype, shape, elements=levels))
    return scores, draw(hnp.arrays(np.bool_, shape))


@given(st.lists(documents(), min_size=1, max_size=6), st.integers(1, 12))
def test_auc_is_that_of_scikit_learn_and_precision_counts_what_stands_first(collection, cutoff):
    scores, truths = zip(*collection, strict=True)
    judged = np.array([truth.any() and not truth.all() for truth in truths])
    links = [pairs(truth) for truth in truths]
    if not judged.any():
        with pytest.raises(ValueError, match=r"^links must hold a true link"):
            evaluate_links(scores, links)
        return
    result = evaluate_links(scores, links, cutoffs=(cutoff,))
    assert result.facts == {"n_documents": len(scores)}
    values = result.values["links"]
    assert (np.isnan(values["AUC"]) == ~judged).all()
    assert (np.isnan(values[f"p@{cutoff}"]) == ~judged).all()
    for i in np.flatnonzero(judged):
        truth, own = truths[i].ravel(), scores[i].ravel()
        assert values["AUC"][i] == pytest.approx(roc_auc_score(truth, own), abs=1e-12)
        # Of tied pairs, each order is equally likely: the bounds are the worst and the best.
        orders = (np.lexsort((sign * truth, -own)) for sign in (1, -1))
        worst, best = (truth[order][:cutoff].mean() for order in orders)
        assert worst - 1e-12 <= values[f"p@{cutoff}"][i] <= best + 1e-12


def test_numbers_by_hand():
    scores = [[0.9, 0.5, 0.5], [0.5, 0.1, 0.0]]
    result = evaluate_links([scores], [{(0, 1), (1, 1)}], cutoffs=(1, 2, 3, 5, 99))
    # The link at 0.5 ties with two others and beats one; the link at 0.1 beats one.
    auc, *precisions = result.mean["links"].values()
    assert auc == ((0.5 + 0.5 + 1) + 1) / (2 * 4)
    assert precisions == pytest.approx([0, 1 / 6, 2 / 9, 2 / 5, 2 / 6])


def test_infinite_scores_rule_in_and_out():
    result = evaluate_links([[[np.inf, 0.0], [-np.inf, 0.0]]], [{(0, 0)}], cutoffs=(1,))
    assert result.mean["links"] == {"AUC": 1.0, "p@1": 1.0}
