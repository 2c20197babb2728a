"""The command ``evaluate``: a model on photos, or embeddings or scores of any model."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from typing import Annotated, Any, Literal

import click

from kernelcore import evaluation
from kernelcore._store import printable, read_npy
from kernelcore.cli.common import check_parent, given_as, load_photos, say
from kernelcore.cli.models import Indexer, ModelOptions
from kernelcore.cli.options import PhotoOptions, flag
from kernelcore.evaluation._inputs import as_rows
from kernelcore.evaluation.ranks import Ties
from kernelcore.models import ChanceRanker, PhotoRanker

_STDOUT = Path("-")
_READING = "features pool cache skip_damaged allow_outside"
# The last of these names a source of scores, and the others are needed too; and options that
# may be given beside them.
_SOURCES = {
    "photos captions model": _READING,
    "photos captions encoders": _READING,
    "photos captions caption_encoder": f"image_encoder {_READING}",
    "image_vectors caption_vectors": "similarity captions_per_image caption_image",
    "scores": "captions_per_image caption_image",
}


@dataclass(frozen=True, kw_only=True)
class Source:
    """What is measured.

    Parameters
    ----------
    pool : int, optional
        Number of the caption of each photo to rank. Default: all.
    image_vectors : list of path, optional
        Embeddings of the images, in place of a model: a .npy file, or several with rows that
        follow each other, each with the option.
    caption_vectors : list of path, optional
        Embeddings of the captions, likewise.
    similarity : str, optional
        How embeddings are compared. Default: cosine.
    scores : list of path, optional
        Scores, in place of a model: .npy files with a row for each image and a column for each
        caption.
    captions_per_image : int, optional
        Captions of each image, one image after the other.
    caption_image : path, optional
        A .npy file with the row of each caption's image, from 0.
    """

    pool: Annotated[int | None, {"min": 0}] = None
    image_vectors: list[Path] | None = None
    caption_vectors: list[Path] | None = None
    similarity: Literal["cosine", "dot"] | None = None
    scores: list[Path] | None = None
    captions_per_image: Annotated[int | None, {"min": 1}] = None
    caption_image: Path | None = None


def evaluate(
    photos: Path | None = None,
    captions: Path | None = None,
    *,
    source: Source,
    model: ModelOptions,
    folds: Annotated[int | None, {"min": 1}] = None,
    ties: Ties = "mean",
    system: str = "",
    json: Path | None = None,
    reading: PhotoOptions,
) -> None:
    """Evaluate search and annotation.

    Parameters
    ----------
    photos : path, optional
        Folder of the photos.
    captions : path, optional
        File of captions: rows of name<TAB>caption, CSV with the columns image and caption, or
        JSON of COCO.
    source : Source
    model : ModelOptions
    folds : int, optional
        Means over so many folds of images: 5 for COCO 1K.
    ties : str
        What a rank means among equal scores.
    system : str
        What to call it in tables. Default: the folder of the model.
    json : path, optional
        File for the result with the rank of every query; - prints it in place of the tables.
    reading : PhotoOptions
    """
    named = {"photos": photos, "captions": captions, **vars(source)}
    named |= {**vars(model), **vars(reading)}
    _check_source({name: value for name, value in named.items() if name != "threads"})
    reading.check_unread(reading.features, "cache", "skip_damaged")
    if json not in (None, _STDOUT):
        check_parent("--json", json)
    if photos is not None and captions is not None:
        measured = _of_model(photos, captions, model, source.pool, reading)
    else:
        measured = [_of_files(source)]
    if system:
        measured[0]["system"] = printable(system)
    results = [
        evaluation.evaluate(**own, ties=ties, n_folds=folds, n_threads=reading.threads)
        for own in measured
    ]
    if json == _STDOUT:
        say(dumps(results[0].to_dict(), ensure_ascii=False))
        return
    if json is not None:  # first: who reads the tables may leave early
        results[0].save(json)
    say(evaluation.ResultTable(results), "", results[0].summary())


def _check_source(values: dict[str, Any]) -> None:
    """Raise unless one source is given, with nothing that does not belong to it."""
    given = [name for name, value in values.items() if value is not None and value is not False]
    sources = [[own.split() for own in pair] for pair in _SOURCES.items()]
    sources.sort(key=lambda own: own[0][-1] not in given)  # what names the source says more
    for needed, others in sources:
        present = [name for name in needed if name in given]
        missing = [name for name in needed if name not in given]
        odd = [_flag(name) for name in given if name not in needed + others]
        if present and missing:
            message = f"{_flag(missing[0])} must be given beside {_flag(present[0])}"
            raise click.BadParameter(message)
        if present and odd:
            raise click.BadParameter(f"{odd[0]} must not be given beside {_flag(needed[-1])}")
        if present:
            return
    raise click.BadParameter(
        "--model, --image-vectors and --caption-vectors, or --scores must say what to measure"
    )


def _flag(name: str) -> str:
    return name.upper() if name in ("photos", "captions") else flag(name)


def _of_files(source: Source) -> dict[str, Any]:
    """Map the files of vectors or scores; return arguments of `evaluate`."""
    found: dict[str, Any] = {"captions_per_image": source.captions_per_image}
    for name in ("image_vectors", "caption_vectors", "scores"):
        if paths := getattr(source, name):
            with given_as(flag(name)):
                rows = as_rows(flag(name), paths[0] if len(paths) == 1 else paths)
            found["annotation_scores" if name == "scores" else name] = rows
    if source.similarity is not None:
        found["similarity"] = source.similarity
    if source.caption_image is not None:
        with given_as("--caption-image"):
            found["caption_image"] = read_npy(source.caption_image)
    return found


def _of_model(
    photos: Path, captions: Path, model: ModelOptions, pool: int | None, reading: PhotoOptions
) -> list[dict[str, Any]]:
    """Score photos and captions by a model and by chance; return arguments of `evaluate`."""
    ranker = model.load()
    dataset = load_photos(photos, captions, reading.outside)
    with reading.hinting():
        index = Indexer(ranker, reading).index(dataset.images, photos)
    n_known = 0 if index.is_known is None else int(index.is_known.sum())
    if n_known:
        warnings.warn(
            f"the model learned from {n_known} of these {len(index)} photos: figures of "
            "photos that are new to it will be lower",
            stacklevel=1,
        )
    row_of = {name: row for row, name in enumerate(index.names)}
    own = zip(dataset.images, dataset.captions, dataset.caption_numbers, strict=True)
    ranked = [
        (text, row_of[str(path)])
        for path, texts, numbers in own
        for text, number in zip(texts, numbers, strict=True)
        if str(path) in row_of and pool in {None, number}
    ]
    if not ranked:
        raise ValueError(f"--pool: no photo has a caption of number {pool}")
    sentences = [text for text, _ in ranked]
    shared = {
        "caption_image": [row for _, row in ranked],
        "dataset": printable(dataset.name),
        "pool": "all captions" if pool is None else f"caption #{pool}",
    }
    settings = ranker.setting_._asdict() if isinstance(ranker, PhotoRanker) else {}
    ours = {
        "annotation_scores": ranker.scores(index, sentences, n_threads=reading.threads),
        "system": printable(model.name),
        "settings": {"model": ranker.fingerprint, **settings},
    }
    by_chance = ChanceRanker(rng=0).scores(index, sentences)
    return [ours | shared, shared | {"annotation_scores": by_chance, "system": "chance"}]
