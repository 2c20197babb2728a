"""The commands ``index``, ``search`` and ``annotate``."""

from __future__ import annotations

import json as json_text
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from kernelcore._store import printable
from kernelcore.cli.common import (
    PHOTOS,
    AllowOutside,
    Cache,
    SkipDamaged,
    Threads,
    check_parent,
    given_as,
    list_photos,
    on_terminal,
    say,
)
from kernelcore.cli.features import Vectors, check_reading
from kernelcore.cli.models import (
    CaptionEncoder,
    ForeignVectors,
    ImageEncoder,
    Model,
    describing,
    index_to_update,
    load_index,
    load_model,
    photos_of,
    save_index,
    single_photos_of,
    updated,
)
from kernelcore.datasets._photos import leads_out
from kernelcore.datasets.folder import read_sentences
from kernelcore.images._describe import report_failures
from kernelcore.models import Match, PhotoIndex, PhotoRanker
from kernelcore.models.photo_search import PhotoSearch
from kernelcore.search import unknown_words
from kernelcore.search.update import leading_out

HowMany = Annotated[int, typer.Option("-k", min=1, help="How many to name.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Calibrated = Annotated[
    bool,
    typer.Option(
        "--calibrated",
        help="Print how often a result as good is found by chance, and where chance begins.",
    ),
]

Found: TypeAlias = Sequence[tuple[str, Sequence[Match]]]
"""Queries and what was found for each."""

_FALSE_RATE = 0.05


def index_photos(
    *,
    photos: Annotated[Path, typer.Argument(help=PHOTOS, show_default=False)],
    index: Annotated[Path, typer.Option(help="Folder of the index.", show_default=False)],
    model: Model = None,
    caption_encoder: CaptionEncoder = None,
    image_encoder: ImageEncoder = None,
    features: Vectors = None,
    cache: Cache = None,
    skip_damaged: SkipDamaged = False,
    allow_outside: AllowOutside = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Make the index anew, whatever is there.")
    ] = False,
    threads: Threads = None,
) -> None:
    """Make a folder of photos ready to search; add new photos, and remove missing ones."""
    check_reading(features, cache=cache)
    loaded = load_model(model, caption_encoder, image_encoder, None)
    known = index_to_update(index, loaded, overwrite=overwrite)
    grown, changes = updated(
        known,
        loaded,
        photos,
        features,
        cache=cache,
        skip_damaged=skip_damaged,
        allow_outside=allow_outside,
        threads=threads,
    )
    save_index(grown, known, index)
    say(
        f"Added {changes.added}, removed {changes.removed}; {printable(index)} has "
        f"{len(grown)} photos."
    )


def search(
    *,
    sentences: Annotated[
        list[str], typer.Argument(help="Sentences to search for.", show_default=False)
    ],
    model: Model = None,
    caption_encoder: CaptionEncoder = None,
    image_encoder: ImageEncoder = None,
    photos: Annotated[
        Path | None, typer.Option(help="Folder of the photos to search.", show_default=False)
    ] = None,
    features: Vectors = None,
    index: Annotated[
        Path | None,
        typer.Option(help="Index of the photos, of the command index.", show_default=False),
    ] = None,
    k: HowMany = 10,
    calibrated: Calibrated = False,
    foreign_vectors: ForeignVectors = None,
    json: Json = False,
    html: Annotated[
        Path | None,
        typer.Option(help="Page to write, with the photos found.", show_default=False),
    ] = None,
    cache: Cache = None,
    skip_damaged: SkipDamaged = False,
    allow_outside: AllowOutside = False,
    threads: Threads = None,
) -> None:
    """Find the photos of a folder that fit a sentence."""
    check_reading(features, cache=cache, skip_damaged=skip_damaged)
    if html is not None:
        check_parent("--html", html)
        if photos is None:
            raise typer.BadParameter("--photos must name the folder of the photos for --html")
    _check_calibrated(calibrated, caption_encoder, foreign_vectors)
    excluded = {
        "--features": features is not None,
        "--cache": cache is not None,
        "--skip-damaged": skip_damaged,
        "--allow-outside": allow_outside,
        "--photos": photos is not None and html is None,
    }
    if index is not None:
        _check_left_out(excluded, "beside --index")
    loaded = load_model(model, caption_encoder, image_encoder, foreign_vectors)
    folder = Path()
    if index is not None:
        folder = photos or folder
        places = _read_index(loaded, index)
    elif photos is not None:
        places = _indexed(
            photos,
            loaded,
            features,
            cache=cache,
            skip_damaged=skip_damaged,
            allow_outside=allow_outside,
            threads=threads,
        )
    else:
        raise typer.BadParameter("--photos or --index must say what to search")
    _warn_of_unknown_words(loaded, sentences)
    matches = loaded.search(sentences, places, k=k, calibrated=calibrated, n_threads=threads)
    found = list(zip(sentences, matches, strict=True))
    if html is not None:
        from kernelcore.report import write_found

        write_found(html, found, lambda name: folder / name, false_rate=_FALSE_RATE)
    if json:
        _print_json("sentence", "photos", found)
    else:
        _print_lists(found)


