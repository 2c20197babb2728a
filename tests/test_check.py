"""Checks of user input: what they let through, and how they refuse the rest."""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from refusals import refuses
from scipy.sparse import eye_array

from kernelcore import _check
from kernelcore.kernels import histogram_intersection, word_sequence
from kernelcore.models import NearestNeighbourRanker

LONG = 10**5000  # Python prints no integer of more than 4,300 digits
MASKED = np.ma.array([[1.0, 2.0], [3.0, 4.0]], mask=[[0, 1], [0, 1]])
AS_INTEGERS = partial(_check.as_integer_array, ndim=2, dtype=int)
AS_REALS = partial(_check.as_real_array, ndim=2)


class Shy:
    def __repr__(self):
        raise RuntimeError


REFUSED = [
    *((ValueError, _check.check_real, v) for v in (10**400, -(10**400), LONG, -LONG)),
    (ValueError, _check.check_real, Fraction(10**400, 3)),
    *((ValueError, _check.check_integer, v) for v in (2**63, LONG, -(2**63), -LONG)),
    (ValueError, _check.check_integer, np.ma.array(3, mask=True)),
    *((TypeError, _check.check_float_dtype, v) for v in ("nonsense", 3, object(), "f9", "i1")),
    (TypeError, _check.check_integer, Shy()),
    (TypeError, _check.check_flag, "x" * 10**6),
    (ValueError, partial(_check.check_choice, choices=("max",)), LONG),
    *((ValueError, AS_REALS, masked) for masked in (MASKED, list(MASKED))),
    *((ValueError, AS_INTEGERS, masked) for masked in (MASKED, list(MASKED))),
    *((TypeError, _check.as_list, v) for v in ("12", b"12", {1: 2}, 3, None, np.array(1))),
    (TypeError, AS_REALS, (row for row in ([1.0],))),
]


def test_bad_values_are_refused_by_name_in_few_words():
    for error, check, value in REFUSED:
        assert len(refuses(error, "^width must", check, "width", value)) < 300


def test_what_is_let_through():
    assert _check.check_real("width", Fraction(1, 4)) == 0.25
    assert _check.check_integer("n", 2**63 - 1) == 2**63 - 1
    assert _check.check_integer("n", 2**70, maximum=2**80) == 2**70
    assert AS_REALS("X", np.ma.array([[1.0, 2.0]])).tolist() == [[1.0, 2.0]]
    assert _check.as_list("ks", iter((1, 2))) == [1, 2]
    assert _check.check_rng("rng", 3).random() == np.random.default_rng(3).random()
    generator = np.random.default_rng(0)
    assert _check.check_rng("rng", generator) is generator


def test_the_argument_that_is_bad_is_blamed():
    refuses(ValueError, "X", histogram_intersection, MASKED)
    refuses(TypeError, "^X", word_sequence, None, word_weights=[1.0])
    ranker = NearestNeighbourRanker("precomputed", "precomputed")
    pair = eye_array(2, format="csr"), eye_array(3, format="csr")
    refuses(ValueError, "images", ranker.fit, *pair)
    with (
        pytest.raises(ValueError, match=r"^K must be small"),
        _check.no_overflow("K", "be small"),
    ):
        np.full(3, 1e308).sum()


def test_tensors_that_numpy_cannot_read():
    torch = pytest.importorskip("torch", reason="tensors need PyTorch: extra deep")
    ones = torch.ones(2, 2)
    alike = ones.clone().requires_grad_(), ones.to(torch.bfloat16), ones.to("meta")
    for tensor in (*alike, ones.to_sparse()):
        refuses(TypeError, "X", histogram_intersection, tensor)
    assert histogram_intersection(ones).tolist() == [[2.0, 2.0], [2.0, 2.0]]
