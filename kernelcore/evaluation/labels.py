"""Base classes of results: labels, settings, JSON files and captions of tables."""

from __future__ import annotations

import json
import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np

import kernelcore
from kernelcore import _extras
from kernelcore._files import replacing
from kernelcore._reading import json_value, read_text, reading
from kernelcore.evaluation.table import Table, plain

if TYPE_CHECKING:
    import pandas


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
