"""Presses Ctrl-C before every line that writes a folder: run by test_store.py.

``python interrupted_folders.py FOLDER`` prints how many lines there are.
"""

import os
import signal
import sys
from itertools import count
from pathlib import Path

from kernelcore import _store
from kernelcore._store import read_folder, write_folder


def interrupted_at(line, work):
    """Press Ctrl-C before the n-th line of the module, in a child; False if there are fewer.

    The child then does the same work once more, which must not wait for what was interrupted.
    """
    child = os.fork()
    if child:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status in {0, 7}, (line, status)
        return status == 7
    lines, source = count(1), write_folder.__code__.co_filename

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


def read(folder):
    return read_folder(folder, "about.json", lambda about, parts: (parts / "text").read_text())


def main(folder):
    _store.sync = lambda path: None
    _store._ABANDONED = -1.0  # what a killed writer left goes with the next write

    def write(content="new"):
        write_folder(
            folder, "about.json", {}, lambda parts: (parts / "text").write_text(content)
        )

    line, is_interrupted = 0, True
    while is_interrupted:
        line += 1
        write("old")
        is_interrupted = interrupted_at(line, write)
        assert read(folder) in {"old", "new"}, line
        write("newer")
        assert read(folder) == "newer"
        assert len(list(folder.iterdir())) == 2, line
    return line


if __name__ == "__main__":
    print(main(Path(sys.argv[1])))
