"""Encoders, their initial embeddings, and dropout."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.nn.utils.rnn import pad_sequence  # noqa: E402

from kernelcore.captions import Vocabulary  # noqa: E402
from kernelcore.deep.encoders import (  # noqa: E402
    ContextualRegionEncoder,
    Dropout,
    FeatureEncoder,
    RecurrentEncoder,
    SentenceSpace,
    initial_embedding,
)
from kernelcore.deep.items import Sentences  # noqa: E402
from kernelcore.deep.training import seeded_generator  # noqa: E402
from kernelcore.lexical import WordVectors  # noqa: E402


def sentences(lists):
    rows = [torch.tensor(ids or [-1]) + 1 for ids in lists]
    return Sentences(pad_sequence(rows, batch_first=True), torch.tensor(list(map(len, rows))))


def encoder(bidirectional=False, seed=0):
    generator = seeded_generator(seed)
    embedding = torch.randn(10, 5, generator=generator)
    return RecurrentEncoder(embedding, 6, bidirectional=bidirectional, generator=generator)


def half(seed):
    return Dropout(0.5, seeded_generator(seed))


@pytest.mark.parametrize("bidirectional", [False, True])
def test_the_encoder_is_the_mean_of_gated_recurrent_units(bidirectional):
    model = encoder(bidirectional)
    words = [2, 0, 7, 7]
    weights = {name: value.numpy() for name, value in model.state_dict().items()}

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    def states(words, end=""):
        names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
        w_in, w_state, b_in, b_state = (weights[f"gru.{name}{end}"] for name in names)
        h = np.zeros(6)
        for word in words:
            r_in, z_in, n_in = np.split(w_in @ weights["embedding.weight"][word + 1] + b_in, 3)
            r_h, z_h, n_h = np.split(w_state @ h + b_state, 3)
            z = sigmoid(z_in + z_h)
            h = (1 - z) * np.tanh(n_in + sigmoid(r_in + r_h) * n_h) + z * h
            yield h

    every = [np.array(list(states(words)))]
    if bidirectional:
        every.append(np.array(list(states(words[::-1], "_reverse"))))
    last = np.mean([own[-1] for own in every], axis=0)
    if bidirectional:
        every[1] = every[1][::-1]
    table = sentences([words, [1]])
    np.testing.assert_allclose(model(table)[0].detach(), last, atol=1e-6)
    found, mask = model.words(table)
    np.testing.assert_allclose(found[0].detach(), np.mean(every, axis=0), atol=1e-6)
    assert mask.tolist() == [[True] * 4, [True, False, False, False]]
    assert not found[1, 1:].any()


def test_neither_neighbours_nor_padding_change_a_sentence():
    model = encoder(bidirectional=True)
    lists = [[1, 2, 3, 4, 5, 6], [7], [], [3, 3]]
    together = model(sentences(lists))
    for alone, row in zip(lists, together, strict=True):
        torch.testing.assert_close(model(sentences([alone]))[0], row, atol=1e-6, rtol=0)


def test_dropout_needs_a_generator_and_keeps_the_mean():
    x = torch.ones(200, 100)
    assert Dropout(0.4, None)(x) is x
    dropped = Dropout(0.4, seeded_generator(0))(x)
    assert dropped.unique().tolist() == [0, pytest.approx(1 / 0.6)]
    assert float(dropped.mean()) == pytest.approx(1, abs=0.02)
    model, table = encoder(), sentences([[1, 2, 3]])
    noisy = model(table, half(0))
    assert not torch.equal(model(table), noisy)
    assert torch.equal(noisy, model(table, half(0)))


def test_global_random_numbers_are_left_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    model = encoder()
    FeatureEncoder(3, 5, generator=seeded_generator(0))
    model(sentences([[1, 2]]), half(1))
    assert torch.equal(torch.rand(3), expected)


def test_embeddings_start_at_the_vectors_given():
    vocabulary = Vocabulary.from_captions([[["dog", "cat", "axolotl"]]])
    vectors = WordVectors(["cat", "dog"], [[1.0, 2.0], [3.0, -1.0]])
    table = initial_embedding(vocabulary, vectors, 300, generator=seeded_generator(0))
    assert table.shape == (4, 2)  # one more for words outside the vocabulary
    for word in ("cat", "dog"):
        row = table[vocabulary.index[word] + 1]
        np.testing.assert_array_equal(row.numpy(), vectors[word])
    assert initial_embedding(vocabulary, None, 7, generator=seeded_generator(0)).shape == (4, 7)
    single = WordVectors(["cat"], [[2.0]])
    table = initial_embedding(vocabulary, single, 1, generator=seeded_generator(0))
    assert torch.isfinite(table).all()
    strange = WordVectors(["newt"], [[1.0, 2.0]])
    table = initial_embedding(vocabulary, strange, 7, generator=seeded_generator(0))
    assert table.shape == (4, 2)


@torch.no_grad()
def test_every_region_knows_the_first_of_its_image():
    space = SentenceSpace()
    encoder = ContextualRegionEncoder(6, 5, whole_image=True, generator=seeded_generator(0))
    space.regions = encoder.double()
    features, offsets = np.random.default_rng(0).random((12, 6)), np.array([0, 3, 4, 8, 10, 12])
    space.standardize(np.full(6, 0.5, np.float32), np.full(6, 2.0, np.float32))
    standard = (features - 0.5) / 2
    own, whole = (
        (part.affine.weight.numpy(), part.affine.bias.numpy())
        for part in (space.regions.own, space.regions.whole)
    )
    firsts = np.repeat(standard[offsets[:-1]], np.diff(offsets), axis=0)
    expected = standard @ own[0].T + firsts @ whole[0].T + own[1] + whole[1]
    found = space.regions(torch.from_numpy(features), offsets).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-12)
