"""Captions as word ids, and word kernels from captions, WordNet and outside text."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from kernelcore._threads import Progress, working
from kernelcore.captions import CaptionNormalizer, EncodedCaptions, Vocabulary
from kernelcore.captions.normalize import load_model
from kernelcore.datasets import CaptionedImages
from kernelcore.experiments.corpus import OUTSIDE_CORPUS, Corpus
from kernelcore.experiments.steps import Kind, Source, Step, Store
from kernelcore.lexical import (
    Alignment,
    Distributional,
    WordKernel,
    WordNetLin,
    combine,
    read_tagged_corpus,
)
from kernelcore.lexical.wordnet import DATABASE_FILES, NounDatabase

PASSAGE = 5
"""Sentences of the outside corpus that make one context. The Brown corpus is a hundredth of the
paper's corpus: words of one scene hardly meet within a sentence."""

WORDS = "word similarities"
"""Name of a stage."""

_BY_COOCCURRENCE = ("D_out", "D_ic")


class Lexicon:
    """Captions as word ids, and word kernels: a cached step for each similarity.

    Everything is learned from the training captions.

    Parameters
    ----------
    corpus : Corpus
    store : Store
    spacy_model : str
        Pipeline that tags parts of speech, for A.
    spelling : path, optional
        List of correct words: the spelling is corrected, see
        `kernelcore.captions.CaptionNormalizer`.
    wordnet_dir : path, optional
        Folder of the WordNet database, for Lin.
    outside_corpus : path, optional
        Tagged text for D_out, see `kernelcore.lexical.read_tagged_corpus`.
    progress : bool or callable

    Attributes
    ----------
    dataset : CaptionedImages
        The images of the three splits.
    vocabulary : Vocabulary
        Words of the training captions.
    """

    def __init__(
        self,
        corpus: Corpus,
        store: Store,
        *,
        spacy_model: str,
        spelling: str | os.PathLike[str] | None = None,
        wordnet_dir: str | os.PathLike[str] = os.devnull,
        outside_corpus: str | os.PathLike[str] | None = None,
        progress: Progress,
    ) -> None:
        self.dataset = corpus.in_splits()
        train = self.dataset.split("train")
        self._train = [self.dataset.captions[i] for i in train]
        self._normalizer = CaptionNormalizer(spelling=spelling, spacy_model=spacy_model)
        self._normalizer.fit(self._train)
        tokens = self._normalizer.normalize_images(self.dataset.captions, progress=progress)
        self.vocabulary = Vocabulary.from_captions([tokens[i] for i in train])
        numbers = self.dataset.caption_numbers
        self._captions = self.vocabulary.encode(tokens, caption_numbers=numbers)
        options = self._normalizer.to_dict()
        del options["spacy_model"]  # the tagger matters to A alone
        options["spelling"] = [] if spelling is None else [Path(spelling).read_bytes()]
        self._source = Source(None, list(self.vocabulary), options, self._train)
        self._tagger, self._outside = spacy_model, outside_corpus
        self._wordnet_dir = Path(wordnet_dir)
        self._store, self._progress = store, progress
        self._step = cache(self._make_step)

    def captions(self, split: str) -> EncodedCaptions:
        """Captions of the images of a split."""
        return self._captions.select(self.dataset.split(split))

    def steps(self, similarities: Sequence[str]) -> dict[str, Step[WordKernel]]:
        """Return the step of each similarity, see `word_kernel`.

        Raises
        ------
        FileNotFoundError, ValueError, MissingExtraError
            If a similarity lacks a file or a model.
        """
        return {name: self._step(name) for name in similarities}

    def _make_step(self, name: str) -> Step[WordKernel]:
        make, *inputs = self._call(name)

        def work(*_: Any) -> WordKernel:
            with working(self._progress, f"Word similarities {name}"):
                made: WordKernel = make()
                return made

        kind = Kind.of(f"words-{name}", 1, WordKernel)
        return Step(self._store, kind, work, self._source, *inputs, stage=WORDS)

    def _call(self, name: str) -> tuple[Any, ...]:
        """Return the function of a similarity and its inputs beside the captions."""
        if name == "A":
            # the tokenizer and the vocabulary grow as texts are read
            pipeline = load_model(self._tagger).to_bytes(exclude=["tokenizer", "vocab"])
            return self._align, Source(None, pipeline)
        if name == "D_ic":
            return (self._count_in_captions,)
        if name == "D_out":
            if self._outside is None or not Path(self._outside).is_file():
                raise FileNotFoundError(
                    f"outside_corpus must be a file, got {self._outside}; the default for the "
                    f"similarity D_out is {OUTSIDE_CORPUS} in the folder of the data or in "
                    "brown/ beside it"
                )
            path = Path(self._outside)
            return partial(self._count_outside, path), Source(None, path.read_bytes()), PASSAGE
        NounDatabase(self._wordnet_dir)  # raises if there is none
        files = [(self._wordnet_dir / file).read_bytes() for file in DATABASE_FILES]
        return self._look_up, Source(None, *files)

    def _align(self) -> WordKernel:
        tagged = self._normalizer.tag_images(self._train)
        return Alignment().fit(tagged).word_kernel(self.vocabulary)

    def _count_in_captions(self) -> WordKernel:
        words = self._normalizer.normalize_images(self._train)
        return Distributional().fit(words).word_kernel(self.vocabulary)

    def _count_outside(self, path: Path) -> WordKernel:
        tagged = read_tagged_corpus(path)
        sentences = [" ".join(word for word, _ in sentence) for sentence in tagged]
        words = self._normalizer(sentences)
        passages = [words[i : i + PASSAGE] for i in range(0, len(words), PASSAGE)]
        return Distributional(context="image").fit(passages).word_kernel(self.vocabulary)

    def _look_up(self) -> WordKernel:
        lin = WordNetLin(self._wordnet_dir, self.vocabulary)
        return lin.word_kernel(self.vocabulary)


def check_pool(dataset: CaptionedImages, splits: Iterable[str], number: int) -> None:
    """Raise unless every image of the splits has a caption of this number."""
    for i in (i for split in splits for i in dataset.split(split)):
        if number not in dataset.caption_numbers[i]:
            raise ValueError(
                f"every image must have a caption number {number}, and "
                f"{dataset.image_ids[i]} has none"
            )


def word_kernel(
    similarities: Mapping[str, Step[WordKernel] | Source[WordKernel]],
) -> WordKernel | None:
    """Combine similarities as `System.lexical` says; without any, only equal words match."""
    if not similarities:
        return None
    kernels = {name: step.value() for name, step in similarities.items()}
    by_cooccurrence = [kernels.pop(name) for name in list(kernels) if name in _BY_COOCCURRENCE]
    others = list(kernels.values())
    if by_cooccurrence:
        others.append(combine(*by_cooccurrence, how="mean"))
    return combine(*others)
