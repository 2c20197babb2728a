"""JSON caption files: COCO, the splits of Karpathy, and the judgments of ECCV Caption."""

from __future__ import annotations

import os
from pathlib import Path, PurePath
from typing import Any, Literal, NamedTuple

import numpy as np

from kernelcore._check import check_choice
from kernelcore._photos import NamedPhoto, Outside, find_photos
from kernelcore._store import read_npy
from kernelcore.datasets._collect import (
    CaptionRow,
    OddRows,
    collect,
    field,
    parse_json,
)
from kernelcore.datasets.judgments import RelevanceJudgments
from kernelcore.datasets.records import CaptionedImages

_NAMES = {"eccv": "ECCV Caption", "cxc": "CxC", "original": "COCO"}


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
        all photos in one folder). By default it is searched for at, below and beside the
        folder of the file. If no folder is found, the result has captions only.

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
    return read_karpathy(Path(path), images, outside)


def read_karpathy(
    source: Path, images: str | os.PathLike[str] | None, outside: Outside
) -> CaptionedImages:
    """Read such a file for a loader, whose caller the warning points at."""
    content = parse_json(source)
    odd = OddRows(source)
    rows: list[CaptionRow] = []
    files: dict[str, NamedPhoto] = {}
    splits: dict[str, list[str]] = {}
    for position, entry in enumerate(field(source, "the file", content, "images", list)):
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
    return collect(name, files, rows, photos, odd, splits=splits, depth=2)


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
        Folder of the photos. By default it is searched for at, below and beside the folder
        of the file. If no folder is found, the result has captions only.

    outside : {"refuse", "allow"}, default "refuse"
        What to do where the file names photos outside of the folder; see `load_folder`.

    Returns
    -------
    CaptionedImages
        Image and caption ids are COCO's numbers as strings, captions stand in the order of
        the file. There are no splits, which COCO keeps in separate files: see
        `random_splits`, or `load_karpathy` for the splits of the retrieval literature.

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
    return collect(source.stem, files, rows, photos, odd)


def read_coco(source: Path, odd: OddRows) -> tuple[dict[str, NamedPhoto], list[CaptionRow]]:
    """Photos by image id, and captions; entries listed twice are added to `odd`."""
    content = parse_json(source)
    files: dict[str, NamedPhoto] = {}
    for position, entry in enumerate(field(source, "the file", content, "images", list)):
        where = f"images[{position}]"
        image_id = str(field(source, where, entry, "id", int, str))
        if image_id in files:
            odd.add("images listed before (kept the first)", where)
        else:
            name = field(source, where, entry, "file_name", str)
            files[image_id] = NamedPhoto(name, where)
    rows: dict[str, CaptionRow] = {}
    for position, entry in enumerate(field(source, "the file", content, "annotations", list)):
        where = f"annotations[{position}]"
        caption_id = str(field(source, where, entry, "id", int, str))
        image_id = str(field(source, where, entry, "image_id", int, str))
        text = field(source, where, entry, "caption", str)
        if caption_id in rows:
            odd.add("captions listed before (kept the first)", where)
        else:
            rows[caption_id] = CaptionRow(image_id, text, caption_id=caption_id)
    return files, list(rows.values())


class DirectedJudgments(NamedTuple):
    """Judgments of one pool that were collected apart for its two tasks.

    Attributes
    ----------
    annotation : RelevanceJudgments
        For queries that are images.
    search : RelevanceJudgments
        For queries that are captions.
    """

    annotation: RelevanceJudgments
    search: RelevanceJudgments


