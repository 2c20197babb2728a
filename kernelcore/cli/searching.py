"""The commands ``index``, ``search``, ``annotate`` and ``serve``."""

from __future__ import annotations

import json as json_text
import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from kernelcore._store import counted, printable
from kernelcore.cli.common import check_parent, given_as, list_photos, load_sentences, say
from kernelcore.cli.models import CalibratedModelOptions, Indexer, ModelOptions, load_index
from kernelcore.cli.options import Count, PhotoOptions, Threads, flag
from kernelcore.images._describe import check_failures, warn_of_failures
from kernelcore.models import Match, PhotoIndex, PhotoRanker
from kernelcore.models.photo_search import PhotoSearch
from kernelcore.search import unknown_words
from kernelcore.search.collection import Collection, n_fitting
from kernelcore.search.update import leading_out

if TYPE_CHECKING:
    from kernelcore.report.page import Found

_FALSE_RATE = 0.05


def index(
    photos: Path,
    *,
    index: Path,
    model: ModelOptions,
    reading: PhotoOptions,
    overwrite: bool = False,
) -> None:
    """Index a folder.

    Parameters
    ----------
    photos : path
        Folder of the photos.
    index : path
        Folder of the index.
    model : ModelOptions
    reading : PhotoOptions
    overwrite : bool
        Make the index anew, whatever is there.
    """
    reading.check_unread(reading.features, "cache")
    indexer = Indexer(model.load(), reading, "PHOTOS")
    found, changes = indexer.updated(index, photos, overwrite=overwrite)
    done = f"Added {changes.added}, removed {changes.removed}"
    say(f"{done}; {printable(index)} has {counted(len(found), 'photo')}.")


def search(
    sentences: list[str],
    *,
    model: CalibratedModelOptions,
    photos: Path | None = None,
    index: Path | None = None,
    k: Count = 10,
    calibrated: bool = False,
    json: bool = False,
    html: Path | None = None,
    reading: PhotoOptions,
) -> None:
    """Search photos.

    Parameters
    ----------
    sentences : list of str
        Sentences to search for.
    model : CalibratedModelOptions
    photos : path, optional
        Folder of the photos to search.
    index : path, optional
        Folder of the index; with --photos it is brought up to date first.
    k : int
        How many to name.
    calibrated : bool
        Print how often a result as good is found by chance, and where chance begins.
    json : bool
        Print JSON.
    html : path, optional
        Page to write, with the photos found.
    reading : PhotoOptions
    """
    reading.check_unread(reading.features, "cache", "skip_damaged")
    if blank := [sentence for sentence in sentences if not sentence.strip()]:
        raise click.BadParameter(f"SENTENCES must have words, got {blank[0]!r}")
    if html is not None:
        check_parent("--html", html)
        if photos is None:
            raise click.BadParameter("--photos must name the folder of the photos for --html")
    if calibrated and model.model is None and model.foreign_vectors is None:
        raise click.BadParameter("--foreign-vectors must be given to calibrate encoders")
    for name, value in vars(reading).items():
        if photos is None and value and name != "threads":
            raise click.BadParameter(f"{flag(name)} must be left out: no --photos to read")
    loaded = model.load()
    if photos is None:
        if index is None:
            raise click.BadParameter("--photos or --index must say what to search")
        searched = load_index(index, loaded)
    elif index is None and (isinstance(loaded, PhotoRanker) or reading.features):
        searched = _indexed(photos, loaded, reading)
    else:  # encoders may read what they like, so that the photos are looked at first
        kept, _ = Indexer(loaded, reading).updated(index, photos)
        names = [str(photos / name) for name in kept.names]
        searched = PhotoIndex(names, kept.projections, kept.model)
    run: dict[str, Any] = {"k": k, "calibrated": calibrated, "n_threads": reading.threads}
    matches = loaded.search(sentences, searched, **run)
    unknown = [_unknown_words(loaded, sentence) for sentence in sentences]
    if calibrated:
        matches = list(map(_without_shares, repeat(loaded), sentences, matches))
    found = list(zip(sentences, matches, strict=True))
    if html is not None:
        from kernelcore.report import write_found

        write_found(html, found, Path, false_rate=_FALSE_RATE)
    _print_found("sentence", "photos", found, json, unknown)


def annotate(
    photos: list[Path],
    *,
    model: ModelOptions,
    captions: Path,
    features: Path | None = None,
    k: Count = 5,
    calibrated: bool = False,
    json: bool = False,
    threads: Threads = None,
) -> None:
    """Annotate photos.

    Parameters
    ----------
    photos : list of path
        Photos or folders to annotate.
    model : ModelOptions
    captions : path
        File of sentences to choose from, one a line.
    features : path, optional
        A .npy file of vectors of the photos, for a model that was trained with one.
    k : int
        How many to name.
    calibrated : bool
        Print how often a result as good is found by chance, and where chance begins.
    json : bool
        Print JSON.
    threads : int, optional
        Threads to use. Default: all cores.
    """
    if calibrated and model.model is None:
        raise click.BadParameter("--calibrated must be left out without --model")
    sentences = load_sentences(captions)
    loaded = model.load()
    with given_as("PHOTOS"):
        files = [file for path in photos for file in _files_of(path)]
    reading = PhotoOptions(features=features, threads=threads)
    found = Indexer(loaded, reading).index(files, None)
    matches = loaded.annotate(found, sentences, k=k, calibrated=calibrated, n_threads=threads)
    _print_found("photo", "sentences", list(zip(found.names, matches, strict=True)), json)


