"""Settings of libraries, shared by all threads that want them changed."""

import threading

import pytest

from kernelcore._threads import Limit, OneThread


@pytest.fixture
def setting():
    """A setting that is 4 by itself and 1 while somebody wants it."""
    values = [4]
    return OneThread(lambda: [Limit(lambda: values[-1], values.append)]), values


def test_a_setting_is_changed_and_restored_after_an_error_too(setting):
    shared, values = setting
    with shared():
        assert values == [4, 1]
    with pytest.raises(ZeroDivisionError), shared():
        _ = 1 / 0
    assert values == [4, 1, 4, 1, 4]


def test_the_last_user_restores_it_whoever_came_first(setting):
    shared, values = setting
    entered, leave = threading.Event(), threading.Event()

    def other():
        with shared():
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    with shared():
        thread.start()
        assert entered.wait(10)
    assert values[-1] == 1
    leave.set()
    thread.join()
    assert values[-1] == 4
