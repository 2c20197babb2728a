"""The commands, one function each."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

import kernelcore
from kernelcore import _extras
from kernelcore._store import printable
from kernelcore._threads import working
from kernelcore.cli.common import (
    CAPTIONS,
    MODEL,
    PHOTOS,
    AllowOutside,
    Cache,
    SkipDamaged,
    Threads,
    check_parent,
    given_as,
    load_photos,
    on_terminal,
    paths_of,
    say,
)
from kernelcore.cli.evaluating import evaluate_ranking
from kernelcore.cli.features import Features, check_reading, description_of, vectors_in
from kernelcore.cli.reproduce import reproduce
from kernelcore.cli.searching import annotate, index_photos, search
from kernelcore.cli.serving import serve
from kernelcore.evaluation import Table
from kernelcore.models import PhotoRanker
from kernelcore.models.photo_inputs import PRECOMPUTED
from kernelcore.models.saving import check_model_folder
from kernelcore.models.training_captions import CaptionKernel

app = typer.Typer(
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Model = Annotated[Path, typer.Option(help=MODEL, show_default=False)]
Photos = Annotated[Path, typer.Argument(help=PHOTOS, show_default=False)]
Captions = Annotated[Path, typer.Argument(help=CAPTIONS, show_default=False)]

_MOST_SCENES = 1_000_000  # 37 GB of pixels
_FEW_PHOTOS = 100  # a recall of a half has a standard error of 5 points
_COMPARED_BY = {
    "bag_of_words": "their words",
    "word_sequence": "sequences of words",
    "similar_words": "sequences of words, similar ones learned from the captions",
}


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


@app.command()
def demo(
    *,
    output: Annotated[Path, typer.Option(help="HTML page to write.")] = Path("demo.html"),
    n_images: Annotated[int, typer.Option(max=_MOST_SCENES, help="Scenes to draw.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Which scenes.")] = 0,
    threads: Threads = None,
) -> None:
    """Draw scenes, learn from them, rank and write a page. Needs no data."""
    from kernelcore.experiments import demo as experiment

    for package in ("cv2", "matplotlib", "jinja2"):
        _extras.require(package)
    check_parent("--output", output)
    started = time.perf_counter()
    found = experiment.run(n_images, seed, n_threads=threads, progress=on_terminal())
    with working(on_terminal(), "Writing the page"):
        found.write_html(output)
    say(found)
    say(f"\nWrote {printable(output)}; {time.perf_counter() - started:.0f} seconds in all.")


app.command(no_args_is_help=True)(reproduce)


@app.command()
def train(
    *,
    photos: Photos,
    captions: Captions,
    model: Model,
    features: Features = None,
    compare: Annotated[
        CaptionKernel | None,
        typer.Option(
            "--captions-by",
            help="How captions are compared: by their words alone, by sequences of words, or "
            "by sequences in which similar words match too, learned from the captions. "
            "Default: similar_words from 2,000 captions on, bag_of_words below.",
            show_default=False,
        ),
    ] = None,
    cache: Cache = None,
    skip_damaged: SkipDamaged = False,
    allow_outside: AllowOutside = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the model in the folder.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Source of all random choices.")] = 0,
    threads: Threads = None,
) -> None:
    """Learn from photos with captions of your own and save a model."""
    with given_as("--model"):
        check_model_folder(model, overwrite=overwrite)
    check_reading(features, cache=cache, skip_damaged=skip_damaged)
    dataset = load_photos(photos, captions, allow_outside=allow_outside)
    description = description_of(features, rng=seed)
    files = paths_of(dataset)
    are_given = description.feature == PRECOMPUTED
    ranker = PhotoRanker(description.feature, caption_kernel=compare, rng=seed).fit(
        vectors_in(Path(str(features)), photos, files) if are_given else files,
        dataset.captions,
        cache_dir=cache,
        on_error="skip" if skip_damaged else "raise",
        n_threads=threads,
        progress=on_terminal(),
    )
    ranker.save(model, overwrite=overwrite)
    n_photos, n_captions = ranker.n_dev_
    compared_by = _COMPARED_BY[ranker.training_.captions.kernel]
    say(f"Learned from {len(ranker.training_)} photos.")
    say(f"{description.sentence}\nCaptions are compared by {compared_by}.")
    say(
        f"Held out to choose settings: {n_photos} of the photos, "
        f"with {n_captions} captions in all."
    )
    rows = [
        (name, *(f"{100 * r:.1f}" for r in recalls))
        for task, measured, chance in zip(
            ("annotation", "search"), ranker.dev_recalls_, ranker.dev_chance_, strict=True
        )
        for name, recalls in ((task, measured), (f"{task} by chance", chance))
    ]
    say(
        Table(
            columns=("task", "R@1", "R@5", "R@10"),
            rows=tuple(rows),
            caption="in percent, before the final model learned from these photos too",
        )
    )
    if n_photos < _FEW_PHOTOS:
        say(
            f"These figures are unreliable: they come from only {n_photos} photos. "
            "Measure with evaluate on photos that are not in training."
        )
    say(f"Wrote the model to {printable(model)}.")


app.command(name="index", no_args_is_help=True)(index_photos)
app.command(no_args_is_help=True)(search)
app.command(no_args_is_help=True)(annotate)
app.command(no_args_is_help=True)(serve)
app.command(name="evaluate")(evaluate_ranking)


@app.command()
def info() -> None:
    """Show how this copy was built and which optional parts it found."""
    config = kernelcore.show_config()
    extras = config.pop("extras")
    rows = [(name.replace("_", " "), _as_text(value)) for name, value in config.items()]
    rows += [(name, found or "not installed") for name, found in extras.items()]
    say(Table(columns=("kernelcore", ""), rows=tuple(rows), n_labels=2))


def _as_text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
