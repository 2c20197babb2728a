"""The base class of a study, the log of its stages, and its results."""

from __future__ import annotations

import json
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from kernelcore._check import Array, check_choice, check_flag
from kernelcore._store import make_folder, replacing
from kernelcore._threads import Progress
from kernelcore.evaluation import Published, Result, ResultTable, Table
from kernelcore.experiments.result_files import (
    SystemFile,
    commit_of_source,
    has_result,
    path_of,
    processor,
)
from kernelcore.experiments.scores import hub_corrected_name, printed
from kernelcore.experiments.stages import Log, Stages
from kernelcore.experiments.steps import Store, kept_in, key_of
from kernelcore.report import (
    ReportFigure,
    Section,
    StageRecorder,
    recall_figure,
    save_figures,
    write_html,
    write_markdown,
)
from kernelcore.report.examples import Example

Results: TypeAlias = Sequence[Result | Published]
Tables: TypeAlias = tuple[Mapping[str, Result], Mapping[str, Array]]
"""Results of a system by pool, and further arrays."""

_Scored = TypeVar("_Scored")


@dataclass(frozen=True)
class StudyResults:
    """Results of a run, one row per system.

    Attributes
    ----------
    title : str
    results : sequence of Result or of Result, and Published
        Our own results, then the published ones.
    stages : StageRecorder
        Time and memory of each stage.
    sections : sequence of Section
        Further tables of the page.
    examples : callable
        Makes the examples of the page.
    figures : callable
        Makes the figures of the page that follow the recall curves.
    settings : mapping of str to Any
        Settings of the run.
    summary : str
        A paragraph under the title.
    """

    title: str
    results: Results
    stages: StageRecorder
    sections: Sequence[Section] = ()
    examples: Callable[[], Sequence[Example]] = tuple
    figures: Callable[[], Sequence[ReportFigure]] = tuple
    settings: Mapping[str, Any] = field(default_factory=dict)
    summary: str = ""

    def __str__(self) -> str:
        return "\n\n".join(map(str, (self.title, self.table, *self.sections, self.stages)))

    @property
    def table(self) -> Table:
        """The results as a table."""
        are_links = any(
            "links" in own.values for own in self.results if isinstance(own, Result)
        )
        return ResultTable(
            self.results, uncertainty="standard_error" if are_links else None
        ).to_table()

    def to_json(self) -> str:
        """Return results with their ranks, other tables, settings and stages as JSON."""
        document = {
            "title": self.title,
            "results": [result.to_dict() for result in self.results],
            "sections": [section.to_dict() for section in self.sections],
            "settings": dict(self.settings),
            "stages": self.stages.to_dict(),
        }
        return json.dumps(document, indent=1)

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Write ``results.md``, ``results.json``, ``report.html`` and pictures into a folder.

        The figures of the page are also PNG files, in the folder ``figures``.

        Each file is written whole or not at all. The page needs the extra ``plot``.
        """
        target = Path(folder)
        make_folder(target)
        with replacing(target / "results.json") as temporary:
            temporary.write_text(self.to_json(), encoding="utf-8")
        shared: dict[str, Any] = {
            "title": self.title,
            "summary": self.summary,
            "results": self.table,
            "sections": self.sections,
            "stages": self.stages,
            "settings": self.settings,
        }
        write_markdown(target / "results.md", **shared)
        measured = [
            one for one in self.results if isinstance(one, Result) and "search" in one.values
        ]
        corrected = {hub_corrected_name(one.system) for one in measured}
        curves = [one for one in measured if one.system not in corrected]
        figures = [*([recall_figure(curves)] if curves else ()), *self.figures()]
        write_html(
            target / "report.html",
            **shared,
            figures=figures,
            examples=self.examples(),
        )
        save_figures(figures, target / "figures")


@dataclass(kw_only=True)
class Study(ABC, Generic[_Scored]):
    """Base class of a study. Its fields are the options of a run.

    A study of a paper is a subclass with the data of the paper as class attributes and three
    methods: `prepare` reads the corpus, `score` scores one system, `findings` evaluates all.

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
    AFTER: ClassVar[tuple[str, ...]] = ()
    """Names of the stages after the systems."""

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
    def reproduce(cls, data: Path | str, **options: Any) -> StudyResults:
        """Run systems of the paper on a corpus and compare them with the published figures.

        Parameters
        ----------
        data : path
            Folder of the corpus.
        **options
            Fields of the study.

        Returns
        -------
        StudyResults
            One result per system and the published ones, with the stages of the run.

        Raises
        ------
        ValueError
            If a system or split does not exist, or an option is out of range.
        FileNotFoundError
            If `data` does not hold the corpus or its photos, or another file is missing.
        MissingExtraError
            If a package of an extra is missing.
        """
        return cls(data=data, **options).run()

    def run(self) -> StudyResults:
        """Check the options, prepare, score each system and evaluate the scores."""
        with self._prepared():
            scored = {}
            for name in self.names:
                with self.stages.stage(self.stage_of(name)):
                    scored[name] = self.score(name)
            return self.findings(scored)

    def write_results(self, folder: Path | str) -> list[Path]:
        """Write a file for each system when it is done, and return the paths.

        A system with a file of the same inputs and settings is not run again; see
        `kernelcore.experiments.result_files`.
        """
        root, paths = Path(folder), []
        if type(self).settings_of is Study.settings_of:
            raise ValueError(
                f"results must be omitted for {self.NAME}, whose page is made at once"
            )
        with self._prepared():
            inputs, commit = self.inputs(), commit_of_source()
            for name in self.names:
                key = key_of(inputs, name, self.settings_of(name))
                paths.append(path_of(root, self.NAME, name))
                if has_result(root, self.NAME, name, key):
                    continue
                start = time.monotonic()
                with self.stages.stage(self.stage_of(name)):
                    own: Any = self.score(name)
                    found = list(self.tables(name, own).items())
                for variant, (results, arrays) in reversed(found):  # the system itself last
                    SystemFile(
                        self.NAME,
                        variant,
                        inputs,
                        key,
                        results,
                        arrays=arrays,
                        settings=own.settings,
                        history=[] if own.history is None else list(own.history.epochs),
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
        systems = [self.stage_of(name) for name in self.names]
        self.stages = Stages([*self.BEFORE, *systems, *self.AFTER], systems, self.log)
        if self.log is not None and self.progress is False:
            self.progress = self.stages.report
        with kept_in(self.cache_dir, self.NAME) as folder:
            self.store = Store(folder)
            self.prepare()
            self.stages.leave_out(set(systems) - {self.stage_of(name) for name in self.names})
            yield

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

    def check(self) -> None:
        """Check the options that are special to the study."""

    def stage_of(self, system: str) -> str:
        """Name of the stage that scores a system."""
        return system

    def inputs(self) -> str:
        """Return the digest of what all systems of a page share."""
        raise NotImplementedError

    def settings_of(self, name: str) -> Any:
        """Return the settings that a system is run with; without it a study writes no files."""
        raise NotImplementedError

    def tables(self, name: str, scored: _Scored) -> Mapping[str, Tables]:
        """Evaluate a system and its variants: results, and arrays that pages need."""
        raise NotImplementedError

    @abstractmethod
    def prepare(self) -> None:
        """Read the corpus and compute what all systems need; may shorten `names`."""

    @abstractmethod
    def score(self, name: str) -> _Scored:
        """Score the reported split by one system."""

    @abstractmethod
    def findings(self, scored: Mapping[str, _Scored]) -> StudyResults:
        """Evaluate the scores of all systems and make the sections of the page."""


def check_systems(systems: Sequence[str] | None, known: Collection[str]) -> list[str]:
    """Return the names of the systems to run, each once; None stands for all."""
    if isinstance(systems, str) or (systems is not None and not systems):
        raise ValueError(f"systems must hold at least one name, got {systems!r}")
    names = list(known if systems is None else dict.fromkeys(systems))
    for name in names:
        check_choice("systems", name, tuple(known))
    return names
