"""Kappas over all thresholds, precision and recall, against loops and `cohen_kappa`."""

import numpy as np
import pytest
from judged_pools import make_judgments, make_pool

from kernelcore.evaluation.agreement import cohen_kappa, krippendorff_alpha_interval
from kernelcore.evaluation.caption_metrics import (
    rouge_tokens,
    unigram_bleu,
    unigram_rouge,
)
from kernelcore.experiments.hodosh2013.agreement import (
    agreement_section,
    crowd_agreement_section,
    text_agreement_section,
)
from kernelcore.experiments.hodosh2013.judged import (
    ALL,
    ONE_OTHER,
    OTHERS,
    OWN,
    CaptionPool,
    text_matrices,
)
from kernelcore.experiments.hodosh2013.kappas import (
    LEAST,
    N_RESAMPLES,
    THRESHOLDS,
    ScoredPairs,
    greatest,
    resamples,
)


@pytest.fixture(scope="module")
def pool():
    return make_pool()


@pytest.fixture(scope="module")
def judgments(pool):
    return make_judgments(pool)


@pytest.fixture(scope="module")
def pairs(pool, judgments):
    return ScoredPairs.of(judgments.expert, judgments.crowd, text_matrices(pool))


@pytest.fixture(scope="module")
def counts(pairs):
    return resamples(pairs.n_images)


def test_text_metrics_have_the_references_that_their_names_say(pool):
    matrices = text_matrices(pool)
    i, j = 3, 7
    references = {
        ALL: [pool.captions[i], *pool.others[i]],
        OWN: [pool.captions[i]],
        OTHERS: list(pool.others[i]),
        ONE_OTHER: [pool.others[i][0]],
    }
    assert set(matrices) == set(references)
    for name, of in references.items():
        caption = pool.captions[j]
        expected = {
            "BLEU": unigram_bleu([caption], [of])[0, 0],
            "BLEU_pre": unigram_bleu([caption], [of], tokenize=rouge_tokens)[0, 0],
            "ROUGE": unigram_rouge([caption], [of])[0, 0],
        }
        assert {metric: matrix[i, j] for metric, matrix in matrices[name].items()} == expected


def test_kappas_are_those_of_cohen(pairs):
    for values in (pairs.crowd, pairs.texts[OTHERS, "ROUGE"]):
        known = np.isfinite(values)
        kappas = pairs.kappas(values)
        table = kappas.table()
        assert kappas.n_pairs == known.sum()
        for i, least in enumerate(LEAST):
            for j, threshold in enumerate(THRESHOLDS):
                expected = cohen_kappa(pairs.expert[known] >= least, values[known] >= threshold)
                assert table[i, j] == pytest.approx(expected, nan_ok=True)
        best = kappas.best()
        assert best.kappa == np.nanmax(table)
        assert table[LEAST.index(best.expert), THRESHOLDS.index(best.measure)] == best.kappa


def test_kappas_of_a_resample_are_those_of_its_pairs(pairs, counts):
    values = pairs.texts[ALL, "BLEU"]
    drawn = pairs.kappas(values).drawn(counts)
    assert drawn.shape == (N_RESAMPLES, len(LEAST), len(THRESHOLDS))
    times = counts[5][pairs.images]
    expert, measured = np.repeat(pairs.expert, times), np.repeat(values, times)
    for i, j in ((0, 9), (3, 12), (6, 3)):
        expected = cohen_kappa(expert >= LEAST[i], measured >= THRESHOLDS[j])
        assert drawn[5, i, j] == pytest.approx(expected)
    assert greatest(drawn)[5] == np.nanmax(drawn[5])


def test_nothing_judged_by_both_has_no_kappa(pairs):
    none = pairs.kappas(np.full(len(pairs.expert), np.nan))
    assert none.n_pairs == 0
    assert np.isnan(none.table()).all()
    assert np.isnan(none.best().kappa)
    assert np.isnan(greatest(none.table()[np.newaxis])).all()


def test_the_tables_of_text_metrics_show_the_best_threshold(pairs, counts):
    with_own, without, best = text_agreement_section(pairs, counts).tables
    assert [name for name, _ in with_own.groups] == ["", ALL, OWN]
    assert [name for name, _ in without.groups] == ["", OTHERS, ONE_OTHER]
    row = pairs.kappas(pairs.texts[OWN, "BLEU_pre"]).table()[LEAST.index(3.0)]
    cell = next(cells for cells in with_own.rows if cells[0] == ">= 3")[5]
    assert cell == f"{np.nanmax(row):.2f} ({THRESHOLDS[np.nanargmax(row)]:.2f})"
    assert best.rows[0][:2] == ("crowd", "")
    for cells in best.rows:
        low, kappa, high = (float(cells[k]) for k in (4, 3, 5))
        assert low <= kappa <= high


def test_precision_and_recall_of_the_crowd(pairs):
    kappas, precision = crowd_agreement_section(pairs).tables
    for i, least in enumerate(LEAST):
        for where, columns in ((np.isfinite(pairs.crowd), (1, 2, 3)), (True, (4, 5, 6))):
            n_both = n_yes = n_good = 0
            for k in range(len(pairs.expert)):
                if where is not True and not where[k]:
                    continue
                yes = pairs.crowd[k] >= 0.5 or (where is True and pairs.is_gold[k])
                good = pairs.expert[k] >= least
                n_both += yes and good
                n_yes += yes
                n_good += good
            p, r = n_both / n_yes, n_both / n_good
            cells = [f"{100 * x:.1f}" for x in (p, r, 2 * p * r / (p + r))]
            assert [precision.rows[i][k] for k in columns] == cells
        known = np.isfinite(pairs.crowd)
        kappa = cohen_kappa(pairs.expert[known] >= least, pairs.crowd[known] >= 0.5)
        assert kappas.rows[i][1] == f"{kappa:.2f}"


def test_alpha_of_the_experts(judgments):
    [table] = agreement_section(judgments.expert).tables
    assert [row[0] for row in table.rows] == ["nominal", "ordinal", "interval"]
    assert all(float(row[2]) <= float(row[1]) <= float(row[3]) for row in table.rows)
    expert, draws = judgments.expert, {"rng": 0, "n_resamples": N_RESAMPLES}
    for level, _, *ends in table.rows:
        drawn = krippendorff_alpha_interval(
            expert.ratings, level=level, groups=expert.images, **draws
        )
        assert ends == [f"{end:.3f}" for end in drawn]


def test_without_other_captions_the_own_one_is_the_reference(judgments, pool, counts):
    alone = CaptionPool(pool.image_ids, pool.caption_ids, pool.captions, ((),) * 40)
    matrices = text_matrices(alone)
    assert list(matrices) == [OWN]
    pairs = ScoredPairs.of(judgments.expert, judgments.crowd, matrices)
    own, best = text_agreement_section(pairs, counts).tables
    assert [name for name, _ in own.groups] == ["", OWN]
    assert len(best.rows) == 4
