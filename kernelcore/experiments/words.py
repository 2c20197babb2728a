"""Captions as word ids, and word kernels from captions, WordNet and outside text."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from kernelcore._threads import Progress, working
from kernelcore.captions import CaptionNormalizer, EncodedCaptions, Vocabulary
from kernelcore.captions.normalize import load_model
from kernelcore.datasets import CaptionedImages
from kernelcore.experiments.corpus import OUTSIDE_CORPUS, SPLITS, Corpus
from kernelcore.experiments.steps import Kind, Source, Step, Store
from kernelcore.lexical import (
    Alignment,
    Distributional,
    WordKernel,
    WordNetLin,
    combine,
    read_tagged_corpus,
)
from kernelcore.lexical.wordnet import DATABASE_FILES

PASSAGE = 5
"""Sentences of the outside corpus that make one context. The Brown corpus is a hundredth of the
paper's corpus: words of one scene hardly meet within a sentence."""

STAGE = "word similarities"
_BY_COOCCURRENCE = ("D_out", "D_ic")


@dataclass(frozen=True, eq=False)
class Texts:
    """Captions of all splits as word ids.

    Attributes
    ----------
    dataset : CaptionedImages
        The images of the three splits.
    normalizer : CaptionNormalizer
        Fitted to the training captions.
    vocabulary : Vocabulary
        Words of the training captions.
    captions : EncodedCaptions
        All captions, image by image.
    """

    dataset: CaptionedImages
    normalizer: CaptionNormalizer
    vocabulary: Vocabulary
    captions: EncodedCaptions

    @classmethod
    def of(
        cls,
        corpus: Corpus,
        *,
        spacy_model: str,
        spelling: str | os.PathLike[str] | None = None,
        progress: Progress,
    ) -> Texts:
        """Normalise and encode the captions of a corpus; learn from the training captions.

        With correct words for `CaptionNormalizer` their spelling is corrected.
        """
        corpus.check_photos()
        dataset = corpus.dataset
        dataset = dataset.subset(np.concatenate([dataset.split(name) for name in SPLITS]))
        train = dataset.split("train")
        normalizer = CaptionNormalizer(spelling=spelling, spacy_model=spacy_model)
        normalizer.fit([dataset.captions[i] for i in train])
        tokens = normalizer.normalize_images(dataset.captions, progress=progress)
        vocabulary = Vocabulary.from_captions([tokens[i] for i in train])
        captions = vocabulary.encode(tokens, caption_numbers=dataset.caption_numbers)
        return cls(dataset, normalizer, vocabulary, captions)

    @property
    def train_captions(self) -> list[tuple[str, ...]]:
        """Raw captions of the training images."""
        return [self.dataset.captions[i] for i in self.dataset.split("train")]

    def of_split(self, split: str) -> EncodedCaptions:
        """Captions of the images of a split."""
        return self.captions.select(self.dataset.split(split))

    def check_pool(self, split: str, number: int) -> None:
        """Raise unless every image of the split has a caption of this number."""
        for i in self.dataset.split(split):
            if number not in self.dataset.caption_numbers[i]:
                raise ValueError(
                    f"every image of the split {split} must have a caption number {number}, "
                    f"and {self.dataset.image_ids[i]} has none"
                )


@dataclass(frozen=True)
class Resources:
    """Files and models that word similarities need beside the captions.

    Attributes
    ----------
    wordnet_dir : path
        Folder of the WordNet database.
    outside_corpus : path or None
        Tagged text, see `kernelcore.lexical.read_tagged_corpus`.
    spacy_model : str
        Pipeline that tags parts of speech.
    spelling : path or None
        List of correct words, see `kernelcore.captions.CaptionNormalizer`.
    """

    wordnet_dir: str | os.PathLike[str]
    outside_corpus: str | os.PathLike[str] | None
    spacy_model: str
    spelling: str | os.PathLike[str] | None = None

    def check(self, similarities: Iterable[str]) -> None:
        """Raise if a similarity lacks a file or a model. This is fast."""
        wanted = set(similarities)
        if "A" in wanted:
            load_model(self.spacy_model)
        if "D_out" in wanted:
            self.corpus_path()
        if "Lin" in wanted:
            WordNetLin(self.wordnet_dir, {"dog": 1})

    @property
    def corpus_name(self) -> str | None:
        """File name of the outside corpus."""
        return None if self.outside_corpus is None else Path(self.outside_corpus).name

    def corpus_path(self) -> Path:
        """Path of the outside corpus; raise if there is none."""
        if self.outside_corpus is None:
            raise FileNotFoundError(
                f"outside_corpus must be given for the similarity D_out: {OUTSIDE_CORPUS} is "
                "neither in the folder of the data nor in brown/ beside it"
            )
        path = Path(self.outside_corpus)
        if not path.is_file():
            raise FileNotFoundError(f"outside_corpus must be a file, got {path}")
        return path


