"""The user's own photos: a folder and a file of captions."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from kernelcore._validation import check_integer, check_real, check_rng
from kernelcore.datasets._caption_files import read_caption_rows
from kernelcore.datasets._collect import OddRows, collect, named_in
from kernelcore.datasets._photos import Outside, find_photos
from kernelcore.datasets.records import CaptionedImages


def load_folder(
    images_dir: str | os.PathLike[str],
    captions_file: str | os.PathLike[str],
    *,
    outside: Outside = "refuse",
) -> CaptionedImages:
    r"""Load a folder of photos with a file of captions.

    Parameters
    ----------
    images_dir : path
        Folder of the photos.
    captions_file : path
        One caption a row, any number of rows an image, as UTF-8 text in one of the forms

        - ``name<TAB>caption``, without a header;
        - ``name#number<TAB>caption``, the form of the Flickr corpora;
        - comma-separated values whose header names the columns ``image`` and ``caption``,
          with double quotes around captions that hold commas or line breaks;
        - the same with tabs for commas, where quotes mean nothing;

        or as a ``.parquet`` file with these columns, whose captions may be lists, or as a
        ``.json`` file of COCO.

        Names are file names in `images_dir`; they may stand in folders below it.
    outside : {"refuse", "allow"}, default "refuse"
        A name that leads out of `images_dir`, by ``..``, as an absolute path (of any
        system) or through a symbolic link, is an error unless this allows it: a file of
        captions from elsewhere could name any file of this machine.

    Returns
    -------
    CaptionedImages
        Named like the folder, without splits: see `random_splits`. Captions without a
        number are numbered from 0.

    Raises
    ------
    MissingExtraError
        If the file is Parquet and pyarrow is not installed (extra ``data``).
    FileNotFoundError, NotADirectoryError
        If the folder or the file is not there.
    ValueError
        If the file has no such form, or names no photo of the folder, or
        one outside of it.

    Warns
    -----
    DatasetWarning
        Once, if rows are odd: see `load_flickr`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kernelcore.datasets import load_folder, make_scenes
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     make_scenes(3).write(folder)
    ...     captions = Path(folder) / "captions.tsv"
    ...     _ = captions.write_text(
    ...         "scene-000000.png\tA first picture.\n"
    ...         "scene-000001.png\tA second picture.\n"
    ...         "scene-000002.png\tA third picture.\n"
    ...     )
    ...     photos = load_folder(Path(folder) / "images", captions)
    >>> photos
    CaptionedImages('images', 3 images, 3 captions)
    """
    source = Path(captions_file)
    odd = OddRows(source)
    rows = read_caption_rows(source, odd)
    image_ids = dict.fromkeys(row.image_id for row in rows)
    folder = Path(images_dir)
    photos = find_photos(
        source, named_in(rows), folder, folder, outside=outside, argument="images_dir"
    )
    dataset = collect(
        source,
        folder.resolve().name,
        image_ids=image_ids,
        rows=rows,
        photos=photos,
        splits={},
        odd=odd,
    )
    odd.warn()
    return dataset


def random_splits(
    dataset: CaptionedImages,
    train: float,
    dev: float,
    test: float,
    rng: np.random.Generator | int | None = None,
) -> CaptionedImages:
    """Divide the images at random into the splits ``train``, ``dev`` and ``test``.

    Parameters
    ----------
    dataset : CaptionedImages
        Any collection; splits it has are replaced.
    train, dev, test : int or float
        Sizes of the splits, all three as numbers of images (int) or all three as shares of
        the images (float). Images that remain are in no split, a split of size 0 is
        absent.
    rng : Generator or int, optional
        Source of randomness. The same number gives the same splits.

    Returns
    -------
    CaptionedImages
        The same images in the same order, with new splits.

    Raises
    ------
    TypeError
        If a size is not a number, or integers and floats are mixed.
    ValueError
        If a size is negative or the splits together exceed the collection.

    Examples
    --------
    >>> from kernelcore.datasets import make_scenes, random_splits
    >>> random_splits(make_scenes(20).dataset, 0.5, 0.25, 0.25, rng=0)
    CaptionedImages('scenes', 20 images without files, 100 captions, train 10, dev 5, test 5)
    """
    sizes = {"train": train, "dev": dev, "test": test}
    if any(isinstance(size, float) for size in sizes.values()):
        if not all(isinstance(size, float) for size in sizes.values()):
            raise TypeError(
                "train, dev and test must all be integers or all be floats, "
                f"got {train!r}, {dev!r} and {test!r}"
            )
        shares = [check_real(name, size, minimum=0) for name, size in sizes.items()]
        # Rounding the bounds instead of the sizes never gives more than there are.
        bounds = np.rint(np.cumsum(shares) * len(dataset)).astype(np.intp)
    else:
        counts = [check_integer(name, size, minimum=0) for name, size in sizes.items()]
        bounds = np.cumsum(counts)
    if bounds[-1] > len(dataset):
        raise ValueError(
            f"train, dev and test must together be at most {len(dataset)} images, "
            f"got {bounds[-1]}"
        )
    order = check_rng("rng", rng).permutation(len(dataset))
    parts = np.split(order, bounds)[:-1]
    return replace(
        dataset,
        splits={
            name: np.sort(part) for name, part in zip(sizes, parts, strict=True) if len(part)
        },
    )
