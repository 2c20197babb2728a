"""The sections of the page from generated scores and judgments."""

from math import sqrt

import numpy as np
import pytest
from judged_pools import evaluated, make_judgments, make_pool, make_scores
from scipy.stats import norm

from kernelcore.experiments.hodosh2013.findings import (
    make_sections,
    published_sections,
    shares_test,
)
from kernelcore.experiments.hodosh2013.systems import SYSTEMS
from kernelcore.experiments.scores import Scores, printed

BEFORE = ["Comparison with the paper"]
PEOPLE = [
    "Relevant pairs",
    "Human judgments of relevance",
    "Expert scores of the first caption",
    "Mean scores of the first caption",
]
JUDGED = [
    "Agreement of the experts",
    "Agreement of text metrics with the experts",
    "Agreement of the crowd with the experts",
    "Filters of unlikely pairs",
]
ORDER = "Do the metrics agree on the order of the systems?"


@pytest.fixture(scope="module")
def pool():
    return make_pool()


@pytest.fixture(scope="module")
def judgments(pool):
    return make_judgments(pool)


def sections(scores, pool, judgments, results=None):
    made = make_sections(
        results or evaluated(scores), scores, pool, judgments, elsewhere=[], n_threads=1
    )
    return {section.title: section for section in made}


def test_all_systems_and_judgments_make_every_section(pool, judgments):
    found = sections(make_scores(SYSTEMS), pool, judgments)
    systems = ["Differences to Tri5Sem", "What makes Tri5Sem", ORDER]
    assert list(found) == [*BEFORE, *PEOPLE, *systems, *JUDGED]
    precision, recall = found["What makes Tri5Sem"].tables
    assert len(precision.columns) == 9
    assert len(recall.columns) == 5


def test_few_systems_make_fewer_sections(pool, judgments):
    two = sections(make_scores(["BoW1", "BoW5"]), pool, judgments)
    assert list(two) == [*PEOPLE, "Differences to BoW5", *JUDGED]
    one = sections(make_scores(["Tri5Sem"]), pool, judgments)
    assert list(one) == [*BEFORE, *PEOPLE, *JUDGED]
    none = sections(make_scores(["BoW1", "BoW5"]), pool, None)
    assert list(none) == ["Differences to BoW5"]


def test_a_random_order_stands_below_the_systems(pool, judgments):
    scores = make_scores(["BoW1", "BoW5"])
    [table] = sections(scores, pool, judgments)["Differences to BoW5"].tables
    random = dict(zip(table.columns, table.rows[-1], strict=True))
    assert random["system"] == "Random (expected)"
    assert random["R@1"] == "2.5"
    assert random["R@10"] == "25.0"
    assert random["median_rank"] == "20.5"
    relevance = judgments.relevance(pool)
    share = np.mean([len(of) for of in relevance.relevant_images(0.5)]) / 40
    assert float(random["S@1"]) == pytest.approx(100 * share, abs=0.051)
    assert float(random["R-precision"]) == pytest.approx(100 * share, abs=0.051)


def test_systems_corrected_for_hubs_and_as_printed_stand_in_the_tables_alone(pool, judgments):
    scores = make_scores(["BoW5", "Tri5Sem", printed("Tri5Sem")])
    best = scores["Tri5Sem"]
    corrected = best.annotation + np.eye(40), best.search
    scores["Tri5Sem"] = Scores(best.annotation, best.search, {}, corrected=corrected)
    flat = {
        name: Scores(a, s, {}) for own, of in scores.items() for name, a, s in of.variants(own)
    }
    assert len(flat) == 4
    found = sections(scores, pool, judgments, evaluated(flat))
    for title in ("Human judgments of relevance", "Differences to Tri5Sem"):
        assert [row[0] for row in found[title].tables[0].rows] == [*flat, "Random (expected)"]
    names = {row[0] for row in found["Comparison with the paper"].tables[0].rows}
    assert names == set(flat) - {"BoW5"}
    assert ORDER not in found


def test_the_published_row_is_tested_as_unpaired_shares():
    results = evaluated(make_scores(["BoW5", "Tri5Sem"]))
    [section] = published_sections(results)
    [table] = section.tables
    assert len(table.rows) == 8
    assert "not available" not in str(table)
    assert "Karpathy" in section.paragraphs[0]
    assert "unpaired" in section.paragraphs[1]
    cells = {row[1:3]: row[3:] for row in table.rows}
    ours = results[1].mean["annotation"]["R@1"]
    z, p = shares_test(ours, 40, 0.083, 1000)
    assert cells["annotation", "R@1"] == (
        f"{100 * ours:.1f}", "8.3", f"{100 * ours - 8.3:+.1f}", f"{z:.2f}", f"{p:.2g}",
    )  # fmt: skip
    median = results[1].mean["search"]["median_rank"]
    assert cells["search", "median_rank"] == (
        f"{median:.1f}", "38.0", f"{median - 38:+.1f}", "", ""
    )  # fmt: skip
    assert published_sections(results[:1]) == []


def test_two_shares():
    z, p = shares_test(0.066, 1000, 0.083, 1000)
    pooled = (66 + 83) / 2000
    expected = (0.066 - 0.083) / sqrt(pooled * (1 - pooled) * 2 / 1000)
    assert z == pytest.approx(expected)
    assert p == pytest.approx(2 * norm.sf(abs(expected)))
    assert shares_test(0.0, 10, 0.0, 20) == (0.0, 1.0)
    assert shares_test(1.0, 10, 1.0, 20) == (0.0, 1.0)
