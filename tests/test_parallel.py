"""Work in several threads: results, errors, progress, and an end whenever one is asked for."""

import os
import signal
import threading
import time
from contextlib import contextmanager, nullcontext
from unittest import mock

import pytest

from kernelcore import _threads
from kernelcore._threads import check_stopped, in_threads, reporting, stop_flag, working


def steps_of(report):
    return [call.args for call in report.call_args_list]


@pytest.mark.parametrize("n_threads", [1, 2, 7])
@pytest.mark.parametrize("n_items", [0, 1, 2, 50])
def test_results_are_in_order_and_every_step_is_reported(n_items, n_threads):
    report = mock.Mock()
    squares = in_threads(lambda i: i * i, range(n_items), n_threads, report=report)
    assert squares == [i * i for i in range(n_items)]
    assert steps_of(report) == [(i, n_items) for i in range(1, n_items + 1)]


def test_of_many_items_some_are_reported_and_the_total():
    report, n = mock.Mock(), 100_001
    in_threads(abs, range(n), 2, report=report)
    assert steps_of(report) == [*((i, n) for i in range(10, n, 10)), (n, n)]


def test_threads_work_side_by_side_and_not_in_the_calling_one():
    both = threading.Barrier(2)

    def work(_):
        both.wait(20)
        return threading.get_ident()

    assert threading.get_ident() not in in_threads(work, "ab", 2)


def test_the_total_is_reported_when_the_work_is_over():
    at_work = []

    def work(item):
        at_work.append(item)
        time.sleep(0.12)
        at_work.remove(item)

    def report(done, total):
        if done == total:
            assert not at_work

    in_threads(work, range(2), 2, report=report)


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_the_first_item_with_an_error_is_the_one_that_is_raised(n_threads):
    seen = []

    def work(i):
        seen.append(i)
        if i == 2:
            time.sleep(0.1 if n_threads > 1 else 0)  # the next item fails before this one
            raise KeyError(i)
        if i == 3:
            raise KeyError(i)

    with pytest.raises(KeyError, match="2"):
        in_threads(work, range(100), n_threads)
    assert len(seen) < 10  # no more is begun


def test_each_thread_works_within_the_setting_whose_error_is_raised():
    here, inside = threading.local(), []

    @contextmanager
    def setting():
        here.entered = True
        yield
        inside.append(here.entered)
        if is_wrong:
            raise OSError("it cannot be undone")

    for is_wrong in (False, True):
        error = pytest.raises(OSError, match="undone") if is_wrong else nullcontext()
        with error:
            found = in_threads(lambda _: here.entered, range(9), 3, setting=setting)
        assert found == [True] * 9
    assert inside == [True] * 6


@pytest.mark.parametrize("n_left", [0, 1])
def test_too_few_threads_to_be_had(monkeypatch, n_left):
    start, started = _threads.start_new_thread, []

    def start_few(run, arguments):
        if len(started) == n_left:
            raise RuntimeError("can't start new thread")
        started.append(run)
        return start(run, arguments)

    monkeypatch.setattr(_threads, "start_new_thread", start_few)
    if n_left:
        assert in_threads(abs, range(5), 3) == list(range(5))
    else:
        with pytest.raises(RuntimeError, match="new thread"):
            in_threads(abs, range(5), 3)


def test_a_report_that_raises_stops_the_work():
    def work(i):
        while i > 0:
            check_stopped()
            time.sleep(0.001)

    with pytest.raises(InterruptedError):
        in_threads(work, range(3), 2, report=mock.Mock(side_effect=InterruptedError))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_ctrl_c_ends_all_threads_also_of_a_call_within(n_threads, compiled):
    ended = []

    def forever(_):
        flag = stop_flag()
        try:
            while not (compiled and flag[0]):
                time.sleep(0.001)
                compiled or check_stopped()
        finally:
            ended.append(threading.get_ident())

    timer = threading.Timer(0.1, signal.raise_signal, (signal.SIGINT,))
    timer.start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        in_threads(lambda _: in_threads(forever, range(2), 2), range(5), n_threads)
    assert time.monotonic() - begin < 5
    assert len(set(ended)) == 2 * n_threads
    assert in_threads(abs, range(5), 2) == list(range(5))


def test_works_in_a_thread_that_no_signal_reaches():
    results = []
    thread = threading.Thread(target=lambda: results.extend(in_threads(abs, range(9), 2)))
    thread.start()
    thread.join(20)
    assert results == list(range(9))


def test_outside_nothing_is_stopped():
    check_stopped()
    assert not stop_flag()[0]
    assert _threads.Stopped.__mro__[1] is BaseException  # "except Exception" lets it pass


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_no_thread_goes_on_if_ctrl_c_comes_while_threads_start():
    running = []

    def work(item):
        running.append(item)
        if item == 0:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.02)
        running.remove(item)

    for _ in range(30):
        with pytest.raises(KeyboardInterrupt):
            in_threads(work, range(4), 2)
        assert not running


def test_a_callable_is_told_every_step_that_did_not_fail():
    told = mock.Mock()
    with reporting(False, "Counting") as report, working(False, "Thinking"):
        assert report is None
    with reporting(told, "Counting") as report:
        for done in range(1, 4):
            report(done, 3)
    assert steps_of(told) == [(1, 3), (2, 3), (3, 3)]
    with pytest.raises(RuntimeError, match="headache"), working(told, "Thinking"):
        raise RuntimeError("headache")
    with working(told, "Thinking"):
        assert told.call_count == 3
    assert told.call_args.args == (1, 1)


def test_a_bar_goes_to_stderr_and_carries_its_description(capsys):
    pytest.importorskip("rich")
    with reporting(True, "Counting") as report:
        report(2, 2)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Counting" in captured.err
    assert "2/2" in captured.err
