"""Progress of long calls, to a callable, to a bar or to nobody."""

import pytest
from public_api import exported_callables, parameters_of

from kernelcore._threads import reporting, working


def test_nobody_is_told_unless_asked():
    defaults = {
        name: parameters_of(found)["progress"].default
        for name, found in exported_callables().items()
        if "progress" in parameters_of(found)
    }
    assert len(defaults) > 30
    assert all(default is False for default in defaults.values()), defaults


def test_a_callable_is_told_every_step_and_nobody_nothing():
    calls = []
    with reporting(lambda done, total: calls.append((done, total)), "Counting") as report:
        for done in range(1, 4):
            report(done, 3)
    assert calls == [(1, 3), (2, 3), (3, 3)]
    with reporting(False, "Counting") as report:
        assert report is None


def test_a_step_without_parts_is_told_once_it_is_done():
    calls = []
    with working(lambda *steps: calls.append(steps), "Thinking"):
        assert calls == []
    assert calls == [(1, 1)]
    with working(False, "Thinking"):
        pass


def test_a_step_that_failed_is_not_told_as_done():
    calls = []
    with (
        pytest.raises(RuntimeError, match="headache"),
        working(lambda *steps: calls.append(steps), "Thinking"),
    ):
        raise RuntimeError("headache")
    assert calls == []


def test_a_bar_goes_to_stderr_and_carries_its_description(capsys):
    with reporting(True, "Counting") as report:
        report(2, 2)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Counting" in captured.err
    assert "2/2" in captured.err