def load_eccv_caption(
    folder: str | os.PathLike[str], judgments: Literal["eccv", "cxc", "original"] = "eccv"
) -> DirectedJudgments:
    """Load judgments of which captions describe which images of the COCO 5K test split.

    Parameters
    ----------
    folder : path
        Folder ``data`` of the distribution of ECCV Caption, with
        ``<judgments>_image_to_caption.json``, ``<judgments>_caption_to_image.json``, the
        same two files of ``original`` and ``coco_test_ids.npy``.
    judgments : {"eccv", "cxc", "original"}, default="eccv"
        ECCV Caption [1]_, Crisscrossed Captions [2]_, or COCO's own pairs.

    Returns
    -------
    DirectedJudgments
        One set of pairs per task, every score 1. Both have the ids of the whole pool: 25,000
        captions in the order of ``coco_test_ids.npy`` and 5,000 images in the order of their
        captions, so that the five folds of COCO 1K are consecutive fifths of each. An image
        without a pair in `annotation` is no query there, nor a caption in `search`.

    Raises
    ------
    FileNotFoundError
        If a file is not there.
    ValueError
        If a file is damaged, names a candidate twice, or names a query that is not in the
        pool.

    Notes
    -----
    ECCV Caption judges 1,261 images and 1,332 captions as queries, each for its task alone:
    the other queries have pairs in neither set, and their relevant items are unknown. Two of
    its pairs name captions that are not in the pool (144675 and 467259). They are kept, under
    ids that follow those of the pool, and left out once a pool is
    selected; the authors' own program counts them as relevant items that no system
    can find. Nine pairs of an image and its own caption are not in ECCV Caption's list, 29
    not in that of CxC: the crowd did not confirm them. `RelevanceJudgments.union` adds them.

    References
    ----------
    .. [1] S. Chun, W. Kim, S. Park, M. Chang and S. J. Oh, "ECCV Caption: correcting false
       negatives by collecting machine-and-human-verified image-caption associations for
       MS-COCO", ECCV 2022.
    .. [2] Z. Parekh, J. Baldridge, D. Cer, A. Waters and Y. Yang, "Crisscrossed Captions:
       extended intramodal and intermodal semantic similarity judgments for MS-COCO",
       EACL 2021.

    Examples
    --------
    >>> import json
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from kernelcore.datasets import load_eccv_caption
    >>> np.save("coco_test_ids.npy", [11, 12])
    >>> for task, pairs in {
    ...     "image_to_caption": {"1": [11], "2": [12]},
    ...     "caption_to_image": {"11": [1], "12": [2]},
    ... }.items():
    ...     _ = Path(f"original_{task}.json").write_text(json.dumps(pairs))
    >>> _ = Path("eccv_image_to_caption.json").write_text('{"1": [11, 12]}')
    >>> _ = Path("eccv_caption_to_image.json").write_text('{"12": [1, 2]}')
    >>> eccv = load_eccv_caption(".")
    >>> eccv.annotation
    RelevanceJudgments('ECCV Caption', 2 pairs of 2 images and 2 captions, scores 1 to 1)
    >>> eccv.search.relevant_images(1)
    [array([], dtype=int64), array([0, 1])]
    """
    check_choice("judgments", judgments, tuple(_NAMES))
    folder = Path(folder)
    image_ids, caption_ids = _read_pool(folder)
    by_image = _read_lists(folder / f"{judgments}_image_to_caption.json", image_ids)
    by_caption = _read_lists(folder / f"{judgments}_caption_to_image.json", caption_ids)
    pairs = (
        [(image, caption) for image, captions in by_image.items() for caption in captions],
        [(image, caption) for caption, images in by_caption.items() for image in images],
    )
    name = _NAMES[judgments]
    ids: dict[str, Any] = {"image_ids": image_ids, "caption_ids": caption_ids}
    return DirectedJudgments(
        *(RelevanceJudgments.from_pairs(name, own, np.ones(len(own)), **ids) for own in pairs)
    )


def _read_pool(folder: Path) -> tuple[list[str], list[str]]:
    """Ids of the images and captions of the pool."""
    owners = _read_lists(folder / "original_caption_to_image.json", None)
    path = folder / "coco_test_ids.npy"
    order = read_npy(path)
    caption_ids = [str(entry) for entry in order.ravel()]
    if len(caption_ids) != len(owners) or set(caption_ids) != set(owners):
        raise ValueError(
            f"{path} must hold the {len(owners)} captions of original_caption_to_image.json "
            f"once each, got {len(caption_ids)} entries, {len(owners.keys() & caption_ids)} of "
            "them known"
        )
    return list(dict.fromkeys(image for c in caption_ids for image in owners[c])), caption_ids


def _read_lists(path: Path, queries: list[str] | None) -> dict[str, list[str]]:
    """Candidates of each query as strings; `queries` are the known ones."""
    content = parse_json(path)
    if not isinstance(content, dict):
        raise ValueError(f"{path} must hold a JSON object, got a {type(content).__name__}")
    known = None if queries is None else set(queries)
    for query, candidates in content.items():
        if known is not None and query not in known:
            raise ValueError(f"{path} must name queries of the pool, got {query!r}")
        if not isinstance(candidates, list) or not all(type(c) is int for c in candidates):
            raise ValueError(
                f"{path} must list whole numbers for query {query!r}, got {candidates!r:.60}"
            )
        if len(set(candidates)) != len(candidates):
            raise ValueError(f"{path} must name a candidate once, got one twice for {query!r}")
    return {query: [str(c) for c in candidates] for query, candidates in content.items()}
