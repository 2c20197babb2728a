"""One image after another on several threads, and what becomes of those that fail."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias, TypeVar

from kernelcore._blas import one_blas_thread
from kernelcore._parallel import in_threads
from kernelcore._progress import Progress, reporting
from kernelcore.images._opencv import one_opencv_thread
from kernelcore.images.decode import (
    ImageSource,
    Photo,
    UnreadableImageError,
    UnreadableImagesError,
    UnreadableImagesWarning,
    describe_failures,
)

OnError: TypeAlias = Literal["raise", "skip"]
_Result = TypeVar("_Result")


def over_images(
    work: Callable[[int], _Result],
    n_images: int,
    n_threads: int,
    progress: Progress,
    description: str,
) -> list[_Result]:
    """Results of `work` for the numbers below `n_images`, in order.

    The threads share no state but the libraries, which are kept to one thread each: what
    is computed for an image does not depend on `n_threads`.
    """
    with (
        one_opencv_thread(),
        one_blas_thread(),
        reporting(progress, description) as report,
    ):
        return in_threads(
            work, range(n_images), n_threads, setting=one_blas_thread, report=report
        )


def all_there(images: Sequence[ImageSource], max_pixels: int) -> bool:
    """Tell whether every file exists and has a plausible size, without reading any."""
    try:
        for i in range(len(images)):
            Photo.of(images, i, max_pixels).check_there()
    except UnreadableImageError:
        return False
    return True


def report_failures(failures: Mapping[int, str], n_images: int, on_error: OnError) -> None:
    """Raise or warn about the images that failed, all in one message."""
    if failures and (on_error == "raise" or len(failures) == n_images):
        raise UnreadableImagesError(failures, n_images)
    if failures:
        warnings.warn(
            describe_failures(failures, n_images), UnreadableImagesWarning, stacklevel=4
        )
