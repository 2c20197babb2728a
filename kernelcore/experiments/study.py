"""The base class of a study: it runs systems and writes a result file for each."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._check import check_choice, check_flag
from kernelcore._threads import Progress
from kernelcore.evaluation import Result
from kernelcore.experiments.page import Files, run_section
from kernelcore.experiments.result_files import (
    Numbers,
    SystemFile,
    check_inputs,
    commit_of_source,
    kept_file,
    path_of,
    processor,
    read_files,
)
from kernelcore.experiments.scores import printed
from kernelcore.experiments.steps import Store, key_of
from kernelcore.report import Section, StageRecorder

Log: TypeAlias = Callable[[str], None]

_SECONDS_BETWEEN_LINES = 30.0


class Stages(StageRecorder):
    """Record the stages of a run, and write one line for each to a log.

    A line has the time of the stage and an estimate of the time left: the mean time of the
    systems so far, times the number of systems left. Systems that were read from the cache do
    not count for the mean.

    Parameters
    ----------
    plan : sequence of str
        Names of all stages, in the order in which they will run.
    systems : collection of str
        Names of the stages that score one system each.
    log : callable, optional
        Called with each line.
    """

    def __init__(self, plan: Sequence[str], systems: Collection[str], log: Log | None) -> None:
        super().__init__()
        self._plan, self._systems, self._log = plan, systems, log
        self._stage = ""
        self._last_line = time.monotonic()

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage, record it and log it."""
        self._stage = name
        with super().stage(name):
            yield
        place = self._plan.index(name) + 1
        line = f"stage {place} of {len(self._plan)}, {name}: "
        line += _duration(self.stages[-1].seconds)
        seconds = [stage.seconds for stage in self.stages if stage.name in self._systems]
        trained = [one for one in seconds if one > max(seconds) / 100]
        n_left = sum(other in self._systems for other in self._plan[place:])
        if trained and n_left:
            line += f"; about {_duration(n_left * float(np.mean(trained)))} left"
        self._say(line)

    def report(self, done: int, total: int) -> None:
        """Log how far a loop within a stage is, at most one line in 30 seconds."""
        if done < total and time.monotonic() - self._last_line >= _SECONDS_BETWEEN_LINES:
            self._say(f"{self._stage}: {done} of {total}")

    def _say(self, line: str) -> None:
        self._last_line = time.monotonic()
        if self._log is not None:
            self._log(line)


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


@dataclass(frozen=True)
class Found:
    """What was measured of a system, see `SystemFile`."""

    results: Mapping[str, Result] = field(default_factory=dict)
    arrays: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    numbers: Numbers = field(default_factory=dict)


class Measured(NamedTuple):
    """A system that was run.

    Attributes
    ----------
    found : mapping of str to Found
        By the names of the system and of its variants, such as the one corrected for hubs.
    settings : mapping of str to Any
    history : sequence of mapping
        Losses of each epoch.
    """

    found: Mapping[str, Found]
    settings: Mapping[str, Any]
    history: Sequence[Mapping[str, float]] = ()


