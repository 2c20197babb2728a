"""Generated pictures of simple scenes, described in words.

`content` decides what a scene shows and captions it, `picture` paints it with the drawings of
`figures`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._check import as_list, check_integer, drawn_seed
from kernelcore._store import make_folder, remove_leftovers, replacing
from kernelcore.datasets.records import CaptionedImages
from kernelcore.datasets.scenes.content import Dice, Scene, Thing, describe, imagine

__all__ = ["Scene", "Scenes", "Thing", "make_scenes"]

_N_CAPTIONS = 5
_SPLITS = {"train": (0, 1, 2), "dev": (3,), "test": (4,)}
_MIN_SIDE, _MAX_SIDE = 32, 4096


@dataclass(frozen=True, eq=False, repr=False)
class Scenes:
    """Generated pictures with their captions and their content.

    Attributes
    ----------
    images : ndarray of uint8, shape (n_images, height, width, 3)
        The pictures in RGB.
    dataset : CaptionedImages
        Five captions an image, without files. Of every five images three are in the split
        ``train``, one in ``dev`` and one in ``test``.
    scenes : tuple of Scene
        What each picture shows.
    boxes : ndarray of int64, shape (n_images, 2, 4)
        Left, top, right and bottom of the agent and of the patient, to about two pixels.
    """

    images: npt.NDArray[np.uint8]
    dataset: CaptionedImages
    scenes: tuple[Scene, ...]
    boxes: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.scenes)

    def __repr__(self) -> str:
        _, height, width, _ = self.images.shape
        return f"Scenes({len(self)} images of {width} x {height} pixels)"

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Write the collection in the layout that `load_flickr` reads.

        Parameters
        ----------
        folder : path
            Receives the pictures as ``images/*.png``, the captions and the splits; made if
            need be.
        """
        pillow = _extras.require("PIL.Image")
        root, dataset = Path(folder), self.dataset
        make_folder(root / "images")
        remove_leftovers(root / "images")
        for name, pixels in zip(dataset.image_ids, self.images, strict=True):
            with replacing(root / "images" / name, one_of_many=True) as temporary:
                pillow.fromarray(pixels).save(temporary, "PNG", compress_level=1)
        pool = dataset.pool()
        captions = zip(pool.caption_ids, pool.captions, strict=True)
        lines = {"token": [f"{caption_id}\t{text}" for caption_id, text in captions]}
        for split, members in dataset.splits.items():
            lines[f"{split}Images"] = [dataset.image_ids[i] for i in members]
        for kind, rows in lines.items():
            with replacing(root / f"{dataset.name}.{kind}.txt") as temporary:
                content = "".join(f"{row}\n" for row in rows)
                temporary.write_text(content, encoding="utf-8", newline="\n")


def make_scenes(
    n_images: int = 1000,
    rng: np.random.Generator | int | None = 0,
    *,
    size: tuple[int, int] = (96, 128),
) -> Scenes:
    """Draw pictures of simple scenes and describe each in five captions.

    An animal, a person or an object does something to another one: it chases, pulls,
    pushes, rides, holds or kicks it, jumps over it, sits on it, flies above it or stands to
    its left. The two come in several colours and sizes, on six textured grounds, in
    different light. Captions of an image differ in synonyms, voice, word order and
    details, so that colour, texture, shape, the order of words and the
    similarity of words all matter. Needs the extra ``images``.

    Parameters
    ----------
    n_images : int, default 1000
        Number of scenes. With the same integer `rng`, a small set holds the first scenes of a
        large one.
    rng : Generator or int, optional, default 0
        Any number >= 0. The same number gives the same captions and the same pictures, to
        the bit if Pillow has the same version. A generator draws the number; None takes
        another each time.
    size : (int, int), default (96, 128)
        Height and width of the pictures in pixels, 32 to 4096.

    Returns
    -------
    Scenes

    Raises
    ------
    TypeError
        If an argument is not an integer or `size` is not a pair.
    ValueError
        If `n_images` or `rng` is negative, or a side is out of bounds.
    MissingExtraError
        Without Pillow.

    Notes
    -----
    Takes about 3 ms an image at the default size, on one thread.

    Examples
    --------
    >>> from kernelcore.datasets import make_scenes
    >>> scenes = make_scenes(20, rng=3)
    >>> scenes
    Scenes(20 images of 128 x 96 pixels)
    >>> scenes.dataset
    CaptionedImages('scenes', 20 images without files, 100 captions, train 12, dev 4, test 4)
    """
    _extras.require("PIL.Image")
    from kernelcore.datasets.scenes.picture import draw

    n_images = check_integer("n_images", n_images, minimum=0)
    start = drawn_seed("rng", rng)
    sides = as_list("size", size, "be a pair (height, width)")
    if len(sides) != 2:
        raise TypeError(f"size must be a pair (height, width), got {size!r:.80}")
    height, width = (
        check_integer(f"size[{i}]", side, minimum=_MIN_SIDE, maximum=_MAX_SIDE)
        for i, side in enumerate(sides)
    )
    images = np.empty((n_images, height, width, 3), np.uint8)
    boxes = np.empty((n_images, 2, 4), np.int64)
    scenes, captions = [], []
    for i in range(n_images):
        # One stream for each part: a change of the pictures leaves the captions alone.
        scene = imagine(Dice(start, i, 0))
        images[i], boxes[i] = draw(scene, (height, width), Dice(start, i, 1))
        scenes.append(scene)
        captions.append(describe(scene, _N_CAPTIONS, Dice(start, i, 2)))
    ids = tuple(f"scene-{i:06d}.png" for i in range(n_images))
    numbers = tuple(range(_N_CAPTIONS))
    splits = {
        name: np.flatnonzero(np.isin(np.arange(n_images) % 5, turns))
        for name, turns in _SPLITS.items()
    }
    dataset = CaptionedImages(
        name="scenes",
        image_ids=ids,
        paths=(None,) * n_images,
        captions=tuple(captions),
        caption_ids=tuple(tuple(f"{i}#{number}" for number in numbers) for i in ids),
        caption_numbers=(numbers,) * n_images,
        splits=splits,
    )
    return Scenes(images, dataset, tuple(scenes), boxes)
