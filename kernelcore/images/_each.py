"""One image after another on several threads, and what becomes of those that fail."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypeVar

from kernelcore._blas import one_blas_thread
from kernelcore._parallel import check_stopped, in_threads
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


def unreadable_files(
    images: Sequence[Any], max_pixels: int, n_threads: int, progress: Progress
) -> dict[int, str]:
    """Try to decode the files among the images; return why those that failed did.

    It is for what will not say so itself. What is no path and no bytes is not looked at.
    """

    def work(i: int) -> str:
        check_stopped()
        if isinstance(images[i], (str, os.PathLike, bytes)):
            try:
                Photo.of(images, i, max_pixels).pixels()
            except UnreadableImageError as error:
                return str(error)
        return ""

    reasons = over_images(work, len(images), n_threads, progress, "Trying files")
    return {i: reason for i, reason in enumerate(reasons) if reason}


def report_failures(failures: Mapping[int, str], n_images: int, on_error: OnError) -> None:
    """Raise or warn about the images that failed, all in one message."""
    if failures and (on_error == "raise" or len(failures) == n_images):
        raise UnreadableImagesError(failures, n_images)
    if failures:
        warnings.warn(
            describe_failures(failures, n_images), UnreadableImagesWarning, stacklevel=4
        )
