"""The command ``kernelcore``: its commands by name, each imported when it is called."""

from __future__ import annotations

import importlib
from typing import Annotated, Any, ClassVar

import typer

import kernelcore
from kernelcore.cli.options import LazyGroup, command_of

_MODULES = {
    "training": ("demo", "train", "info"),
    "reproduce": ("reproduce",),
    "searching": ("index", "search", "annotate", "serve"),
    "evaluating": ("evaluate",),
    "comparing": ("compare",),
}


class Commands(LazyGroup):
    """The commands, each a function of its name."""

    summaries: ClassVar = {
        "demo": "Draw scenes, learn from them, rank and write a page. Needs no data.",
        "reproduce": "Run systems of a publication on Flickr8k, beside the published figures.",
        "train": "Learn from photos with captions of your own and save a model.",
        "index": "Make a folder of photos ready to search; add new and remove missing ones.",
        "search": "Find the photos of a folder that fit a sentence.",
        "annotate": "Find the sentences of a file that fit a photo.",
        "serve": "Open a page to search photos by sentences and photos, until Ctrl-C.",
        "evaluate": "Measure a model on new photos, or embeddings or scores of any model.",
        "compare": "Test whether systems differ, by files of values for each item.",
        "info": "Show how this copy was built and which optional parts it found.",
    }

    def load(self, name: str) -> Any:
        """Import the module of a command."""
        module = next(module for module, names in _MODULES.items() if name in names)
        found = getattr(importlib.import_module(f"kernelcore.cli.{module}"), name)
        return (
            found if isinstance(found, LazyGroup) else command_of(found, self.summaries[name])
        )


app = typer.Typer(
    cls=Commands,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"kernelcore {kernelcore.__version__}")
        raise typer.Exit


@app.callback()
def options(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version and leave.",
            callback=_print_version,
            is_eager=True,
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where in the code an error arose.")
    ] = False,
) -> None:
    """Search photos by sentences, annotate photos with sentences, and measure how well."""
