import numpy as np
import pytest
from refusals import refuses
from scipy import sparse

from kernelcore.lexical import WordKernel, combine

WORDS = ["a", "b", "c"]


def kernel(ab, ac, bc, form=np.asarray):
    return WordKernel(WORDS, form(np.array([[1, ab, ac], [ab, 1, bc], [ac, bc, 1]])))


def pairs(result):
    return [result.similarity(*pair) for pair in ("ab", "ac", "bc")]


@pytest.mark.parametrize("first", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("second", [np.asarray, sparse.csr_array])
def test_max_and_mean(first, second):
    one, two = kernel(0.5, 0, 0.25, first), kernel(0.25, 0, 0.75, second)
    assert pairs(combine(one, two)) == [0.5, 0, 0.75]
    assert pairs(combine(one, two, how="mean")) == [0.375, 0, 0.5]
    both_sparse = first is second is sparse.csr_array
    assert sparse.issparse(combine(one, two).matrix) == both_sparse
    assert pairs(combine(one, two, one)) == [0.5, 0, 0.75]
    assert pairs(combine(one, two, one, how="mean")) == pytest.approx([1.25 / 3, 0, 1.25 / 3])


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_the_threshold_cuts_without_touching_the_kernel(form):
    one = kernel(0.5, 0.25, 0.75, form)
    assert pairs(combine(one, threshold=0.5)) == [0.5, 0, 0.75]
    assert pairs(one) == [0.5, 0.25, 0.75]


@pytest.mark.parametrize(
    ("kernels", "options", "error", "message"),
    [
        ([], {}, ValueError, "at least one WordKernel"),
        ([np.eye(3)], {}, TypeError, "kernels"),
        ([1, 2], {"how": "min"}, ValueError, "how"),
        ([1, 2], {"threshold": -1}, ValueError, "threshold"),
    ],
)
def test_bad_input_is_named(kernels, options, error, message):
    refuses(error, message, combine, *kernels, **options)


def test_kernels_over_other_words_are_refused():
    with pytest.raises(ValueError, match=r"same words .* WordKernel\.over"):
        combine(kernel(0, 0, 0), kernel(0, 0, 0).over(["b", "a", "c"]))
