"""Human judgments of Flickr8k's photos and captions, as their authors distribute them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import numpy as np

from kernelcore._validation import Array
from kernelcore.datasets._reading import read_lines
from kernelcore.datasets.judgments import RelevanceJudgments

_N_EXPERTS = 3
_COUNT = re.compile("[0-9]{1,3}")  # the file is not to say how much memory its votes take
_SHARE_PRECISION = 1e-6  # the shares are printed with 12 to 15 digits


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
    table = _Rows(path)
    scores = []
    for cells in table:
        if not all(cell in {"1", "2", "3", "4"} for cell in cells):
            table.fail("have three scores from 1 to 4", cells)
        scores.append([int(cell) for cell in cells])
    ratings = np.array(scores, dtype=np.float64)
    # The sum of small integers is exact, so a mean of 11 / 3 equals 11 / 3.
    return table.judgments("Flickr8k experts", ratings.sum(axis=1) / _N_EXPERTS, ratings)


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
    table = _Rows(path)
    votes = []
    for cells in table:
        share, yes, no = cells
        if not (_COUNT.fullmatch(yes) and _COUNT.fullmatch(no)):
            table.fail("have whole numbers of yes and no, of three digits at most", cells)
        n_yes, n_no = int(yes), int(no)
        if not n_yes + n_no:
            table.fail("have at least one vote", cells)
        if not _is_share(share, n_yes / (n_yes + n_no)):
            table.fail("have the share yes / (yes + no)", cells)
        votes.append((n_yes, n_no))
    counts = np.array(votes)
    n_votes = counts.sum(axis=1)
    place = np.arange(n_votes.max())
    ratings = np.where(place < counts[:, :1], 1.0, 0.0)
    ratings[place >= n_votes[:, np.newaxis]] = np.nan
    return table.judgments("Flickr8k crowd", counts[:, 0] / n_votes, ratings)


class _Rows:
    """Rows of a file of judgments: gives the three last cells, keeps ids and place."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._line = 0
        self._pairs: dict[tuple[str, str], int] = {}

    def __iter__(self) -> Iterator[list[str]]:
        for number, line in enumerate(read_lines(self._path), start=1):
            self._line = number
            if not line.strip():
                continue
            cells = [cell.strip() for cell in line.split("\t")]
            if len(cells) != 5 or not (cells[0] and cells[1]):
                self.fail("have 5 columns, the first two of them ids", cells)
            pair = cells[0], cells[1]
            if pair in self._pairs:
                self.fail(f"judge a pair once (see line {self._pairs[pair]})", cells)
            self._pairs[pair] = number
            yield cells[2:]
        if not self._pairs:
            raise ValueError(f"{self._path} must hold judgments, got an empty file")

    def fail(self, rule: str, cells: list[str]) -> NoReturn:
        raise ValueError(f"{self._path}, line {self._line}: a row must {rule}, got {cells}")

    def judgments(self, name: str, scores: Array, ratings: Array) -> RelevanceJudgments:
        return RelevanceJudgments.from_pairs(name, self._pairs, scores, ratings=ratings)


def _is_share(text: str, share: float) -> bool:
    try:
        return abs(float(text) - share) <= _SHARE_PRECISION
    except ValueError:
        return False
