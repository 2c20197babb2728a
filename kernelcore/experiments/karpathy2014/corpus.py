"""What the systems read: captions cut into fragments."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np

from kernelcore._parallel import resolve_n_threads
from kernelcore._progress import Progress
from kernelcore.captions import (
    FragmentExtractor,
    SentenceFragments,
    SentenceTrees,
    Vocabulary,
    parse_trees,
)
from kernelcore.captions.fragments import FragmentKind
from kernelcore.experiments.corpora import Corpus
from kernelcore.experiments.karpathy2014.systems import TREE_RELATIONS
from kernelcore.experiments.store import Store, key_of

_PARSERS = 4  # each holds a pipeline of its own


class Captions:
    """Captions of all splits, cut in each way that a system asks for.

    Parameters
    ----------
    corpus : Corpus
    store : Store
        Keeps what the parser found.
    spacy_model : str
    n_threads : int or None
    progress : bool or callable
    """

    def __init__(
        self,
        corpus: Corpus,
        store: Store,
        *,
        spacy_model: str,
        n_threads: int | None,
        progress: Progress,
    ) -> None:
        words = corpus.word_vectors.words
        ones = np.ones(len(words), np.int64)
        self.vocabulary = Vocabulary(words, ones, ones, 1)
        self._corpus, self._store, self._progress = corpus, store, progress
        self._spacy: dict[str, Any] = {
            "spacy_model": spacy_model,
            "n_process": min(resolve_n_threads(n_threads), _PARSERS),
        }
        self._extractors: dict[str, FragmentExtractor] = {}

    def of(self, kind: str, split: str) -> SentenceFragments | SentenceTrees:
        """Return the captions of a split as "dependencies", "bigrams", "words" or "trees"."""
        texts = self._corpus.pools[split].texts
        if kind == "trees":
            make = partial(
                parse_trees,
                texts,
                self.vocabulary,
                TREE_RELATIONS,
                progress=self._progress,
                **self._spacy,
            )
            key = self.key(kind, split)
            return self._store.value("trees", key, make, SentenceTrees.save, SentenceTrees.load)
        extractor = self.extractor(kind)
        return self._fragments(
            kind,
            split,
            partial(extractor.transform, texts, unknown="drop", progress=self._progress),
        )

    def extractor(self, kind: str) -> FragmentExtractor:
        """Return the extractor that has learned its relations from the training captions."""

        def learn() -> dict[str, Any]:
            new = FragmentExtractor(
                cast(FragmentKind, kind), vocabulary=self.vocabulary, **self._spacy
            )
            texts = self._corpus.pools["train"].texts
            fragments = new.fit_transform(texts, unknown="drop", progress=self._progress)
            self._fragments(kind, "train", lambda: fragments)
            return new.to_dict()

        if kind not in self._extractors:
            state = self._store.json("extractor", self.key(kind, "train"), learn)
            self._extractors[kind] = FragmentExtractor.from_dict(state)
        return self._extractors[kind]

    def _fragments(
        self, kind: str, split: str, make: Callable[[], SentenceFragments]
    ) -> SentenceFragments:
        key = self.key(kind, split)
        return self._store.value(
            "fragments", key, make, SentenceFragments.save, SentenceFragments.load
        )

    def key(self, kind: str, split: str) -> str:
        """Digest of what `of` depends on."""
        texts = [self._corpus.pools[part].texts for part in ("train", split)]
        about = [kind, self._spacy["spacy_model"], TREE_RELATIONS if kind == "trees" else ()]
        return key_of(about, self.vocabulary.words, texts)
