"""Results of image search and annotation: metrics with labels, settings, JSON and tables."""

from __future__ import annotations

import json
import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

import kernelcore
from kernelcore import _extras
from kernelcore._files import digest, replacing
from kernelcore._reading import json_value, read_text, reading
from kernelcore.evaluation.metrics import RankingMetrics
from kernelcore.evaluation.table import Table, plain

if TYPE_CHECKING:
    import pandas

    from kernelcore.evaluation.result_table import ResultTable


_FACTS = {
    "protocol": "{}",
    "dataset": "{}",
    "split": "split {}",
    "pool": "pool {}",
    "selections": "{}",
    "relevance": "relevant by {}",
    "n_images": "{} images",
    "n_captions": "{} captions",
    "n_folds": "means over {} folds",
    "n_documents": "{} documents",
    "n_judged": "{} judged",
    "n_triples": "{} triples",
    "n_answered": "{} answered",
    "ties": "ties {}",
    "version": "kernelcore {}",
}


class DirectionMetrics(Protocol):
    """What a result needs to know of the metrics of one direction."""

    @property
    def n_queries(self) -> int: ...  # noqa: D102
    @property
    def n_candidates(self) -> int: ...  # noqa: D102
    @property
    def ties(self) -> str: ...  # noqa: D102
    @property
    def ks(self) -> tuple[int, ...]: ...  # noqa: D102
    def to_dict(self) -> dict[str, Any]: ...  # noqa: D102


_Metrics = TypeVar("_Metrics", bound=DirectionMetrics)
_Result = TypeVar("_Result", bound="Labelled")


