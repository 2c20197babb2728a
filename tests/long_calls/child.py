"""Makes the calls of the tables, for a parent that sends Ctrl-C or compares digests."""

import json
import signal
import sys
import time
import traceback

from table import PARTS, calls_of, digest, find, takes_threads, threaded_functions


def say(**what) -> None:
    print(json.dumps(what), flush=True)


def interrupt(part: str, which: str) -> None:
    """Begin the calls of a table on one and on two threads, and tell how they ended."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name, call in calls_of(part).items():
        if not (which == "all" or (call.fast if which == "fast" else name == which)):
            continue
        _interrupt(
            name, call, [{"n_threads": 1}, {"n_threads": 2}] if is_threaded(name) else [{}]
        )


def is_threaded(name: str) -> bool:
    function = find(name)
    owner = find(name.rpartition(".")[0])
    return takes_threads(function) or (isinstance(owner, type) and takes_threads(owner))


def _interrupt(name, call, runs) -> None:
    work, small = call.make(call.long), call.make(call.short)
    for run in runs:
        before = digest(small(**run))  # imports and compiles
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
        after = digest(small(**run))
        assert after == before or not call.same_bits, f"{name} works on with other results"


def digests(part: str) -> None:
    """Tell the digests of the results of short calls on one, two and three threads."""
    for name, call in calls_of(part).items():
        if call.same_bits and is_threaded(name):
            work = call.make(call.short)
            say(name=name, digests=[digest(work(n_threads=n)) for n in (1, 2, 3)])


def names() -> None:
    """Tell which public functions take ``n_threads``, and which calls the tables hold."""
    held = [name.partition("[")[0] for part in PARTS for name in calls_of(part)]
    for name in held:
        find(name)
    say(threaded=sorted(threaded_functions()), held=held)


{"interrupt": interrupt, "digests": digests, "names": names}[sys.argv[1]](*sys.argv[2:])
