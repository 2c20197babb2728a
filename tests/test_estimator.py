import numpy as np
from refusals import refuses
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
    own = {"inner": outer.inner, "name": "outer"}
    assert outer.get_params(deep=False) == own
    assert outer.get_params() == {**own, "inner__depth": 3, "inner__width": 2.0}
    assert repr(outer) == "Outer(inner=Inner(depth=3))"
    assert outer.set_params(inner__depth=5, name="new") is outer
    assert (outer.inner.depth, outer.name) == (5, "new")
    copy = clone(outer)
    assert copy.inner is not outer.inner
    assert copy.inner.depth == 5


def test_refusals():
    refuses(ValueError, "height", Inner().set_params, height=1)
    refuses(ValueError, "height", Outer(Inner()).set_params, inner__height=1)
    refuses(NotFittedError, "this Inner must be fitted", Inner().use)
    assert issubclass(NotFittedError, ValueError)
    assert issubclass(NotFittedError, AttributeError)


def test_parameters_survive_json():
    params = {"a": (np.float32(0.5), np.int64(2)), "b": None, "c": "text", "d": 1.5}
    plain = params_to_json(params)
    assert plain == {"a": [0.5, 2], "b": None, "c": "text", "d": 1.5}
    assert [type(value) for value in plain["a"]] == [float, int]
    inner = Inner.from_json({"depth": plain["a"]})
    assert (inner.depth, inner.width) == ((0.5, 2), 2.0)
