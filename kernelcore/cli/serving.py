"""The command ``serve``: a page in the browser to search a folder of photos."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelcore import _extras
from kernelcore.cli.common import AllowOutside, Cache, SkipDamaged, Threads, given_as
from kernelcore.cli.features import Vectors, check_reading
from kernelcore.cli.models import (
    CaptionEncoder,
    ForeignVectors,
    ImageEncoder,
    Model,
    describing,
    index_to_update,
    load_model,
    names_in,
    photos_of,
    save_index,
    updated,
)
from kernelcore.datasets.folder import read_sentences


def serve(
    *,
    photos: Annotated[Path, typer.Option(help="Folder of the photos.", show_default=False)],
    model: Model = None,
    caption_encoder: CaptionEncoder = None,
    image_encoder: ImageEncoder = None,
    features: Vectors = None,
    index: Annotated[
        Path | None,
        typer.Option(
            help="Folder that keeps the index: it is brought up to date first.",
            show_default=False,
        ),
    ] = None,
    captions: Annotated[
        Path | None,
        typer.Option(
            help="File of sentences to annotate photos with, one a line. Default: the "
            "captions of the training photos.",
            show_default=False,
        ),
    ] = None,
    foreign_vectors: ForeignVectors = None,
    false_rate: Annotated[
        float, typer.Option(help="Share of the other photos above the line of chance.")
    ] = 0.05,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: a free one.")] = 8765,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="KERNELCORE_TOKEN",
            help="Word that a browser must know; needed beyond this machine.",
            show_default=False,
        ),
    ] = None,
    cache: Cache = None,
    skip_damaged: SkipDamaged = False,
    allow_outside: AllowOutside = False,
    threads: Threads = None,
) -> None:
    """Open a page to search photos by sentences and photos, until Ctrl-C."""
    for package in ("uvicorn", "starlette", "jinja2", "python_multipart"):
        _extras.require(package)
    from kernelcore.search import Collection
    from kernelcore.web import serve as serve_page
    from kernelcore.web.serving import check_address

    with given_as("--host"):
        check_address(host, token)
    check_reading(features, cache=cache)
    if not 0 < false_rate < 1:
        raise typer.BadParameter(f"--false-rate must lie between 0 and 1, got {false_rate}")
    sentences = None
    if captions is not None:
        with given_as("--captions"):
            sentences = read_sentences(captions)
    loaded = load_model(model, caption_encoder, image_encoder, foreign_vectors)
    known = None if index is None else index_to_update(index, loaded, overwrite=False)
    grown, _ = updated(
        known,
        loaded,
        photos,
        features,
        cache=cache,
        skip_damaged=skip_damaged,
        allow_outside=allow_outside,
        threads=threads,
    )
    if index is not None:
        save_index(grown, known, index)
    collection = Collection(
        loaded,
        photos,
        grown,
        captions=sentences,
        false_rate=false_rate,
        source=index,
        list_names=lambda: names_in(photos),
        photos_for=lambda new: photos_of(loaded, features, photos, new),
        n_threads=threads,
        outside="allow" if allow_outside else "refuse",
        **describing(loaded, cache=cache),
    )
    serve_page(collection, host=host, port=port, token=token)
