import numpy as np
import pytest
from sklearn.base import clone

from kernelcore._estimator import Estimator, NotFittedError, params_to_json


class Inner(Estimator):
    def __init__(self, depth=1, *, width=2.0):
        self.depth = depth
        self.width = width

    def use(self):
        self._check_fitted("fitted_")


class Outer(Estimator):
    def __init__(self, inner, name="outer"):
        self.inner = inner
        self.name = name


def test_parameters_of_nested_estimators():
    outer = Outer(Inner(3))
    assert outer.get_params(deep=False) == {"inner": outer.inner, "name": "outer"}
    assert outer.get_params() == {
        "inner": outer.inner,
        "inner__depth": 3,
        "inner__width": 2.0,
        "name": "outer",
    }
    assert outer.set_params(inner__depth=5, name="new") is outer
    assert (outer.inner.depth, outer.name) == (5, "new")
    copy = clone(outer)
    assert copy.inner is not outer.inner
    assert copy.inner.depth == 5


def test_unknown_parameters_are_named():
    with pytest.raises(
        ValueError, match="Inner has no parameter 'height'; it has 'depth', 'wi"
    ):
        Inner().set_params(height=1)
    with pytest.raises(ValueError, match="Inner has no parameter 'height'"):
        Outer(Inner()).set_params(inner__height=1)


def test_repr_shows_what_differs_from_the_defaults():
    assert repr(Inner()) == "Inner()"
    assert repr(Outer(Inner(7))) == "Outer(inner=Inner(depth=7))"


def test_use_before_fit():
    with pytest.raises(NotFittedError, match="this Inner must be fitted first: call fit"):
        Inner().use()
    assert issubclass(NotFittedError, ValueError)
    assert issubclass(NotFittedError, AttributeError)


def test_parameters_survive_json():
    params = {"a": (np.float32(0.5), np.int64(2)), "b": None, "c": "text", "d": 1.5}
    plain = params_to_json(params)
    assert plain == {"a": [0.5, 2], "b": None, "c": "text", "d": 1.5}
    assert [type(value) for value in plain["a"]] == [float, int]
    inner = Inner.from_json({"depth": plain["a"]})
    assert (inner.depth, inner.width) == ((0.5, 2), 2.0)
