"""The command ``reproduce``: the fields of the class of a study are the options of its run."""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Sequence
from pathlib import Path
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from kernelcore._store import printable
from kernelcore.cli.common import note, on_terminal, say
from kernelcore.cli.options import LazyGroup, command_with, options_of

if TYPE_CHECKING:
    from kernelcore.experiments.study import Study

# Options that are not called like their fields, and least values.
_OPTIONS: dict[str, dict[str, Any]] = {
    "systems": {"name": "--system"},
    "cache_dir": {"name": "--cache"},
    "n_threads": {"name": "--threads", "min": 1},
    "wordnet_dir": {"name": "--wordnet"},
    "word_vectors_file": {"name": "--word-vectors"},
    "n_epochs": {"name": "--epochs", "min": 1},
    "n_components": {"name": "--components", "min": 1},
    "batch_size": {"min": 2},
    "rng": {"name": "--seed", "min": 0},
}


class Studies(LazyGroup):
    """The studies, by the names of their modules.

    Parameters
    ----------
    output : path, optional
        Folder for the results as HTML, Markdown and JSON.
    """

    summaries: ClassVar = {
        "hodosh2013": "Image description as a ranking task (Hodosh et al. 2013).",
        "hessel2019": "Links inside documents of sentences and images (Hessel et al. 2019).",
        "karpathy2014": "Regions of photos and fragments of sentences (Karpathy et al. 2014).",
        "hu2019": "Embeddings, cross attention, binary image selection (Hu et al. 2019).",
        "khojasteh2019": "Images and joined captions as order embeddings (Khojasteh 2019).",
    }

    def load(self, name: str) -> Any:
        """Import a study and make a command of it."""
        study = study_of(name)
        hints: dict[str, Any] = {"output": Path | None}
        fields = inspect.signature(study).parameters
        for field, hint in get_type_hints(study).items():
            kind = _option_type(hint)
            if field in fields and field != "progress" and kind is not None:
                hints[field] = Annotated[kind, _OPTIONS.get(field, {})]
        parameters = {field: fields[field] for field in hints if field in fields}
        output = inspect.Parameter("output", inspect.Parameter.KEYWORD_ONLY, default=None)

        def run(output: Path | None, **values: Any) -> None:
            defaults = {field: str(own.default) for field, own in parameters.items()}
            given = {field: v for field, v in values.items() if str(v) != defaults[field]}
            found = study(**given, progress=on_terminal(), log=note).run()
            say(found)
            if output is not None:
                found.write(output)
                say(f"\nWrote report.html, results.md and results.json to {printable(output)}.")

        options = options_of(study, parameters, hints)
        options += options_of(Studies, {"output": output}, hints)
        return command_with(run, options, self.summaries[name])


reproduce = Studies(
    name="reproduce",
    help="Run systems of a publication on Flickr8k, beside the published figures.",
    no_args_is_help=True,
)


def _option_type(hint: Any) -> Any:
    """Return the type of the option that sets a field; None for what no option can set."""
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    for form, kind in (
        (os.PathLike[str], Path),
        (Path, Path),
        (Sequence[str], list[str]),
        (int, int),
        (bool, bool),
        (str, str),
    ):
        if form in parts:
            return kind | None if type(None) in parts else kind
    return hint if get_origin(hint) is Literal else None


def study_of(name: str) -> type[Study[Any]]:
    """Import the module of a study and return its class."""
    module = importlib.import_module(f"kernelcore.experiments.{name}")
    found: type[Study[Any]] = getattr(module, name.capitalize())
    return found
