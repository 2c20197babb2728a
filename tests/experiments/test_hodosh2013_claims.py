"""Claims are put to the test on rankings whose answers are known."""

from math import erfc, sqrt

import numpy as np
import pytest

from kernelcore.evaluation import RankingMetrics, RetrievalResult
from kernelcore.evaluation.significance import fisher_randomization, holm, mcnemar
from kernelcore.experiments.hodosh2013.claims import (
    FAILS,
    HOLDS,
    NOT_RUN,
    UNDECIDED,
    Evidence,
    Measure,
    claims_section,
    drawn_claim,
)
from kernelcore.experiments.hodosh2013.draws import Draws, bootstrap_p_value, standard_error
from kernelcore.experiments.hodosh2013.measures import (
    first_results,
    gold,
    of_ranks,
    of_relevance,
    relevant_not_gold,
)
from kernelcore.experiments.hodosh2013.paper_claims import (
    feature_claims,
    rank_claims,
    relevance_claims,
)
from kernelcore.experiments.hodosh2013.systems import SYSTEMS

N_QUERIES = 200
FEW = Draws(n_reassignments=5000, n_resamples=200)
MANY = Draws(n_reassignments=20_000)  # Holm's correction of 832 p-values needs them

# Mean share of queries whose gold item is first; the others' ranks are beyond ten.
PAPER = dict.fromkeys(SYSTEMS, 0.5) | {
    **{name: 0.1 for name, s in SYSTEMS.items() if s.ranker == "nearest_neighbour"},
    "BoW1": 0.3,
    "Tri1": 0.3,
    "Tri5": 0.4,
    "Tri5_Lin": 0.3,
    "Tri5Sem": 0.8,
}
OF_ALL = (
    "Nearest neighbours are below every kernel CCA",
    "... on every metric",
    "Tri5Sem is the best system",
)


def results(shares):
    """Systems whose hits are nested: the better one hits where the worse one does."""
    order = np.random.default_rng(0).permutation(N_QUERIES)
    found = {}
    for name, share in shares.items():
        ranks = np.full(N_QUERIES, 100.0)
        ranks[order[: round(share * N_QUERIES)]] = 1.0
        metrics = RankingMetrics(ranks, np.ones(N_QUERIES, int), N_QUERIES, "mean", (1, 5, 10))
        found[name] = RetrievalResult(metrics, metrics, system=name)
    return found


def verdicts(shares, draws=FEW):
    evidence = Evidence(of_ranks(results(shares)), draws)
    return {claim.text: claim for claim in rank_claims(evidence)}


def test_everything_holds_where_the_paper_is_right():
    claims = verdicts(PAPER)
    expected = dict.fromkeys(claims, HOLDS) | {
        # At a median of 100 the nearest neighbours tie with others that miss half.
        "... on every metric": UNDECIDED,
        # Here R@1 finds what the other metrics find.
        "annotation: R@1 does not tell Tri5Sem from Tri5": FAILS,
    }
    assert {text: claim.verdict for text, claim in claims.items()} == expected
    assert all(0 < claim.p_value <= 1 and claim.test for claim in claims.values())
    assert claims["BoW5 and TagRank do not differ"].p_value == 1
    assert claims["Tri5Sem is the best system"].p_value < 0.05


@pytest.mark.parametrize(
    ("text", "changed", "verdict"),
    [
        ("Nearest neighbours are below every kernel CCA", {"NN_F1": 0.6}, FAILS),
        ("Nearest neighbours are below every kernel CCA", {"NN_F1": 0.3}, UNDECIDED),
        ("BoW1 is below BoW5", {"BoW1": 0.9}, FAILS),
        ("BoW1 is below BoW5", {"BoW1": 0.5}, UNDECIDED),
        ("BoW5 and TagRank do not differ", {"TagRank": 0.6}, FAILS),
        ("BoW5 and TagRank do not differ", {"TagRank": 0.4}, FAILS),
        ("BoW5 and TagRank do not differ", {"TagRank": 0.505}, HOLDS),
        ("... on every metric", {"NN_F1": 0.7}, FAILS),
        ("Tri5_Lin is at or below Tri5", {"Tri5_Lin": 0.7}, FAILS),
        ("Tri5_Lin is at or below Tri5", {"Tri5_Lin": 0.4025}, HOLDS),
        ("Tri5Sem is the best system", {"BoW5^idf": 0.9}, FAILS),
        ("Tri5Sem is the best system", {"BoW5^idf": 0.8}, UNDECIDED),
        ("annotation: R@1 does not tell Tri5Sem from Tri5", {"Tri5": 0.8}, HOLDS),
        ("... and R@5, R@10 and the median do", {"Tri5": 0.8}, UNDECIDED),
        ("annotation: Tri5Sem is above BoW5 and TagRank in R@1", {"BoW5": 0.9}, FAILS),
        ("search: Tri5Sem is above the others of table 3 in R@1", {"Tri5": 0.9}, FAILS),
    ],
)
def test_one_system_decides(text, changed, verdict):
    shown = PAPER | changed
    if text not in OF_ALL:  # one nearest neighbour is quicker than four
        shown = {name: of for name, of in shown.items() if name[:2] != "NN" or "^" in name}
    draws = MANY if "every metric" in text else FEW
    assert verdicts(shown, draws)[text].verdict == verdict