class Lexicon:
    """Word kernels over the vocabulary, one cached step for each similarity.

    Parameters
    ----------
    texts : Texts
    resources : Resources
    store : Store
    progress : bool or callable
    """

    def __init__(
        self, texts: Texts, resources: Resources, store: Store, *, progress: Progress
    ) -> None:
        options = texts.normalizer.to_dict()
        del options["spacy_model"]  # the tagger matters to A alone
        spelling = texts.normalizer.spelling
        options["spelling"] = [] if spelling is None else [Path(spelling).read_bytes()]
        self._texts = Source(texts, list(texts.vocabulary), options, texts.train_captions)
        self._resources, self._store, self._progress = resources, store, progress
        self._steps: dict[str, Step[WordKernel]] = {}

    def steps(self, similarities: Sequence[str]) -> dict[str, Step[WordKernel]]:
        """Return the step of each similarity, see `word_kernel`."""
        for name in similarities:
            if name not in self._steps:
                make, *inputs = self._call(name)
                self._steps[name] = Step(
                    self._store,
                    Kind.of(f"words-{name}", 1, WordKernel),
                    partial(_working, name, make, self._progress),
                    self._texts,
                    *inputs,
                    stage=STAGE,
                )
        return {name: self._steps[name] for name in similarities}

    def _call(self, name: str) -> tuple[Any, ...]:
        """Return the function of a similarity and its inputs beside the captions."""
        resources = self._resources
        if name == "A":
            pipeline = load_model(resources.spacy_model)
            # the tokenizer and the vocabulary grow as texts are read
            return _alignment, Source(None, pipeline.to_bytes(exclude=["tokenizer", "vocab"]))
        if name == "D_ic":
            return (_cooccurrence_in_captions,)
        if name == "D_out":
            path = resources.corpus_path()
            return _cooccurrence_outside, Source(path, path.read_bytes()), PASSAGE
        folder = resources.wordnet_dir
        files = [(Path(folder) / file).read_bytes() for file in DATABASE_FILES]
        return _wordnet, Source(folder, *files)


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


def _working(name: str, make: Any, progress: Progress, *inputs: Any) -> WordKernel:
    with working(progress, f"Word similarities {name}"):
        made: WordKernel = make(*inputs)
        return made


def _alignment(source: Source[Texts], _: Source[None]) -> WordKernel:
    texts = source.value()
    tagged = texts.normalizer.tag_images(texts.train_captions)
    return Alignment().fit(tagged).word_kernel(texts.vocabulary)


def _cooccurrence_in_captions(source: Source[Texts]) -> WordKernel:
    texts = source.value()
    words = texts.normalizer.normalize_images(texts.train_captions)
    return Distributional().fit(words).word_kernel(texts.vocabulary)


def _cooccurrence_outside(
    source: Source[Texts], corpus: Source[Path], n_sentences: int
) -> WordKernel:
    texts = source.value()
    sentences = [
        " ".join(word for word, _ in sentence)
        for sentence in read_tagged_corpus(corpus.value())
    ]
    words = texts.normalizer(sentences)
    passages = [words[i : i + n_sentences] for i in range(0, len(words), n_sentences)]
    return Distributional(context="image").fit(passages).word_kernel(texts.vocabulary)


def _wordnet(source: Source[Texts], folder: Source[Any]) -> WordKernel:
    vocabulary = source.value().vocabulary
    return WordNetLin(folder.value(), vocabulary).word_kernel(vocabulary)
