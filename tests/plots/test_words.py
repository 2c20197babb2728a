"""Words that are similar to a word."""

import pytest
from refusals import refuses_each

pytest.importorskip("matplotlib")

from kernelcore.lexical import WordKernel
from kernelcore.plots import word_neighbors

KERNEL = WordKernel(
    ["bike", "cycle", "$dog", "wheel"],
    [[1, 0.5, -0.2, 0.75], [0.5, 1, 0, 0], [-0.2, 0, 1, 0], [0.75, 0, 0, 1]],
)


@pytest.fixture
def ax(figure):
    return figure.subplots()


def labels(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def test_the_most_similar_word_is_at_the_top(ax):
    word_neighbors(KERNEL, "bike", ax=ax)
    assert labels(ax) == ["wheel", "cycle"]
    (bars,) = ax.containers
    assert [bar.get_width() for bar in bars] == [0.75, 0.5]
    assert [text.get_text() for text in ax.texts] == ["0.75", "0.50"]
    low, high = ax.get_ylim()
    assert low > high
    assert ax.get_title() == "Words similar to “bike”"
    assert ax.get_xlim()[0] == 0
    assert ax.get_xlim()[1] > 1


def test_k_words_are_shown(ax):
    word_neighbors(KERNEL, "bike", k=1, ax=ax)
    assert labels(ax) == ["wheel"]


def test_a_word_that_is_like_no_other(ax):
    word_neighbors(KERNEL, "$dog", ax=ax)
    assert labels(ax) == []
    assert [text.get_text() for text in ax.texts] == ["none"]
    assert ax.get_title() == r"Words similar to “\$dog”"
    ax.figure.draw_without_rendering()


def test_what_is_no_word_of_a_kernel_is_refused(figure):
    odd = {"kernel": [[[1.0]], {"bike": "cycle"}], "word": ["car", 3], "k": [0, 1.5]}
    axes = figure.subplots()
    refuses_each(word_neighbors, odd, kernel=KERNEL, word="bike", k=2, ax=axes)
