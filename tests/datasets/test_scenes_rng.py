"""One name for randomness: `rng`; the name of version 0.1 goes on working."""

import numpy as np
import pytest

from kernelcore.datasets import make_scenes


def test_the_old_name_says_that_it_is_old():
    with pytest.warns(DeprecationWarning, match="seed is called rng now"):
        old = make_scenes(3, seed=4, size=(32, 32))
    np.testing.assert_array_equal(old.images, make_scenes(3, 4, size=(32, 32)).images)


def test_a_generator_draws_the_number():
    one, same = (make_scenes(2, np.random.default_rng(3), size=(32, 32)) for _ in range(2))
    np.testing.assert_array_equal(one.images, same.images)
    with pytest.raises(ValueError, match="rng must be an integer >= 0"):
        make_scenes(2, -1)
