"""What all plots have in common: axes, figures, fonts, colours."""

import numpy as np
import pytest
from legible import assert_contrast, assert_legible
from programs import output_of
from refusals import refuses

pytest.importorskip("matplotlib")

from matplotlib.colors import to_rgb

from kernelcore import plots
from kernelcore.datasets import make_scenes
from kernelcore.evaluation import evaluate
from kernelcore.kcca import KCCA
from kernelcore.plots import _style
from kernelcore.report import ReportFigure

RNG = np.random.default_rng(0)
N = 60
SCENES = make_scenes(12, rng=3, size=(48, 64))
SCORES = RNG.normal(size=(N, N)) + 2 * np.eye(N)
RESULTS = [
    evaluate(SCORES, system="kernel CCA, bags of words"),
    evaluate(SCORES.T + 0.5, system="nearest neighbour"),
    evaluate(RNG.normal(size=(N, N)), system="chance"),
]
ROWS = RNG.normal(size=(N, 5))
OTHERS = ROWS + 0.4 * RNG.normal(size=(N, 5))
PHOTO = SCENES.images[0]
BOXES = [[0, 0, 64, 48], [5, 5, 30, 40], [20, 10, 60, 45]]
FRAGMENTS = ["amod(dog, black)", "nsubj(runs, dog)", "det(dog, a)", "root(runs)"]
PRODUCTS = RNG.normal(size=(3, 4))


def linear(X, Y=None):
    return X @ (X if Y is None else Y).T


KCCA_ = KCCA(regularization=0.1).fit(linear(ROWS[:40]), linear(OTHERS[:40]))
HELD_OUT = linear(ROWS[40:], ROWS[:40]), linear(OTHERS[40:], OTHERS[:40])
ONE = {
    "similarity_matrix": lambda ax: plots.similarity_matrix(SCORES, ax=ax),
    "kernel_spectrum": lambda ax: plots.kernel_spectrum(
        {"photos": linear(ROWS), "captions": linear(OTHERS) + np.eye(N)}, ax=ax
    ),
    "canonical_correlations": lambda ax: plots.canonical_correlations(KCCA_, HELD_OUT, ax=ax),
    "alignments": lambda ax: plots.alignments(PRODUCTS, FRAGMENTS, ax=ax),
    "aligned_regions": lambda ax: plots.aligned_regions(
        PHOTO, BOXES, PRODUCTS, FRAGMENTS, ax=ax
    ),
}
SEVERAL = {
    "recall_curves": (2, lambda axes: plots.recall_curves(RESULTS, axes=axes)),
    "rank_histogram": (2, lambda axes: plots.rank_histogram(RESULTS, axes=axes)),
    "found_regions": (
        3,
        lambda axes: plots.found_regions([PHOTO] * 3, BOXES, [3.0, 2.0, 1.0], axes=axes),
    ),
}
ALL = [*ONE, *SEVERAL]


def report_figure(name, width, height):
    """The plot as a figure of a page."""
    if name in ONE:
        return ReportFigure("", "", lambda f: ONE[name](f.subplots()), (width, height))
    n, draw = SEVERAL[name]
    return ReportFigure("", "", lambda f: draw(f.subplots(n)), (width, n * height))


def test_every_plot_is_here():
    assert sorted(ALL) == plots.__all__


@pytest.mark.parametrize("name", ONE)
def test_a_plot_returns_the_axes_it_was_given(name, figure, pyplot):
    ax = figure.subplots()
    assert ONE[name](ax) is ax
    assert pyplot.get_fignums() == []


@pytest.mark.parametrize("name", SEVERAL)
def test_panels_are_returned_in_their_order(name, figure, pyplot):
    n, draw = SEVERAL[name]
    given = figure.subplots(1, n)
    for axes in (given, list(given), given.reshape(n, 1)):
        returned = draw(axes)
        assert returned.shape == (n,)
        assert returned.tolist() == given.tolist()
    assert pyplot.get_fignums() == []


@pytest.mark.parametrize("name", ALL)
def test_a_new_figure_is_one_of_pyplot(name, pyplot):
    returned = ONE[name](None) if name in ONE else SEVERAL[name][1](None)[0]
    assert pyplot.get_fignums() == [1]
    assert pyplot.gcf() is returned.figure
    assert_legible(returned.figure)


@pytest.mark.parametrize(("theme", "size"), [("light", (4.2, 3.4)), ("dark", (8, 6))])
@pytest.mark.parametrize("name", ALL)
def test_no_text_is_small_or_covered_or_faint(name, theme, size):
    figure = report_figure(name, *size).to_matplotlib(theme)
    assert_legible(figure)
    assert_contrast(figure)


