"""The command ``kernelcore``: its commands by name, each imported when it is called."""

from __future__ import annotations

import importlib
from typing import Any, ClassVar

import click

import kernelcore
from kernelcore.cli.options import LazyGroup, command_of

# The module of each command, whose function has its name, and one line about it.
_COMMANDS = {
    "demo": ("training", "Draw scenes, learn from them, rank and write a page. Needs no data."),
    "reproduce": ("reproduce", "Run systems of a publication beside the published figures."),
    "train": ("training", "Learn from photos with captions of your own and save a model."),
    "index": ("searching", "Make a folder of photos ready to search, or follow its changes."),
    "search": ("searching", "Find the photos of a folder that fit a sentence."),
    "annotate": ("searching", "Find the sentences of a file that fit a photo."),
    "serve": ("searching", "Open a page to search photos by sentences and photos."),
    "evaluate": ("evaluating", "Measure a model on new photos, or any embeddings or scores."),
    "compare": ("comparing", "Test whether systems differ, by files of values for each item."),
    "info": ("training", "Show how this copy was built and which optional parts it found."),
}


class Commands(LazyGroup):
    """The commands."""

    summaries: ClassVar = {name: about for name, (_, about) in _COMMANDS.items()}

    def load(self, name: str) -> Any:
        """Import the module of a command."""
        module, about = _COMMANDS[name]
        found = getattr(importlib.import_module(f"kernelcore.cli.{module}"), name)
        return found if isinstance(found, LazyGroup) else command_of(found, about)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(kernelcore.__version__, message="kernelcore %(version)s")
@click.option(
    "--debug", is_flag=True, expose_value=False, help="Show where in the code an error arose."
)
def app() -> None:
    """Search photos by sentences, annotate photos with sentences, and measure how well."""
