"""The helpers of `refusals` fail where an argument is unknown instead of checked."""

import pytest
from refusals import refuses, refuses_each


def half(number=1):
    if number < 0:
        raise ValueError(f"number must be >= 0, got {number}")
    return number / 2


def renamed(figure=1):
    return half(figure)


def test_an_unknown_argument_is_not_a_checked_one_but_can_be_asked_for():
    refuses_each(half, {"number": [-1, -0.5]}, number=2)
    with pytest.raises(pytest.fail.Exception, match="has no argument number"):
        refuses((TypeError, ValueError), "number", renamed, number=-1)
    refuses(TypeError, "unexpected keyword argument 'number'", renamed, number=-1)
