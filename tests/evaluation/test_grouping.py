import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcore.evaluation import compact_letters, evaluate, tie_groups
from kernelcore.evaluation.grouping import _marks
from kernelcore.evaluation.significance import fisher_randomization, holm, mcnemar

N = 60


@pytest.fixture(scope="module")
def systems():
    rng = np.random.default_rng(0)
    gains = {"weak": 1.0, "good": 3.0, "fair": 1.6, "twin": 3.1}
    return [
        evaluate(rng.normal(size=(N, N)) + gain * np.eye(N), ks=(1, 5), system=name)
        for name, gain in gains.items()
    ]


def symmetric(flags, n):
    different = np.zeros((n, n), bool)
    different[np.triu_indices(n, 1)] = flags
    return different | different.T


@given(
    st.integers(1, 9).flatmap(
        lambda n: st.lists(
            st.booleans(), min_size=n * (n - 1) // 2, max_size=n * (n - 1) // 2
        ).map(lambda flags: symmetric(flags, n))
    )
)
@settings(max_examples=300, deadline=None)
def test_two_share_a_letter_exactly_where_they_do_not_differ(different):
    letters = compact_letters(different)
    marks = [_marks(text) for text in letters]
    n = len(different)
    for i, j in itertools.combinations(range(n), 2):
        assert bool(marks[i] & marks[j]) == (not different[i, j])
    assert all(marks)
    groups = {
        letter: frozenset(i for i in range(n) if letter in marks[i])
        for letter in set().union(*marks)
    }
    for group, other in itertools.permutations(groups.values(), 2):
        assert not group <= other  # no letter says what another one says
    firsts = [min(groups[letter]) for letter in sorted(groups)]
    assert firsts == sorted(firsts)


def test_letters_go_on_after_z():
    letters = compact_letters(~np.eye(30, dtype=bool))
    assert letters[:3] == ["a", "b", "c"]
    assert letters[25:28] == ["z", "a2", "b2"]
    assert _marks("za2b") == {"z", "a2", "b"}


def test_the_number_of_letters_stays_small_where_groups_explode():
    """Every system differs from one other: 2**20 groups, which are not all needed."""
    different = symmetric(np.zeros(780, bool), 40)
    for i in range(0, 40, 2):
        different[i, i + 1] = different[i + 1, i] = True
    assert len(set().union(*map(_marks, compact_letters(different)))) <= 780


@pytest.mark.parametrize(
    ("different", "error", "match"),
    [
        (np.zeros((2, 2)), TypeError, "different must hold booleans, got dtype float64"),
        (np.zeros((2, 3), bool), ValueError, r"square matrix, got shape \(2, 3\)"),
        (np.zeros((0, 0), bool), ValueError, "square matrix"),
        (np.array([[False, True], [False, False]]), ValueError, "symmetric"),
        (np.eye(2, dtype=bool), ValueError, "False on the diagonal"),
    ],
)
def test_refuses_what_are_no_pairs(different, error, match):
    with pytest.raises(error, match=match):
        compact_letters(different)


def test_p_values_are_those_of_the_paired_tests_corrected_for_all_pairs(systems):
    names = ["R@1", "MRR", "median rank", "nDCG@5"]
    groups = tie_groups(systems, metrics=names, n_reassignments=200, rng=0)
    assert groups.systems == ("weak", "good", "fair", "twin")
    assert [(m.task, m.name) for m in groups.metrics] == [
        (task, name) for task in ("annotation", "search") for name in names
    ]
    ranks = np.stack([result.annotation.ranks for result in systems])
    pairs = np.triu_indices(4, 1)
    first, median = groups.metrics[0], groups.metrics[2]
    expected = [mcnemar(ranks[j], ranks[i], k=1).p_value for i, j in zip(*pairs, strict=True)]
    assert first.p_values[pairs].tolist() == expected
    assert first.adjusted_p_values[pairs].tolist() == holm(expected).tolist()
    assert (first.p_values == first.p_values.T).all()
    assert (first.adjusted_p_values.diagonal() == 1).all()
    assert first.values.tolist() == [result.annotation.recall[1] for result in systems]
    assert median.values.tolist() == [result.annotation.median_rank for result in systems]
    exact = tie_groups(systems, metrics=["mean rank"], n_reassignments=200, rng=3)
    again = fisher_randomization(
        ranks[1:], ranks[0], n_reassignments=200, rng=np.random.default_rng(3)
    )
    assert exact.metrics[0].p_values[0, 1:].tolist() == again.p_value.tolist()


def test_letters_and_neighbours_follow_the_order_of_the_metric(systems):
    groups = tie_groups(systems)
    first = groups.metrics[0]
    assert [m.name for m in groups.metrics] == ["R@1", "R@5"] * 2
    best = int(np.argmax(first.values))
    assert "a" in first.letters[best]
    for i, j in itertools.combinations(range(4), 2):
        shares = bool(_marks(first.letters[i]) & _marks(first.letters[j]))
        assert shares == (first.adjusted_p_values[i, j] > 0.05)
    order = np.argsort(-first.values, kind="stable")
    tied = sum(first.adjusted_p_values[i, j] > 0.05 for i, j in itertools.pairwise(order))
    assert first.n_tied_neighbours == tied
    assert f"annotation R@1 {tied} of 3" in str(groups)
    assert "60 images, 60 captions" in str(groups)
    assert all(m.letters == ("a",) * 4 for m in tie_groups(systems, alpha=0.0).metrics)
    by_rank = tie_groups(systems, metrics=["mean rank"], n_reassignments=99, rng=0).metrics[0]
    assert "a" in by_rank.letters[int(np.argmin(by_rank.values))]


def test_prints_in_every_format(systems):
    groups = tie_groups(systems)
    table = groups.to_table()
    assert dict(table.superscripts)[(1, 1)] == groups.metrics[0].letters[1]
    assert groups.to_markdown() == table.to_markdown()
    assert groups.to_latex() == table.to_latex()
    assert groups._repr_html_() == table.to_html()
    pytest.importorskip("pandas")
    frame = groups.to_frame()
    assert list(frame.columns) == ["system", "task", "metric", "value", "letters"]
    assert len(frame) == 16


def test_refuses_systems_that_do_not_belong_together(systems):
    with pytest.raises(TypeError, match="systems must hold RetrievalResult objects, got str"):
        tie_groups(["a", "b"])
    with pytest.raises(ValueError, match="systems must be at least two, got 1"):
        tie_groups(systems[:1])
    with pytest.raises(ValueError, match="got 'good' twice"):
        tie_groups([systems[1], systems[1]])
    with pytest.raises(ValueError, match="metrics must be one of 'R@1', 'R@5'"):
        tie_groups(systems, metrics=["R@10"])
    with pytest.raises(ValueError, match="metrics must be different names, at least one"):
        tie_groups(systems, metrics=[])
    with pytest.raises(ValueError, match="alpha must be a number <= 1"):
        tie_groups(systems, alpha=2)
