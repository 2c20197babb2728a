"""Result files: one JSON file for each system of a study, from which pages are built."""

from __future__ import annotations

import base64
import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

import kernelcore
from kernelcore import _core
from kernelcore._store import load_json, make_folder, reading, save_json
from kernelcore.evaluation import Result

Numbers: TypeAlias = Mapping[str, Mapping[str, float]]
"""Single numbers, in groups: each group is a row of a table of the page."""

_KIND = "system of a study"
_COUNTS = ("n_relevant", "n_candidates")
_DTYPES = {"uint16": "<u2", "uint32": "<u4", "float64": "<f8"}


@dataclass(frozen=True)
class SystemFile:
    """Results of one system of a study, and what they were computed with.

    Attributes
    ----------
    study, system : str
    inputs : str
        Digest of the data, their features, the split, the seed and the study's recipe: equal
        for all systems of a page.
    key : str
        Digest of the inputs and of the system's settings: a file with this key is not
        computed again.
    results : mapping of str to Result
        By the name of the pool, or of the questions.
    arrays : mapping of str to ndarray of float64
        What tests need beside results, such as the photo of each caption.
    numbers : mapping of str to mapping of str to float
        Numbers that do not follow from the results.
    settings : mapping of str to Any
    history : sequence of mapping
        Losses of each epoch.
    seconds : float
        Time from the inputs to the results.
    commit, version, machine : str
        Of the code and of the processor.
    """

    study: str
    system: str
    inputs: str
    key: str
    results: Mapping[str, Result] = field(default_factory=dict)
    arrays: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    numbers: Numbers = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    history: Sequence[Mapping[str, float]] = ()
    seconds: float = 0.0
    commit: str = ""
    version: str = kernelcore.__version__
    machine: str = ""

    def save(self, folder: Path) -> Path:
        """Write the file of the system, whole or not at all."""
        path = path_of(folder, self.study, self.system)
        make_folder(path.parent)
        packed = {
            "results": {name: _packed(result) for name, result in self.results.items()},
            "arrays": {name: _encoded(own) for name, own in self.arrays.items()},
        }
        save_json(path, {"kind": _KIND, **vars(self), **packed})
        return path

    @classmethod
    def load(cls, path: Path) -> SystemFile:
        """Read a file that `save` wrote."""
        with reading(path, f"must be the file of a {_KIND} and is none or damaged"):
            document = dict(load_json(path))
            if document.pop("kind", None) != _KIND:
                raise ValueError("it says that it is another kind of file")
            packed = document.pop("results"), document.pop("arrays")
            results = {name: _unpacked(own) for name, own in packed[0].items()}
            arrays = {name: _decoded(own) for name, own in packed[1].items()}
            return cls(results=results, arrays=arrays, **document)


def path_of(folder: Path, study: str, system: str) -> Path:
    """Path of the file of a system: its name in small letters, words joined by hyphens."""
    return folder / study / f"{re.sub(r'[^a-z0-9]+', '-', system.lower()).strip('-')}.json"


def read_files(folder: Path, study: str) -> dict[str, SystemFile]:
    """Read the files of a study, by system; ValueError if they are of different inputs."""
    paths = sorted((folder / study).glob("*.json"))
    files = {file.system: file for file in map(SystemFile.load, paths)}
    by_inputs = {file.inputs: name for name, file in files.items()}
    if len(by_inputs) > 1:
        raise ValueError(
            f"{folder / study} must hold results of one recipe and the same inputs, got other "
            f"ones of {' and of '.join(list(by_inputs.values())[:2])}"
        )
    return files


def kept_file(path: Path) -> SystemFile | None:
    """Read a file if it is there and not damaged; a damaged one is written anew."""
    try:
        return SystemFile.load(path)
    except (FileNotFoundError, ValueError):
        return None


def check_inputs(folder: Path, study: str, inputs: str) -> None:
    """Raise ValueError if files of a study are of other inputs: they would be replaced."""
    for path in sorted((folder / study).glob("*.json")):
        file = kept_file(path)
        if file is not None and file.inputs != inputs:
            raise ValueError(
                "results must be a folder without results of other data, split, seed or "
                f"recipe, got {path} by version {file.version}"
            )


