"""The commands ``demo``, ``train`` and ``info``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import kernelcore
from kernelcore import _extras
from kernelcore._store import printable
from kernelcore._threads import working
from kernelcore.cli.common import check_parent, given_as, load_photos, note, on_terminal, say
from kernelcore.cli.features import description_of, vectors_of
from kernelcore.cli.options import Reading, Threads
from kernelcore.evaluation import Table
from kernelcore.models import PhotoRanker
from kernelcore.models.photo_features import PRECOMPUTED
from kernelcore.models.saving import MODEL, check_target
from kernelcore.models.training_items import CaptionKernel

_MOST_SCENES = 1_000_000  # 37 GB of pixels
_FEW_PHOTOS = 100  # a recall of a half has a standard error of 5 points
_COMPARED_BY = {
    "bag_of_words": "their words",
    "word_sequence": "sequences of words",
    "similar_words": "sequences of words, similar ones learned from the captions",
}


def demo(
    *,
    output: Path = Path("demo.html"),
    n_images: Annotated[int, {"max": _MOST_SCENES}] = 1000,
    seed: Annotated[int, {"min": 0}] = 0,
    threads: Threads = None,
) -> None:
    """Run the demonstration.

    Parameters
    ----------
    output : path
        HTML page to write.
    n_images : int
        Scenes to draw.
    seed : int
        Which scenes.
    threads : int, optional
        Threads to use. Default: all cores.
    """
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


def train(
    photos: Path,
    captions: Path,
    *,
    model: Path,
    features: str | None = None,
    captions_by: CaptionKernel | None = None,
    reading: Reading,
    overwrite: bool = False,
    seed: Annotated[int, {"min": 0}] = 0,
) -> None:
    """Train a model.

    Parameters
    ----------
    photos : path
        Folder of the photos.
    captions : path
        File of captions: rows of name<TAB>caption, CSV with the columns image and caption, or
        JSON of COCO.
    model : path
        Folder of the model.
    features : str, optional
        How photos are described: words, cnn (two networks), cnn-small (the smaller of the two:
        a third of the time, less accurate), an .onnx network, or a .npy file of vectors with
        one row per photo of the folder, in the order of Python's sorted paths, or as FILE.txt
        beside FILE.npy names them. Default: cnn where its packages are installed.
    captions_by : str, optional
        How captions are compared: by their words alone, by sequences of words, or by sequences
        in which similar words match too, learned from the captions. Default: similar_words
        from 2,000 captions on, bag_of_words below.
    reading : Reading
    overwrite : bool
        Replace the model in the folder.
    seed : int
        Source of all random choices.
    """
    with given_as("--model"):
        check_target(model, MODEL, overwrite=overwrite)
    reading.check_unread(features, "cache", "skip_damaged")
    dataset = load_photos(photos, captions, reading.outside)
    feature, described_by = description_of(features, seed=seed)
    is_read = feature != PRECOMPUTED
    images = dataset.images
    try:
        with reading.hinting():
            ranker = PhotoRanker(feature, caption_kernel=captions_by, rng=seed).fit(
                images if is_read else vectors_of(Path(str(features)), images, photos),
                dataset.captions,
                cache_dir=reading.cache,
                on_error=reading.on_error,
                n_threads=reading.threads,
                progress=on_terminal(),
            )
    except KeyboardInterrupt:
        if is_read and reading.cache is None:
            note("With --cache FOLDER the next run would go on from here.")
        raise
    ranker.save(model, overwrite=overwrite)
    n_photos, n_captions = ranker.n_dev_
    say(
        f"Learned from {len(ranker.captions_)} photos.",
        described_by,
        f"Captions are compared by {_COMPARED_BY[ranker.captions_.kernel]}.",
        f"Held out to choose settings: {n_photos} of the photos, "
        f"with {n_captions} captions in all.",
        _held_out_recalls(ranker),
    )
    if n_photos < _FEW_PHOTOS:
        say(
            f"These figures are unreliable: they come from only {n_photos} photos. "
            "Measure with evaluate on photos that are not in training."
        )
    say(f"Wrote the model to {printable(model)}.")


def _held_out_recalls(ranker: PhotoRanker) -> Table:
    rows = []
    for task, measured, chance in zip(
        ("annotation", "search"), ranker.dev_recalls_, ranker.dev_chance_, strict=True
    ):
        for name, recalls in ((task, measured), (f"{task} by chance", chance)):
            rows.append((name, *(f"{100 * recall:.1f}" for recall in recalls)))
    return Table(
        columns=("task", "R@1", "R@5", "R@10"),
        rows=tuple(rows),
        caption="in percent, before the final model learned from these photos too",
    )


def info() -> None:
    """Print the configuration."""
    config = kernelcore.show_config()
    extras = config.pop("extras")
    rows = [
        (
            name.replace("_", " "),
            ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value),
        )
        for name, value in config.items()
    ]
    rows += [(name, found or "not installed") for name, found in extras.items()]
    say(Table(columns=("kernelcore", ""), rows=tuple(rows), n_labels=2))