def test_every_metric_means_the_median_too():
    high = {name: 0.6 if share >= 0.3 else share for name, share in PAPER.items()}
    claim = verdicts(high, MANY)["... on every metric"]
    assert claim.verdict == HOLDS
    assert claim.evidence.startswith("832 of 832 significantly, 832 in all; weakest: ")


def test_what_was_not_run_is_said_so():
    without = {name: share for name, share in PAPER.items() if name != "TagRank"}
    claims = verdicts(without)
    claim = claims["BoW1 is below TagRank"]
    assert (claim.verdict, claim.evidence) == (NOT_RUN, "without TagRank")
    assert claims["BoW1 is below BoW5"].verdict == HOLDS
    assert verdicts({"BoW5": 0.5, "BoW1": 0.3})["Tri5_Lin is at or below Tri5"].p_value is None
    missing = Evidence({}, FEW).above("text", [("a", "b")], ["search R@1"])
    assert (missing.verdict, missing.evidence) == (NOT_RUN, "without search R@1")


def test_tests_of_several_pairs_and_measures_are_those_of_single_calls():
    rng = np.random.default_rng(0)
    means = {name: rng.normal(i / 8, 1, 60) for i, name in enumerate("abc")}
    successes = {name: (values > 0).astype(float) for name, values in means.items()}
    measures = {
        "mean": Measure(means),
        "success": Measure(successes, "success"),
        "median": Measure(means, "median"),
    }
    pairs = [("c", "a"), ("c", "b"), ("b", "a")]
    tested = list(Evidence(measures, FEW)._tests(pairs, list(measures)))
    found = {(one.measure, one.first, one.second): one for one in tested}
    assert len(found) == 9
    options = {"n_reassignments": 5000, "rng": 0}
    for first, second in pairs:
        for name in ("mean", "median"):
            expected = fisher_randomization(
                means[first], means[second], statistic=name, **options
            )
            one = found[name, first, second]
            assert one.difference == pytest.approx(float(expected.difference))
            assert one.p_value == pytest.approx(float(expected.p_value), abs=1e-3)
        expected = mcnemar(successes[first] == 1, successes[second] == 1)
        one = found["success", first, second]
        assert (one.difference, one.p_value) == (expected.difference, expected.p_value)
    claim = Evidence(measures, FEW).above("text", pairs, ["success"])
    p_values = [found[("success", *pair)].p_value for pair in pairs]
    assert claim.p_value == max(holm(p_values))


def test_queries_without_a_value_do_not_count():
    """The test is that of the queries which both systems have."""
    rng = np.random.default_rng(1)
    first, second = rng.normal(0.5, 1, 80), rng.normal(0, 1, 80)
    first[:30], second[20:40] = np.nan, np.nan
    both = ~np.isnan(first) & ~np.isnan(second)
    measures = {
        "mean": Measure({"a": first, "b": second}),
        "success": Measure(
            {
                name: np.where(np.isnan(of), np.nan, of > 0)
                for name, of in (("a", first), ("b", second))
            },
            "success",
        ),
    }
    tested = Evidence(measures, MANY)._tests([("a", "b")], ["mean", "success"])
    mean, success = sorted(tested)
    expected = fisher_randomization(first[both], second[both], n_reassignments=20_000, rng=1)
    assert mean.difference == pytest.approx(float(expected.difference))
    assert mean.p_value == pytest.approx(float(expected.p_value), abs=0.02)
    expected = mcnemar(first[both] > 0, second[both] > 0)
    assert (success.difference, success.p_value) == (expected.difference, expected.p_value)
    nobody = Measure({"a": np.full(5, np.nan), "b": np.ones(5)})
    claim = Evidence({"none": nobody}, FEW).alike("text", [("a", "b")], ["none"])
    assert (claim.verdict, claim.p_value, claim.evidence) == (HOLDS, 1, "a - b: +0.000 none")


class Judged:
    """Relevance metrics of a system, as far as claims look at them."""

    def __init__(self, success, precision):
        names = dict.fromkeys(("S@1", "S@5", "S@10"), np.asarray(success, float))
        values = {**names, "R-precision": np.asarray(precision, float)}
        self.annotation = self.search = type("Task", (), {"per_query": values})