def commit_of_source() -> str:
    """Commit of the source folder that this package is imported from, if it is one."""
    folder = Path(kernelcore.__file__).parent
    git = ["git", "describe", "--always", "--dirty", "--abbrev=10"]
    try:
        run = subprocess.run(git, cwd=folder, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return run.stdout.strip()


def processor() -> str:
    """Instruction set in use, and the kind of the processor."""
    return f"{platform.machine()}, instruction set {_core.active_isa()}"


def _packed(result: Result) -> dict[str, Any]:
    """Return the document of a result: of search and annotation, the ranks alone."""
    document = result.to_dict()
    del document["mean"], document["group"]  # files hold the photo of each caption as arrays
    values = {}
    for task, of in result.values.items():
        names = ["median_rank"] if "median_rank" in of else list(of)
        values[task] = {name: _encoded(of[name]) for name in names}
    if result.items is not None:
        lengths = np.array([len(own) for own in result.items])
        places = np.unique([name for own in result.items for name in own], return_inverse=True)
        document["items"] = [_encoded(lengths), _encoded(places[1])]
    counts = {
        name: {task: _encoded(array) for task, array in getattr(result, name).items()}
        for name in _COUNTS
    }
    return {**document, **counts, "values": values, "metrics": list(result.columns)}


def _unpacked(document: Mapping[str, Any]) -> Result:
    """Return the result of a document; items are named by numbers."""
    own = dict(document)
    metrics = own.pop("metrics")
    values: dict[str, dict[str, Any]] = {}
    for task, of in own["values"].items():
        values[task] = {name: _decoded(code) for name, code in of.items()}
        if "median_rank" in of:
            values[task] |= _metrics_of(values[task]["median_rank"], metrics)
    if own["items"] is not None:
        lengths, places = (_decoded(code).astype(np.int64) for code in own["items"])
        parts = np.split(places.astype(str), np.cumsum(lengths)[:-1])
        own["items"] = [part.tolist() for part in parts]
    for name in _COUNTS:
        own[name] = {task: _decoded(code).astype(np.int64) for task, code in own[name].items()}
    own["tie_effect"] = {
        task: {name: effect for name, effect in of.items() if name in values[task]}
        for task, of in own["tie_effect"].items()
    }
    return Result.from_dict({**own, "group": {}, "values": values})


def _metrics_of(ranks: npt.NDArray[np.float64], names: Sequence[str]) -> dict[str, Any]:
    recalls = {name: ranks <= int(name[2:]) for name in names if name.startswith("R@")}
    others = {"mean_rank": ranks, "mean_reciprocal_rank": 1 / ranks}
    return {**{name: own.astype(np.float64) for name, own in recalls.items()}, **others}


def _encoded(values: npt.NDArray[Any]) -> dict[str, Any]:
    """Encode twice the numbers as small integers, as ties give halves; others as floats."""
    numbers = values.astype(np.float64)
    if len(numbers) and (numbers == numbers[0]).all():
        return {"equal": [float(numbers[0]), len(numbers)]}
    twice, dtype = 2.0 * numbers, "float64"
    if (twice % 1 == 0).all() and twice.min() >= 0 and twice.max() < 2**32:
        numbers, dtype = twice, "uint16" if twice.max() < 2**16 else "uint32"
    content = numbers.astype(_DTYPES[dtype]).tobytes()
    return {dtype: base64.b64encode(content).decode("ascii")}


def _decoded(code: Mapping[str, Any]) -> npt.NDArray[np.float64]:
    ((dtype, content),) = code.items()
    if dtype == "equal":
        value, n = content
        return np.full(n, float(value))
    content = base64.b64decode(content, validate=True)
    numbers = np.frombuffer(content, _DTYPES[dtype]).astype(np.float64)
    return numbers if dtype == "float64" else numbers / 2
