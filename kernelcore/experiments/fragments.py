"""Captions cut into fragments or parsed into trees, as cached steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from kernelcore._threads import Progress, resolve_n_threads
from kernelcore.captions import (
    FragmentExtractor,
    SentenceFragments,
    SentenceTrees,
    Vocabulary,
    parse_trees,
)
from kernelcore.experiments.steps import Kind, Source, Step, Store

_TREES = Kind.of("trees", 1, SentenceTrees)
_FRAGMENTS = Kind.of("fragments", 1, SentenceFragments)
_EXTRACTOR = Kind.json("extractor", 1)
_N_PARSERS = 4  # each process loads the pipeline

TREE_RELATIONS = (
    *("det", "amod", "nsubj", "pobj", "prep", "dobj", "compound", "acl", "aux", "nummod"),
    *("conj", "cc", "poss", "advmod", "advcl", "prt", "nsubjpass", "relcl", "agent", "ccomp"),
)
"""Relations with weights of their own in SDT-RNN. All other relations share weights."""


class FragmentSteps:
    """Steps that cut the captions of a split in the ways that the systems need.

    Parameters
    ----------
    texts : mapping of str to sequence of str
        Captions of each split.
    words : sequence of str
        Words with vectors.
    store : Store
    spacy_model : str
    n_threads : int or None
    progress : bool or callable
    """

    def __init__(
        self,
        texts: Mapping[str, Sequence[str]],
        words: Sequence[str],
        store: Store,
        *,
        spacy_model: str,
        n_threads: int | None,
        progress: Progress,
    ) -> None:
        ones = np.ones(len(words), np.int64)
        self._words = Source(Vocabulary(words, ones, ones, 1), list(words))
        self._texts = {split: Source(own) for split, own in texts.items()}
        self._store, self._progress, self._spacy_model = store, progress, spacy_model
        self._n_process = min(resolve_n_threads(n_threads), _N_PARSERS)
        self._extractor = cache(self._load_extractor)

    def step(self, kind: str, split: str) -> Step[Any]:
        """Return the captions of a split as "dependencies", "bigrams", "words" or "trees"."""
        texts = self._texts[split]
        if kind == "trees":
            run: dict[str, Any] = {"n_process": self._n_process, "progress": self._progress}

            def parse(*_: Any, **how: Any) -> SentenceTrees:
                words = self._words.value()
                return parse_trees(texts.value(), words, TREE_RELATIONS, **how, **run)

            inputs = texts, self._words, TREE_RELATIONS
            return Step(self._store, _TREES, parse, *inputs, spacy_model=self._spacy_model)

        def transform(*_: Any) -> SentenceFragments:
            found = self._extractor(kind).transform(texts.value(), progress=self._progress)
            return found.without_unknown()

        return Step(self._store, _FRAGMENTS, transform, texts, self._extractor_step(kind))

    def _load_extractor(self, kind: Any) -> FragmentExtractor:
        """Return the extractor, which learns its relations from the training captions."""
        return FragmentExtractor.from_dict(self._extractor_step(kind).value())

    def _extractor_step(self, kind: Any) -> Step[Any]:
        texts = self._texts["train"]

        def learn(*_: Any) -> Any:
            extractor = FragmentExtractor(
                kind,
                vocabulary=self._words.value(),
                spacy_model=self._spacy_model,
                n_process=self._n_process,
            )
            fragments = extractor.fit_transform(texts.value(), progress=self._progress)
            # parsing twice takes minutes
            self.step(kind, "train").keep(fragments.without_unknown())
            return extractor.to_dict()

        return Step(self._store, _EXTRACTOR, learn, texts, self._words, kind, self._spacy_model)
