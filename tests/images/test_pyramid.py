import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcore.images import SpatialHistograms
from kernelcore.images.pyramid import count_words, grid_cells
from kernelcore.reference.images import count_words as reference_counts

FOUR = np.array([[[3, 1]]], np.uint16)


def random_histograms(n_images, *, n_words=5, n_levels=3, seed=0, high=9):
    rng = np.random.default_rng(seed)
    finest = rng.integers(1, high, (n_images, 4 ** (n_levels - 1), n_words))
    return SpatialHistograms.from_finest(finest, n_levels)


@given(
    height=st.integers(1, 40),
    width=st.integers(1, 40),
    step=st.integers(1, 5),
    n_levels=st.integers(1, 4),
    seed=st.integers(0, 99),
)
@settings(max_examples=60, deadline=None)
def test_counts_equal_the_reference(height, width, step, n_levels, seed):
    y, x = np.arange(0, height, step), np.arange(0, width, step)
    words = np.random.default_rng(seed).integers(0, 3, (len(y), len(x)))
    cells = grid_cells(y, x, (height, width), n_levels)
    finest = count_words(words, cells, n_words=3, n_levels=n_levels)
    histograms = SpatialHistograms.from_finest(finest[None], n_levels)
    expected = reference_counts(words, y, x, (height, width), n_words=3, n_levels=n_levels)
    assert (histograms.counts[0] == expected).all()
    assert histograms.totals == [words.size]


def test_levels_tile_the_image():
    histograms = random_histograms(4, n_levels=4)
    assert histograms.n_cells == 85
    for level in np.split(histograms.counts, [1, 5, 21], axis=1):
        assert (level.sum(axis=(1, 2)) == histograms.totals).all()


def test_cells_stand_in_row_major_order():
    finest = np.zeros((1, 16, 1), int)
    finest[0, [2, 7], 0] = 5, 6  # rows 0 and 1, columns 2 and 3: the cell at the top right
    counts = SpatialHistograms.from_finest(finest, 3).counts[0, :, 0]
    assert counts.tolist() == [11, 0, 11, 0, 0, 0, 0, 5, 0, 0, 0, 0, 6, *[0] * 8]


@pytest.mark.parametrize(("total", "dtype"), [(65535, np.uint16), (65536, np.uint32)])
def test_narrowest_type_that_holds_the_totals(total, dtype):
    assert SpatialHistograms([[[total]]], [total], 1).counts.dtype == dtype
    assert SpatialHistograms.from_finest([[[total]]], 1).counts.dtype == dtype
    both = SpatialHistograms([[[1]], [[total]]], [1, total], 1)
    assert both.counts.dtype == dtype
    assert both.counts.ravel().tolist() == [1, total]
    assert both.select([0]).counts.dtype == np.uint16


@pytest.mark.parametrize(
    ("counts", "totals", "n_levels", "error", "match"),
    [
        (FOUR, [5], 1, ValueError, "level 0 and a total of 5 for the image at position 0"),
        (FOUR * 0, [0], 1, ValueError, "totals must lie between 1 .* got values from 0 to 0"),
        (FOUR, [-4], 1, ValueError, "totals must lie between"),
        (FOUR, [2**32], 1, ValueError, "totals must lie between"),
        (FOUR, [4, 4], 1, ValueError, "totals must have one entry per image"),
        (FOUR, [4], 2, ValueError, "5 cells for n_levels=2"),
        (FOUR, [4], 0, ValueError, "n_levels must be an integer >= 1"),
        (FOUR, [4], 9, ValueError, "n_levels must be an integer <= 8"),
        (FOUR, [4], 1.0, TypeError, "n_levels must be an integer"),
        (FOUR, [4.0], 1, TypeError, "totals must hold integers"),
        (FOUR * 1.0, [4], 1, TypeError, "counts must hold integers"),
        (FOUR * np.nan, [4], 1, TypeError, "counts must hold integers"),
        (FOUR[0], [4], 1, ValueError, "counts must be a 3-D array"),
        ([[[5, -1]]], [4], 1, ValueError, "counts must fit into uint32, got values from -1"),
        ([[[1], [1, 2]]], [4], 1, ValueError, "rows of unequal length"),
        ([[[2, 2], [1, 1], [2, 0], [0, 0], [0, 1]]], [4], 2, ValueError, "5 points at level 1"),
    ],
)
def test_bad_input(counts, totals, n_levels, error, match):
    with pytest.raises(error, match=match):
        SpatialHistograms(counts, totals, n_levels)


def test_bad_finest_level():
    with pytest.raises(ValueError, match=r"4 cells at the finest of n_levels=2 .* \(1, 3, 1\)"):
        SpatialHistograms.from_finest([[[1], [1], [1]]], 2)


def test_save_and_load(tmp_path):
    histograms = random_histograms(3, n_levels=2, high=70000)
    path = tmp_path / "histograms.safetensors"
    histograms.save(path)
    loaded = SpatialHistograms.load(path)
    assert loaded.counts.dtype == np.uint32
    assert loaded.counts.tobytes() == histograms.counts.tobytes()
    assert loaded.totals.tobytes() == histograms.totals.tobytes()
    assert loaded.n_levels == 2
    with pytest.raises(FileNotFoundError, match="no such file"):
        SpatialHistograms.load(tmp_path / "absent")


@pytest.mark.parametrize("n_levels", [1, 2, 3, 4])
def test_mirrored_histograms_are_those_of_the_mirrored_words(n_levels):
    words = np.random.default_rng(n_levels).integers(0, 6, (16, 24))
    cells = grid_cells(np.arange(16), np.arange(24), words.shape, n_levels)
    finest = [
        count_words(each, cells, n_words=6, n_levels=n_levels)
        for each in (words, words[:, ::-1])
    ]
    original, mirror = (
        SpatialHistograms.from_finest(counts[np.newaxis], n_levels) for counts in finest
    )
    np.testing.assert_array_equal(original.mirrored().counts, mirror.counts)
    np.testing.assert_array_equal(mirror.mirrored().counts, original.counts)


def test_concatenate():
    histograms = random_histograms(6)
    parts = [histograms.select(indices) for indices in ([0, 1], [], [2, 3, 4, 5])]
    joined = SpatialHistograms.concatenate(parts)
    assert (joined.counts == histograms.counts).all()
    assert (joined.totals == histograms.totals).all()
    with pytest.raises(ValueError, match="at least one"):
        SpatialHistograms.concatenate([])
    with pytest.raises(TypeError, match=r"parts must hold SpatialHistograms, got 3 at \[1\]"):
        SpatialHistograms.concatenate([histograms, 3])
    for other in (random_histograms(1, n_words=4), random_histograms(1, n_levels=2)):
        with pytest.raises(ValueError, match=r"parts must agree .* at \[1\]"):
            SpatialHistograms.concatenate([histograms, other])
