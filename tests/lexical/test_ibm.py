"""IBM models 1 and 2, against the reference, NLTK and SIL Thot."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcore.captions import EncodedCaptions
from kernelcore.lexical import ibm1, ibm2
from kernelcore.reference import language as by_definition

N_WORDS = 6
SENTENCE = st.lists(st.integers(0, N_WORDS - 1), max_size=5)
PAIRS = st.lists(st.tuples(SENTENCE, SENTENCE), min_size=1, max_size=8).filter(
    lambda pairs: any(source and target for source, target in pairs)
)


def encode(pairs):
    images = ([[side] for side in sides] for sides in zip(*pairs, strict=True))
    return (EncodedCaptions.from_lists(own, n_words=N_WORDS) for own in images)


def assert_equal(model, expected):
    probabilities, history = expected
    table = model.probabilities.toarray()
    for (f, e), probability in probabilities.items():
        row = N_WORDS if f is None else f
        assert table[row, e] == pytest.approx(probability, abs=1e-9)
        table[row, e] = 0
    assert not table.any()
    np.testing.assert_allclose(model.log_likelihood, history, rtol=1e-9, atol=1e-9)


@given(PAIRS, st.integers(1, 4), st.integers(0, 2))
def test_both_models_equal_the_reference(pairs, n, n_first):
    model = ibm1(*encode(pairs), n_iterations=n)
    assert_equal(model, by_definition.ibm1(pairs, n))
    model = ibm2(*encode(pairs), n_iterations=n, n_model1_iterations=n_first)
    assert_equal(model, by_definition.ibm2(pairs, n, n_first))


def random_pairs(n_pairs, n_words, seed):
    rng = np.random.default_rng(seed)
    sizes = [[rng.integers(1, 9) for _ in range(2)] for _ in range(n_pairs)]
    return [tuple(rng.integers(0, n_words, n).tolist() for n in both) for both in sizes]


@pytest.mark.parametrize("model", [1, 2])
def test_nltk_agrees(model):
    translate = pytest.importorskip("nltk.translate")
    # NLTK sums over all occurrences of a target word, so none may repeat in a sentence
    pairs = [(s, list(dict.fromkeys(t))) for s, t in random_pairs(40, N_WORDS, seed=5)]
    texts = [([f"t{e}" for e in t], [f"s{f}" for f in s]) for s, t in pairs]
    corpus = [translate.AlignedSent(*text) for text in texts]
    if model == 1:
        ours = ibm1(*encode(pairs)).probabilities.toarray()
        table = translate.IBMModel1(corpus, 5).translation_table
    else:  # theirs starts with twice as many iterations of model 1
        ours = ibm2(*encode(pairs), n_model1_iterations=10).probabilities.toarray()
        table = translate.IBMModel2(corpus, 5).translation_table
    sources = [*(f"s{f}" for f in range(N_WORDS)), None]
    theirs = [[table[f"t{e}"][source] for e in range(N_WORDS)] for source in sources]
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6)


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
    sources = [peer.get_src_word_index(f"s{f}") for f in range(N_WORDS)]
    targets = [peer.get_trg_word_index(f"t{e}") for e in range(N_WORDS)]
    theirs = [[peer.translation_prob(f, e) for e in targets] for f in sources]
    np.testing.assert_allclose(ours[:N_WORDS], theirs, rtol=0, atol=1e-4)


def test_many_iterations_do_not_divide_by_zero():
    pairs = random_pairs(30, N_WORDS, seed=7)
    model = ibm2(*encode(pairs), n_iterations=3_000)
    assert np.isfinite(model.probabilities.data).all()
    assert np.isfinite(model.log_likelihood).all()


def test_progress_counts_iterations():
    steps, pairs = [], random_pairs(5, N_WORDS, seed=8)
    told = {"progress": lambda *step: steps.append(step)}
    ibm1(*encode(pairs), n_iterations=2, **told)
    ibm2(*encode(pairs), n_iterations=1, n_model1_iterations=2, **told)
    assert steps == [(1, 2), (2, 2), (1, 3), (2, 3), (3, 3)]
