"""Checks of user input: what they let through, and how they refuse the rest."""

import threading
from fractions import Fraction

import numpy as np
import pytest

from kernelcore._check import (
    as_integer_array,
    as_list,
    as_real_array,
    check_choice,
    check_finite,
    check_flag,
    check_float_dtype,
    check_integer,
    check_non_negative,
    check_real,
    check_rng,
    no_overflow,
)
from kernelcore.evaluation.ranks import gold_ranks
from kernelcore.kernels import histogram_intersection, word_sequence
from kernelcore.models import NearestNeighbourRanker

LONG = 10**5000  # Python prints no integer of more than 4,300 digits


@pytest.mark.parametrize(
    "value", [10**400, -(10**400), LONG, Fraction(10**400, 3)], ids=lambda _: ""
)
def test_reals_that_float64_does_not_hold(value):
    with pytest.raises(ValueError, match=r"^width must be finite in float64, got "):
        check_real("width", value)
    assert check_real("width", Fraction(1, 4)) == 0.25


@pytest.mark.parametrize("value", [2**63, LONG, -(2**63), -LONG], ids=lambda _: "")
def test_integers_beyond_64_bits(value):
    with pytest.raises(ValueError, match=r"^n must be an integer [<>]= -?\d+, got "):
        check_integer("n", value)
    assert check_integer("n", 2**63 - 1) == 2**63 - 1
    assert check_integer("n", 2**70, maximum=2**80) == 2**70


@pytest.mark.parametrize("dtype", ["nonsense", 3, object(), "f9", np.int8])
def test_dtypes(dtype):
    with pytest.raises(TypeError, match=r"^dtype must be float32 or float64, got "):
        check_float_dtype("dtype", dtype)


def test_values_that_cannot_be_shown():
    class Shy:
        def __repr__(self):
            raise RuntimeError

    for check in (check_integer, check_real, check_flag):
        with pytest.raises(TypeError, match=r"^n must be .*, got a value that cannot be shown"):
            check("n", Shy())
    with pytest.raises(ValueError, match=r"^how must be one of 'max', got"):
        check_choice("how", LONG, ("max",))
    with pytest.raises(TypeError, match=r"^n must be True or False, got '[x]{199}\.\.\.$"):
        check_flag("n", "x" * 10**6)


MASKED = np.ma.array([[1.0, 2.0], [3.0, 4.0]], mask=[[0, 1], [0, 1]])


def test_masks_are_not_dropped():
    for check in (as_real_array, as_integer_array):
        options = {"dtype": int} if check is as_integer_array else {}
        with pytest.raises(ValueError, match=r"^X must have no masked elements, got 2"):
            check("X", MASKED, ndim=2, **options)
        with pytest.raises(ValueError, match=r"^X must have no masked elements, got 1"):
            check("X", [MASKED[0], MASKED[1]], ndim=2, **options)
    with pytest.raises(ValueError, match=r"^k must have no masked elements"):
        check_integer("k", np.ma.array(3, mask=True))
    with pytest.raises(ValueError, match=r"^X must have no masked elements"):
        histogram_intersection(MASKED)
    unmasked = np.ma.array([[1.0, 2.0]])
    assert as_real_array("X", unmasked, ndim=2).tolist() == [[1.0, 2.0]]


def test_tensors_that_numpy_cannot_read():
    torch = pytest.importorskip("torch", reason="tensors need PyTorch: extra deep")
    ones = torch.ones(2, 2)
    for tensor in (
        ones.clone().requires_grad_(),
        ones.to(torch.bfloat16),
        ones.to("meta"),
        ones.to_sparse(),
    ):
        with pytest.raises(TypeError, match=r"^X must be a 2-D array, got type Tensor"):
            histogram_intersection(tensor)
    assert histogram_intersection(ones).tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_strings_are_not_blamed_for_no_captions():
    with pytest.raises(TypeError, match=r"^X must be EncodedCaptions or a list of texts"):
        word_sequence(None, word_weights=[1.0])


def test_sparse_items_have_a_number():
    sparse = pytest.importorskip("scipy.sparse")
    ranker = NearestNeighbourRanker("precomputed", "precomputed")
    with pytest.raises(ValueError, match="images and captions must be equally many"):
        ranker.fit(sparse.eye_array(2, format="csr"), sparse.eye_array(3, format="csr"))


def test_iterators_are_read_once():
    assert as_list("ks", iter((1, 2))) == [1, 2]
    for wrong in ("12", b"12", {1: 2}, 3, None, np.array(1)):
        with pytest.raises(TypeError, match=r"^ks must be a sequence, got type"):
            as_list("ks", wrong)
    with pytest.raises(TypeError, match=r"^X must be a 2-D array, got type generator"):
        as_real_array("X", (row for row in ([1.0],)), ndim=2)


def test_seeds():
    assert check_rng("rng", 3).random() == np.random.default_rng(3).random()
    generator = np.random.default_rng(0)
    assert check_rng("rng", generator) is generator
    with pytest.raises(ValueError, match=r"^rng must be an integer >= 0"):
        check_rng("rng", -1)
    with pytest.raises(TypeError, match=r"^rng must be an integer"):
        check_rng("rng", "seed")


def test_the_first_bad_element_is_named():
    array = np.array([[1.0, 2.0], [np.inf, np.nan]])
    with pytest.raises(ValueError, match=r"^X must be finite, got inf at \[1, 0\]"):
        check_finite("X", array)
    with pytest.raises(ValueError, match=r"^X must be non-negative, got -1.0 at \[0, 1\]"):
        check_non_negative("X", np.array([[0.0, -1.0], [-2.0, 0.0]]))


def test_overflow_is_an_error_of_the_argument():
    too_large = pytest.raises(ValueError, match=r"^K must be small, got an overflow")
    with too_large, no_overflow("K", "be small"):
        np.full(3, 1e308).sum()


class Flickering(list):
    """A list that is empty by the second time one looks."""

    looks = 0

    def __len__(self):
        self.looks += 1
        if self.looks > 1:
            self.clear()
        return super().__len__()


def test_what_changes_during_a_check_gives_no_raw_error():
    with pytest.raises((TypeError, ValueError), match="gold"):
        gold_ranks(np.eye(2), Flickering([0, 1, 1]))
    array = np.zeros((200, 200))
    stop = threading.Event()

    def flicker():
        while not stop.is_set():
            array[100, 100] = np.nan
            array[100, 100] = -1.0
            array[100, 100] = 0.0

    other = threading.Thread(target=flicker)
    other.start()
    try:
        refused = [message_of(check_non_negative, array) for _ in range(300)]
    finally:
        stop.set()
        other.join()
    assert all(message is None or message.startswith("X must be ") for message in refused)


def message_of(check, array):
    """The message of a refusal; any other error leaves the test."""
    try:
        check("X", array)
    except ValueError as error:
        return str(error)
    return None
