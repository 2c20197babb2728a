"""Makes the calls of a table, for a parent that sends Ctrl-C."""

import json
import signal
import sys
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # for `public_api`

from table import calls_of, digest, is_threaded


def say(**what) -> None:
    print(json.dumps(what), flush=True)


def interrupt(part: str, which: str) -> None:
    """Begin the calls of a table on one and on two threads, and tell how they ended."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name, call in calls_of(part).items():
        if not (which == "all" or (call.fast if which == "fast" else name == which)):
            continue
        threads = [{"n_threads": 1}, {"n_threads": 2}] if is_threaded(name) else [{}]
        _interrupt(name, call, threads)


def _interrupt(name, call, runs) -> None:
    work, small = call.make(call.long), call.make(call.short)
    for run in runs:
        before = digest_of(call, small(**run))  # imports and compiles
        how = "interrupted"
        try:
            say(name=name, **run, delay=call.delay)
            work(**run)
            how = "ended"
            time.sleep(10)
        except KeyboardInterrupt:
            pass
        except BaseException:
            say(how=traceback.format_exc())
            raise
        say(how="interrupted" if call.may_end else how, at=time.monotonic())
        after = digest_of(call, small(**run))
        assert after == before, f"{name} works on with other results"


def digest_of(call, result):
    return digest(result) if call.same_bits else ""


interrupt(*sys.argv[1:])
