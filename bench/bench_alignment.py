"""IBM models against sil-thot and NLTK: time of training on the same sentence pairs.

Sentences are drawn from a vocabulary with the frequencies of natural text (Zipf's law), the
target a noisy word by word translation of the source. Handing the sentences to a library
counts for all of them.
"""

import numpy as np
import pytest

from kernelcore.captions import EncodedCaptions
from kernelcore.lexical import ibm1, ibm2
from kernelcore.reference import ibm as reference

N_PAIRS, N_WORDS, N_ITERATIONS = 20_000, 5_000, 5


def corpus(n_pairs):
    rng = np.random.default_rng(0)
    frequencies = 1 / np.arange(1, N_WORDS + 1)
    frequencies /= frequencies.sum()

    def words(n):
        return rng.choice(N_WORDS, n, p=frequencies)

    pairs = []
    for length in rng.integers(5, 16, n_pairs):
        source = words(length)
        target = np.where(rng.random(length) < 0.7, source, words(length))
        pairs.append((source.tolist(), rng.permutation(target).tolist()))
    return pairs


def strings(pairs):
    return [([f"s{f}" for f in s], [f"t{e}" for e in t]) for s, t in pairs]


def encode(pairs):
    sides = zip(*pairs, strict=True)
    return [EncodedCaptions.from_lists([[x] for x in side], n_words=N_WORDS) for side in sides]


@pytest.fixture(scope="module")
def pairs():
    return corpus(N_PAIRS)


def check(train, by_definition):
    few = corpus(60)
    table = train(*encode(few), n_iterations=N_ITERATIONS).probabilities
    expected, _ = by_definition(few)
    for (f, e), probability in expected.items():
        assert abs(table[N_WORDS if f is None else f, e] - probability) < 1e-9


def test_ibm1(benchmark, pairs):
    check(ibm1, lambda few: reference.ibm1(few, N_ITERATIONS))
    benchmark.group = "IBM model 1, 20,000 sentence pairs, 5 iterations"
    benchmark.pedantic(lambda: ibm1(*encode(pairs), n_iterations=N_ITERATIONS), rounds=3)


def test_ibm2(benchmark, pairs):
    check(ibm2, lambda few: reference.ibm2(few, N_ITERATIONS, N_ITERATIONS))
    benchmark.group = "IBM model 2 after model 1, 20,000 sentence pairs, 5 + 5 iterations"
    benchmark.pedantic(lambda: ibm2(*encode(pairs), n_iterations=N_ITERATIONS), rounds=3)


@pytest.mark.parametrize("model", [1, 2])
def test_sil_thot(benchmark, pairs, model):
    alignment = pytest.importorskip("thot.alignment")
    sentences = strings(pairs)

    def train():
        models = [alignment.Ibm1AlignmentModel()]
        if model == 2:
            models.append(alignment.Ibm2AlignmentModel(models[0]))
        for one in models:
            if one is models[0]:
                for source, target in sentences:
                    one.add_sentence_pair(source, target, 1)
            one.start_training()
            for _ in range(N_ITERATIONS):
                one.train()
            one.end_training()

    named = "IBM model 1" if model == 1 else "IBM model 2 after model 1"
    iterations = "5" if model == 1 else "5 + 5"
    benchmark.group = f"{named}, 20,000 sentence pairs, {iterations} iterations"
    benchmark.pedantic(train, rounds=1)


def test_nltk(benchmark, pairs):
    translate = pytest.importorskip("nltk.translate")
    sentences = strings(pairs)
    benchmark.group = "IBM model 1, 20,000 sentence pairs, 5 iterations"
    benchmark.pedantic(
        lambda: translate.IBMModel1(
            [translate.AlignedSent(t, s) for s, t in sentences], N_ITERATIONS
        ),
        rounds=1,
    )