def annotate(
    *,
    photos: Annotated[
        list[Path], typer.Argument(help="Photos or folders to annotate.", show_default=False)
    ],
    model: Model = None,
    caption_encoder: CaptionEncoder = None,
    image_encoder: ImageEncoder = None,
    captions: Annotated[
        Path,
        typer.Option(help="File of sentences to choose from, one a line.", show_default=False),
    ],
    features: Vectors = None,
    k: HowMany = 5,
    calibrated: Calibrated = False,
    json: Json = False,
    threads: Threads = None,
) -> None:
    """Find the sentences of a file that fit a photo."""
    if calibrated and caption_encoder is not None:
        raise typer.BadParameter("--calibrated must be left out beside --caption-encoder")
    with given_as("--captions"):
        sentences = read_sentences(captions)
    loaded = load_model(model, caption_encoder, image_encoder, None)
    with given_as("PHOTOS"):
        files = [file for given in photos for file in _files_of(given)]
    given = single_photos_of(loaded, features, files)
    places = loaded.index(
        given, names=[str(file) for file in files], n_threads=threads, progress=on_terminal()
    )
    matches = loaded.annotate(places, sentences, k=k, calibrated=calibrated, n_threads=threads)
    found = list(zip(places.names, matches, strict=True))
    if json:
        _print_json("photo", "sentences", found)
    else:
        _print_lists(found)


def _check_left_out(options: Mapping[str, bool], where: str) -> None:
    """Raise if an option is given."""
    for option, is_given in options.items():
        if is_given:
            raise typer.BadParameter(f"{option} must be left out {where}")


def _read_index(model: PhotoSearch, index: Path) -> PhotoIndex:
    photos = load_index(index, model)
    with given_as("--index"):
        if any(leads_out(name) for name in photos.names):
            raise ValueError(f"{index} must have names of photos in a folder")
    return photos


def _indexed(
    photos: Path,
    model: PhotoSearch,
    features: Path | None,
    *,
    cache: Path | None,
    skip_damaged: bool,
    allow_outside: bool,
    threads: int | None,
) -> PhotoIndex:
    """Place the photos of a folder for this search alone."""
    with given_as("--photos"):
        files = list_photos(photos)
        links = {
            i: reason
            for i, file in enumerate(files)
            if not allow_outside and (reason := leading_out(file, photos))
        }
        report_failures(links, len(files), "skip" if skip_damaged else "raise")
    files = [file for i, file in enumerate(files) if i not in links]
    options = describing(model, cache=cache)
    if skip_damaged and isinstance(model, PhotoRanker):
        options["on_error"] = "skip"
    return model.index(
        photos_of(model, features, photos, files),
        names=[str(file) for file in files],
        n_threads=threads,
        progress=on_terminal(),
        **options,
    )


def _check_calibrated(
    calibrated: bool, caption_encoder: str | None, foreign_vectors: Path | None
) -> None:
    """Raise unless what calibrates is there."""
    if calibrated and caption_encoder is not None and foreign_vectors is None:
        raise typer.BadParameter(
            "--foreign-vectors must be given beside --caption-encoder and --calibrated"
        )


def _files_of(given: Path) -> list[Path]:
    return list_photos(given) if given.is_dir() else [given]


def _warn_of_unknown_words(model: PhotoSearch, sentences: Sequence[str]) -> None:
    """Name words that no training caption has, with known ones that are written alike."""
    if not isinstance(model, PhotoRanker):
        return
    known = model.training_.captions
    for sentence, words in zip(sentences, known.normalizer(sentences), strict=True):
        if not any(word in known.vocabulary for word in words):
            warnings.warn(
                f"no training caption has a word of {sentence!r}: its ranking means nothing",
                stacklevel=1,
            )
            continue
        for word, nearest in unknown_words(known, sentence).items():
            hint = f"; it has {' and '.join(nearest)}" if nearest else ""
            warnings.warn(
                f"no training caption has the word {word!r} of {sentence!r}{hint}",
                stacklevel=1,
            )


def _print_lists(found: Found) -> None:
    """Print each query with its matches, and the line from which on they are by chance."""
    for query, matches in found:
        say(printable(query))
        is_above = True
        for match in matches:
            if is_above and match.by_chance is not None and match.by_chance > _FALSE_RATE:
                is_above = False
                say(f"  ------  from here on by chance ({100 * _FALSE_RATE:.0f} %)")
            say(f"  {match.score:6.3f}{_share_of(match)}  {printable(match.name)}")


def _share_of(match: Match) -> str:
    return "" if match.by_chance is None else f"  {100 * match.by_chance:5.1f} %"


def _print_json(query: str, results: str, found: Found) -> None:
    def entry(match: Match) -> dict[str, Any]:
        chance = {} if match.by_chance is None else {"by_chance": match.by_chance}
        return {"name": match.name, "score": match.score, **chance}

    rows = [
        {query: text, results: [entry(match) for match in matches]} for text, matches in found
    ]
    say(json_text.dumps(rows, indent=1))
