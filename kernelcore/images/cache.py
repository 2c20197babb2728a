"""Histograms kept on disk: one small file per image, so that a killed run loses none."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from kernelcore._files import digest, load_tensors, save_tensors
from kernelcore._replacing import remove_leftovers
from kernelcore.images.pyramid import Counts

_KIND = "visual words of one image"


def _checksum(counts: Mapping[str, Counts]) -> str:
    parts = (f"{name} {array.dtype} {array.shape}" for name, array in sorted(counts.items()))
    return digest("; ".join(parts).encode(), *(a.tobytes() for _, a in sorted(counts.items())))


class FeatureCache:
    """Counts of visual words by the content of the image they were taken from.

    Files are named by content, not by path and date: a photo that is moved, copied or listed
    in another order is found again, and one that is changed is not.

    Parameters
    ----------
    folder : path
        Where to keep files; made if missing. Several processes may share it.
    recipe : str
        Digest of everything else that the counts depend on. Each recipe has a folder of its
        own within `folder`.
    """

    def __init__(self, folder: str | os.PathLike[str], recipe: str) -> None:
        self._folder = Path(folder) / recipe
        self._folder.mkdir(parents=True, exist_ok=True)
        for part in self._folder.iterdir():
            remove_leftovers(part)

    def load(self, image: str) -> dict[str, Counts] | None:
        """Read the counts of the image with this digest, None if they are absent or damaged."""
        try:
            counts, metadata = load_tensors(self._path(image), _KIND)
            return counts if metadata["checksum"] == _checksum(counts) else None
        except (OSError, ValueError):
            return None

    def save(self, image: str, counts: Mapping[str, Counts]) -> None:
        """Keep the counts of the image with this digest.

        Thousands of files are not forced to the disk one by one: an entry that a power cut
        has damaged does not match its checksum and is made again.
        """
        path = self._path(image)
        path.parent.mkdir(exist_ok=True)
        save_tensors(path, _KIND, counts, {"checksum": _checksum(counts)}, one_of_many=True)

    def _path(self, image: str) -> Path:
        # 256 folders, as many file systems grow slow with a hundred thousand files in one.
        return self._folder / image[:2] / f"{image}.safetensors"
