"""A call that is deaf for two seconds, by which the test itself is tested."""

import signal
import time

from table import table

CALLS, call = table()


@call("kernels.power[deaf]", 2.3, 0)
def deaf(n):
    def work():
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        time.sleep(n)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

    return work
