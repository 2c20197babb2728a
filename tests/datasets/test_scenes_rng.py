"""Sources of randomness of scenes."""

import numpy as np
import pytest

from kernelcore.datasets import make_scenes


def test_a_generator_draws_the_number():
    one, same = (make_scenes(2, np.random.default_rng(3), size=(32, 32)) for _ in range(2))
    np.testing.assert_array_equal(one.images, same.images)
    with pytest.raises(ValueError, match="rng must be an integer >= 0"):
        make_scenes(2, -1)
