"""Presses Ctrl-C before every line that replaces a folder: run by test_store.py.

``python interrupted_folders.py FOLDER "at once"|"in steps"`` prints how many lines there are.
"""

import os
import signal
import sys
from itertools import count
from pathlib import Path

from kernelcore import _store
from kernelcore._store import recover_folder, replacing_folder


def interrupted_at(line, work):
    """Press Ctrl-C before the n-th line of the module, in a child; False if there are fewer.

    The child then does the same work once more, which must not wait for what was interrupted.
    """
    child = os.fork()
    if child:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status in {0, 7}, (line, status)
        return status == 7
    lines, source = count(1), replacing_folder.__wrapped__.__code__.co_filename

    def trace(frame, event, _):
        if frame.f_code.co_filename != source:
            return None
        if event == "line" and next(lines) == line:
            raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        work()
        os._exit(0)
    except KeyboardInterrupt:
        sys.settrace(None)
    try:
        signal.alarm(20)
        work()
        os._exit(7)
    finally:
        os._exit(1)


def main(folder, way):
    path = folder / "mine"
    _store.sync = lambda path: None
    if way == "in steps":
        _store._exchange = lambda one, other: False

    def write(content="new"):
        with replacing_folder(path) as temporary:
            (temporary / "content.txt").write_text(content)

    line, struck = 0, True
    while struck:
        line += 1
        write("old")
        struck = interrupted_at(line, write)
        recover_folder(path)
        assert (path / "content.txt").read_text() in {"old", "new"}, line
        write("newer")
        assert (path / "content.txt").read_text() == "newer"
        assert list(folder.iterdir()) == [path], line
    return line


if __name__ == "__main__":
    print(main(Path(sys.argv[1]), sys.argv[2]))