@pytest.mark.parametrize(("share", "verdict"), [(0.9, HOLDS), (0.3, FAILS), (0.51, UNDECIDED)])
def test_success_is_twice_recall(share, verdict):
    shown = ("NN_F1^idf", "BoW1", "BoW5", "TagRank", "Tri5", "Tri5Sem")
    found = results(dict.fromkeys(shown, 0.25))
    order = np.argsort(found["BoW5"].annotation.ranks, kind="stable")
    success = np.zeros(N_QUERIES)
    success[order[: round(share * N_QUERIES)]] = 1  # gold first, then others
    judged = {name: Judged(success, success) for name in shown}
    measures = of_relevance(judged, found)
    first = measures[first_results("search")].values
    assert first[gold("BoW5")].mean() == 0.25
    assert first[relevant_not_gold("BoW5")].mean() == pytest.approx(success.mean() - 0.25)
    claims = list(relevance_claims(Evidence(measures, FEW)))
    assert [claim.verdict for claim in claims if "twice" in claim.text] == [verdict] * 2


def test_success_and_recall_are_those_of_the_systems_of_the_table():
    found = results({"BoW5": 0.5})
    ones = np.ones(N_QUERIES)
    evidence = Evidence(of_relevance({"BoW5": Judged(ones, ones)}, found), FEW)
    assert {claim.verdict for claim in relevance_claims(evidence)} == {NOT_RUN}


def precisions(**values):
    """R-precision of all systems: small, or what is named, in nine of ten queries."""
    noise = np.random.default_rng(0).random(N_QUERIES) / 10
    named = dict.fromkeys(SYSTEMS, 0.5) | {"Tri5": 0.3, "Tri5_Lin": 0.3} | values
    return {name: noise + value * (noise < 0.09) for name, value in named.items()}


def feature_verdicts(**values):
    annotation = Measure(precisions(**values))
    search = Measure(precisions(**values))
    measures = {"annotation R-precision": annotation, "search R-precision": search}
    draws = Draws(n_reassignments=2000)
    claims = list(feature_claims(Evidence(measures, draws)))
    return {claim.text: claim.verdict for claim in claims}


def test_claims_on_features_follow_the_systems():
    lexical = "R-precision: every similarity but WordNet's improves Tri5, with idf or without"
    found = feature_verdicts()
    assert found[lexical] == HOLDS
    assert found["annotation R-precision: idf improves Tri5"] == HOLDS
    assert found["search R-precision: idf improves Tri5_A"] == UNDECIDED
    assert found["R-precision: Tri5_Lin is at or below Tri5"] == HOLDS
    assert found["R-precision: Tri5Sem is above Tri5^sqrt-idf"] == UNDECIDED
    assert feature_verdicts(Tri5_A=0.1)[lexical] == FAILS
    assert feature_verdicts(Tri5Sem=0.3)[lexical] == UNDECIDED
    lin = feature_verdicts(Tri5_Lin=0.6)
    assert lin["R-precision: Tri5_Lin is at or below Tri5"] == FAILS
    best = feature_verdicts(Tri5Sem=0.8)
    assert best["R-precision: Tri5Sem is above Tri5^sqrt-idf"] == HOLDS


def test_numbers_of_resamples_are_judged_by_their_standard_error():
    rng = np.random.default_rng(0)
    drawn = rng.normal(5, 2, 999)  # the place of the draws does not matter
    error = np.sqrt(np.mean((drawn - drawn.mean()) ** 2))
    assert standard_error(drawn) == pytest.approx(error)
    assert bootstrap_p_value(1.0, drawn) == pytest.approx(erfc(1 / error / sqrt(2)))
    assert bootstrap_p_value(100.0, drawn) == 1 / 1000
    assert bootstrap_p_value(1.0, np.ones(999)) == 1 / 1000
    assert bootstrap_p_value(0.0, drawn) == 1
    assert bootstrap_p_value(1.0, np.full(9, np.nan)) == 1
    both = [drawn, drawn]
    assert drawn_claim("text", [8.0, 9.0], both, "").verdict == HOLDS
    assert drawn_claim("text", [8.0, -9.0], both, "").verdict == FAILS
    assert drawn_claim("text", [8.0, 1.0], both, "").verdict == UNDECIDED
    undefined = drawn_claim("text", [np.nan, 9.0], both, "numbers")
    assert (undefined.verdict, undefined.p_value) == (UNDECIDED, None)


def test_the_section_shows_every_claim():
    claims = list(verdicts(PAPER).values())
    [table] = claims_section(claims).tables
    assert len(table.rows) == len(claims)
    assert ("BoW1 is below BoW5", "holds") in [row[:2] for row in table.rows]
