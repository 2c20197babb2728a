"""What workers do: a module that a spawned process can import."""

import numpy as np

import kernelcore
from kernelcore.captions import EncodedCaptions
from kernelcore.evaluation import streamed_ranks
from kernelcore.kcca import KCCA, LandmarkFeatures, partial_gram_schmidt
from kernelcore.kernels import bag_of_words, histogram_intersection, prepare, word_sequence
from kernelcore.matching import linear_assignments

RNG = np.random.default_rng(0)
X = RNG.random((120, 60), np.float32)
CAPTIONS = EncodedCaptions.from_lists(RNG.integers(-2, 9, (120, 2, 5)).tolist(), n_words=9)
IMAGES, TEXTS = RNG.random((40, 16), np.float32), RNG.random((80, 16), np.float32)
OWNER = np.repeat(np.arange(40), 2)


def one_of_each(n_threads=2):
    """Return the bytes of what every part of the package that has threads gives."""
    K = histogram_intersection(X, n_threads=n_threads)
    both = {"image_vectors": IMAGES, "caption_vectors": TEXTS}
    result = kernelcore.evaluate(**both, caption_image=OWNER, n_threads=n_threads)
    ranks = streamed_ranks(IMAGES, TEXTS, OWNER, n_threads=n_threads)
    landmarks = LandmarkFeatures(histogram_intersection, n_landmarks=20, n_threads=n_threads)
    text = bag_of_words(CAPTIONS, n_threads=n_threads)
    fitted = KCCA(3, regularization=1.0, n_threads=n_threads).fit(K, text)
    found = [
        K, text, word_sequence(CAPTIONS, max_length=2, gap_decay=0.7, n_threads=n_threads),
        partial_gram_schmidt(prepare(K), max_rank=30, n_threads=n_threads).features,
        landmarks.fit_transform(X), fitted.x_scores_,
        linear_assignments(K[:60].reshape(-1, 10, 12), n_threads=n_threads).col_ind,
        result.values["annotation"]["mean_rank"], ranks.search,
    ]  # fmt: skip
    return [np.ascontiguousarray(part).tobytes() for part in found]


EXPECTED = one_of_each()  # threads have run in this process, and in one that imports this file


def check(_=None):
    """Compare what a worker gives with what it was when its process, or its parent, began."""
    return one_of_each() == EXPECTED


def digests(_=None):
    """Return the results themselves: of a process that computed its own expectation."""
    return one_of_each()


def trained(n_components):
    """Fit and use a model, as a worker of joblib does in a search."""
    grams = histogram_intersection(X[:100]), bag_of_words(CAPTIONS.select(np.arange(100)))
    return KCCA(n_components, regularization=1.0).fit(*grams).x_scores_.tobytes()


class Vectors:
    """A data set whose items are computed by the package, in the workers of a DataLoader."""

    def __len__(self):
        return 6

    def __getitem__(self, k):
        K = histogram_intersection(X[20 * k : 20 * k + 20], X, n_threads=2)
        return K, np.float64(check())
