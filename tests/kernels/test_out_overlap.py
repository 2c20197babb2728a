"""`out` may overlap no input: a core that writes what it still reads gives a wrong matrix."""

import inspect

import numpy as np
import pytest

from kernelcore import kernels
from kernelcore.captions import EncodedCaptions
from kernelcore.images import SpatialHistograms
from kernelcore.kernels import (
    average,
    bag_of_words,
    bag_of_words_f1,
    histogram_intersection,
    normalize,
    power,
    ridge,
    spatial_pyramid,
    word_assignment,
    word_sequence,
    word_sequence_components,
)

N = 4
CAPTIONS = EncodedCaptions.from_lists([[[0, 1]], [[2, 3]], [[1]], [[3]]])


def kappa(dtype=np.float64):
    return np.eye(N, dtype=dtype) / 2 + np.ones((N, N), dtype) / 2


def shared(*shape, dtype=np.float64):
    """An array of ones, and the whole memory that it lies in as a square result."""
    memory = np.ones((N, N), dtype)
    return memory.reshape(-1)[: np.prod(shape)].reshape(shape), memory


def by_word_kernel(function, **options):
    def call(dtype):
        matrix = kappa(dtype)
        out = matrix.reshape(N, N, 1) if function is word_sequence_components else matrix
        function(CAPTIONS, word_kernel=matrix, dtype=dtype, out=out, **options)

    return call


def by_weights(function, name):
    def call(dtype):
        weights, out = shared(N, dtype=dtype)
        function(CAPTIONS, dtype=dtype, out=out, **{name: weights})

    return call


def components_by_weights(dtype):
    weights, out = shared(N, dtype=dtype)
    out = out.reshape(N, N, 1)
    word_sequence_components(CAPTIONS, max_length=1, word_weights=weights, dtype=dtype, out=out)


def pyramid(dtype):
    counts = np.ones((N, 1, 1), np.uint16)
    X = SpatialHistograms(counts, np.ones(N, int), 1)
    weights, out = shared(1, dtype=dtype)
    spatial_pyramid(X, level_weights=weights, dtype=dtype, out=out)


def histograms(dtype):
    X, out = shared(N, 2, dtype=dtype)
    histogram_intersection(X, out=out)


def halves(dtype):
    """Two matrices of which one half is the other's."""
    memory = np.ones((N + 1, N), dtype)
    return memory[:-1], memory[1:]


def shifted(function, *arguments):
    def call(dtype):
        K, out = halves(dtype)
        function(K, *arguments, out=out)

    return call


def second_of_two(dtype):
    K, L = np.ones((N, N), dtype), np.ones((N, N), dtype)
    average([K, L], out=L)


CASES = {
    "word_sequence": [
        by_word_kernel(word_sequence),
        by_weights(word_sequence, "word_weights"),
    ],
    "word_sequence_components": [
        by_word_kernel(word_sequence_components, max_length=1),
        components_by_weights,
    ],
    "word_assignment": [
        by_word_kernel(word_assignment),
        by_weights(word_assignment, "word_weights"),
    ],
    "bag_of_words": [by_weights(bag_of_words, "word_weights")],
    "bag_of_words_f1": [by_weights(bag_of_words_f1, "word_weights")],
    "spatial_pyramid": [pyramid],
    "histogram_intersection": [histograms],
    "normalize": [shifted(normalize)],
    "power": [shifted(power, 2)],
    "ridge": [shifted(ridge, 2)],
    "average": [second_of_two],
    # Their inputs are captions, which are read-only and so can be no `out`.
    "tag_rank": [],
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CASES)
def test_out_overlaps_no_input(name, dtype):
    for call in CASES[name]:
        with pytest.raises(ValueError, match="out must not overlap an input"):
            call(dtype)


def test_every_kernel_that_writes_into_out_is_tried():
    writers = {
        name
        for name in kernels.__all__
        if inspect.isfunction(getattr(kernels, name))
        and "out" in inspect.signature(getattr(kernels, name)).parameters
    }
    assert writers == CASES.keys()


def test_a_masked_array_is_no_out():
    with pytest.raises(TypeError, match="out must be a NumPy array"):
        histogram_intersection(np.ones((2, 2)), out=np.ma.masked_all((2, 2)))