@dataclass(kw_only=True)
class Study(ABC):
    """Base class of a study. Its fields are the options of a run.

    A study of a paper is a subclass with the data of the paper as class attributes and three
    methods: `prepare` reads the corpus, `measure` runs one system and evaluates it, `tables`
    makes the tables of the page from the result files alone.

    Parameters
    ----------
    data : path
        Folder of Flickr8k or Flickr30k, see `kernelcore.datasets.load_flickr`.
    systems : sequence of str, optional
        Systems to run; the default is all of them.
    as_printed : bool, default False
        Run only the systems with the paper's own choices, see `PRINTED`.
    split : str, default "test"
        The split to report. Settings and epochs are chosen on ``dev``.
    cache_dir : path, optional
        Folder of cached steps: a second run, also after a kill, resumes from them.
        Without it the files are temporary.
    n_threads : int, optional
        Threads to use; the default is every core this process may run on.
    progress : bool or callable, default False
        Show bars.
    log : callable, optional
        Called with one line per stage: its time and an estimate of the time left.
    """

    NAME: ClassVar[str]
    RECIPE: ClassVar[int] = 1
    """Raised by hand when a change of the code alters results: files of another recipe do not
    stand on one page."""
    TITLE: ClassVar[str]
    SYSTEMS: ClassVar[Collection[str]]
    PRINTED: ClassVar[Collection[str]] = ()
    """Names of the systems with the paper's own choices, see `printed`."""
    MAIN: ClassVar[str] = ""
    """The paper's main system."""
    SPLITS: ClassVar[tuple[str, ...]] = ("test", "dev")
    BEFORE: ClassVar[tuple[str, ...]] = ()
    """Names of the stages before the systems."""

    data: Path | str
    systems: Sequence[str] | None = None
    as_printed: bool = False
    split: str = "test"
    cache_dir: Path | str | None = None
    n_threads: int | None = None
    progress: Progress = False
    log: Log | None = None

    names: list[str] = field(init=False, repr=False)
    stages: Stages = field(init=False, repr=False)
    store: Store = field(init=False, repr=False)

    @classmethod
    def reproduce(cls, data: Path | str, results: Path | str, **options: Any) -> list[Path]:
        """Run systems of the paper on a corpus, and write a file for each when it is done.

        Parameters
        ----------
        data : path
            Folder of the corpus.
        results : path
            Folder of the files, one folder for each study. A system with a file of the same
            inputs and settings is not run again.
        **options
            Fields of the study.

        Returns
        -------
        list of Path
            The file of each system; see `sections` for the tables that follow from them.

        Raises
        ------
        ValueError
            If a system or split does not exist, an option is out of range, or the folder has
            results of other inputs.
        FileNotFoundError
            If `data` does not hold the corpus or its photos, or another file is missing.
        MissingExtraError
            If a package of an extra is missing.
        """
        return cls(data=data, **options).run(results)

    def run(self, results: Path | str) -> list[Path]:
        """Run the systems that have no file in a folder; see `reproduce`."""
        root, paths = Path(results), []
        if root.exists() and not root.is_dir():
            raise NotADirectoryError(f"results must be a folder, got a file: {root}")
        with self._prepared():
            inputs, commit = self.inputs(), commit_of_source()
            check_inputs(root, self.collection, inputs)
            for name in self.names:
                key = key_of(inputs, name, self.settings_of(name))
                paths.append(path_of(root, self.collection, name))
                kept = kept_file(paths[-1])
                if kept is not None and kept.key == key:
                    continue
                start = time.monotonic()
                with self.stages.stage(name):
                    measured = self.measure(name)
                for variant, own in [*measured.found.items()][::-1]:  # the system last
                    SystemFile(
                        self.collection,
                        variant,
                        inputs,
                        key,
                        **vars(own),
                        settings=measured.settings,
                        history=measured.history,
                        seconds=round(time.monotonic() - start, 1),
                        commit=commit,
                        machine=processor(),
                    ).save(root)
        return paths

    @contextmanager
    def _prepared(self) -> Iterator[None]:
        """Check the options, open the cache and prepare."""
        self.names = self._chosen_systems()
        check_choice("split", self.split, self.SPLITS)
        self.check()
        self.stages = Stages([*self.BEFORE, *self.names], self.names, self.log)
        if self.log is not None and self.progress is False:
            self.progress = self.stages.report
        kept = TemporaryDirectory() if self.cache_dir is None else nullcontext(self.cache_dir)
        with kept as folder:
            self.store = Store(Path(folder) / self.NAME)
            self.prepare()
            yield

    @property
    def collection(self) -> str:
        """Name of the folder of the files, whose inputs are the same."""
        return self.NAME

    @property
    def shared(self) -> dict[str, Any]:
        """Arguments that change how a step runs, but not its result."""
        return {"n_threads": self.n_threads, "progress": self.progress}

    def _chosen_systems(self) -> list[str]:
        """Return the names of the systems to run."""
        if not check_flag("as_printed", self.as_printed):
            return check_systems(self.systems, (*self.SYSTEMS, *self.PRINTED))
        if not self.PRINTED:
            raise ValueError(
                f"as_printed must be False for {self.NAME}, which has no system as printed, "
                "got True"
            )
        wanted = self.systems
        if wanted is not None and not isinstance(wanted, str):
            wanted = [name if name in self.PRINTED else printed(name) for name in wanted]
        return check_systems(wanted, self.PRINTED)

    def check(self) -> None:  # noqa: B027 - a study may have no such option
        """Check the options that are special to the study."""

    @abstractmethod
    def prepare(self) -> None:
        """Read the corpus and compute what all systems need."""

    @abstractmethod
    def inputs(self) -> str:
        """Return the digest of what all systems of a page share."""

    @abstractmethod
    def settings_of(self, name: str) -> Any:
        """Return the settings that a system is run with."""

    @abstractmethod
    def measure(self, name: str) -> Measured:
        """Run a system on the reported split and evaluate it."""

    @classmethod
    def sections(cls, results: Path) -> list[Section]:
        """Make the tables of the page from the files of a folder."""
        files = read_files(results, cls.NAME)
        return [*cls.tables(files), run_section(files, (*cls.SYSTEMS, *cls.PRINTED))]

    @classmethod
    @abstractmethod
    def tables(cls, files: Files) -> Iterator[Section]:
        """Make the tables of the page but the last one, see `run_section`."""


def check_systems(systems: Sequence[str] | None, known: Collection[str]) -> list[str]:
    """Return the names of the systems to run, each once; None stands for all."""
    if isinstance(systems, str) or (systems is not None and not systems):
        raise ValueError(f"systems must hold at least one name, got {systems!r}")
    names = list(known if systems is None else dict.fromkeys(systems))
    for name in names:
        check_choice("systems", name, tuple(known))
    return names
