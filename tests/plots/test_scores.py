"""The matrix of scores."""

import numpy as np
import pytest
from refusals import refuses, refuses_each

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from kernelcore.plots import similarity_matrix

OWNER = [2, 0, 1, 0, 2, 1]
SCORES = np.arange(18, dtype=np.float32).reshape(3, 6)


@pytest.fixture
def ax(figure):
    return figure.subplots()


def frames(ax):
    return [(*patch.get_xy(), patch.get_width(), patch.get_height()) for patch in ax.patches]


def test_captions_stand_image_by_image_and_gold_is_framed(ax):
    similarity_matrix(SCORES, OWNER, ax=ax)
    (image,) = ax.get_images()
    assert image.get_array().tolist() == SCORES[:, [1, 3, 2, 5, 0, 4]].tolist()
    assert frames(ax) == [(-0.5, -0.5, 2, 1), (1.5, 0.5, 2, 1), (3.5, 1.5, 2, 1)]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("caption", "image")


def test_the_first_images_alone_are_shown(ax):
    similarity_matrix(SCORES, OWNER, max_images=2, ax=ax)
    assert ax.get_images()[0].get_array().tolist() == SCORES[:2, [1, 3, 2, 5]].tolist()
    assert frames(ax) == [(-0.5, -0.5, 2, 1), (1.5, 0.5, 2, 1)]


def test_without_owners_the_diagonal_is_gold(ax):
    similarity_matrix(np.eye(50), ax=ax)
    assert frames(ax) == [(i - 0.5, i - 0.5, 1, 1) for i in range(40)]


def test_colours_span_the_percentiles_and_the_bar_names_them(ax):
    scores = np.arange(1000.0).reshape(25, 40)
    similarity_matrix(scores, np.arange(40) % 25, ax=ax)
    (image,) = ax.get_images()
    assert image.get_clim() == tuple(np.percentile(scores, [1, 99]))
    (bar,) = [other for other in ax.figure.axes if other is not ax]
    assert bar.get_ylabel() == "score"


def test_what_is_no_matrix_of_scores_is_refused():
    odd = {
        "scores": [[[np.inf, 0, 0, 0, 0, 0]] * 3, [1, 2], np.zeros((0, 6)), "scores"],
        "caption_image": [[0, 1, 2], [0, 1, 2, 3, 0, 1], [0] * 6],
        "max_images": [0, 2.5],
    }
    refuses_each(
        lambda **options: similarity_matrix(**options, ax=Figure().subplots()),
        odd,
        scores=SCORES,
        caption_image=OWNER,
        max_images=2,
    )
    refuses(ValueError, "caption_image", similarity_matrix, SCORES)
