"""The options of Dask clusters, and ranks of vectors on one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from kernelcore import _extras, distributed
from kernelcore.cli.common import given_as, on_terminal
from kernelcore.evaluation import Result
from kernelcore.evaluation._inputs import as_owner, as_rows

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
_VECTORS = {"--image-vectors": "image_vectors", "--caption-vectors": "caption_vectors"}
_CONNECT_SECONDS = 30


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


def evaluated_in(
    store: Path, given: dict[str, Any], cluster: str | None, workers: int | None
) -> Result:
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