@pytest.mark.parametrize("name", ALL)
def test_odd_axes_are_refused(name, figure, pyplot):
    panels = figure.subplots(4)
    for odd in ("axes", 1, np.array([1.0]), panels):
        draw = ONE[name] if name in ONE else SEVERAL[name][1]
        refuses(TypeError, r"ax|axes must be \d Axes", draw, odd)
    assert pyplot.get_fignums() == []


REFUSED = {
    "recall_curves": lambda: plots.recall_curves([]),
    "rank_histogram": lambda: plots.rank_histogram([]),
    "similarity_matrix": lambda: plots.similarity_matrix([[np.nan]]),
    "kernel_spectrum": lambda: plots.kernel_spectrum([[1.0, 2.0]]),
    "canonical_correlations": lambda: plots.canonical_correlations(KCCA_, [HELD_OUT[0]]),
    "alignments": lambda: plots.alignments(PRODUCTS, []),
    "aligned_regions": lambda: plots.aligned_regions(PHOTO, BOXES[:1], PRODUCTS, FRAGMENTS),
    "found_regions": lambda: plots.found_regions([], np.empty((0, 4)), []),
}


@pytest.mark.parametrize("name", ALL)
def test_a_refused_call_leaves_no_figure(name, pyplot):
    with pytest.raises(ValueError, match="must"):
        REFUSED[name]()
    assert pyplot.get_fignums() == []


def test_matplotlib_is_imported_when_something_is_drawn_and_pyplot_for_new_figures_alone():
    program = (
        "import sys, kernelcore.plots as plots\n"
        "assert 'matplotlib' not in sys.modules\n"
        "from matplotlib.figure import Figure\n"
        "plots.similarity_matrix([[1.0]], ax=Figure().subplots())\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
        "plots.similarity_matrix([[1.0]])\n"
        "assert sys.modules['matplotlib.pyplot'].get_fignums() == [1]\n"
        "print('done')"
    )
    assert output_of(program).strip() == "done"


def test_without_matplotlib_the_extra_is_named():
    program = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import kernelcore.plots as plots\n"
        "try:\n    plots.similarity_matrix([[1.0]])\n"
        "except ImportError as error:\n    print(error)"
    )
    assert 'pip install "kernelcore[plot]' in output_of(program)


def test_lines_differ_in_colours_and_then_in_dashes():
    styles = [tuple(_style.line_style(i).values()) for i in range(24)]
    assert len(set(styles)) == 24
    assert len({colour for colour, _ in styles[:6]}) == 6
    assert _style.line_style(24) == _style.line_style(0)


def test_colours_differ_for_people_who_see_no_red_or_no_green():
    """Distances after the simulations of Viénot, Brettel and Mollon (1999), in linear RGB."""
    red = np.array([[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]])
    green = np.array([[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]])
    colours = np.array([to_rgb(colour) for colour in _style.COLOURS]) ** 2.2
    for blindness in (np.eye(3), red, green):
        seen = np.clip(colours @ blindness.T, 0, 1) ** (1 / 2.2)
        distances = np.linalg.norm(seen[:, None] - seen, axis=2) + np.eye(len(seen))
        assert distances.min() > 0.1


@pytest.mark.parametrize(
    ("end", "numbers"),
    [
        (1, [1]),
        (2, [1, 2]),
        (3, [1, 2, 5]),
        (10, [1, 2, 5, 10]),
        (1014, [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000]),
        (5000, [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000]),
        (5001, [1, 10, 100, 1000, 10000]),
        (1_000_000, [10**power for power in range(7)]),
    ],
)
def test_round_numbers_reach_the_end(end, numbers):
    assert _style.round_numbers(end) == numbers


def test_labels_are_literal_and_wrapped():
    assert _style.literal("_a $x$") == "\u200b_a \\$x\\$"
    lines = _style.label_of("word " * 30).split("\n")
    assert len(lines) > 1
    assert max(map(len, lines)) <= 44


def test_a_legend_has_as_many_columns_as_fit(figure):
    ax = figure.subplots()
    for i in range(5):
        ax.plot([0, 1], label=f"system number {i}")
    _style.legend_below(ax, figure)
    (legend,) = figure.legends
    assert 1 < legend._ncols < 5
    assert legend.get_window_extent().width <= figure.bbox.width
    wider = figure.legend(ncols=legend._ncols + 1)
    assert wider.get_window_extent().width > figure.bbox.width
    wider.remove()
    assert_legible(figure)
    ax.plot([0, 1], label="x" * 200)
    figure.legends.clear()
    _style.legend_below(ax, figure)
    assert figure.legends[0]._ncols == 1
