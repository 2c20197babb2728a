"""What the systems read: regions of photos, captions cut into fragments, word vectors."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from kernelcore._parallel import resolve_n_threads
from kernelcore._progress import Progress
from kernelcore.captions import (
    FragmentExtractor,
    SentenceFragments,
    SentenceTrees,
    Vocabulary,
    parse_trees,
)
from kernelcore.captions._tokenize import tokenize
from kernelcore.captions.fragment_extractor import FragmentKind
from kernelcore.datasets import CaptionedImages, load_flickr
from kernelcore.experiments.karpathy2014.systems import TREE_RELATIONS
from kernelcore.experiments.store import Store, key_of
from kernelcore.images import CNN, FastestDet, Grid, RegionCNN, RegionFeatures
from kernelcore.lexical import WordVectors, load_installed_glove, load_word_vectors

SPLITS = ("train", "dev", "test")

_MAP_INPUT_SIZE = 384
_PARSERS = 4  # each holds a pipeline of its own


@dataclass(frozen=True)
class Pool:
    """The captions of a split and the photos that they belong to.

    Attributes
    ----------
    texts : tuple of str
    numbers : ndarray of int64
        Number of each caption within its photo.
    photos : ndarray of intp
        Position of each caption's photo among all.
    """

    texts: tuple[str, ...]
    numbers: npt.NDArray[np.int64]
    photos: npt.NDArray[np.intp]


@dataclass(frozen=True)
class Corpus:
    """Photos and captions of a published corpus.

    Attributes
    ----------
    name : str
    files : tuple of Path
        Photos, sorted.
    pools : mapping of str to Pool
        Captions of each split.
    word_vectors : WordVectors
        Of the words in captions.
    """

    name: str
    files: tuple[Path, ...]
    pools: Mapping[str, Pool]
    word_vectors: WordVectors

    @classmethod
    def read(
        cls,
        data: str | os.PathLike[str],
        *,
        word_vectors: str | os.PathLike[str] | None,
    ) -> Corpus:
        """Read captions and word vectors."""
        dataset = load_flickr(data)
        files = sorted(path for path in dataset.paths if path is not None)
        if not files:
            raise FileNotFoundError(f"{data} must hold the photos of its captions")
        words = {
            word
            for texts in dataset.captions
            for text in texts
            for word in (*tokenize(text), *text.lower().split())
        }
        return cls(
            dataset.name,
            tuple(files),
            {split: _pool(dataset, split, files) for split in SPLITS},
            load_installed_glove(words=words)
            if word_vectors is None
            else load_word_vectors(word_vectors, words=words),
        )

    def regions(
        self,
        data: str | os.PathLike[str],
        *,
        cache_dir: str | os.PathLike[str] | None,
        device: str,
        n_threads: int | None,
        progress: Progress,
    ) -> RegionFeatures:
        """Describe regions of all photos: of a detector beside the data, if any, and a grid."""
        return RegionCNN(
            CNN(input_size=_MAP_INPUT_SIZE, device=device), proposers=(*_detector(data), Grid())
        ).transform(self.files, cache_dir=cache_dir, n_threads=n_threads, progress=progress)


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


def _pool(dataset: CaptionedImages, split: str, files: list[Path]) -> Pool:
    place = {path: i for i, path in enumerate(files)}
    rows = dataset.split(split)
    owners = [
        (text, number, place[path])
        for i in rows
        if (path := dataset.paths[i]) is not None
        for text, number in zip(dataset.captions[i], dataset.caption_numbers[i], strict=True)
    ]
    texts, numbers, photos = zip(*owners, strict=True)
    return Pool(texts, np.array(numbers, np.int64), np.array(photos, np.intp))


def _detector(data: str | os.PathLike[str]) -> tuple[FastestDet, ...]:
    """FastestDet, if its file is in a folder ``models`` in the data or beside it."""
    for folder in (Path(data) / "models", Path(data).parent / "models"):
        network, names = folder / "FastestDet.onnx", folder / "coco.names"
        if network.is_file() and names.is_file():
            return (FastestDet(network, class_names=names),)
    return ()
