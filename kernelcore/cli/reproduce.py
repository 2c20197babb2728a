"""The command ``reproduce``: the fields of the class of a study are the options of its run."""

from __future__ import annotations

import importlib
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from kernelcore._store import printable, replacing
from kernelcore.cli.common import note, on_terminal, say
from kernelcore.cli.options import LazyGroup, command_of

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
    """The studies, by the names of their modules."""

    summaries: ClassVar = {
        "hodosh2013": "Image description as a ranking task (Hodosh et al. 2013).",
        "hessel2019": "Links inside documents of sentences and images (Hessel et al. 2019).",
        "karpathy2014": "Regions of photos and fragments of sentences (Karpathy et al. 2014).",
        "hu2019": "Embeddings, cross attention, binary image selection (Hu et al. 2019).",
        "khojasteh2019": "Images and joined captions as order embeddings (Khojasteh 2019).",
    }

    def load(self, name: str) -> Any:
        """Import a study and make a command of it."""

        def run(*, study: Study, results: Path | None = None) -> None:
            """Run a study.

            Parameters
            ----------
            results : path, optional
                Folder for a file of each system, and for the tables of all files. A system
                that has its file there is not run again.
            """
            if not Path(study.data).is_dir():
                raise NotADirectoryError(f"data must be a folder of a corpus, got {study.data}")
            chosen = replace(study, progress=on_terminal(), log=note)
            with tempfile.TemporaryDirectory() as unnamed:
                folder = Path(unnamed) if results is None else results
                paths = chosen.run(folder)
                sections = chosen.sections(folder)
            say("\n\n".join([chosen.TITLE, *map(str, sections)]))
            if results is not None:
                page = results / f"{name}.md"
                parts = [f"# {chosen.TITLE}", *(one.to_markdown() for one in sections)]
                with replacing(page) as temporary:
                    temporary.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
                say("\n" + "\n".join(f"Wrote {printable(path)}." for path in (*paths, page)))

        run.__annotations__["study"] = study_of(name)
        return command_of(run, self.summaries[name], _OPTIONS)


reproduce = Studies(
    name="reproduce",
    help="Run systems of a publication on Flickr8k, beside the published figures.",
    no_args_is_help=True,
)


def study_of(name: str) -> type[Study]:
    """Import the module of a study and return its class."""
    module = importlib.import_module(f"kernelcore.experiments.{name}")
    found: type[Study] = getattr(module, name.capitalize())
    return found
