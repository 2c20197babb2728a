"""Expert scores, BLEU and ROUGE of the captions ranked first, against direct calls."""

import numpy as np
import pytest
from judged_pools import make_judgments, make_pool, make_scores

from kernelcore.evaluation.caption_metrics import unigram_bleu, unigram_rouge
from kernelcore.evaluation.significance import fisher_randomization, mcnemar
from kernelcore.experiments.hodosh2013.first_captions import (
    expert_scores,
    expert_section,
    mean_section,
    text_scores,
)
from kernelcore.experiments.hodosh2013.first_results import EXPERT_THRESHOLDS
from kernelcore.experiments.hodosh2013.judged import (
    ALL,
    OTHERS,
    text_matrices,
)

NAMES = ("NN_F1^idf", "BoW1", "BoW5", "TagRank", "Tri5", "Tri5Sem")


@pytest.fixture(scope="module")
def pool():
    return make_pool()


@pytest.fixture(scope="module")
def judgments(pool):
    return make_judgments(pool)


@pytest.fixture(scope="module")
def scores():
    return make_scores(NAMES)


@pytest.fixture(scope="module")
def matrices(pool):
    return text_matrices(pool)


@pytest.fixture(scope="module")
def experts(scores, judgments, pool):
    return expert_scores(scores, judgments.expert_and_gold(pool))


def test_gold_captions_count(experts, scores, judgments, pool):
    expert = judgments.expert_and_gold(pool)
    (table,) = expert_section(experts, expert, baseline="Tri5Sem", n_threads=1).tables
    assert [row[0] for row in table.rows] == [*NAMES, "Random (expected)"]
    own = judgments.expert.scores_of(np.arange(40), np.arange(40))
    for name, row in zip(NAMES, table.rows, strict=False):
        is_gold = scores[name].annotation.argmax(axis=1) == np.arange(40)
        # An own caption that nobody judged is perfect.
        at_least = 100 * (is_gold & (np.isnan(own) | (own == 4))).mean()
        assert float(row[3]) >= round(at_least, 1)


def test_marks_are_those_of_mcnemar(experts, judgments, pool):
    expert = judgments.expert_and_gold(pool)
    (table,) = expert_section(experts, expert, baseline="Tri5Sem", n_threads=1).tables
    marks = dict(table.superscripts)
    assert marks
    for i, name in enumerate(NAMES[:-1]):
        for k, least in enumerate(EXPERT_THRESHOLDS):
            ours, theirs = (experts[of].scores >= least for of in (name, "Tri5Sem"))
            p = float(mcnemar(ours, theirs).p_value)
            stars = "*" * sum(p <= level for level in (0.1, 0.05, 0.01))
            assert marks.get((i, k + 3), "") == stars
    assert "exact McNemar test" in table.caption


def test_a_random_choice_has_the_mean_over_all_pairs(experts, judgments, pool):
    expert = judgments.expert_and_gold(pool)
    (table,) = expert_section(experts, expert, baseline="Tri5Sem", n_threads=1).tables
    matrix = np.full((40, 40), np.nan)
    matrix[expert.images, expert.captions] = expert.scores
    known = ~np.isnan(matrix)
    assert table.rows[-1][1:3] == (f"{100 * known.mean():.1f}", f"{np.nanmean(matrix):.2f}")
    for k, least in enumerate(EXPERT_THRESHOLDS):
        assert table.rows[-1][k + 3] == f"{100 * (matrix >= least).mean():.1f}"


def test_mean_scores_are_compared_where_both_were_judged(experts, scores, matrices):
    texts = text_scores(scores, matrices)
    section = mean_section(experts, texts, matrices, baseline="Tri5Sem", n_threads=1)
    judged, _ = section.tables
    for name, row in zip(NAMES[:-1], judged.rows, strict=True):
        ours, theirs = experts[name].scores, experts["Tri5Sem"].scores
        both = ~np.isnan(ours) & ~np.isnan(theirs)
        difference = ours[both].mean() - theirs[both].mean()
        assert row[:2] == (name, str(both.sum()))
        assert float(row[4]) == pytest.approx(difference, abs=0.006)
        p = fisher_randomization(ours[both], theirs[both], rng=3, n_reassignments=20_000)
        assert float(row[5]) == pytest.approx(float(p.p_value), abs=0.04)


def test_texts_of_the_first_captions(experts, scores, matrices, pool):
    texts = text_scores(scores, matrices)
    for (references, metric), by_system in texts.items():
        measure = {"BLEU": unigram_bleu, "ROUGE": unigram_rouge}[metric]
        of = {ALL: pool.all_captions, OTHERS: pool.others}[references]
        for name in ("BoW1", "Tri5Sem"):
            first = scores[name].annotation.argmax(axis=1)
            expected = [measure([pool.captions[first[i]]], [of[i]])[0, 0] for i in range(40)]
            np.testing.assert_allclose(by_system[name], expected)
    _, table = mean_section(experts, texts, matrices, baseline="Tri5Sem", n_threads=1).tables
    assert [heading for heading, _ in table.groups] == ["", ALL, OTHERS]
    cells = {row[0]: row[1:] for row in table.rows}
    assert cells["BoW1"][0] == f"{100 * texts[ALL, 'BLEU']['BoW1'].mean():.1f}"
    assert cells["Random (expected)"][3] == f"{100 * matrices[OTHERS]['ROUGE'].mean():.1f}"


def test_one_system_has_tables_without_marks(experts, scores, judgments, pool, matrices):
    one = {"BoW5": experts["BoW5"]}
    expert = judgments.expert_and_gold(pool)
    (table,) = expert_section(one, expert, baseline="BoW5", n_threads=1).tables
    assert not table.superscripts
    texts = text_scores({"BoW5": scores["BoW5"]}, matrices)
    [table] = mean_section(one, texts, matrices, baseline="BoW5", n_threads=1).tables
    assert [row[0] for row in table.rows] == ["BoW5", "Random (expected)"]
