"""IBM models against sil-thot and NLTK: time of training on the same sentence pairs.

Sentences are drawn from a vocabulary with the frequencies of natural text (Zipf's law), the
target a noisy word by word translation of the source. No word repeats in a sentence, because
NLTK counts repeated ones otherwise. Handing the sentences to a library counts for all of them.
"""

import data
import numpy as np
import pytest
from results import target

from kernelcore.captions import EncodedCaptions
from kernelcore.lexical import ibm1, ibm2
from kernelcore.reference import language as reference

N_PAIRS, N_WORDS, N_ITERATIONS = data.size(20_000, 500), 5_000, 5
N_CHECKED = 60


def corpus(n_pairs):
    rng = np.random.default_rng(0)
    frequencies = 1 / np.arange(1, N_WORDS + 1)
    frequencies /= frequencies.sum()

    def words(n):
        return rng.choice(N_WORDS, n, p=frequencies)

    pairs = []
    for length in rng.integers(6, 20, n_pairs):
        source = words(length)
        target = np.where(rng.random(length) < 0.7, source, words(length))
        pairs.append((distinct(source), distinct(rng.permutation(target))))
    return pairs


def distinct(words):
    return list(dict.fromkeys(words.tolist()))


def encode(pairs):
    sides = zip(*pairs, strict=True)
    return [EncodedCaptions.from_lists([[x] for x in side], n_words=N_WORDS) for side in sides]


@pytest.fixture(scope="module")
def pairs():
    return corpus(N_PAIRS)


@pytest.fixture(scope="module")
def sentences(pairs):
    return [([f"s{f}" for f in s], [f"t{e}" for e in t]) for s, t in pairs]


def check_definition(train, by_definition):
    few = corpus(N_CHECKED)
    table = train(*encode(few), n_iterations=N_ITERATIONS).probabilities
    expected, _ = by_definition(few)
    for (f, e), probability in expected.items():
        assert abs(table[N_WORDS if f is None else f, e] - probability) < 1e-9


def by_thot(sentences, n_models):
    from thot import alignment

    models = [alignment.Ibm1AlignmentModel()]
    if n_models == 2:
        models.append(alignment.Ibm2AlignmentModel(models[0]))
    for pair in sentences:
        models[0].add_sentence_pair(*pair, 1)
    for model in models:
        model.start_training()
        for _ in range(N_ITERATIONS):
            model.train()
        model.end_training()
    return models[-1]


def by_nltk(sentences):
    from nltk.translate import AlignedSent, IBMModel1

    return IBMModel1([AlignedSent(t, s) for s, t in sentences], N_ITERATIONS)


def likely(answer, sentences):
    """Probabilities that a model gives the words of the first pairs, whoever trained it."""
    pairs = [
        (f, e) for source, target in sentences[:5] for f, e in zip(source, target, strict=False)
    ]
    if hasattr(answer, "probabilities"):
        table = answer.probabilities
        return [float(table[int(f[1:]), int(e[1:])]) for f, e in pairs]
    if hasattr(answer, "translation_table"):
        return [answer.translation_table[e][f] for f, e in pairs]
    source, target = answer.get_src_word_index, answer.get_trg_word_index
    return [answer.translation_prob(source(f), target(e)) for f, e in pairs]


@pytest.mark.ways("kernelcore", "sil-thot", "nltk")
def test_ibm1(measure, pairs, sentences):
    check_definition(ibm1, lambda few: reference.ibm1(few, N_ITERATIONS))
    expected = likely(ibm1(*encode(pairs), n_iterations=N_ITERATIONS), sentences)
    measure(
        "IBM model 1",
        {
            "kernelcore": lambda: ibm1(*encode(pairs), n_iterations=N_ITERATIONS),
            "sil-thot": lambda: by_thot(sentences, 1),
            "nltk": lambda: by_nltk(sentences),
        },
        check=lambda answer: np.testing.assert_allclose(
            likely(answer, sentences), expected, rtol=0.01, atol=1e-3
        ),
        shape=f"{N_PAIRS:,} sentence pairs, {N_ITERATIONS} iterations",
        targets=[target("time <= 1 x sil-thot")],
    )


@pytest.mark.ways("kernelcore", "sil-thot")
def test_ibm2(measure, pairs, sentences):
    """sil-thot's positions depend on less, so its probabilities are near ours, not equal."""
    check_definition(ibm2, lambda few: reference.ibm2(few, N_ITERATIONS, N_ITERATIONS))
    expected = likely(ibm2(*encode(pairs), n_iterations=N_ITERATIONS), sentences)

    def check(answer):
        assert np.corrcoef(likely(answer, sentences), expected)[0, 1] > 0.9

    measure(
        "IBM model 2 after model 1",
        {
            "kernelcore": lambda: ibm2(*encode(pairs), n_iterations=N_ITERATIONS),
            "sil-thot": lambda: by_thot(sentences, 2),
        },
        check=check,
        shape=f"{N_PAIRS:,} sentence pairs, {N_ITERATIONS} + {N_ITERATIONS} iterations",
    )