def serve(
    *,
    photos: Path,
    model: CalibratedModelOptions,
    index: Path | None = None,
    captions: Path | None = None,
    false_rate: float = _FALSE_RATE,
    host: str = "127.0.0.1",
    port: Annotated[int, {"min": 0, "max": 65535}] = 8765,
    token: Annotated[str | None, {"envvar": "KERNELCORE_TOKEN"}] = None,
    reading: PhotoOptions,
) -> None:
    """Serve the search page.

    Parameters
    ----------
    photos : path
        Folder of the photos.
    model : CalibratedModelOptions
    index : path, optional
        Folder that keeps the index: it is brought up to date first.
    captions : path, optional
        File of sentences to annotate photos with, one a line. Default: the captions of the
        training photos.
    false_rate : float
        Share of the other photos above the line of chance.
    host : str
        Address to listen at.
    port : int
        Port; 0: a free one.
    token : str, optional
        Word that a browser must know; needed beyond this machine.
    reading : PhotoOptions
    """
    from kernelcore.web import serving

    serving.check_address(host, token)
    reading.check_unread(reading.features, "cache")
    if not 0 < false_rate < 1:
        raise click.BadParameter(f"--false-rate must lie between 0 and 1, got {false_rate}")
    sentences = None if captions is None else load_sentences(captions)
    loaded = model.load()
    later = Indexer(loaded, replace(reading, skip_damaged=True))
    collection = Collection(
        loaded,
        photos,
        Indexer(loaded, reading).updated(index, photos)[0],
        captions=sentences,
        false_rate=false_rate,
        source=index,
        update=lambda known: later.follow(known, photos),
        n_threads=reading.threads,
    )
    serving.serve(collection, host=host, port=port, token=token)


def _files_of(path: Path) -> list[Path]:
    if path.is_dir():
        return list_photos(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {printable(path)}")
    return [path]


def _indexed(photos: Path, model: PhotoSearch, reading: PhotoOptions) -> PhotoIndex:
    """Index the photos of a folder for this search alone."""
    with given_as("--photos"), reading.hinting():
        files = list_photos(photos)
        links = {
            i: reason
            for i, file in enumerate(files)
            if not reading.allow_outside and (reason := leading_out(file, photos))
        }
        check_failures(links, len(files), reading.on_error)
        warn_of_failures(links, len(files))
    own = [file for i, file in enumerate(files) if i not in links]
    with reading.hinting():
        return Indexer(model, reading).index(own, photos)


def _unknown_words(model: PhotoSearch, sentence: str) -> list[str]:
    """Find the words of a sentence that the model does not know, and warn of them."""
    if not isinstance(model, PhotoRanker):
        return []
    unknown, said = unknown_words(model.captions_, sentence), f"of {sentence!r}"
    if not model.knows(sentence):
        about = f"no training caption has a word {said}: its ranking means nothing"
        warnings.warn(about, stacklevel=1)
        return list(unknown)
    for word, nearest in unknown.items():
        hint = f"; it has {' and '.join(nearest)}" if nearest else ""
        warnings.warn(f"no training caption has the word {word!r} {said}{hint}", stacklevel=1)
    return list(unknown)


def _without_shares(model: PhotoSearch, sentence: str, matches: list[Match]) -> list[Match]:
    """Take the share by chance from each match of a sentence without a known word."""
    if model.knows(sentence):
        return matches
    return [match._replace(by_chance=math.nan) for match in matches]


def _print_found(
    query: str, results: str, found: Found, as_json: bool, unknown: Sequence[list[str]] = ()
) -> None:
    """Print each query with its matches, and the line from which on they are by chance."""
    if as_json:
        rows: list[dict[str, Any]]
        rows = [{query: text, results: list(map(_entry, own))} for text, own in found]
        for row, words in zip(rows, unknown, strict=False):
            row["unknown"] = words
        say(json_text.dumps(rows, indent=1))
        return
    for (text, matches), words in zip(found, unknown or repeat([]), strict=False):
        say(printable(text))
        n_above = n_fitting(matches, _FALSE_RATE)
        lost = f", without the unknown {', '.join(map(repr, words))}" if words else ""
        for place, match in enumerate(matches):
            if place == n_above:
                say(f"  ------  from here on by chance ({100 * _FALSE_RATE:.0f} %){lost}")
            share = _share(match)
            chance = "" if share is None else f"  {100 * share:5.1f} %"
            say(f"  {match.score:6.3f}{chance}  {printable(match.name)}")


def _share(match: Match) -> float | None:
    """Return the share by chance, None where there is none."""
    return None if match.by_chance is None or math.isnan(match.by_chance) else match.by_chance


def _entry(match: Match) -> dict[str, Any]:
    chance = {} if match.by_chance is None else {"by_chance": _share(match)}
    return {"name": match.name, "score": match.score, **chance}
