"""Annotation files of COCO-BISON: binary image selection."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from kernelcore._store import reading
from kernelcore.datasets._collect import OddRows, field, parse_json
from kernelcore.datasets.coco import load_coco_captions
from kernelcore.datasets.records import CaptionedImages
from kernelcore.datasets.selections import BinarySelections, SelectionTriple


def load_bison(
    path: str | os.PathLike[str], captions: str | os.PathLike[str] | CaptionedImages
) -> BinarySelections:
    """Load a BISON annotation file such as ``bison_annotations.cocoval2014.json``.

    Parameters
    ----------
    path : path
        JSON file with the list ``data``. An entry has ``bison_id``, ``caption_id``,
        ``true_image_id`` and two ``image_candidates``, each with an ``image_id``.
    captions : path or CaptionedImages
        COCO captions file that has the captions (``captions_val2014.json``), or a collection
        with the same caption ids. Those of Karpathy's JSON files are others.

    Returns
    -------
    BinarySelections
        All ids are strings, COCO's numbers too. Triples stand in the order of the file.

    Raises
    ------
    FileNotFoundError
        If a file is not there.
    ValueError
        If the file is not such JSON, an entry lacks a part, has no two candidates or a true
        image that is not one of them, an id comes twice, or no caption is known.

    Warns
    -----
    DatasetWarning
        If the captions of some triples are not known; these are left out.

    References
    ----------
    .. [1] H. Hu, I. Misra and L. van der Maaten, "Evaluating text-to-image matching using
       binary image selection (BISON)", ICCV workshops 2019.

    Examples
    --------
    >>> import json
    >>> from pathlib import Path
    >>> from kernelcore.datasets import load_bison
    >>> images = [{"id": i, "file_name": f"{i}.jpg"} for i in (7, 8)]
    >>> texts = [{"id": 70, "image_id": 7, "caption": "A dog on a sofa."}]
    >>> _ = Path("captions.json").write_text(
    ...     json.dumps({"images": images[:1], "annotations": texts})
    ... )
    >>> candidates = [{"image_id": 7}, {"image_id": 8}]
    >>> question = {"bison_id": 0, "caption_id": 70, "true_image_id": 7}
    >>> _ = Path("bison.json").write_text(
    ...     json.dumps({"info": {}, "data": [{**question, "image_candidates": candidates}]})
    ... )
    >>> load_bison("bison.json", "captions.json").triples[0].caption
    'A dog on a sofa.'
    """
    source = Path(path)
    data = field(source, "the file", parse_json(source), "data", list)
    dataset = (
        captions if isinstance(captions, CaptionedImages) else load_coco_captions(captions)
    )
    pool = dataset.pool()
    texts = dict(zip(pool.caption_ids, pool.captions, strict=True))
    odd = OddRows(source)
    triples = []
    for position, entry in enumerate(data):
        where = f"data[{position}]"
        triple_id, caption_id, true_image_id = (
            str(field(source, where, entry, key, int, str))
            for key in ("bison_id", "caption_id", "true_image_id")
        )
        candidates = _candidates(source, where, entry)
        if true_image_id not in candidates:
            raise ValueError(
                f"{source}: {where} must have its true image among its candidates, "
                f"got {true_image_id} and {', '.join(sorted(candidates))}"
            )
        (other_image_id,) = candidates - {true_image_id}
        if caption_id not in texts:
            odd.add("triples whose caption is not known (left out)", triple_id)
            continue
        triples.append(
            SelectionTriple(
                triple_id, texts[caption_id], caption_id, true_image_id, other_image_id
            )
        )
    if not triples:
        raise ValueError(
            f"{source} must hold triples whose captions are known, got none; {odd}"
        )
    odd.warn()
    with reading(source, "must hold valid triples"):
        return BinarySelections(source.stem, triples)


def _candidates(source: Path, where: str, entry: Any) -> set[str]:
    """Ids of the two images of an entry."""
    entries = field(source, where, entry, "image_candidates", list)
    candidates = {
        str(field(source, f"{where}: image_candidates[{i}]", candidate, "image_id", int, str))
        for i, candidate in enumerate(entries)
    }
    if not len(candidates) == len(entries) == 2:
        raise ValueError(
            f"{source}: {where} must have two different image_candidates, got {entries!r:.200}"
        )
    return candidates
