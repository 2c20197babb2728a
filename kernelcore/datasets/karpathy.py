"""Corpora with the splits of Karpathy and Fei-Fei, one JSON file each."""

from __future__ import annotations

import os
from pathlib import Path, PurePath

from kernelcore.datasets._collect import CaptionRow, OddRows, collect
from kernelcore.datasets._photos import NamedPhoto, Outside, find_photos
from kernelcore.datasets._reading import field, read_json
from kernelcore.datasets.records import CaptionedImages


def load_karpathy(
    path: str | os.PathLike[str],
    *,
    images: str | os.PathLike[str] | None = None,
    outside: Outside = "refuse",
) -> CaptionedImages:
    """Load ``dataset_flickr8k.json``, ``dataset_flickr30k.json`` or ``dataset_coco.json``.

    Parameters
    ----------
    path : path
        The JSON file.
    images : path, optional
        Folder of the photos (for COCO the one that holds ``train2014`` and ``val2014``, or
        all photos in one folder). By default the folder that holds them at, below or beside
        the folder of the file; without one the result has captions only.

    outside : {"refuse", "allow"}, default "refuse"
        What to do where the file names photos outside of the folder; see `load_folder`.

    Returns
    -------
    CaptionedImages
        Image ids are file names, for COCO the numbers of COCO; caption ids are the file's
        ``sentid`` where it has them. The split ``val`` is called ``dev``; COCO's ``restval``
        keeps its name.

    Raises
    ------
    FileNotFoundError, NotADirectoryError
        If the file or `images` is not there.
    ValueError
        If the file is not such JSON, has no usable caption, has an image in two splits or
        names a photo outside of the folder.

    Warns
    -----
    DatasetWarning
        Once, if rows are odd: see `load_flickr`.

    References
    ----------
    .. [1] A. Karpathy and L. Fei-Fei, "Deep visual-semantic alignments for generating image
       descriptions", CVPR 2015.

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path, PurePath
    >>> from kernelcore.datasets import load_karpathy
    >>> photo = {"filename": "a.jpg", "split": "val", "sentences": [{"raw": "A dog."}]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "annotations" / "dataset_tiny.json"
    ...     path.parent.mkdir()
    ...     _ = path.write_text(json.dumps({"dataset": "tiny", "images": [photo]}))
    ...     load_karpathy(path)
    CaptionedImages('tiny', 1 images without files, 1 captions, dev 1)
    """
    source = Path(path)
    content = read_json(source, ["images"])
    odd = OddRows(source)
    rows: list[CaptionRow] = []
    files: dict[str, NamedPhoto] = {}
    splits: dict[str, list[str]] = {}
    for position, entry in enumerate(content["images"]):
        where = f"images[{position}]"
        filename = field(source, where, entry, "filename", str)
        image_id = str(entry.get("cocoid", filename))
        split = field(source, where, entry, "split", str)
        splits.setdefault("dev" if split == "val" else split, []).append(image_id)
        if image_id in files:
            odd.add("images listed before (kept the first)", where)
            continue
        name = PurePath(str(entry.get("filepath", "")), filename).as_posix()
        files[image_id] = NamedPhoto(name, where)
        for number, sentence in enumerate(field(source, where, entry, "sentences", list)):
            text = field(source, f"{where}: sentences[{number}]", sentence, "raw", str)
            caption_id = str(sentence["sentid"]) if "sentid" in sentence else None
            rows.append(CaptionRow(image_id, text, number, caption_id))
    photos = find_photos(source, files, source.parent, images, outside=outside)
    name = str(content.get("dataset", source.stem.removeprefix("dataset_")))
    dataset = collect(
        source, name, image_ids=files, rows=rows, photos=photos, splits=splits, odd=odd
    )
    odd.warn()
    return dataset
