import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

from kernelcore.captions import EncodedCaptions
from kernelcore.lexical import ibm1, ibm2
from kernelcore.reference import language as by_definition

N_WORDS = 6
SENTENCE = st.lists(st.integers(0, N_WORDS - 1), max_size=5)
PAIRS = st.lists(st.tuples(SENTENCE, SENTENCE), min_size=1, max_size=8).filter(
    lambda pairs: any(source and target for source, target in pairs)
)


def encode(pairs):
    return (
        EncodedCaptions.from_lists([[side] for side in sides], n_words=N_WORDS)
        for sides in zip(*pairs, strict=True)
    )


def assert_equal(model, expected):
    probabilities, history = expected
    table = model.probabilities.toarray()
    for (f, e), probability in probabilities.items():
        row = N_WORDS if f is None else f
        assert table[row, e] == pytest.approx(probability, abs=1e-9)
        table[row, e] = 0
    assert not table.any()
    np.testing.assert_allclose(model.log_likelihood, history, rtol=1e-9, atol=1e-9)


@given(PAIRS, st.integers(1, 4))
def test_model_1_equals_the_reference(pairs, n_iterations):
    model = ibm1(*encode(pairs), n_iterations=n_iterations)
    assert_equal(model, by_definition.ibm1(pairs, n_iterations))


@given(PAIRS, st.integers(1, 3), st.integers(0, 2))
def test_model_2_equals_the_reference(pairs, n_iterations, n_first):
    model = ibm2(*encode(pairs), n_iterations=n_iterations, n_model1_iterations=n_first)
    assert_equal(model, by_definition.ibm2(pairs, n_iterations, n_first))


@given(PAIRS, st.sampled_from([ibm1, ibm2]))
def test_the_likelihood_never_falls_and_rows_add_up_to_one(pairs, train):
    model = train(*encode(pairs), n_iterations=20)
    gains = np.diff(model.log_likelihood)
    # Near a likelihood of 1, a few units of rounding of probabilities near 1.
    assert (gains >= -1e-9 * np.abs(model.log_likelihood[1:]) - 1e-12).all()
    rows = model.probabilities.sum(axis=1)
    seen = np.diff(model.probabilities.indptr) > 0
    np.testing.assert_allclose(rows[seen], 1)
    np.testing.assert_array_equal(rows[~seen], 0)
    assert (model.probabilities.data >= 0).all()


def random_pairs(n_pairs, n_words, seed):
    rng = np.random.default_rng(seed)
    return [
        tuple(rng.integers(0, n_words, rng.integers(1, 9)).tolist() for _ in range(2))
        for _ in range(n_pairs)
    ]


@pytest.mark.parametrize("model", [1, 2])
def test_nltk_agrees(model):
    translate = pytest.importorskip("nltk.translate")
    # NLTK sums over all occurrences of a target word, so none may repeat in a sentence
    pairs = [(s, list(dict.fromkeys(t))) for s, t in random_pairs(40, N_WORDS, seed=5)]
    corpus = [
        translate.AlignedSent([f"t{e}" for e in t], [f"s{f}" for f in s]) for s, t in pairs
    ]
    if model == 1:
        ours = ibm1(*encode(pairs)).probabilities.toarray()
        table = translate.IBMModel1(corpus, 5).translation_table
    else:  # theirs starts with twice as many iterations of model 1
        ours = ibm2(*encode(pairs), n_model1_iterations=10).probabilities.toarray()
        table = translate.IBMModel2(corpus, 5).translation_table
    for e in range(N_WORDS):
        for f in range(N_WORDS):
            assert ours[f, e] == pytest.approx(table[f"t{e}"][f"s{f}"], abs=1e-6)
        assert ours[N_WORDS, e] == pytest.approx(table[f"t{e}"][None], abs=1e-6)


def test_sil_thot_agrees():
    alignment = pytest.importorskip("thot.alignment")
    pairs = random_pairs(200, N_WORDS, seed=6)
    peer = alignment.Ibm1AlignmentModel()
    for source, target in pairs:
        peer.add_sentence_pair([f"s{f}" for f in source], [f"t{e}" for e in target], 1)
    peer.start_training()
    for _ in range(5):
        peer.train()
    peer.end_training()
    ours = ibm1(*encode(pairs), n_iterations=5).probabilities.toarray()
    for f in range(N_WORDS):
        for e in range(N_WORDS):
            theirs = peer.translation_prob(
                peer.get_src_word_index(f"s{f}"), peer.get_trg_word_index(f"t{e}")
            )
            assert ours[f, e] == pytest.approx(theirs, abs=1e-4)


def test_a_word_seen_many_times_is_told_from_its_company():
    # "0 1" / "0 1" alone leaves everything open; "0" / "0" settles it
    pairs = [([0, 1], [0, 1]), ([0], [0])]
    table = ibm1(*encode(pairs), n_iterations=50).probabilities.toarray()
    assert table[0, 0] > 0.99
    assert table[1, 1] > 0.95


def test_model_2_learns_positions():
    # every word translates the one at the same place; lengths alone do not tell
    pairs = [([0, 1], [2, 3]), ([1, 0], [3, 2]), ([0, 4], [2, 5])]
    table = ibm2(*encode(pairs), n_iterations=30).probabilities.toarray()
    assert table[1, 3] > 0.99
    assert table[4, 5] > 0.99


def test_many_iterations_do_not_divide_by_zero():
    pairs = random_pairs(30, N_WORDS, seed=7)
    model = ibm2(*encode(pairs), n_iterations=3_000)
    assert np.isfinite(model.probabilities.data).all()
    assert np.isfinite(model.log_likelihood).all()


def test_progress_counts_iterations():
    steps = []
    pairs = random_pairs(5, N_WORDS, seed=8)
    ibm1(*encode(pairs), n_iterations=2, progress=lambda *step: steps.append(step))
    ibm2(
        *encode(pairs),
        n_iterations=1,
        n_model1_iterations=2,
        progress=lambda *step: steps.append(step),
    )
    assert steps == [(1, 2), (2, 2), (1, 3), (2, 3), (3, 3)]


def test_bad_input_is_named():
    words = EncodedCaptions.from_lists([[[0, 1]], [[1]]])
    with pytest.raises(ValueError, match="equally many captions, got 2 and 1"):
        ibm1(words, words.select([0]))
    refuses(ValueError, "source", ibm1, EncodedCaptions.from_lists([[[-1]], [[0]]]), words)
    refuses(TypeError, "target", ibm2, words, [[0]])
    refuses(ValueError, "n_iterations", ibm1, words, words, n_iterations=0)
    refuses(ValueError, "n_model1_iterations", ibm2, words, words, n_model1_iterations=-1)
    empty = EncodedCaptions.from_lists([[[]], [[0]]])
    with pytest.raises(ValueError, match="a pair without an empty side"):
        ibm1(empty, EncodedCaptions.from_lists([[[0]], [[]]]))
