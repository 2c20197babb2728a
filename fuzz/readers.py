"""Every reader of files, given damaged ones: a result, or an error that names the file."""

from __future__ import annotations

import errno
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from fuzz import deep_seeds, model_seeds, ranker_seeds, text_seeds
from fuzz.mutations import Rng, damaged, pick
from fuzz.seed_files import Files
from fuzz.target import Target
from kernelcore.datasets import DatasetWarning


class Reader(NamedTuple):
    """A reader, and whole files for it.

    Attributes
    ----------
    files : callable
        Gives files by name, whole.
    read : callable
        Reads them from a folder, and does with the result what must not fail.
    """

    files: Callable[[], Files]
    read: Callable[[Path], Any]

    def check(self, folder: Path) -> None:
        """Read the files in a folder; raise unless all went well or the error names one."""
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", DatasetWarning)
            try:
                self.read(folder)
            except ValueError as error:
                if str(folder) not in str(error):
                    raise AssertionError(f"the error names no file: {error}") from error
            except FileNotFoundError:
                pass  # perhaps of another file that this one names
            except OSError as error:
                if error.errno == errno.ENAMETOOLONG or str(folder) not in str(error):
                    raise AssertionError(f"the error names no file: {error}") from error


@cache
def whole(name: str) -> Files:
    """Return the files of a reader, made once in a process."""
    files = READERS[name].files()
    return dict(sorted(files.items()))


def _run(rng: Rng, folder: Path, *, name: str) -> None:
    files = dict(whole(name))
    for _ in range(1 + int(rng.random() < 0.1)):
        victim = pick(rng, list(files))
        files[victim] = damaged(rng, victim, files[victim])
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    READERS[name].check(folder)


READERS: dict[str, Reader] = {
    name: Reader(*parts)
    for readers in (
        model_seeds.READERS,
        ranker_seeds.READERS,
        text_seeds.READERS,
        deep_seeds.READERS,
    )
    for name, parts in readers.items()
}

TARGETS = tuple(Target(name, "reader", partial(_run, name=name)) for name in READERS)
