"""Search by lists of FAISS beside the comparison with all photos, by number of photos.

    python bench/approximate.py --model FOLDER --queries captions.txt --scratch FOLDER

Photos are drawn between pairs of photos that the model knows, with a little noise, so that any
number of them can be had. Sentences are placed before the clock starts. Each search is for the
ten best photos; `recall` is the share of these that the lists find.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from kernelcore.datasets.folder import read_sentences
from kernelcore.models import PhotoIndex, PhotoRanker
from kernelcore.models.photo_search import best_matches, scores_of
from kernelcore.search import ApproximateSearch

K = 10


def drawn_index(ranker: PhotoRanker, n_photos: int) -> PhotoIndex:
    """Draw places of photos between those of two training photos."""
    rng = np.random.default_rng(0)
    known = ranker.foreign().photos
    one, other = (known[rng.integers(len(known), size=n_photos)] for _ in range(2))
    share = rng.random((n_photos, 1), dtype=np.float32)
    places = share * one
    places += (1 - share) * other
    places += 0.02 * rng.standard_normal(places.shape, dtype=np.float32)
    names = [f"{i:07d}.jpg" for i in range(n_photos)]
    return PhotoIndex(names, places, ranker.fingerprint)


def seconds_of(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the time of a call and its result."""
    begin = time.perf_counter()
    result = work()
    return time.perf_counter() - begin, result


def measured(ranker: PhotoRanker, queries: Any, n_photos: int, folder: Path) -> dict[str, Any]:
    """Compare both searches in one index."""
    drawn_index(ranker, n_photos).save(folder, overwrite=True)
    building, _ = seconds_of(
        lambda: ApproximateSearch.build(PhotoIndex.load(folder), ranker, folder)
    )
    loading, index = seconds_of(lambda: PhotoIndex.load(folder))
    loading_lists, approximate = seconds_of(lambda: ApproximateSearch(ranker, folder))
    places = ranker.embed_images(index)
    lists = approximate._lists
    exact, near, shared = [], [], 0

    def best_of_all(query: Any) -> Any:
        return best_matches(scores_of(places, query)[:, 0], K, index.names)

    for query in queries[:, np.newaxis]:
        seconds, best = seconds_of(partial(best_of_all, query))
        exact.append(seconds)
        seconds, found = seconds_of(partial(lists.search, query, k=K))
        near.append(seconds)
        shared += len({match.item for match in best} & set(found.positions[0].tolist()))
    return {
        "photos": n_photos,
        "all ms": 1000 * float(np.median(exact)),
        "lists ms": 1000 * float(np.median(near)),
        "recall": shared / (K * len(queries)),
        "reading s": loading,
        "reading lists s": loading_lists,
        "building s": building,
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--queries", type=Path, required=True)
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument(
        "--photos", type=int, nargs="+", default=[10_000, 100_000, 500_000, 1_000_000]
    )
    parser.add_argument("--n-queries", type=int, default=100)
    parser.add_argument("--write", type=Path, help="file for the result as JSON")
    args = parser.parse_args()
    ranker = PhotoRanker.load(args.model)
    placing, queries = seconds_of(
        lambda: ranker.embed_captions(read_sentences(args.queries)[: args.n_queries])
    )
    print(f"placing {len(queries)} sentences: {placing:.2f} s", flush=True)
    found = []
    for n_photos in args.photos:
        folder = args.scratch / "approximate"
        found.append(measured(ranker, queries, n_photos, folder))
        print(json.dumps(found[-1]), flush=True)
        shutil.rmtree(folder)
    if args.write is not None:
        args.write.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
