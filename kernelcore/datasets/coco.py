"""Captions in the JSON format of COCO."""

from __future__ import annotations

import os
from pathlib import Path

from kernelcore.datasets._collect import CaptionRow, OddRows, collect
from kernelcore.datasets._photos import NamedPhoto, Outside, find_photos
from kernelcore.datasets._reading import field, read_json
from kernelcore.datasets.records import CaptionedImages


def load_coco_captions(
    path: str | os.PathLike[str],
    *,
    images: str | os.PathLike[str] | None = None,
    outside: Outside = "refuse",
) -> CaptionedImages:
    """Load a COCO captions file such as ``annotations/captions_val2017.json``.

    Parameters
    ----------
    path : path
        JSON file with the lists ``images`` and ``annotations``.
    images : path, optional
        Folder of the photos. By default the folder that holds them at, below or beside the
        folder of the file; without one the result has captions only.

    outside : {"refuse", "allow"}, default "refuse"
        What to do where the file names photos outside of the folder; see `load_folder`.

    Returns
    -------
    CaptionedImages
        Image and caption ids are COCO's numbers as strings, captions stand in the order of
        the file. There are no splits, which COCO keeps in separate files: see
        `random_splits`, or `load_karpathy` for those of the retrieval literature.

    Raises
    ------
    FileNotFoundError, NotADirectoryError
        If the file or `images` is not there.
    ValueError
        If the file is not such JSON, has no usable caption or names a photo outside of the
        folder.

    Warns
    -----
    DatasetWarning
        Once, if rows are odd: images or captions listed twice, images without captions,
        captions of images that are not listed or whose files are missing.

    References
    ----------
    .. [1] X. Chen et al., "Microsoft COCO captions: data collection and evaluation server",
       arXiv:1504.00325, 2015.

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> from kernelcore.datasets import load_coco_captions
    >>> content = {
    ...     "images": [{"id": 7, "file_name": "000000000007.jpg"}],
    ...     "annotations": [{"id": 70, "image_id": 7, "caption": "A dog on a sofa."}],
    ... }
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "captions_tiny.json"
    ...     _ = path.write_text(json.dumps(content))
    ...     load_coco_captions(path).captions
    (('A dog on a sofa.',),)
    """
    source = Path(path)
    odd = OddRows(source)
    files, rows = read_coco(source, odd)
    photos = find_photos(source, files, source.parent, images, outside=outside)
    dataset = collect(
        source,
        source.stem,
        image_ids=files,
        rows=rows,
        photos=photos,
        splits={},
        odd=odd,
    )
    odd.warn()
    return dataset


def read_coco(source: Path, odd: OddRows) -> tuple[dict[str, NamedPhoto], list[CaptionRow]]:
    """Photos by image id and captions of a file; what is listed twice is added to `odd`."""
    content = read_json(source, ["images", "annotations"])
    files: dict[str, NamedPhoto] = {}
    for position, entry in enumerate(content["images"]):
        where = f"images[{position}]"
        image_id = str(field(source, where, entry, "id", int, str))
        if image_id in files:
            odd.add("images listed before (kept the first)", where)
        else:
            name = field(source, where, entry, "file_name", str)
            files[image_id] = NamedPhoto(name, where)
    rows: dict[str, CaptionRow] = {}
    for position, entry in enumerate(content["annotations"]):
        where = f"annotations[{position}]"
        caption_id = str(field(source, where, entry, "id", int, str))
        image_id = str(field(source, where, entry, "image_id", int, str))
        text = field(source, where, entry, "caption", str)
        if caption_id in rows:
            odd.add("captions listed before (kept the first)", where)
        else:
            rows[caption_id] = CaptionRow(image_id, text, caption_id=caption_id)
    return files, list(rows.values())
