"""How targets are judged, on results made up here."""

from collections import Counter
from dataclasses import replace

import measures
import pytest
from outcomes import ReasonError, Target, evaluate, outcome_of, with_unit
from targets import TARGETS

RESULTS = {
    "speed": {
        "sorting, 1 thread": {
            "seconds": {
                "kernelcore": [0.5, 0.25],
                "numpy, by counting": [1.0, 1.5],
                "scipy": [3.0, 2.0],
                "kernelcore, both": [0.1],
            },
            "size": 100.0,
        },
        "sorting, 2 threads": {"seconds": {"kernelcore": [0.125]}, "size": None},
    },
    "roofline": {"1 thread": {"v2": {"shares": {"x": 0.1}}, "v4": {"shares": {"x": 0.4}}}},
    "scale": {},
}
SORTING = measures.seconds("sorting")
SPEEDUP = measures.ratio(measures.seconds("sorting", "scipy"), SORTING)


def target(relation=">=", bound=5.0, measure=SPEEDUP, **other):
    return Target("sorting", "times scipy", relation, bound, "x", measure, **other)


@pytest.mark.parametrize(
    ("measure", "value"),
    [
        (SORTING, 0.25),
        (measures.seconds("sorting", n_threads=2), 0.125),
        (SPEEDUP, 8.0),
        (measures.best_peer("sorting"), 1.0),
        (measures.rate("sorting"), 400.0),
        (measures.scaled(1e3, SORTING), 250.0),
        (measures.slowest(SORTING, measures.best_peer("sorting")), 1.0),
        (measures.found("roofline", "1 thread", "v2", "shares", "x"), 0.1),
        (measures.found("roofline", "1 thread", "best set", "shares", "x"), 0.4),
    ],
)
def test_measures(measure, value):
    assert measure(RESULTS) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    "measure",
    [
        measures.seconds("searching"),
        measures.seconds("sorting", "torch"),
        measures.seconds("sorting", n_threads=3),
        measures.best_peer("sorting", n_threads=2),
        measures.ratio(measures.seconds("sorting", "torch"), SORTING),
        measures.found("roofline", "2 threads", "v4"),
        measures.found("growth", "anything"),
        measures.found("roofline", "1 thread", "v2", "shares", "x", "deeper"),
    ],
)
def test_what_is_not_stored_was_not_measured(measure):
    with pytest.raises(measures.NotMeasuredError):
        measure(RESULTS)
    outcome = outcome_of(target(measure=measure), RESULTS)
    assert (outcome.value, outcome.verdict) == (None, "not measured here")


@pytest.mark.parametrize(
    ("relation", "bound", "verdict"),
    [
        (">=", 7.9, "met"),
        (">=", 8.0, "met"),
        (">=", 8.1, "missed"),
        ("<=", 8.1, "met"),
        ("<=", 8.0, "met"),
        ("<=", 7.9, "missed"),
    ],
)
def test_bounds_hold_themselves(relation, bound, verdict):
    outcome = outcome_of(target(relation, bound), RESULTS)
    assert (outcome.value, outcome.verdict) == (8.0, verdict)


def test_share_may_be_missing():
    measured = measures.found("roofline", "1 thread", "v4", "shares", "x")
    assert outcome_of(target(share=measured), RESULTS).share == 0.4
    absent = outcome_of(target(share=measures.found("roofline", "gpu")), RESULTS)
    assert (absent.share, absent.verdict) == (None, "met")


def test_reasons_go_with_what_is_missed():
    met, missed = target(bound=5.0), target(bound=9.0, reason="the machine is small")
    absent = target(measure=measures.seconds("searching"))
    outcomes = evaluate([met, missed, absent, replace(absent, reason="slow")], RESULTS)
    assert [one.verdict for one in outcomes] == ["met", "missed", *["not measured here"] * 2]


def test_a_missed_target_needs_a_reason():
    with pytest.raises(ReasonError, match=r"times scipy: 8x, >= 9x: needs a reason"):
        evaluate([target(), target(bound=9.0)], RESULTS)


def test_a_met_target_has_no_reason():
    with pytest.raises(ReasonError, match=r"times scipy: 8x, >= 5x: is met"):
        evaluate([target(reason="it was once")], RESULTS)


def test_all_wrong_reasons_are_named_at_once():
    with pytest.raises(ReasonError) as caught:
        evaluate([target(reason="once"), target(bound=9.0)], RESULTS)
    assert len(str(caught.value).splitlines()) == 2


def test_every_target_says_what_it_is_once():
    names = Counter((one.work, one.claim) for one in TARGETS)
    assert [name for name, count in names.items() if count > 1] == []


def test_targets_of_an_empty_machine_are_not_measured():
    assert {outcome_of(one, {}).verdict for one in TARGETS} == {"not measured here"}


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (8.0, "x", "8x"),
        (0.734, "%", "73%"),
        (1_234_000.0, "/s", "1.2 M/s"),
        (1234.0, "s", "1,234 s"),
        (2.13, "", "2.13"),
    ],
)
def test_units(value, unit, text):
    assert with_unit(value, unit) == text