@dataclass(frozen=True, kw_only=True)
class Labelled:
    """Numbers of one system with what they depend on, and their way into files."""

    system: str = ""
    protocol: str = ""
    dataset: str = ""
    split: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    version: str = kernelcore.__version__

    _kind: ClassVar[str]
    _labels: ClassVar[tuple[str, ...]] = ("system", "protocol", "dataset", "split", "version")

    def __post_init__(self) -> None:
        for name in self._labels:
            label = getattr(self, name)
            if not isinstance(label, str):
                raise TypeError(f"{name} must be a string, got {label!r}")
            if not label.isprintable():
                raise ValueError(f"{name} must be one line of printable text, got {label!r}")
        object.__setattr__(self, "settings", _as_json(self.settings))

    def __str__(self) -> str:
        return str(self.to_table())

    def _repr_html_(self) -> str:
        """Show the table in a notebook."""
        return self.to_table().to_html()

    @abstractmethod
    def to_table(self) -> Table:
        """Return a table of one row, shares in percent."""

    @abstractmethod
    def _numbers(self) -> dict[str, Any]:
        """Return the numbers as plain values."""

    @classmethod
    @abstractmethod
    def _as_fields(cls, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields that restore what `_numbers` gave; a missing one is a KeyError."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, those of every query included."""
        return {
            "kind": self._kind,
            **{name: getattr(self, name) for name in self._labels},
            "settings": dict(self.settings),
            **self._numbers(),
        }

    @classmethod
    def from_dict(cls: type[_Result], document: Mapping[str, Any]) -> _Result:
        """Restore what `to_dict` gave; what sums up the queries is computed anew."""
        if not isinstance(document, Mapping) or document.get("kind") != cls._kind:
            raise ValueError(f"document must say that it holds a {cls._kind}, and it does not")
        try:
            return cls(
                settings=document["settings"],
                **{name: document[name] for name in cls._labels},
                **cls._as_fields(document),
            )
        except KeyError as error:
            raise ValueError(f"document must hold {error}, and it does not") from None

    def to_json(self) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    @classmethod
    def from_json(cls: type[_Result], text: str) -> _Result:
        """Restore what `to_json` gave; damaged text is a ValueError."""
        try:
            document = json_value(text)
        except (RecursionError, ValueError) as error:
            raise ValueError(f"text must be the JSON of a {cls._kind}: {error}") from None
        return cls.from_dict(document)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the JSON to a file, whole or not at all."""
        with replacing(path) as temporary:
            temporary.write_text(self.to_json(), encoding="utf-8")

    @classmethod
    def load(cls: type[_Result], path: str | os.PathLike[str]) -> _Result:
        """Read what `save` wrote."""
        with reading(path):
            return cls.from_json(read_text(path))

    def to_frame(self) -> pandas.DataFrame:
        """Return a pandas DataFrame of the numbers as shares in [0, 1].

        Returns
        -------
        pandas.DataFrame
            One row, or one per direction, with the labels.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        document = self.to_dict()
        labels = {name: document.pop(name) for name in self._labels}
        shared = labels | plain({k: v for k, v in document.items() if k != "kind"})
        tasks = [task for task in ("annotation", "search") if task in document]
        rows = [shared | {"task": task} | plain(document[task]) for task in tasks] or [shared]
        frame: pandas.DataFrame = _extras.require("pandas").DataFrame(rows)
        return frame

    def to_latex(self) -> str:
        """Return a LaTeX table, shares in percent; see `Table.to_latex`."""
        return self.to_table().to_latex()

    def to_markdown(self) -> str:
        """Return a Markdown table, shares in percent."""
        return self.to_table().to_markdown()


@dataclass(frozen=True)
class LabelledResult(Labelled, Generic[_Metrics]):
    """Metrics of both directions of one system on one pool, with what they depend on."""

    annotation: _Metrics
    search: _Metrics
    pool: str = ""

    _metrics: ClassVar[type[Any]]
    _labels: ClassVar[tuple[str, ...]] = (
        "system",
        "protocol",
        "dataset",
        "split",
        "pool",
        "version",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
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
        """The tie rule of the ranks."""
        return self.annotation.ties

    @property
    def ks(self) -> tuple[int, ...]:
        """The k of the metrics that are reported."""
        return self.annotation.ks

    def _numbers(self) -> dict[str, Any]:
        return {"annotation": self.annotation.to_dict(), "search": self.search.to_dict()}

    @classmethod
    def _as_fields(cls, document: Mapping[str, Any]) -> dict[str, Any]:
        return {
            task: cls._metrics.from_dict(document[task]) for task in ("annotation", "search")
        }


def differing_facts(results: Sequence[Labelled]) -> list[str]:
    """Names of the labels, sizes and rules in which the results differ."""
    return [
        fact for fact in _FACTS if len({getattr(result, fact, "") for result in results}) > 1
    ]


def shared_facts(results: Sequence[Labelled]) -> str:
    """Return what all results have in common, for the caption of their table."""
    differing = differing_facts(results)
    return ", ".join(
        template.format(getattr(results[0], fact))
        for fact, template in _FACTS.items()
        if fact not in differing and getattr(results[0], fact, "") != ""
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


class RankedMetrics(DirectionMetrics, Protocol):
    """What a ranked result needs to know of the metrics of one direction."""

    @property
    def ranks(self) -> npt.NDArray[np.float64]: ...  # noqa: D102
    @property
    def recall(self) -> dict[int, float]: ...  # noqa: D102


_Ranked = TypeVar("_Ranked", bound=RankedMetrics)


@dataclass(frozen=True)
class RankedResult(LabelledResult[_Ranked]):
    """What results of ranking share: their sum of recalls, their signature and their tables."""

    @property
    def rsum(self) -> float:
        """Sum of the recalls of both tasks, as shares: at most 6 for three k (600 percent)."""
        return sum(self.annotation.recall.values()) + sum(self.search.recall.values())

    @property
    def signature(self) -> str:
        """One line to print under a table: whoever gets the same line has the same ranks.

        It names what the ranks depend on, and ends with a digest of the rank of every query.
        """
        ranks = (np.asarray(side.ranks, "<f8") for side in (self.annotation, self.search))
        parts = {
            "kernelcore": self.version,
            "images": self.n_images,
            "captions": self.n_captions,
            "folds": getattr(self, "n_folds", None),
            "similarity": self.settings.get("similarity"),
            "ties": self.ties,
            "k": ",".join(map(str, self.ks)),
            "ranks": digest(*(array.tobytes() for array in ranks))[:12],
        }
        return "|".join(f"{name}:{value}" for name, value in parts.items() if value is not None)

    def _numbers(self) -> dict[str, Any]:
        return {"signature": self.signature, "rsum": self.rsum, **super()._numbers()}

    def summary(
        self,
        *,
        n_resamples: int = 1000,
        confidence: float = 0.95,
        rng: np.random.Generator | int | None = 0,
    ) -> Table:
        """Return every metric with its interval, how much ties change it, and chance.

        Parameters
        ----------
        n_resamples : int, default=1000
            How many times the queries are drawn anew for the bootstrap intervals.
        confidence : float, default=0.95
            Share of the resampled values inside an interval, between 0 and 1.
        rng : numpy.random.Generator, int or None, default=0
            Source of the draws; an int is a seed.

        Returns
        -------
        Table
            One row per metric and, for each task, the value, the percentile interval of
            `bootstrap_interval`, the difference between ties in favour of the system and
            against it, and what a random order is expected to reach. Recalls, MAP and nDCG
            are in percent. What is not known is left empty.

        Raises
        ------
        TypeError, ValueError
            If an option is out of range.

        Notes
        -----
        An interval speaks of other queries from the same source. Captions of one image are
        drawn as if they were independent, which makes the intervals of search narrow.

        Examples
        --------
        >>> from kernelcore.evaluation import evaluate
        >>> print(evaluate([[0.9, 0.4], [0.9, 0.3]], ks=(1,)).summary())
                     ------------ annotation ------------  -------------- search --------------
        metric       value             95%   ties  chance  value             95%   ties  chance
        R@1           50.0    0.0 to 100.0    0.0   50.00    0.0      0.0 to 0.0   50.0   50.00
        ...
        rsum 50.0; R@k, MAP, nDCG and rsum in percent;
        ...
        """
        from kernelcore.evaluation.summary import summary_table

        return summary_table(self, n_resamples, confidence, rng)

    def to_table(self) -> Table:
        """Return a table of one row, recalls in percent."""
        return self._as_table().to_table()

    def to_frame(self) -> pandas.DataFrame:
        """Return a pandas DataFrame with one row per direction; see `ResultTable.to_frame`."""
        return self._as_table().to_frame()

    def _as_table(self) -> ResultTable:
        from kernelcore.evaluation.result_table import ResultTable

        return ResultTable([self])  # type: ignore[list-item]


@dataclass(frozen=True)
class RetrievalResult(RankedResult[RankingMetrics]):
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

    _kind = "retrieval result"
    _metrics = RankingMetrics
