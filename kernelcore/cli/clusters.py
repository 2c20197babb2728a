"""Commands that can run on a cluster, and the options of clusters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from kernelcore import _extras, distributed
from kernelcore._files import replacing
from kernelcore._parallel import available_cores
from kernelcore._reading import printable
from kernelcore.cli.common import PHOTOS, given_as, list_photos, note, on_terminal, say
from kernelcore.cli.features import name_in
from kernelcore.distributed import PhotoFeatures, costs, extract_features, verify
from kernelcore.distributed.ranks import BLOCK_ROWS
from kernelcore.evaluation import RetrievalResult
from kernelcore.evaluation._inputs import as_owner, as_rows
from kernelcore.images import CNN

Cluster = Annotated[
    str | None,
    typer.Option(
        help="Address of a Dask scheduler that does the work: tcp://host:8786.",
        show_default=False,
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(min=1, help="Processes of this machine that do the work.", show_default=False),
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Print tasks, time, traffic and memory, and do nothing."),
]
_VECTORS = {"--image-vectors": "image_vectors", "--caption-vectors": "caption_vectors"}
_CONNECT_SECONDS = 30
_N_TRIAL = 8  # photos by which the time of all is estimated


@contextmanager
def executor_of(cluster: str | None, workers: int | None) -> Iterator[Any]:
    """Yield a client of Dask, or None if neither option is given."""
    if cluster is None and workers is None:
        yield None
        return
    if cluster is not None and workers is not None:
        raise typer.BadParameter("--workers must not be given beside --cluster")
    dask = _extras.require("distributed")
    with ExitStack() as stack:
        if workers is not None:
            local = dask.LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
            )
            cluster = stack.enter_context(local)
        with given_as("--cluster"):
            try:
                client = dask.Client(cluster, timeout=_CONNECT_SECONDS)
            except (OSError, ValueError) as error:
                raise ValueError(f"no scheduler answers at {cluster}: {error}") from None
        yield stack.enter_context(client)


def describe(
    *,
    photos: Annotated[Path, typer.Argument(help=PHOTOS, show_default=False)],
    store: Annotated[
        Path,
        typer.Option(
            help="Folder of the features. The same command goes on with what is there.",
            show_default=False,
        ),
    ],
    network: Annotated[
        Path | None,
        typer.Option(
            help="ONNX file of a network. Default: EfficientNet-Lite0.", show_default=False
        ),
    ] = None,
    shard: Annotated[int, typer.Option(min=1, help="Photos of a task.")] = 1024,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Try unreadable photos again.")
    ] = False,
    dry_run: DryRun = False,
    cluster: Cluster = None,
    workers: Workers = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads without a cluster. Default: all cores.")
    ] = None,
) -> None:
    """Describe the photos of a folder by a network, for train and search."""
    with given_as("PHOTOS"):
        files = list_photos(photos)
    with given_as("--network"):
        cnn = CNN() if network is None else CNN(network)
        lens = cnn.make_lens()
    if dry_run:
        with lens.running():
            width = lens.see_blank().pooled().shape[1]
        size = sum(path.stat().st_size for path in files) / len(files)
        steps = costs.photo_steps(
            len(files),
            shard_photos=shard,
            rates=costs.measured_rates(cnn, _spread(files)),
            n_features=width,
            photo_bytes=size,
        )
        say(costs.Bill(steps, _n_workers(cluster, workers, threads)))
        return
    with executor_of(cluster, workers) as executor:
        found = extract_features(
            files,
            cnn,
            store,
            shard_photos=shard,
            retry_failed=retry_failed,
            executor=executor,
            n_threads=threads,
            progress=on_terminal(),
        )
    for reason in found.failures.values():
        note(reason)
    vectors, names = store / "features.npy", store / "features.txt"
    _write_vectors(found, vectors, names, photos)
    say(f"Described {len(found.photos) - len(found.failures)} photos.")
    if found.failures:
        say(f"{len(found.failures)} photos cannot be read; --retry-failed tries them again.")
    say(f"Wrote {printable(vectors)} and {printable(names)}, which --features takes.")


def verify_store(
    *,
    store: Annotated[
        Path, typer.Argument(help="Folder of a store, or of several.", show_default=False)
    ],
    sample: Annotated[
        int, typer.Option(min=0, help="Pieces of each store to compute again.")
    ] = 3,
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Let damaged pieces count as missing, to be made anew."),
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Which pieces.")] = 0,
) -> None:
    """Compare the files of a store with their digests, and compute some of them again."""
    with given_as("STORE"):
        found = verify(store, n_recomputed=sample, repair=repair, rng=seed)
    say(*found)
    if not all(one.is_intact for one in found):
        raise typer.Exit(1)


def evaluated_in(
    store: Path, given: dict[str, Any], cluster: str | None, workers: int | None
) -> RetrievalResult:
    """Measure vectors in files by a store of counts."""
    images, captions = (as_rows(option, given[name]) for option, name in _VECTORS.items())
    owner = as_owner(
        given.pop("caption_image", None),
        given.pop("captions_per_image"),
        (images.shape[0], captions.shape[0]),
    )
    with executor_of(cluster, workers) as executor:
        return distributed.evaluate(
            **given,
            store=store,
            caption_image=owner,
            executor=executor,
            progress=on_terminal(),
        )


def bill_of(
    given: Mapping[str, Any], cluster: str | None, workers: int | None, threads: int | None
) -> costs.Bill:
    """Return what it would cost to measure vectors in files."""
    images, captions = (as_rows(option, given[name]) for option, name in _VECTORS.items())
    steps = costs.ranks_steps(
        images.shape[0],
        captions.shape[0],
        images.shape[1],
        block_rows=BLOCK_ROWS,
        rates=costs.measured_rates(),
        itemsize=max(images.dtype.itemsize, captions.dtype.itemsize),
    )
    return costs.Bill(steps, _n_workers(cluster, workers, threads))


def _n_workers(cluster: str | None, workers: int | None, threads: int | None) -> int:
    """Return how many tasks are done at once."""
    if cluster is None:
        return workers or threads or available_cores()
    with executor_of(cluster, workers) as client:
        n_threads: int = sum(client.nthreads().values())
        return max(1, n_threads)


def _spread(files: Sequence[Path]) -> list[Path]:
    """Return a few of many photos."""
    return list(files[:: -(-len(files) // _N_TRIAL)])


def _write_vectors(found: PhotoFeatures, vectors: Path, names: Path, folder: Path) -> None:
    """Write the rows of the photos that could be read as one file, and their names."""
    kept = [i for i in range(len(found.photos)) if i not in found.failures]
    if not kept:
        raise ValueError(f"none of the {len(found.photos)} photos can be read")
    with replacing(vectors) as temporary:
        out = np.lib.format.open_memmap(
            temporary, mode="w+", dtype=np.float32, shape=(len(kept), found.rows.n_columns)
        )
        for start in range(0, len(kept), 4096):
            part = np.array(kept[start : start + 4096], np.intp)
            out[start : start + 4096] = found.rows.take(part)
        out.flush()
    with replacing(names) as temporary:
        lines = [name_in(folder, Path(found.photos[i])) for i in kept]
        temporary.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
