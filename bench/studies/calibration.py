"""Whether the line of chance keeps its promise on photos and captions that are new to a model.

    python bench/studies/calibration.py --data FLICKR8K --cache FOLDER --split dev

A `PhotoRanker` with features of EfficientNet-Lite0 learns from the training split. Each caption
of another split is searched for among the photos of that split, as it is and with half of its
words unknown; each of these photos is annotated with all captions, and compared with the
others. The line promises which share of the photos (captions) that a
query was not written about (for) stands above it. The program prints this share, once with the
own photo of each caption in the pool and once for the captions of half of the photos in the
other half, the share in which the own photo stands above the line, and how the first share
differs among queries.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from kernelcore._check import Array
from kernelcore.datasets import CaptionedImages, load_flickr
from kernelcore.errors import DatasetWarning
from kernelcore.evaluation import Table
from kernelcore.images import CNN
from kernelcore.models import ChanceLine, PhotoRanker

RATES = (0.01, 0.02, 0.05, 0.1, 0.2)
COLUMNS = (
    *("task", "stated", "own in the pool", "own taken out"),
    *("5 % of queries below", "and above", "own found"),
)


def shares(
    task: str, scores: Array, is_own: Array, lines: Sequence[ChanceLine]
) -> Iterator[tuple[str, ...]]:
    """Measure shares above the lines; rows are queries, `is_own` marks what they are about."""
    half = np.arange(scores.shape[1]) < scores.shape[1] // 2
    own_half = (is_own & half).any(axis=1)
    is_in_other = own_half[:, np.newaxis] != half
    for rate in RATES:
        above = scores > np.array([line.score_at(rate) for line in lines])[:, np.newaxis]
        wrong = [row[~own].mean() for row, own in zip(above, is_own, strict=True)]
        parts = zip(above, is_in_other & ~is_own, strict=True)
        taken_out = np.mean([row[part].mean() for row, part in parts])
        low, high = np.quantile(wrong, [0.05, 0.95])
        found = rate, np.mean(wrong), taken_out, low, high, above[is_own].mean()
        yield (task, *(f"{100 * share:.1f}" for share in found))


def half_unknown(text: str) -> str:
    """Put a word that no caption has in place of every second one."""
    return " ".join("qwzzt" if i % 2 else word for i, word in enumerate(text.split()))


def paths_of(corpus: CaptionedImages) -> list[Path]:
    """Files of all photos."""
    return [path for path in corpus.paths if path is not None]


def main() -> None:
    """Train, search and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--split", choices=("dev", "test"), default="dev")
    args = parser.parse_args()
    warnings.simplefilter("ignore", DatasetWarning)

    train, other = load_flickr(args.data).split_sets("train", args.split)
    model = args.cache / "model"
    if not model.exists():
        fitted = PhotoRanker(CNN()).fit(paths_of(train), train.captions, cache_dir=args.cache)
        fitted.save(model)
    ranker = PhotoRanker.load(model)
    index = ranker.index(paths_of(other), cache_dir=args.cache)
    texts = [text for own in other.captions for text in own]
    owner = np.repeat(np.arange(len(index)), [len(own) for own in other.captions])
    scores = ranker.scores(index, texts)
    is_own = owner == np.arange(len(index))[:, np.newaxis]
    blurred = list(map(half_unknown, texts))
    by_blurred = ranker.scores(index, blurred).T
    photos = ranker.directions(index.projections)
    lines = [ChanceLine(row) for row in photos @ ranker.directions(ranker.foreign().photos).T]
    rows = (
        *shares("search", scores.T, is_own.T, ranker.chance_lines(texts)),
        *shares("search, half unknown", by_blurred, is_own.T, ranker.chance_lines(blurred)),
        *shares("annotation", scores, is_own, ranker.chance_lines(index)),
        *shares("similar photos", photos @ photos.T, np.eye(len(photos), dtype=bool), lines),
    )
    caption = f"in percent; Flickr8k, split {args.split}"
    print(Table(columns=COLUMNS, rows=rows, caption=caption))


if __name__ == "__main__":
    main()
