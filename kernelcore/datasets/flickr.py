"""Flickr8k and Flickr30k: photos, captions, splits and human judgments."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path, PurePath

import numpy as np

from kernelcore._photos import Outside, find_photos, folders_within, is_visible
from kernelcore._store import lines_of, read_text
from kernelcore.datasets._collect import OddRows, collect, named_in
from kernelcore.datasets.coco import read_karpathy
from kernelcore.datasets.folder import token_rows
from kernelcore.datasets.judgments import RelevanceJudgments
from kernelcore.datasets.records import CaptionedImages

_SPLIT_FILE = re.compile(
    r"(?:.*[._])?(?:(?P<plain>train|dev|val|test)|(?P<named>\w+)Images)\.txt"
)

_COUNT = re.compile("[0-9]{1,3}")  # bounds the memory that a file can ask for
_SHARE_PRECISION = 1e-6  # the shares are printed with 12 to 15 digits


def load_flickr(
    root: str | os.PathLike[str],
    *,
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
    images : path, optional
        Folder of the photos. By default it is searched for at, below and beside `root`. If no
        folder is found, the result has captions only.
    outside : {"refuse", "allow"}, default "refuse"
        What to do where the corpus names photos outside of the folder; see `load_folder`.

    Returns
    -------
    CaptionedImages
        Image ids are file names, caption ids are ``name#number``. The images are sorted by
        name. Splits are called ``train``, ``dev``
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
    root = Path(root)
    if not root.exists():
        raise FileNotFoundError(
            f"root must be the folder of a corpus, got {root}: no such folder"
        )
    source = _caption_file(root)
    if source.suffix == ".json":
        return read_karpathy(source, images, outside)
    odd = OddRows(source)
    rows = list(token_rows(read_text(source), odd))
    files = dict(sorted(named_in(rows).items()))
    photos = find_photos(source, files, root, images, outside=outside)
    splits = _read_splits(source.parent, files)
    name = source.name.partition(".token")[0]
    if name.startswith("results_"):  # and the date
        name = "Flickr30k"
    return collect(name, files, rows, photos, odd, splits=splits)


def _caption_file(root: Path) -> Path:
    """Return the one caption file of the corpus, as near to `root` as there is any."""
    if root.is_file():
        if root.suffix == ".json":
            return root
        raise NotADirectoryError(f"root must be the folder of a corpus, got the file {root}")
    for pattern in ("*.token*", "dataset_*.json"):
        for folder in folders_within(root, 2):
            found = [
                path
                for path in sorted(folder.glob(pattern))
                if is_visible(path.name) and "lemma" not in path.name.lower()
            ]
            if len(found) > 1:
                names = ", ".join(path.name for path in found)
                raise ValueError(f"{folder} must hold one caption file, got {names}")
            if found:
                return found[0]
    raise ValueError(
        f"root must hold a caption file (*.token* or dataset_*.json), got {root} without one; "
        "load_folder reads photos of your own"
    )


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
        split: [
            known.get(name, name)
            for line in lines_of(read_text(path))
            if (name := line.strip())
        ]
        for split, path in files.items()
    }


def load_flickr_expert(path: str | os.PathLike[str]) -> RelevanceJudgments:
    r"""Load the expert judgments of Flickr8k (``ExpertAnnotations.txt``).

    Parameters
    ----------
    path : path
        File with rows of image, caption id and the scores of three experts, separated by
        tabs. A score is 1 (unrelated), 2 (describes some aspects), 3 (minor errors) or
        4 (describes the image without error).

    Returns
    -------
    RelevanceJudgments
        Scores are the means of the three; `ratings` has the three themselves, shape
        (n_pairs, 3), in the order of the file.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If a row is damaged; the error names the file, the line and the rule.

    Notes
    -----
    The distributed file lists the three scores of a pair in ascending order, so **its columns
    are not the judges**: agreement has to be measured by coefficients that need no identity of
    judges, such as Krippendorff's alpha. It covers what the systems of [1]_ ranked first and
    some random captions: a pair that is not there was not judged, good or bad.

    References
    ----------
    .. [1] M. Hodosh, P. Young and J. Hockenmaier, "Framing image description as a ranking
       task: data, models and evaluation metrics", JAIR 47, 2013, section 5.1.

    Examples
    --------
    >>> from pathlib import Path
    >>> from kernelcore.datasets import load_flickr_expert
    >>> _ = Path("expert.txt").write_text("a.jpg\ta.jpg#2\t3\t4\t4\n")
    >>> expert = load_flickr_expert("expert.txt")
    >>> expert.scores, expert.ratings
    (array([3.66666667]), array([[3., 4., 4.]]))
    """
    path = Path(path)
    rows = _rows(path)
    for number, cells in rows.values():
        if not set(cells) <= {"1", "2", "3", "4"}:
            raise _odd_row(path, number, "have three scores from 1 to 4", cells)
    ratings = np.array([list(map(int, cells)) for _, cells in rows.values()], np.float64)
    # The sum of small integers is exact, so a mean of 11 / 3 equals 11 / 3.
    scores = ratings.sum(axis=1) / ratings.shape[1]
    return RelevanceJudgments.from_pairs("Flickr8k experts", rows, scores, ratings=ratings)


def load_flickr_crowd(path: str | os.PathLike[str]) -> RelevanceJudgments:
    r"""Load the crowd's judgments of Flickr8k (``CrowdFlowerAnnotations.txt``).

    Parameters
    ----------
    path : path
        File with rows of image, caption id, share of yes, number of yes and number of no,
        separated by tabs.

    Returns
    -------
    RelevanceJudgments
        Scores are the shares of yes, exactly yes / (yes + no); `ratings` has a 1 for each
        yes and then a 0 for each no, NaN up to the greatest number of votes.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If a row is damaged or its share is not that of its votes; the error names the file,
        the line and the rule.

    Notes
    -----
    The paper calls a pair relevant if at least half of the votes are yes, or the caption was
    written for the image:
    ``crowd.union(RelevanceJudgments.gold(flickr)).select(...).relevant_captions(0.5)``. The
    file does not hold every gold pair, and the crowd said no to some that it holds.

    References
    ----------
    .. [1] M. Hodosh, P. Young and J. Hockenmaier, "Framing image description as a ranking
       task: data, models and evaluation metrics", JAIR 47, 2013, section 5.3.2.

    Examples
    --------
    >>> from pathlib import Path
    >>> from kernelcore.datasets import load_flickr_crowd
    >>> _ = Path("crowd.txt").write_text("a.jpg\ta.jpg#2\t0.666666666667\t2\t1\n")
    >>> crowd = load_flickr_crowd("crowd.txt")
    >>> crowd.scores, crowd.ratings
    (array([0.66666667]), array([[1., 1., 0.]]))
    """
    path = Path(path)
    rows = _rows(path)
    votes = []
    for number, cells in rows.values():
        share, yes, no = cells
        if not (_COUNT.fullmatch(yes) and _COUNT.fullmatch(no)):
            rule = "have whole numbers of yes and no, of three digits at most"
            raise _odd_row(path, number, rule, cells)
        n_yes, n_votes = int(yes), int(yes) + int(no)
        if not n_votes:
            raise _odd_row(path, number, "have at least one vote", cells)
        if not _is_share(share, n_yes / n_votes):
            raise _odd_row(path, number, "have the share yes / (yes + no)", cells)
        votes.append((n_yes, n_votes))
    n_yes_of, n_votes_of = np.array(votes).T
    place = np.arange(n_votes_of.max())
    ratings = np.where(place < n_yes_of[:, np.newaxis], 1.0, 0.0)
    ratings[place >= n_votes_of[:, np.newaxis]] = np.nan
    scores = n_yes_of / n_votes_of
    return RelevanceJudgments.from_pairs("Flickr8k crowd", rows, scores, ratings=ratings)


def _rows(path: Path) -> dict[tuple[str, str], tuple[int, list[str]]]:
    """Read the number of the line and the three last cells of each judged pair."""
    rows: dict[tuple[str, str], tuple[int, list[str]]] = {}
    for number, line in enumerate(lines_of(read_text(path)), start=1):
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) != 5 or not (cells[0] and cells[1]):
            raise _odd_row(path, number, "have 5 columns, the first two of them ids", cells)
        pair = cells[0], cells[1]
        if pair in rows:
            raise _odd_row(path, number, f"judge a pair once (see line {rows[pair][0]})", cells)
        rows[pair] = number, cells[2:]
    if not rows:
        raise ValueError(f"{path} must hold judgments, got an empty file")
    return rows


def _odd_row(path: Path, number: int, rule: str, cells: list[str]) -> ValueError:
    return ValueError(f"{path}, line {number}: a row must {rule}, got {cells}")


def _is_share(text: str, share: float) -> bool:
    try:
        return abs(float(text) - share) <= _SHARE_PRECISION
    except ValueError:
        return False
