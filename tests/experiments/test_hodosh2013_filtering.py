"""What the filters remove and lose, counted by loops."""

from itertools import pairwise

import numpy as np
import pytest
from judged_pools import make_judgments, make_pool

from kernelcore.evaluation.caption_metrics import bleu_tokens, rouge_tokens, unigram_bleu
from kernelcore.experiments.hodosh2013.filtering import (
    filter_section,
)
from kernelcore.experiments.hodosh2013.judged import text_matrices


@pytest.fixture(scope="module")
def pool():
    return make_pool(15)


@pytest.fixture(scope="module")
def judgments(pool):
    return make_judgments(pool, 200)


@pytest.fixture(scope="module")
def matrices(pool):
    return text_matrices(pool)


def share(flags):
    return f"{100 * np.mean(flags):.1f}" if len(flags) else "-"


def test_the_curve_counts_removed_and_lost_pairs(pool, judgments, matrices):
    (curve,) = filter_section(pool, judgments, matrices).tables
    for start, tokenize in ((1, rouge_tokens), (8, bleu_tokens)):
        scores = {
            (i, j): unigram_bleu([caption], [own], tokenize=tokenize)[0, 0]
            for i, own in enumerate(pool.all_captions)
            for j, caption in enumerate(pool.captions)
        }
        for threshold in (0.2, 0.4):
            row = next(cells for cells in curve.rows if cells[0] == f"{threshold:.2f}")
            removed = {pair for pair, score in scores.items() if score < threshold}
            expected = [share([pair in removed for pair in scores])]
            for of, least in (("expert", 3), ("expert", 4), ("crowd", 0.5)):
                one = getattr(judgments, of)
                pairs = zip(one.images, one.captions, one.scores, strict=True)
                lost = [(i, j) in removed for i, j, score in pairs if score >= least and i != j]
                expected.append(share(lost))
            assert list(row[start : start + 4]) == expected
            if start == 1:
                crowd = judgments.crowd
                pairs = zip(crowd.images, crowd.captions, crowd.scores, strict=True)
                seen = [score for i, j, score in pairs if (i, j) in removed]
                assert row[5] == str(len(seen))
                assert row[6] == share([score == 0 for score in seen])
                assert row[7] == share([score < 0.5 for score in seen])
    n_good = [
        int(np.sum((of.scores >= least) & (of.images != of.captions)))
        for of, least in (
            (judgments.expert, 3),
            (judgments.expert, 4),
            (judgments.crowd, 0.5),
        )
    ]
    assert n_good[0] < np.sum(judgments.expert.scores >= 3)  # own captions are among the pairs
    assert f"225 pairs, of which {', '.join(map(str, n_good))} are right" in curve.caption


def test_pairs_with_common_words_are_counted(pool, judgments, matrices):
    (curve,) = filter_section(pool, judgments, matrices).tables
    n_words = n_bigrams = 0
    for own in pool.all_captions:
        words = {word for text in own for word in bleu_tokens(text)}
        bigrams = {pair for text in own for pair in pairwise(bleu_tokens(text))}
        for caption in pool.captions:
            tokens = bleu_tokens(caption)
            n_words += any(token in words for token in tokens)
            n_bigrams += any(pair in bigrams for pair in pairwise(tokens))
    assert f"{100 * n_words / 225:.1f} % of all pairs share a word" in curve.caption
    assert f"{100 * n_bigrams / 225:.1f} % two words in a row" in curve.caption
