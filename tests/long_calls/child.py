"""Makes the calls of the tables, for a parent that sends Ctrl-C or compares digests."""

import json
import signal
import sys
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # for `public_api`

from public_api import exported_callables
from table import PARTS, calls_of, digest, find, takes_threads


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


def is_threaded(name: str) -> bool:
    function = find(name)
    owner = find(name.rpartition(".")[0])
    return takes_threads(function) or (isinstance(owner, type) and takes_threads(owner))


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


def digests(part: str) -> None:
    """Tell the digests of the results of short calls on one, two and three threads."""
    for name, call in calls_of(part).items():
        if call.same_bits and is_threaded(name):
            work = call.make(call.short)
            say(name=name, digests=[digest(work(n_threads=n)) for n in (1, 2, 3)])


def names() -> None:
    """Tell which public functions take ``n_threads``, and which of them are in no table."""
    held = [name.partition("[")[0] for part in PARTS for name in calls_of(part)]
    found = {*map(find, held), *(find(name.rpartition(".")[0]) for name in held)}
    threaded = {n: own for n, own in exported_callables().items() if takes_threads(own)}
    say(threaded=list(threaded), missing=[n for n, own in threaded.items() if own not in found])


{"interrupt": interrupt, "digests": digests, "names": names}[sys.argv[1]](*sys.argv[2:])
