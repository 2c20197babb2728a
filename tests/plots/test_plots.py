"""What all plots have in common: axes, figures, fonts, colours."""

import numpy as np
import pytest
from legible import assert_contrast, assert_legible
from programs import output_of
from refusals import refuses, refuses_each

pytest.importorskip("matplotlib")

from matplotlib.colors import to_rgb

from kernelcore import plots
from kernelcore.datasets import make_scenes
from kernelcore.errors import NotFittedError
from kernelcore.evaluation import Result, evaluate
from kernelcore.kcca import KCCA
from kernelcore.models import KCCARanker
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
# Each plot: on how many axes, and a call with them.
PLOTS = {
    "similarity_matrix": (1, lambda ax: plots.similarity_matrix(SCORES, ax=ax)),
    "kernel_spectrum": (
        1,
        lambda ax: plots.kernel_spectrum(
            {"photos": linear(ROWS), "captions": linear(OTHERS) + np.eye(N)}, ax=ax,
        )
    ),
    "canonical_correlations": (
        1, lambda ax: plots.canonical_correlations(KCCA_, HELD_OUT, ax=ax),
    ),
    "alignments": (1, lambda ax: plots.alignments(PRODUCTS, FRAGMENTS, ax=ax)),
    "aligned_regions": (
        1, lambda ax: plots.aligned_regions(PHOTO, BOXES, PRODUCTS, FRAGMENTS, ax=ax),
    ),
    "recall_curves": (2, lambda axes: plots.recall_curves(RESULTS, axes=axes)),
    "rank_histogram": (2, lambda axes: plots.rank_histogram(RESULTS, axes=axes)),
    "found_regions": (
        3, lambda axes: plots.found_regions([PHOTO] * 3, BOXES, [3.0, 2.0, 1.0], axes=axes),
    )
}  # fmt: skip
every_plot = pytest.mark.parametrize("name", PLOTS)


def test_every_plot_is_here():
    assert sorted(PLOTS) == plots.__all__


@every_plot
def test_a_plot_returns_the_axes_it_was_given(name, figure, pyplot):
    n, draw = PLOTS[name]
    given = figure.subplots(n)
    for axes in (given,) if n == 1 else (given, list(given), given.reshape(n, 1)):
        assert np.ravel(draw(axes)).tolist() == np.ravel(given).tolist()
    assert pyplot.get_fignums() == []


@every_plot
def test_a_new_figure_is_one_of_pyplot(name, pyplot):
    first = np.ravel(PLOTS[name][1](None))[0]
    assert pyplot.get_fignums() == [1]
    assert pyplot.gcf() is first.figure
    assert_legible(first.figure)


@every_plot
def test_no_text_is_small_or_covered_or_faint(name):
    n, draw = PLOTS[name]
    page = ReportFigure("", "", lambda f: draw(f.subplots(n)), (4.2, n * 3.4))
    figure = page.to_matplotlib("dark")
    assert_legible(figure)
    assert_contrast(figure)


@every_plot
def test_odd_axes_are_refused(name, figure, pyplot):
    for odd in ("axes", 1, np.array([1.0]), figure.subplots(4)):
        refuses(TypeError, r"ax|axes must be \d Axes", PLOTS[name][1], odd)
    refuses(NotFittedError, "fitted", plots.canonical_correlations, KCCA())
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


UNEVEN = evaluate(np.zeros((20, 40)), caption_image=np.r_[np.arange(20), np.zeros(20, int)])
EVEN = evaluate(np.zeros((20, 40)), caption_image=np.arange(40) % 20)
INCOMPARABLE = [
    *([], ["good"], 3, [Result({"links": {"AUC": [0.5]}})]),
    *([EVEN, other] for other in (evaluate(np.eye(20), system="small"), UNEVEN)),
]
K = linear(ROWS[:40])
# A plot, what it draws, and by its argument what it refuses.
# fmt: off
REFUSED = [
    (plots.recall_curves, {"results": EVEN, "max_k": 2}, {
        "results": INCOMPARABLE, "max_k": [1],
    }),
    (plots.rank_histogram, {"results": EVEN}, {"results": INCOMPARABLE}),
    (plots.similarity_matrix, {"scores": np.zeros((3, 6)), "caption_image": [2, 0, 1] * 2}, {
        "scores": [[[np.inf] * 6] * 3, [1, 2], np.zeros((0, 6)), [["a"]]],
        "caption_image": [None, [0, 1, 2], [0, 1, 2, 3, 0, 1], [0] * 6], "max_images": [0, 2.5],
    }),
    (plots.kernel_spectrum, {"kernels": K}, {
        "kernels": [{}, [[1.0, 2.0], [0.0, 1.0]], np.ones((3, 3)), {"words": [[np.nan]]}],
    }),
    (plots.canonical_correlations, {"kcca": KCCA_, "held_out": HELD_OUT}, {
        "kcca": [[0.5], KCCARanker()],
        "held_out": [(K,), (K, K, K), (K, K[:5]), (K[:1], K[:1]), (K[:, :5], K), 3],
    }),
    (plots.alignments, {"products": [[1.0, 1.0]], "fragments": ["dog", "cat"]}, {
        "products": [[[np.nan, 0]], [1.0], np.empty((0, 2))],
        "fragments": [["dog"], [], 3, "dog"],
    }),
    (plots.aligned_regions, {
        "picture": PHOTO, "boxes": BOXES, "products": PRODUCTS, "fragments": FRAGMENTS,
    }, {
        "picture": [PHOTO / 2, PHOTO[0], "a.jpg"], "products": [PRODUCTS * np.nan, [1.0]],
        "boxes": [BOXES[:2], np.zeros((3, 3)), np.full((3, 4), np.inf)],
        "fragments": [FRAGMENTS[:2]],
    }),
    (plots.found_regions, {"pictures": [PHOTO], "boxes": BOXES[:1], "scores": [1.0]}, {
        "pictures": [[], [PHOTO / 2], [PHOTO[0]]], "boxes": [BOXES, np.zeros((0, 4))],
        "scores": [[1.0, 2.0], [np.nan], []],
    }),
]
# fmt: on


@pytest.mark.parametrize(("draw", "usual", "odd"), REFUSED)
def test_what_cannot_be_drawn_is_refused_and_leaves_no_figure(draw, usual, odd, pyplot):
    refuses_each(draw, odd, **usual)
    assert pyplot.get_fignums() == [1]  # of the call that works
