"""The best of candidates by their scores."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from kernelcore.models.photo_search import best_matches

FINITE = {"allow_nan": False, "allow_infinity": False}
SCORES = arrays.arrays(
    np.float32, st.integers(0, 40), elements=st.floats(width=32, **FINITE)
) | arrays.arrays(
    np.float32, st.integers(0, 40), elements=st.sampled_from([0.0, -0.0, 1.0, -1.0, 1e-40])
)


@given(SCORES, st.integers(1, 50))
def test_the_best_are_the_first_of_all(scores, k):
    names = [f"photo {i}" for i in range(len(scores))]
    found = best_matches(scores, k, names)
    expected = np.argsort(-scores, kind="stable")[:k]
    assert [match.item for match in found] == expected.tolist()
    assert [match.name for match in found] == [names[i] for i in expected]
    assert [match.score for match in found] == scores[expected].tolist()


def test_a_wrong_number_of_matches_is_named():
    with pytest.raises(ValueError, match=r"^k must be"):
        best_matches(np.zeros(3, np.float32), 0, ["a", "b", "c"])
