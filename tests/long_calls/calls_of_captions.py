"""Long calls of ``kernelcore.captions``, ``kernelcore.lexical`` and ``kernelcore.datasets``."""

import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from scipy import sparse
from table import table

from kernelcore import captions, datasets, lexical
from kernelcore.captions import EncodedCaptions, Vocabulary

CALLS, call = table()
RNG = np.random.default_rng(0)
TEXT = "Two brown dogs are running quickly through the shallow water near a beach ."


def tokens(n, n_words=20_000):
    """Images with five captions of words with a long tail."""
    words = np.minimum(RNG.zipf(1.3, (n, 5, 10)), n_words).astype(str)
    return words.tolist()


@call("captions.Vocabulary.from_captions", 150_000, 10)
def vocabulary(n):
    images = tokens(n)
    return lambda: Vocabulary.from_captions(images).words


@call("captions.Vocabulary.encode", 150_000, 10)
def encode(n):
    images = tokens(n)
    known = Vocabulary.from_captions(tokens(1000))
    return partial(known.encode, images)


@call("captions.CaptionNormalizer.fit", 100_000, 4)
def normalizer(n):
    return lambda: captions.CaptionNormalizer().fit([[TEXT]] * n).to_dict()


@call("captions.CaptionNormalizer.__call__", 200_000, 4)
def normalize(n):
    return partial(captions.CaptionNormalizer().fit([[TEXT]] * 9), [TEXT] * n)


@call("captions.FragmentExtractor.fit", 400_000, 4)
def fragments(n):
    extractor = partial(captions.FragmentExtractor, "bigrams", min_share=0.0)
    return lambda: extractor().fit([TEXT] * n).to_dict()


def sides(n):
    ids = np.minimum(RNG.zipf(1.3, 10 * n), 5000).astype(np.int32) - 1
    count = np.arange(n + 1)
    side = EncodedCaptions(ids, count * 10, count, np.zeros(n, np.int64), 5000)
    return side, side


@call("lexical.ibm1", 300_000, 100)
def ibm1(n):
    return partial(lexical.ibm1, *sides(n))


@call("lexical.ibm2", 300_000, 100)
def ibm2(n):
    return partial(lexical.ibm2, *sides(n))


@call("lexical.Distributional.fit", 30_000, 100)
def distributional(n):
    images = tokens(n)
    return lambda: lexical.Distributional().fit(images).word_kernel().words


@call("lexical.Alignment.fit", 30_000, 100)
def alignment(n):
    tags = {"dogs": "NOUN", "water": "NOUN", "beach": "NOUN", "running": "VERB"}
    caption = [(word, tags.get(word, "X")) for word in TEXT.split()]
    images = [[caption] * 5] * n
    return lambda: lexical.Alignment().fit(images).word_kernel().words


@call("lexical.combine", 6000, 60, delay=1.0, may_end=True)
def combine(n):
    words = [f"w{i}" for i in range(n)]
    similar = sparse.random(n, n, 0.01, format="csr", rng=0)
    matrix = similar.maximum(similar.T).tolil()
    matrix.setdiag(1.0)
    kernel = lexical.WordKernel(words, matrix.tocsr())
    return lambda: lexical.combine(kernel, kernel).words[:3]


@call("lexical.load_word_vectors", 150_000, 10)
def load_word_vectors(n):
    path = Path(tempfile.mkdtemp()) / "vectors.txt"
    numbers = " 0.12345" * 100
    path.write_text("".join(f"word{i}{numbers}\n" for i in range(n)), encoding="utf-8")
    return lambda: lexical.load_word_vectors(path).words[:3]


@call("lexical.learn_word_vectors", 60_000, 100)
def learn_word_vectors(n):
    sentences = [words for own in tokens(n) for words in own]
    return lambda: lexical.learn_word_vectors(sentences, n_dimensions=50).vectors[:3]


@call("datasets.make_scenes", 4000, 2)
def make_scenes(n):
    return lambda: datasets.make_scenes(n).images[:3]


@call("datasets.load_karpathy", 150_000, 10, may_end=True, delay=1.0)
def load_karpathy(n):
    sentence = '{"raw": "A dog runs.", "sentid": %d}'
    image = '{"filename": "%d.jpg", "imgid": %d, "split": "train", "sentences": [%s]}'
    images = [image % (i, i, sentence % i) for i in range(n)]
    path = Path(tempfile.mkdtemp()) / "dataset.json"
    path.write_text(f'{{"dataset": "x", "images": [{", ".join(images)}]}}', encoding="utf-8")
    return lambda: len(datasets.load_karpathy(path))


@call("datasets.neighbour_selections", 20_000, 20)
def neighbour_selections(n):
    texts = [RNG.choice(["dog", "cat", "boat", "rose"], 2).tolist() for _ in range(n)]
    names = [str(i) for i in range(n)]
    images = datasets.CaptionedImages(
        "drawn",
        names,
        [None] * n,
        [[" ".join(t)] for t in texts],
        [[i] for i in names],
        [[0]] * n,
    )
    vectors, words = RNG.normal(size=(n, 50)), [[text] for text in texts]
    return lambda: len(datasets.neighbour_selections(images, vectors, words).triples)
