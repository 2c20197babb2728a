"""Ranks over pairs of blocks equal those of one machine, for every tie rule."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernelcore
from kernelcore.distributed import evaluate, streamed_ranks, write_rows
from kernelcore.evaluation import streamed_ranks as on_one_machine


def drawn(rng, n, n_columns, dtype):
    """Vectors of few values, so that many scores are equal."""
    values = rng.integers(-2, 3, size=(n, n_columns))
    return (values + 2 * (dtype == np.uint8)).astype(dtype)


@settings(max_examples=12)
@given(
    seed=st.integers(0, 1000),
    block_rows=st.integers(1, 40),
    options=st.fixed_dictionaries(
        {
            "similarity": st.sampled_from(["cosine", "dot"]),
            "ties": st.sampled_from(["mean", "min", "max", "ordinal"]),
        }
    ),
    dtypes=st.tuples(*[st.sampled_from([np.float16, np.float32, np.float64, np.uint8])] * 2),
)
def test_ranks_are_those_of_one_machine(tmp_path_factory, seed, block_rows, options, dtypes):
    rng = np.random.default_rng(seed)
    n_images = int(rng.integers(1, 12))
    owner = np.concatenate([np.arange(n_images), rng.integers(0, n_images, 20)])
    rng.shuffle(owner)
    images = drawn(rng, n_images, 3, dtypes[0])
    captions = drawn(rng, len(owner), 3, dtypes[1])
    folder = tmp_path_factory.mktemp("ranks")
    found = streamed_ranks(
        images, captions, owner, store=folder, block_rows=block_rows, n_threads=1, **options
    )
    expected = on_one_machine(images, captions, owner, **options)
    np.testing.assert_array_equal(found.annotation, expected.annotation)
    np.testing.assert_array_equal(found.search, expected.search)


def test_all_measures_are_those_of_evaluate(tmp_path):
    rng = np.random.default_rng(0)
    images, captions = rng.normal(size=(30, 6)), rng.normal(size=(90, 6))
    owner = np.repeat(np.arange(30), 3)
    labels = {"system": "ours", "dataset": "drawn"}
    found = evaluate(
        write_rows(tmp_path / "a", images),
        str(tmp_path / "b.npy") if np.save(tmp_path / "b.npy", captions) is None else "",
        tmp_path / "s",
        caption_image=owner,
        block_rows=17,
        **labels,
    )
    expected = kernelcore.evaluate(
        image_vectors=images, caption_vectors=captions, caption_image=owner, **labels
    )
    assert found.to_json() == expected.to_json()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"caption_vectors": np.zeros((4, 2))}, "caption_vectors must have as many dimensions"),
        ({"caption_image": [0, 0, 0, 9]}, "caption_image must"),
        ({"caption_image": None}, "caption_image must be given"),
        ({"image_vectors": np.full((2, 3), np.nan)}, "image_vectors must be finite"),
        ({"similarity": "l2"}, "similarity must be"),
        ({"ties": "none"}, "ties must be"),
        ({"block_rows": 0}, "block_rows must be"),
    ],
)
def test_bad_input_is_named(tmp_path, changes, message):
    given = {
        "image_vectors": np.ones((2, 3)),
        "caption_vectors": np.ones((4, 3)),
        "caption_image": [0, 0, 1, 1],
    } | changes
    with pytest.raises(ValueError, match=message):
        streamed_ranks(**given, store=tmp_path / "s")


def test_files_with_nan_are_named_by_the_task(tmp_path):
    from kernelcore.distributed import PiecesFailedError

    vectors = np.ones((4, 3))
    vectors[2, 1] = np.nan
    np.save(tmp_path / "a.npy", vectors)
    with pytest.raises(
        PiecesFailedError, match=r"image_vectors must be finite, got nan at \[2, 1\]"
    ):
        streamed_ranks(tmp_path / "a.npy", np.ones((4, 3)), store=tmp_path / "s", block_rows=2)


def test_products_out_of_range_are_refused(tmp_path):
    from kernelcore.distributed import PiecesFailedError

    huge = np.full((2, 3), 1e30, np.float32)
    with pytest.raises(PiecesFailedError, match="must have products within float32"):
        streamed_ranks(huge, huge, store=tmp_path / "s", similarity="dot")
