"""Encoders, their initial embeddings, and dropout."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from refusals import refuses  # noqa: E402
from torch.nn.utils.rnn import pack_padded_sequence  # noqa: E402

from kernelcore.captions import EncodedCaptions, Vocabulary  # noqa: E402
from kernelcore.deep import (  # noqa: E402
    ImageEncoder,
    SentenceEncoder,
    Sentences,
    dropout,
    seeded_generator,
)
from kernelcore.deep.documents import DocumentSpace  # noqa: E402
from kernelcore.deep.encoders import (  # noqa: E402
    BidirectionalGRU,
    ContextualRegionEncoder,
    initial_embedding,
)
from kernelcore.lexical import WordVectors  # noqa: E402


def sentences(lists, max_tokens=20):
    return Sentences.from_captions(
        EncodedCaptions.from_lists([lists], n_words=50), max_tokens=max_tokens
    )


def encoder(n_words=9, n_components=6, dropout=0.0, seed=0):
    generator = seeded_generator(seed)
    embedding = torch.randn(n_words + 1, 5, generator=generator)
    return SentenceEncoder(embedding, n_components, dropout=dropout, generator=generator)


def test_the_encoder_is_a_gated_recurrent_unit():
    model = encoder()
    words = [2, 0, 7, 7]
    (vector,) = model(sentences([words])).detach().numpy()
    weights = {name: value.numpy() for name, value in model.state_dict().items()}
    w_in, w_state = weights["gru.weight_ih_l0"], weights["gru.weight_hh_l0"]
    b_in, b_state = weights["gru.bias_ih_l0"], weights["gru.bias_hh_l0"]

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    h = np.zeros(6)
    for word in words:
        r_in, z_in, n_in = np.split(w_in @ weights["embedding.weight"][word + 1] + b_in, 3)
        r_h, z_h, n_h = np.split(w_state @ h + b_state, 3)
        z = sigmoid(z_in + z_h)
        h = (1 - z) * np.tanh(n_in + sigmoid(r_in + r_h) * n_h) + z * h
    np.testing.assert_allclose(vector, h / np.linalg.norm(h), atol=1e-6)


def test_neither_neighbours_nor_padding_change_a_sentence():
    model = encoder()
    lists = [[1, 2, 3, 4, 5, 6], [7], [], [3, 3]]
    together = model(sentences(lists))
    for alone, row in zip(lists, together, strict=True):
        torch.testing.assert_close(model(sentences([alone]))[0], row, atol=1e-6, rtol=0)
    torch.testing.assert_close(together.norm(dim=1), torch.ones(4))


def test_many_sentences_are_encoded_in_parts(monkeypatch):
    monkeypatch.setattr("kernelcore.deep.documents._ROWS_AT_ONCE", 3)
    images = ImageEncoder(4, 6, generator=seeded_generator(1))
    space = DocumentSpace(encoder(), images)
    table = sentences([[1, 2, 3], [4], [5, 6], [7, 8, 1, 2], [], [3], [2, 2]])
    texts, pictures = space.encode(table, torch.eye(4))
    torch.testing.assert_close(texts, space.sentences(table).detach(), atol=1e-6, rtol=0)
    torch.testing.assert_close(pictures.norm(dim=1), torch.ones(4))
    assert not texts.requires_grad


def test_the_image_encoder_is_affine():
    model = ImageEncoder(3, 5, generator=seeded_generator(0))
    x = torch.tensor([[1.0, -2.0, 0.5]])
    u = x @ model.affine.weight.T + model.affine.bias
    torch.testing.assert_close(model(x), u / u.norm())


def test_dropout_needs_a_generator_and_keeps_the_mean():
    x = torch.ones(200, 100)
    assert dropout(x, 0.4, None) is x
    dropped = dropout(x, 0.4, seeded_generator(0))
    assert dropped.unique().tolist() == [0, pytest.approx(1 / 0.6)]
    assert float(dropped.mean()) == pytest.approx(1, abs=0.02)
    model = encoder(dropout=0.5)
    table = sentences([[1, 2, 3]])
    plain, noisy = model(table), model(table, seeded_generator(0))
    assert not torch.equal(plain, noisy)
    assert torch.equal(noisy, model(table, seeded_generator(0)))


@pytest.mark.parametrize("p", [-0.1, 1.0, 1.5, float("nan")])
def test_dropout_refuses_shares_that_leave_nothing(p):
    for generator in (None, seeded_generator(0)):
        refuses(ValueError, "p", dropout, torch.ones(3), p, generator)


@pytest.mark.parametrize("shape", [(4,), (2, 3, 4), ()])
def test_the_sentence_encoder_refuses_other_than_tables(shape):
    message = r"embedding must have one row per word.*got shape \("
    with pytest.raises(ValueError, match=message):
        SentenceEncoder(torch.zeros(shape), 8, generator=seeded_generator(0))


def test_global_random_numbers_are_left_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    model = encoder(dropout=0.5)
    ImageEncoder(3, 5, generator=seeded_generator(0))
    model(sentences([[1, 2]]), seeded_generator(1))
    assert torch.equal(torch.rand(3), expected)


def test_equal_seeds_give_equal_weights():
    first, again, other = (encoder(seed=seed).state_dict() for seed in (3, 3, 4))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["gru.weight_hh_l0"], other["gru.weight_hh_l0"])
    assert float(first["gru.weight_hh_l0"].abs().max()) <= 1 / 6**0.5


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


def test_a_generator_of_numpy_goes_on_and_a_seed_does_not():
    source = np.random.default_rng(0)
    first, second = (seeded_generator(source).initial_seed() for _ in range(2))
    assert first != second
    assert seeded_generator(0).initial_seed() == first == seeded_generator(0).initial_seed()


@torch.no_grad()
def test_every_region_knows_the_first_of_its_image():
    encoder = ContextualRegionEncoder(6, 5, dropout=0.5, generator=seeded_generator(0)).double()
    features, offsets = np.random.default_rng(0).random((12, 6)), np.array([0, 3, 4, 8, 10, 12])
    encoder.standardize(np.full(6, 0.5, np.float32), np.full(6, 2.0, np.float32))
    standard = (features - 0.5) / 2
    own, whole = (
        (part.affine.weight.numpy(), part.affine.bias.numpy())
        for part in (encoder.own, encoder.whole)
    )
    firsts = np.repeat(standard[offsets[:-1]], np.diff(offsets), axis=0)
    expected = standard @ own[0].T + firsts @ whole[0].T + own[1] + whole[1]
    found = encoder(torch.from_numpy(features), offsets).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("lengths", [[3, 5, 1, 2], [1], [4, 4, 4], [1, 1], [7, 1, 7, 6, 2, 2]])
def test_both_directions_are_those_of_torch(lengths):
    ours = BidirectionalGRU(3, 4, generator=seeded_generator(0)).double()
    theirs = torch.nn.GRU(3, 4, batch_first=True, bidirectional=True, dtype=torch.float64)
    theirs.load_state_dict(
        {
            **ours.onward.state_dict(),
            **{f"{name}_reverse": value for name, value in ours.back.state_dict().items()},
        }
    )
    generator = torch.Generator().manual_seed(len(lengths))
    data = torch.randn(len(lengths), max(lengths), 3, generator=generator, dtype=torch.float64)
    packed = pack_padded_sequence(data, lengths, batch_first=True, enforce_sorted=False)
    states, last = theirs(packed)
    expected = states.data.unflatten(1, (2, 4)).mean(1)
    torch.testing.assert_close(ours(packed), expected, atol=1e-12, rtol=0)
    torch.testing.assert_close(ours.last(packed), last.mean(0), atol=1e-12, rtol=0)
