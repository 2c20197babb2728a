"""Time of a query of the search page with many photos.

    python bench/studies/serving.py --model FOLDER --queries captions.txt --photos 100000

The index holds drawn vectors in the place of photos, so that any number of photos can
be had; everything else is as `kernelcore serve` does it. Each query is one request for the
first page of results, over the network of this machine, after ten requests that are not
counted.
"""

from __future__ import annotations

import argparse
import json
import socket
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path

import numpy as np
import uvicorn

from kernelcore.datasets.folder import read_sentences
from kernelcore.models import PhotoFile, PhotoIndex, PhotoRanker
from kernelcore.search import Collection
from kernelcore.web import make_app

N_UNCOUNTED, N_QUERIES = 10, 200


def drawn_index(ranker: PhotoRanker, n_photos: int) -> PhotoIndex:
    """Draw places of photos like those of the training photos."""
    rng = np.random.default_rng(0)
    known = ranker.foreign().photos
    places = known[rng.integers(len(known), size=n_photos)]
    places = places + 0.1 * rng.standard_normal(places.shape)
    return PhotoIndex(
        [f"{i:07d}.jpg" for i in range(n_photos)],
        places.astype(known.dtype),
        ranker.fingerprint,
        files=[PhotoFile(1, 1, f"{i:032x}") for i in range(n_photos)],
    )


def main() -> None:
    """Serve, ask, and print the times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--queries", type=Path, required=True)
    parser.add_argument("--photos", type=int, default=100_000)
    args = parser.parse_args()
    ranker = PhotoRanker.load(args.model)
    collection = Collection(ranker, ".", drawn_index(ranker, args.photos))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(make_app(collection), log_level="error"))
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        seconds = []
        for sentence in read_sentences(args.queries)[: N_UNCOUNTED + N_QUERIES]:
            begin = time.perf_counter()
            url = f"{address}?{urllib.parse.urlencode({'q': sentence})}"
            with urllib.request.urlopen(url) as answer:
                answer.read()
            seconds.append(time.perf_counter() - begin)
        server.should_exit = True
        thread.join()
    counted = 1000 * np.array(seconds[N_UNCOUNTED:])
    median, p95 = np.quantile(counted, [0.5, 0.95])
    found = {"photos": args.photos, "queries": len(counted), "median ms": median, "p95 ms": p95}
    print(json.dumps({**found, "first ms": 1000 * seconds[0]}, indent=1))


if __name__ == "__main__":
    main()
