"""Files of binary image selection in the format of COCO-BISON."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kernelcore._store import replacing
from kernelcore.datasets._collect import OddRows, field, parse_json, read_json
from kernelcore.datasets.coco import load_coco_captions
from kernelcore.datasets.records import CaptionedImages
from kernelcore.datasets.selections import BinarySelections, SelectionTriple

_NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")


def load_bison(
    path: str | os.PathLike[str], captions: str | os.PathLike[str] | CaptionedImages
) -> BinarySelections:
    """Load a BISON annotation file such as ``bison_annotations.cocoval2014.json``.

    Parameters
    ----------
    path : path
        JSON file with the list ``data``. An entry has ``bison_id``, ``caption_id``,
        ``true_image_id`` and two ``image_candidates``, each of an ``image_id`` and an
        ``image_filename``.
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
    >>> candidates = [{"image_id": i, "image_filename": f"{i}.jpg"} for i in (7, 8)]
    >>> question = {"bison_id": 0, "caption_id": 70, "true_image_id": 7}
    >>> _ = Path("bison.json").write_text(
    ...     json.dumps({"info": {}, "data": [{**question, "image_candidates": candidates}]})
    ... )
    >>> load_bison("bison.json", "captions.json").triples[0].caption
    'A dog on a sofa.'
    """
    source = Path(path)
    content = read_json(source, ["data"])
    dataset = (
        captions if isinstance(captions, CaptionedImages) else load_coco_captions(captions)
    )
    pool = dataset.pool()
    texts = dict(zip(pool.caption_ids, pool.captions, strict=True))
    odd = OddRows(source)
    triples = []
    filenames: dict[str, str] = {}
    for position, entry in enumerate(content["data"]):
        where = f"data[{position}]"
        triple_id, caption_id, true_image_id = (
            str(field(source, where, entry, key, int, str))
            for key in ("bison_id", "caption_id", "true_image_id")
        )
        candidates = _candidates(source, where, entry)
        if true_image_id not in candidates:
            raise ValueError(
                f"{source}: {where} must have its true image among its candidates, "
                f"got {true_image_id} and {', '.join(candidates)}"
            )
        (other_image_id,) = candidates.keys() - {true_image_id}
        if caption_id not in texts:
            odd.add("triples whose caption is not known (left out)", triple_id)
            continue
        filenames |= candidates
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
    try:
        return BinarySelections(source.stem, triples, filenames)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None


def write_bison(selections: BinarySelections, path: str | os.PathLike[str]) -> None:
    """Write triples as a BISON annotation file.

    Parameters
    ----------
    selections : BinarySelections
        Ids that are whole numbers are written as such. The captions are not part of the
        format: reading the file takes the file of captions too.
    path : path
        The file, written whole or not at all. The candidates of a triple stand in the order
        of their ids, which does not tell the true one.

    Examples
    --------
    >>> from kernelcore.datasets import BinarySelections, SelectionTriple, write_bison
    >>> triple = SelectionTriple("0", "A dog digs.", "dog#0", "dog.jpg", "cat.jpg")
    >>> write_bison(BinarySelections("garden", [triple]), "garden.json")
    """
    if not isinstance(selections, BinarySelections):
        raise TypeError(f"selections must be BinarySelections, got {type(selections).__name__}")
    data = [
        {
            "bison_id": _as_json("selections", triple.triple_id),
            "caption_id": _as_json("selections", triple.caption_id),
            "true_image_id": _as_json("selections", triple.true_image_id),
            "image_candidates": [
                {
                    "image_id": _as_json("selections", image_id),
                    "image_filename": selections.filenames.get(image_id, image_id),
                }
                for image_id in sorted((triple.true_image_id, triple.other_image_id))
            ],
        }
        for triple in selections
    ]
    _write(path, {"info": {"source": selections.name}, "data": data})


def load_bison_predictions(path: str | os.PathLike[str]) -> dict[str, str]:
    """Load a BISON prediction file.

    Parameters
    ----------
    path : path
        JSON file with a list of objects with ``bison_id`` and ``predicted_image_id``.

    Returns
    -------
    dict of str to str
        The predicted image of each triple, ids as strings.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is not such JSON or predicts a triple twice.

    Examples
    --------
    >>> from kernelcore.datasets import load_bison_predictions, write_bison_predictions
    >>> write_bison_predictions({"0": "7", "1": "dog.jpg"}, "predictions.json")
    >>> load_bison_predictions("predictions.json")
    {'0': '7', '1': 'dog.jpg'}
    """
    source = Path(path)
    content = parse_json(source)
    if not isinstance(content, list):
        raise ValueError(f"{source} must hold a JSON list, got a {type(content).__name__}")
    predictions: dict[str, str] = {}
    for position, entry in enumerate(content):
        triple_id, image_id = (
            str(field(source, f"[{position}]", entry, key, int, str))
            for key in ("bison_id", "predicted_image_id")
        )
        if triple_id in predictions:
            raise ValueError(f"{source} must predict a triple once, got {triple_id} repeatedly")
        predictions[triple_id] = image_id
    return predictions


def write_bison_predictions(
    predictions: Mapping[str, str], path: str | os.PathLike[str]
) -> None:
    """Write predictions as a BISON prediction file, whole or not at all.

    Parameters
    ----------
    predictions : mapping of str to str
        Id of the selected image by triple id. Ids
        that are whole numbers are written as such.
    path : path
        The file.

    Raises
    ------
    TypeError
        If `predictions` is no mapping, or an id is no string.
    """
    if not isinstance(predictions, Mapping):
        raise TypeError(
            f"predictions must be a mapping of triple ids to image ids, got {predictions!r}"
        )
    _write(
        path,
        [
            {
                "bison_id": _as_json("predictions", triple_id),
                "predicted_image_id": _as_json("predictions", image_id),
            }
            for triple_id, image_id in predictions.items()
        ],
    )


def _candidates(source: Path, where: str, entry: Any) -> dict[str, str]:
    """File name of each of the two images by id."""
    candidates = {}
    entries = field(source, where, entry, "image_candidates", list)
    for number, candidate in enumerate(entries):
        place = f"{where}: image_candidates[{number}]"
        image_id = str(field(source, place, candidate, "image_id", int, str))
        candidates[image_id] = field(source, place, candidate, "image_filename", str)
    if not len(candidates) == len(entries) == 2:
        raise ValueError(
            f"{source}: {where} must have two different image_candidates, got {entries!r:.200}"
        )
    return candidates


def _as_json(name: str, identifier: str) -> int | str:
    """Whole numbers as COCO writes them; text that a number would change stays text."""
    if not isinstance(identifier, str):
        raise TypeError(f"{name} must hold strings, got {identifier!r}")
    return int(identifier) if _NUMBER.fullmatch(identifier) else identifier


def _write(path: str | os.PathLike[str], content: Any) -> None:
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
