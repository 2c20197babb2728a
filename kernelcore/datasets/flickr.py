"""The Flickr8k and Flickr30k corpora in the layout of their authors."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path, PurePath
from typing import Literal

from kernelcore._replacing import make_folder, replacing
from kernelcore._validation import check_choice
from kernelcore.datasets._caption_files import read_token_rows
from kernelcore.datasets._collect import OddRows, collect, named_in
from kernelcore.datasets._photos import (
    Outside,
    child_folders,
    find_photos,
    is_visible,
)
from kernelcore.datasets._reading import read_lines
from kernelcore.datasets.karpathy import load_karpathy
from kernelcore.datasets.records import CaptionedImages

_SPLIT_FILE = re.compile(
    r"(?:.*[._])?(?:(?P<plain>train|dev|val|test)|(?P<named>\w+)Images)\.txt"
)


def load_flickr(
    root: str | os.PathLike[str],
    *,
    captions: Literal["raw", "lemma"] = "raw",
    images: str | os.PathLike[str] | None = None,
    outside: Outside = "refuse",
) -> CaptionedImages:
    """Load Flickr8k or Flickr30k as its authors distribute it.

    Parameters
    ----------
    root : path
        Folder that holds the caption file (``Flickr8k.token.txt``,
        ``results_20130124.token`` or any other ``*.token*``), here or in a folder below,
        and beside it the lists of the splits (``Flickr_8k.trainImages.txt``, ``train.txt``
        and so on; names with or without ``.jpg``). A folder that has a Karpathy file
        ``dataset_*.json`` instead, or the file itself, is loaded by `load_karpathy`.
    captions : {"raw", "lemma"}, default "raw"
        Which caption file to read: the sentences as written, or the distributed file of
        lemmas (``Flickr8k.lemma.token.txt``).
    images : path, optional
        Folder of the photos. By default the folder at, below or beside `root` that holds
        them; without one the result has captions only.
    outside : {"refuse", "allow"}, default "refuse"
        What to do where the corpus names photos outside of the folder; see `load_folder`.

    Returns
    -------
    CaptionedImages
        Image ids are file names, caption ids are ``name#number``. The images are sorted by
        name, so that raw captions and lemmas line up. Splits are called ``train``, ``dev``
        (also where the corpus says ``val``) and ``test``, in the order of their files;
        photos of no split are included.

    Raises
    ------
    FileNotFoundError, NotADirectoryError
        If `root` or `images` is not there.
    ValueError
        If there is no caption file or more than one, it is not UTF-8 text or has no usable
        caption, an image is in two splits, a split names no photo of the corpus, or a photo
        lies outside of the folder.

    Warns
    -----
    DatasetWarning
        Once, if rows are odd: truncated lines, empty captions, repeated numbers, captions
        of photos that are missing, photos without captions, repeated or unknown names in a
        split. They are counted, named and left out.

    See Also
    --------
    load_folder : Your own photos with a caption file.

    References
    ----------
    .. [1] M. Hodosh, P. Young and J. Hockenmaier, "Framing image description as a ranking
       task: data, models and evaluation metrics", JAIR 47, 2013.
    .. [2] P. Young, A. Lai, M. Hodosh and J. Hockenmaier, "From image descriptions to
       visual denotations", TACL 2, 2014.

    Examples
    --------
    >>> import tempfile
    >>> from kernelcore.datasets import load_flickr, make_scenes
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     make_scenes(10, rng=1).write(folder)
    ...     load_flickr(folder)
    CaptionedImages('scenes', 10 images, 50 captions, train 6, dev 2, test 2)
    """
    check_choice("captions", captions, ("raw", "lemma"))
    root = Path(root)
    if not root.exists():
        raise FileNotFoundError(
            f"root must be the folder of a corpus, got {root}: no such folder"
        )
    source = _caption_file(root, captions)
    if source.suffix == ".json":
        if captions == "lemma":
            raise ValueError(f"captions must be 'raw' for {source}, which holds no lemmas")
        return load_karpathy(source, images=images, outside=outside)
    odd = OddRows(source)
    rows = read_token_rows(source, odd)
    named = named_in(rows)
    image_ids = sorted(named)
    photos = find_photos(
        source, {name: named[name] for name in image_ids}, root, images, outside=outside
    )
    splits = _read_splits(source.parent, image_ids)
    dataset = collect(
        source,
        _corpus_name(source),
        image_ids=image_ids,
        rows=rows,
        photos=photos,
        splits=splits,
        odd=odd,
    )
    odd.warn()
    return dataset


def write_flickr(dataset: CaptionedImages, folder: str | os.PathLike[str]) -> None:
    """Write captions and splits in the layout that `load_flickr` reads.

    Parameters
    ----------
    dataset : CaptionedImages
        Captions with the ids and numbers to write; its image files are not touched.
    folder : path
        Where to write ``<name>.token.txt`` and ``<name>.<split>Images.txt``; made if need be.

    Raises
    ------
    ValueError
        If a caption or an image id does not fit on a line, or ends in white space that
        would not be read back.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kernelcore.datasets import make_scenes, write_flickr
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_flickr(make_scenes(5).dataset, folder)
    ...     sorted(path.name for path in Path(folder).iterdir())  # doctest: +ELLIPSIS
    ['scenes.devImages.txt', 'scenes.testImages.txt', 'scenes.token.txt', ...]
    """
    folder = Path(folder)
    tokens = []
    for image_id, texts, numbers in zip(
        dataset.image_ids, dataset.captions, dataset.caption_numbers, strict=True
    ):
        for text, number in zip(texts, numbers, strict=True):
            if text != text.strip() or not text or "\n" in text:
                raise ValueError(f"captions must be single trimmed lines, got {text!r}")
            tokens.append(f"{image_id}#{number}\t{text}")
        if image_id != image_id.strip() or not image_id or re.search(r"[\t\n]", image_id):
            raise ValueError(f"image_ids must be without white space, got {image_id!r}")
    files = {"token": tokens}
    for split, members in dataset.splits.items():
        files[f"{split}Images"] = [dataset.image_ids[i] for i in members]
    make_folder(folder)
    for kind, lines in files.items():
        with replacing(folder / f"{dataset.name}.{kind}.txt") as temporary:
            content = "".join(f"{line}\n" for line in lines)
            temporary.write_text(content, encoding="utf-8", newline="\n")


def _caption_file(root: Path, captions: str) -> Path:
    """Return the one caption file of the corpus, as near to `root` as there is any."""
    if root.is_file():
        if root.suffix == ".json":
            return root
        raise NotADirectoryError(f"root must be the folder of a corpus, got the file {root}")
    folders = [root, *child_folders(root)]
    folders += [grandchild for child in folders[1:] for grandchild in child_folders(child)]
    for pattern in ("*.token*", "dataset_*.json"):
        for folder in folders:
            found = [
                path
                for path in sorted(folder.glob(pattern))
                if is_visible(path.name)
                and (path.suffix == ".json" or _is_lemma(path) == (captions == "lemma"))
            ]
            if len(found) > 1:
                names = ", ".join(path.name for path in found)
                raise ValueError(f"{folder} must hold one caption file, got {names}")
            if found:
                return found[0]
    wanted = "*lemma*.token*" if captions == "lemma" else "*.token* or dataset_*.json"
    raise ValueError(
        f"root must hold a caption file ({wanted}), got {root} without one; "
        "load_folder reads photos of your own"
    )


def _is_lemma(path: Path) -> bool:
    return "lemma" in path.name.lower()


def _corpus_name(source: Path) -> str:
    """Return what stands before ``.token``; Flickr30k calls its file ``results_<date>``."""
    stem = re.split(r"\.(?:lemma\.)?token", source.name, maxsplit=1)[0]
    return "Flickr30k" if stem.startswith("results_") else stem


def _read_splits(folder: Path, image_ids: Iterable[str]) -> dict[str, list[str]]:
    """Image names of each split, completed where the lists omit the file suffix."""
    files: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        match = _SPLIT_FILE.fullmatch(path.name)
        if match is None or not is_visible(path.name):
            continue
        split = match["plain"] or match["named"]
        split = "dev" if split == "val" else split
        if split in files:
            raise ValueError(
                f"{folder} must hold one list of split {split!r}, "
                f"got {files[split].name} and {path.name}"
            )
        files[split] = path
    known = {PurePath(image_id).stem: image_id for image_id in image_ids}
    known |= {image_id: image_id for image_id in image_ids}
    return {
        split: [known.get(name, name) for name in _names(path)] for split, path in files.items()
    }


def _names(path: Path) -> list[str]:
    return [name for line in read_lines(path) if (name := line.strip())]
