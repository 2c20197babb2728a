"""Results that carry the settings under which they were obtained."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import kernelcore
from kernelcore._files import replacing
from kernelcore.evaluation._gold import as_caption_image, captions_by_image, one_each
from kernelcore.evaluation.ranking_metrics import RankingMetrics
from kernelcore.evaluation.ranks import Ties, as_scores, ranks_of

if TYPE_CHECKING:
    import pandas

    from kernelcore.evaluation.result_table import ResultTable

_KIND = "retrieval result"
_LABELS = ("system", "protocol", "dataset", "split", "pool", "version")


@dataclass(frozen=True)
class RetrievalResult:
    """Both directions of one system on one pool of images and captions.

    Attributes
    ----------
    annotation : RankingMetrics
        Queries are images, candidates are captions.
    search : RankingMetrics
        Queries are captions, candidates are images.
    system, protocol, dataset, split, pool : str
        What was measured, on what, and which captions formed the pool. One line each.
    settings : mapping of str to Any
        Settings of the system: anything JSON can hold; NumPy scalars become plain numbers.
    version : str
        Version of kernelcore that computed the result.

    Raises
    ------
    TypeError, ValueError
        If the directions do not belong together, a label is not one line of text, or the
        settings do not fit into JSON.

    See Also
    --------
    evaluate : Makes one from a matrix of scores.

    Examples
    --------
    >>> from kernelcore.evaluation import RetrievalResult, evaluate
    >>> result = evaluate([[0.9, 0.4], [0.1, 0.3]], system="toy", split="test")
    >>> RetrievalResult.from_json(result.to_json()) == result
    True
    """

    annotation: RankingMetrics
    search: RankingMetrics
    system: str = ""
    protocol: str = ""
    dataset: str = ""
    split: str = ""
    pool: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    version: str = kernelcore.__version__

    def __post_init__(self) -> None:
        for name in _LABELS:
            label = getattr(self, name)
            if not isinstance(label, str):
                raise TypeError(f"{name} must be a string, got {label!r}")
            if not label.isprintable():
                raise ValueError(f"{name} must be one line of printable text, got {label!r}")
        if (self.n_images, self.n_captions) != (
            self.search.n_candidates,
            self.search.n_queries,
        ):
            raise ValueError(
                "annotation and search must rank the same images and captions, got "
                f"{self.n_images} and {self.n_captions} against "
                f"{self.search.n_candidates} and {self.search.n_queries}"
            )
        for name in ("ties", "ks"):
            here, there = getattr(self.annotation, name), getattr(self.search, name)
            if here != there:
                raise ValueError(
                    f"annotation and search must share {name}, got {here!r} and {there!r}"
                )
        object.__setattr__(self, "settings", _as_json(self.settings))

    def __str__(self) -> str:
        return str(self._as_table())

    @property
    def n_images(self) -> int:
        """Images in the pool: queries of annotation, candidates of search."""
        return self.annotation.n_queries

    @property
    def n_captions(self) -> int:
        """Captions in the pool: candidates of annotation, queries of search."""
        return self.annotation.n_candidates

    @property
    def ties(self) -> str:
        """The tie rule of `gold_ranks`."""
        return self.annotation.ties

    @property
    def ks(self) -> tuple[int, ...]:
        """The k of the recalls that are reported."""
        return self.annotation.ks

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, the ranks of every query included."""
        return {
            "kind": _KIND,
            **{name: getattr(self, name) for name in _LABELS},
            "settings": dict(self.settings),
            "annotation": self.annotation.to_dict(),
            "search": self.search.to_dict(),
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> RetrievalResult:
        """Restore what `to_dict` gave; the metrics are computed anew from the ranks."""
        if not isinstance(document, Mapping) or document.get("kind") != _KIND:
            raise ValueError(f"document must say that it holds a {_KIND}, and it does not")
        try:
            return cls(
                annotation=RankingMetrics.from_dict(document["annotation"]),
                search=RankingMetrics.from_dict(document["search"]),
                settings=document["settings"],
                **{name: document[name] for name in _LABELS},
            )
        except KeyError as error:
            raise ValueError(f"document must hold {error}, and it does not") from None

    def to_json(self) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> RetrievalResult:
        """Restore what `to_json` gave; damaged text is a ValueError."""
        try:
            document = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"text must be the JSON of a {_KIND}: {error}") from None
        return cls.from_dict(document)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the JSON to a file, whole or not at all."""
        with replacing(path) as temporary:
            temporary.write_text(self.to_json(), encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> RetrievalResult:
        """Read what `save` wrote."""
        return cls.from_json(Path(path).read_text(encoding="utf-8"))

    def to_frame(self) -> pandas.DataFrame:
        """Return a pandas DataFrame with one row per direction; see `ResultTable.to_frame`."""
        return self._as_table().to_frame()

    def to_latex(self) -> str:
        """Return a LaTeX table, recalls in percent; see `Table.to_latex`."""
        return self._as_table().to_latex()

    def to_markdown(self) -> str:
        """Return a Markdown table, recalls in percent."""
        return self._as_table().to_markdown()

    def _as_table(self) -> ResultTable:
        from kernelcore.evaluation.result_table import ResultTable

        return ResultTable([self])


def evaluate(
    annotation_scores: npt.ArrayLike,
    search_scores: npt.ArrayLike | None = None,
    *,
    caption_image: npt.ArrayLike | None = None,
    ties: Ties = "mean",
    ks: Sequence[int] = (1, 5, 10),
    system: str = "",
    protocol: str = "",
    dataset: str = "",
    split: str = "",
    pool: str = "",
    settings: Mapping[str, Any] | None = None,
) -> RetrievalResult:
    """Measure image annotation and image search from a matrix of scores.

    Parameters
    ----------
    annotation_scores : array_like of shape (n_images, n_captions)
        Score of every caption for every image; higher is better.
    search_scores : array_like of shape (n_images, n_captions), optional
        Scores for image search where a model has others for that task, in the same
        orientation: rows are images.
    caption_image : array_like of int, shape (n_captions,), optional
        Row of the image that each caption belongs to; every image has at least one. Omit it
        where caption i belongs to image i.
    ties : {"mean", "min", "max", "ordinal"}, default="mean"
        The tie rule of `gold_ranks`.
    ks : sequence of int, default=(1, 5, 10)
        The k of the recalls that are reported.
    system, protocol, dataset, split, pool : str, optional
        Labels that travel with the numbers.
    settings : mapping of str to Any, optional
        Settings of the system, to travel with the numbers: anything JSON can hold.

    Returns
    -------
    RetrievalResult

    Raises
    ------
    TypeError, ValueError
        If the scores are not a matrix of numbers, hold NaN or differ in shape, or another
        argument does not fit them.

    Notes
    -----
    An image with several captions is ranked by the best of them in annotation; in search,
    each caption is a query of its own. One pass over the scores per direction.

    References
    ----------
    .. [1] M. Hodosh, P. Young and J. Hockenmaier, "Framing image description as a ranking
       task: data, models and evaluation metrics", JAIR 47, 2013.

    Examples
    --------
    >>> from kernelcore.evaluation import evaluate
    >>> scores = [[0.9, 0.8, 0.1], [0.2, 0.7, 0.3]]
    >>> result = evaluate(scores, caption_image=[0, 1, 1], ks=(1, 2), system="toy")
    >>> print(result)  # doctest: +ELLIPSIS
            ---- annotation ----  ------ search -----
    system    R@1    R@2  median   R@1    R@2  median
    toy     100.0  100.0     1.0  66.7  100.0     1.0
    R@k in percent; 2 images, 3 captions, ties mean, kernelcore ...
    """
    by_image = as_scores("annotation_scores", annotation_scores)
    by_caption = (
        by_image if search_scores is None else as_scores("search_scores", search_scores)
    )
    if by_caption.shape != by_image.shape:
        raise ValueError(
            f"search_scores must have the shape of annotation_scores, {by_image.shape}, "
            f"got {by_caption.shape}"
        )
    owner = as_caption_image(caption_image, by_image.shape)
    captions, images = captions_by_image(owner), one_each(owner)
    search_name = "annotation_scores" if search_scores is None else "search_scores"
    return RetrievalResult(
        annotation=RankingMetrics(
            ranks=ranks_of("annotation_scores", by_image, captions, ties),
            n_relevant=np.diff(captions.offsets),
            n_candidates=by_image.shape[1],
            ties=ties,
            ks=tuple(ks),
        ),
        search=RankingMetrics(
            ranks=ranks_of(search_name, by_caption, images, ties, queries_are_columns=True),
            n_relevant=np.diff(images.offsets),
            n_candidates=by_image.shape[0],
            ties=ties,
            ks=tuple(ks),
        ),
        system=system,
        protocol=protocol,
        dataset=dataset,
        split=split,
        pool=pool,
        settings=settings or {},
    )


def _as_json(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of `settings` as JSON will give it back: tuples become lists."""
    if not isinstance(settings, Mapping) or not all(isinstance(key, str) for key in settings):
        raise TypeError(f"settings must be a mapping from strings, got {settings!r}")
    copy = {}
    for key, value in settings.items():
        try:
            copy[key] = json.loads(json.dumps(value, default=_as_plain, allow_nan=False))
        except (TypeError, ValueError) as error:
            raise type(error)(f"settings[{key!r}] must fit into JSON: {error}") from None
    return copy


def _as_plain(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"got {value!r} of type {type(value).__name__}")
