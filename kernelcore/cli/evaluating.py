"""The command ``evaluate``: a model on photos, or given embeddings or scores."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from kernelcore._store import printable, read_npy
from kernelcore.cli.clusters import Cluster, Workers, evaluated_in
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
from kernelcore.cli.features import Vectors, check_reading, photos_for
from kernelcore.evaluation import Result, ResultTable, evaluate
from kernelcore.evaluation._inputs import as_rows
from kernelcore.models import ChanceRanker, PhotoRanker

_STDOUT = Path("-")
# Options that each source of scores needs (the last one names it), and those it may have.
_OWNER = ("--captions-per-image", "--caption-image")
_SOURCES = (
    (
        ("PHOTOS", "CAPTIONS", "--model"),
        ("--features", "--pool", "--cache", "--skip-damaged", "--allow-outside"),
    ),
    (
        ("--image-vectors", "--caption-vectors"),
        (*_OWNER, "--similarity", "--store", "--cluster", "--workers"),
    ),
    (("--scores",), _OWNER),
)
_MATRICES = {
    "--image-vectors": "image_vectors",
    "--caption-vectors": "caption_vectors",
    "--scores": "annotation_scores",
}
_OPTIONS = {
    "captions_per_image": "--captions-per-image",
    "caption_image": "--caption-image",
    "n_folds": "--folds",
}


def evaluate_ranking(
    *,
    photos: Annotated[Path | None, typer.Argument(help=PHOTOS, show_default=False)] = None,
    captions: Annotated[Path | None, typer.Argument(help=CAPTIONS, show_default=False)] = None,
    model: Annotated[Path | None, typer.Option(help=MODEL, show_default=False)] = None,
    features: Vectors = None,
    image_vectors: Annotated[
        list[Path] | None,
        typer.Option(
            help="Embeddings of the images, in place of a model: a .npy file, or several with "
            "rows that follow each other, each with the option.",
            show_default=False,
        ),
    ] = None,
    caption_vectors: Annotated[
        list[Path] | None,
        typer.Option(help="Embeddings of the captions, likewise.", show_default=False),
    ] = None,
    scores: Annotated[
        list[Path] | None,
        typer.Option(
            help="Scores, in place of a model: .npy files with a row for each image and a "
            "column for each caption.",
            show_default=False,
        ),
    ] = None,
    captions_per_image: Annotated[
        int | None,
        typer.Option(min=1, help="Captions of each image, one image after the other."),
    ] = None,
    caption_image: Annotated[
        Path | None,
        typer.Option(help="A .npy file with the row of each caption's image, from 0."),
    ] = None,
    similarity: Annotated[
        Literal["cosine", "dot"] | None,
        typer.Option(help="How embeddings are compared. Default: cosine."),
    ] = None,
    folds: Annotated[
        int | None,
        typer.Option(min=1, help="Means over so many folds of images: 5 for COCO 1K."),
    ] = None,
    ties: Annotated[
        Literal["mean", "min", "max", "ordinal"],
        typer.Option(help="What a rank means among equal scores."),
    ] = "mean",
    system: Annotated[
        str, typer.Option(help="What to call it in tables. Default: the folder of the model.")
    ] = "",
    pool: Annotated[
        int | None,
        typer.Option(min=0, help="Number of the caption of each photo to rank. Default: all."),
    ] = None,
    json: Annotated[
        Path | None,
        typer.Option(
            help="File for the result with the rank of every query; - prints it in place of "
            "the tables."
        ),
    ] = None,
    cache: Cache = None,
    skip_damaged: SkipDamaged = False,
    allow_outside: AllowOutside = False,
    store: Annotated[
        Path | None,
        typer.Option(
            help="Folder that keeps counts of embeddings, so that a command that was stopped "
            "can resume, and --cluster or --workers can share the work.",
            show_default=False,
        ),
    ] = None,
    cluster: Cluster = None,
    workers: Workers = None,
    threads: Threads = None,
) -> None:
    """Measure a model on photos that are new to it, or embeddings or scores of any model."""
    source = _source_of(
        {
            "PHOTOS": photos,
            "CAPTIONS": captions,
            "--model": model,
            "--features": features,
            "--image-vectors": image_vectors,
            "--caption-vectors": caption_vectors,
            "--scores": scores,
            "--pool": pool,
            "--cache": cache,
            "--skip-damaged": skip_damaged,
            "--allow-outside": allow_outside,
            "--captions-per-image": captions_per_image,
            "--caption-image": caption_image,
            "--similarity": similarity,
            "--store": store,
            "--cluster": cluster,
            "--workers": workers,
        }
    )
    if store is None and (cluster is not None or workers is not None):
        raise typer.BadParameter("--store must be given beside --cluster or --workers")
    if store is not None and folds is not None:
        raise typer.BadParameter("--folds must not be given beside --store")
    if json is not None and json != _STDOUT:
        check_parent("--json", json)
    if source == "--model":
        check_reading(features, cache=cache, skip_damaged=skip_damaged)
        measured = _of_model(
            *(Path(str(given)) for given in (photos, captions, model)),
            features=features,
            pool=pool,
            allow_outside=allow_outside,
            cache_dir=cache,
            on_error="skip" if skip_damaged else "raise",
            n_threads=threads,
            progress=on_terminal(),
        )
    else:
        measured = [
            _of_files(
                {
                    "--image-vectors": image_vectors,
                    "--caption-vectors": caption_vectors,
                    "--scores": scores,
                },
                caption_image,
                captions_per_image=captions_per_image,
                similarity=similarity if scores is not None else similarity or "cosine",
            )
        ]
    if system:
        measured[0]["system"] = printable(system)
    results: list[Result]
    with _as_options():
        if store is not None:
            files = {"image_vectors": image_vectors, "caption_vectors": caption_vectors}
            given = {**measured[0], **files, "ties": ties, "n_threads": threads}
            results = [evaluated_in(store, given, cluster, workers)]
        else:
            results = [
                evaluate(**given, ties=ties, n_folds=folds, n_threads=threads)
                for given in measured
            ]
    if json == _STDOUT:
        say(results[0].to_json())
        return
    say(ResultTable(results), "", results[0].summary())
    if json is not None:
        results[0].save(json)


def _source_of(given: Mapping[str, Any]) -> str:
    """Return the option that names the source of scores; check that the others belong to it."""
    absent = (None, False)  # by identity: 0 is the number of a caption
    named = [
        name
        for name, value in given.items()
        if value != [] and not any(value is nothing for nothing in absent)
    ]
    for needed, others in _SOURCES:
        if set(needed).isdisjoint(named):
            continue
        for name in needed:
            if name not in named:
                present = next(other for other in needed if other in named)
                raise typer.BadParameter(f"{name} must be given beside {present}")
        for name in named:
            if name not in needed + others:
                raise typer.BadParameter(f"{name} must not be given beside {needed[-1]}")
        return needed[-1]
    raise typer.BadParameter(
        "--model, --image-vectors and --caption-vectors, or --scores must say what to measure"
    )


def _of_files(
    files: Mapping[str, list[Path] | None], caption_image: Path | None, **options: Any
) -> dict[str, Any]:
    """Map the files of vectors or scores; return arguments of `evaluate`."""
    for option, paths in files.items():
        if paths:
            with given_as(option):
                options[_MATRICES[option]] = as_rows(
                    option, paths[0] if len(paths) == 1 else paths
                )
    if caption_image is not None:
        with given_as("--caption-image"):
            options["caption_image"] = read_npy(caption_image)
    return options


def _of_model(
    photos: Path,
    captions: Path,
    model: Path,
    *,
    features: Path | None,
    pool: int | None,
    allow_outside: bool,
    **indexing: Any,
) -> list[dict[str, Any]]:
    """Score photos and captions by a model and by chance; return arguments of `evaluate`."""
    with given_as("--model"):
        ranker = PhotoRanker.load(model)
    dataset = load_photos(photos, captions, allow_outside=allow_outside)
    given = photos_for(ranker, features, photos, paths_of(dataset))
    places = ranker.index(given, names=dataset.image_ids, **indexing)
    n_known = 0 if places.is_known is None else int(places.is_known.sum())
    if n_known:
        warnings.warn(
            f"the model learned from {n_known} of these {len(places)} photos: figures of "
            "photos that are new to it will be lower",
            stacklevel=1,
        )
    row = {name: i for i, name in enumerate(places.names)}
    ranked = [
        (text, row[name])
        for name, texts, numbers in zip(
            dataset.image_ids, dataset.captions, dataset.caption_numbers, strict=True
        )
        for text, number in zip(texts, numbers, strict=True)
        if name in row and pool in {None, number}
    ]
    if not ranked:
        raise ValueError(f"--pool: no photo has a caption of number {pool}")
    sentences, caption_image = [text for text, _ in ranked], [image for _, image in ranked]
    shared = {
        "caption_image": caption_image,
        "dataset": printable(dataset.name),
        "pool": "all captions" if pool is None else f"caption #{pool}",
    }
    return [
        {
            "annotation_scores": ranker.scores(
                places, sentences, n_threads=indexing["n_threads"]
            ),
            "system": printable(model.name),
            "settings": {"model": ranker.fingerprint, **ranker.setting_._asdict()},
            **shared,
        },
        {
            "annotation_scores": ChanceRanker(rng=0).scores(places, sentences),
            "system": "chance",
            **shared,
        },
    ]


@contextmanager
def _as_options() -> Iterator[None]:
    """Replace names of arguments in errors by those of the options."""
    try:
        yield
    except (TypeError, ValueError) as error:
        name, _, rest = str(error).partition(" ")
        if name in _OPTIONS:
            raise type(error)(f"{_OPTIONS[name]} {rest}") from None
        raise
