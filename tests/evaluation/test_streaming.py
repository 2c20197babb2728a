import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcore import _core
from kernelcore.evaluation import embedding_scores, streamed_ranks
from kernelcore.evaluation.ranks import TIE_RULES, retrieval_ranks
from kernelcore.reference.evaluation import gold_ranks as reference_ranks

DTYPES = [np.float32, np.float64]


@given(
    seed=st.integers(0, 2**32 - 1), n_images=st.integers(1, 13), extra=st.integers(0, 12),
    dtypes=st.tuples(st.sampled_from(DTYPES), st.sampled_from(DTYPES)),
    ties=st.sampled_from(TIE_RULES),
)  # fmt: skip
@settings(max_examples=80, deadline=None)
def test_equals_the_reference_on_whole_numbers(seed, n_images, extra, dtypes, ties):
    """Their products are exact and often equal."""
    rng = np.random.default_rng(seed)
    images = rng.integers(-2, 3, (n_images, 3))
    captions = rng.integers(-2, 3, (n_images + extra, 3))
    owner = rng.permutation(np.r_[np.arange(n_images), rng.integers(0, n_images, extra)])
    scores = images @ captions.T
    ranks = streamed_ranks(
        images.astype(dtypes[0]), captions.astype(dtypes[1]), owner, similarity="dot",
        ties=ties, n_threads=3,
    )  # fmt: skip
    own = [np.flatnonzero(owner == image).tolist() for image in range(n_images)]
    assert ranks.annotation == pytest.approx(reference_ranks(scores.tolist(), own, ties=ties))
    expected = reference_ranks(scores.T.tolist(), [[image] for image in owner], ties=ties)
    assert ranks.search == pytest.approx(expected)


def vectors(dtype, n_dimensions=33):
    """More than one tile each way, and vectors that come twice, far apart."""
    rng = np.random.default_rng(n_dimensions)
    images = rng.standard_normal((700, n_dimensions)).astype(dtype)
    captions = rng.standard_normal((1100, n_dimensions)).astype(dtype)
    captions[600:] = captions[rng.integers(0, 600, 500)]
    images[650:] = images[:50]
    return images, captions, rng.permutation(np.arange(1100) % 700)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("similarity", ["cosine", "dot"])
@pytest.mark.parametrize("ties", TIE_RULES)
def test_equals_the_ranks_of_the_matrix(dtype, similarity, ties):
    images, captions, owner = vectors(dtype)
    scores = embedding_scores(images, captions, similarity=similarity)
    expected = retrieval_ranks(scores, owner, ties=ties)
    for n_threads in (1, 4):
        options = {"similarity": similarity, "ties": ties, "n_threads": n_threads}
        ranks = streamed_ranks(images, captions, owner, **options)
        assert (ranks.annotation == expected.annotation).all()
        assert (ranks.search == expected.search).all()


@pytest.mark.parametrize("isa", _core.supported_isas())
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_dimensions", [1, 7, 64, 300, 513, 1024])
def test_a_score_depends_on_its_two_vectors_alone(dtype, n_dimensions, isa):
    """Not on their positions, on the company they are in, or on the number of threads."""
    before = _core.active_isa()
    try:
        _core.select_isa(isa)
        images, captions, owner = vectors(dtype, n_dimensions)
        whole = embedding_scores(images, captions, similarity="dot", n_threads=2)
        rng = np.random.default_rng(0)
        rows, columns = rng.permutation(700)[:530], rng.permutation(1100)[:20]
        part = embedding_scores(images[rows], captions[columns], similarity="dot", n_threads=1)
        own = np.empty(1100, dtype)
        _core.paired_dot_products(images, captions, owner, own, 2, None)
    finally:
        _core.select_isa(before)
    np.testing.assert_array_equal(part, whole[np.ix_(rows, columns)])
    assert len(np.unique(whole[0])) <= 600
    np.testing.assert_array_equal(own, whole[owner, np.arange(1100)])


@pytest.mark.parametrize("dtype", DTYPES)
def test_scores_are_cosines_or_products(dtype):
    images, captions, _ = vectors(dtype, 100)
    captions[3] = 0
    eps = np.finfo(dtype).eps
    exact = images.astype(np.longdouble) @ captions.astype(np.longdouble).T
    dot = embedding_scores(images, captions, similarity="dot")
    assert dot.dtype == dtype
    lengths = np.linalg.norm(images, axis=1)[:, np.newaxis] * np.linalg.norm(captions, axis=1)
    assert (np.abs(dot - exact) <= 100 * eps * lengths).all()
    cosine = embedding_scores(images, captions)
    assert cosine.dtype == dtype
    assert (cosine[:, 3] == 0).all()
    assert (np.abs(cosine - exact / np.where(lengths > 0, lengths, 1)) <= 100 * eps).all()


def test_same_vectors_on_both_sides():
    images, _, _ = vectors(np.float32, 64)
    captions = images[::-1].copy()
    twice = embedding_scores(images, images)
    np.testing.assert_array_equal(twice, embedding_scores(images, captions)[:, ::-1])
    ranks = streamed_ranks(images[:600], images[:600])
    assert (ranks.annotation == 1).all()
    assert (ranks.search == 1).all()


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_cosines_of_very_long_and_short_vectors(scale):
    images, captions, _ = vectors(np.float64)
    found, expected = (embedding_scores(part, captions) for part in (images * scale, images))
    np.testing.assert_allclose(found, expected, atol=1e-14)
