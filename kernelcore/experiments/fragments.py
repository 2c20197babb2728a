"""Captions cut into fragments or parsed into trees, as cached steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any, cast

import numpy as np

from kernelcore._threads import Progress, resolve_n_threads
from kernelcore.captions import (
    FragmentExtractor,
    SentenceFragments,
    SentenceTrees,
    Vocabulary,
    parse_trees,
)
from kernelcore.captions.parses import FragmentKind
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
        self.vocabulary = Vocabulary(words, ones, ones, 1)
        self._words = Source(self.vocabulary, list(words))
        self._texts = {split: Source(own) for split, own in texts.items()}
        self._store, self._progress, self._spacy_model = store, progress, spacy_model
        self._n_process = min(resolve_n_threads(n_threads), _N_PARSERS)
        self.extractor = cache(self._load_extractor)

    def step(self, kind: str, split: str) -> Step[Any]:
        """Return the captions of a split as "dependencies", "bigrams", "words" or "trees"."""
        run: dict[str, Any] = {"n_process": self._n_process, "progress": self._progress}
        if kind == "trees":
            parse = partial(_parse, **run)
            inputs = self._texts[split], self._words, TREE_RELATIONS
            return Step(self._store, _TREES, parse, *inputs, spacy_model=self._spacy_model)

        def transform(texts: Source[Sequence[str]], _: Step[Any]) -> SentenceFragments:
            extractor = self.extractor(kind)
            found: SentenceFragments = extractor.transform(
                texts.value(), progress=self._progress
            )
            return found.without_unknown()

        return Step(
            self._store, _FRAGMENTS, transform, self._texts[split], self._extractor_step(kind)
        )

    def _load_extractor(self, kind: str) -> FragmentExtractor:
        """Return the extractor, which learns its relations from the training captions."""
        return FragmentExtractor.from_dict(self._extractor_step(kind).value())

    def _extractor_step(self, kind: str) -> Step[Any]:
        def learn(
            texts: Source[Sequence[str]], words: Source[Vocabulary], kind: str, spacy_model: str
        ) -> dict[str, Any]:
            extractor = FragmentExtractor(
                cast("FragmentKind", kind),
                vocabulary=words.value(),
                spacy_model=spacy_model,
                n_process=self._n_process,
            )
            fragments = extractor.fit_transform(texts.value(), progress=self._progress)
            # parsing twice takes minutes
            self.step(kind, "train").keep(fragments.without_unknown())
            state: dict[str, Any] = extractor.to_dict()
            return state

        inputs = self._texts["train"], self._words, kind, self._spacy_model
        return Step(self._store, _EXTRACTOR, learn, *inputs)


def _parse(
    texts: Source[Sequence[str]],
    words: Source[Vocabulary],
    relations: Sequence[str],
    **options: Any,
) -> SentenceTrees:
    return parse_trees(texts.value(), words.value(), relations, **options)
