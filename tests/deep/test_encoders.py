"""Encoders, their initial embeddings, dropout, and the tables that they read."""

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
from kernelcore.deep.items import RegionTable, Sentences  # noqa: E402
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
    for odd in (WordVectors(["cat"], [[2.0]]), WordVectors(["newt"], [[1.0, 2.0]])):
        table = initial_embedding(vocabulary, odd, 1, generator=seeded_generator(0))
        assert table.shape == (4, odd.n_dimensions)
        assert torch.isfinite(table).all()


@torch.no_grad()
def test_every_region_knows_the_first_of_its_image():
    space = SentenceSpace()
    encoder = ContextualRegionEncoder(6, 5, whole_image=True, generator=seeded_generator(0))
    space.regions = encoder.double()
    features, offsets = np.random.default_rng(0).random((12, 6)), np.array([0, 3, 4, 8, 10, 12])
    space.standardize(np.full(6, 0.5, np.float32), np.full(6, 2.0, np.float32))
    standard = (features - 0.5) / 2
    layers = space.regions.own.affine, space.regions.whole.affine
    own, whole = ((layer.weight.numpy(), layer.bias.numpy()) for layer in layers)
    firsts = np.repeat(standard[offsets[:-1]], np.diff(offsets), axis=0)
    expected = standard @ own[0].T + firsts @ whole[0].T + own[1] + whole[1]
    found = space.regions(torch.from_numpy(features), offsets).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-12)


OFFSETS = np.array([0, 4, 5, 12, 14])
TABLE = RegionTable(np.arange(14.0)[:, np.newaxis], OFFSETS)
CPU = torch.device("cpu")


def draw(images, n_regions, seed=0):
    rows, offsets = TABLE.take(np.array(images), CPU, n_regions, seeded_generator(seed))
    return np.split(rows[:, 0].numpy().astype(int), offsets[1:-1])


def test_the_first_region_is_always_drawn_and_the_others_equally_often():
    seen = np.zeros(14)
    for seed in range(400):
        drawn = draw([2, 0, 1, 3], 3, seed)
        assert [len(rows) for rows in drawn] == [3, 3, 1, 2]
        for image, rows in zip((2, 0, 1, 3), drawn, strict=True):
            assert rows[0] == OFFSETS[image]
            assert (np.diff(rows) > 0).all()
            assert rows[-1] < OFFSETS[image + 1]
            seen[rows] += 1
    assert (seen[OFFSETS[:-1]] == 400).all()
    np.testing.assert_allclose(seen[1:4] / 400, 2 / 3, atol=0.08)
    np.testing.assert_allclose(seen[6:12] / 400, 2 / 6, atol=0.08)


def test_as_many_as_there_are_is_all():
    rows = np.concatenate(draw([3, 2, 3], 7))
    np.testing.assert_array_equal(rows, [12, 13, *range(5, 12), 12, 13])


def test_words_count_from_one_and_unknown_ones_are_zero():
    vocabulary = Vocabulary.from_captions([[["a", "dog", "runs"]]])
    texts = [["runs", "zzz", "a", "dog"], [], ["dog"]]
    table = Sentences.of(texts, vocabulary, max_tokens=3)
    index = {word: vocabulary.index[word] + 1 for word in ("a", "dog", "runs")}
    expected = [[index["runs"], 0, index["a"]], [0, 0, 0], [index["dog"], 0, 0]]
    np.testing.assert_array_equal(table.word_ids, expected)
    np.testing.assert_array_equal(table.lengths, [3, 1, 1])
    part = table.take(torch.tensor([2, 1, 2]))
    np.testing.assert_array_equal(part.word_ids, [[index["dog"]], [0], [index["dog"]]])
    assert Sentences.of([[], []], vocabulary, max_tokens=3).word_ids.shape == (2, 1)


@pytest.mark.parametrize("regions", ["all", "first", "mean"])
def test_a_photo_in_pixels_is_one_region(regions):
    for n_photos in (3, 8):  # 8: as many as a photo is high
        pixels = np.random.default_rng(0).integers(0, 256, (n_photos, 8, 6, 3), np.uint8)
        table = RegionTable.of("images", pixels, regions)
        np.testing.assert_array_equal(table.rows, pixels)
        assert len(table) == n_photos
