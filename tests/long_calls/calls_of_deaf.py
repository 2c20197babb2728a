"""A call that is deaf for two seconds, by which the test itself is tested."""

import signal
import time

from table import Table

CALLS = Table()


def deaf(seconds):
    def work():
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        time.sleep(seconds)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

    return work


CALLS.add("kernels.power[deaf]", 2.3, 0, deaf)
