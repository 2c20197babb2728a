"""Word kernels of the study: learned from the training captions, WordNet and outside text."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelcore._progress import Progress, working
from kernelcore.captions.normalize import load_model
from kernelcore.experiments.hodosh2013.corpus import Texts
from kernelcore.experiments.store import Store, key_of
from kernelcore.lexical import (
    Alignment,
    Distributional,
    WordKernel,
    WordNetLin,
    combine,
    read_tagged_corpus,
)
from kernelcore.lexical.wordnet import DATABASE_FILES

OUTSIDE_CORPUS = "brown_tagged.txt"
PASSAGE = 5
"""Sentences of the outside corpus that make one context. In the Brown corpus, a hundredth of
the paper's, words of one scene hardly meet within a sentence."""

_BY_COOCCURRENCE = ("D_out", "D_ic")


@dataclass(frozen=True)
class Resources:
    """What lexical similarities need beside the captions.

    Attributes
    ----------
    wordnet_dir : path
        Folder of the WordNet database.
    outside_corpus : path or None
        Tagged text, see `kernelcore.lexical.read_tagged_corpus`.
    spacy_model : str
        Pipeline that tags parts of speech.
    """

    wordnet_dir: str | os.PathLike[str]
    outside_corpus: str | os.PathLike[str] | None
    spacy_model: str

    def check(self, similarities: Iterable[str]) -> None:
        """Raise, before anything that takes long, if a similarity lacks what it needs."""
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
        """Path of the outside corpus; the error says what is missing."""
        if self.outside_corpus is None:
            raise FileNotFoundError(
                f"outside_corpus must be given for the similarity D_out: {OUTSIDE_CORPUS} is "
                "neither in the folder of the data nor in brown/ beside it"
            )
        path = Path(self.outside_corpus)
        if not path.is_file():
            raise FileNotFoundError(f"outside_corpus must be a file, got {path}")
        return path


def find_outside_corpus(data: Path | str) -> Path | None:
    """Return the outside corpus in the folder of the data or in ``brown`` beside it."""
    root = Path(data).absolute()
    for folder in (root, root / "brown", root.parent / "brown"):
        if (folder / OUTSIDE_CORPUS).is_file():
            return folder / OUTSIDE_CORPUS
    return None


class Lexicon:
    """Word kernels over the vocabulary, each computed once.

    Parameters
    ----------
    texts : Texts
        Training captions, their normaliser and their vocabulary.
    resources : Resources
    store : Store
    progress : bool or callable
    """

    def __init__(
        self, texts: Texts, resources: Resources, store: Store, *, progress: Progress
    ) -> None:
        self._captions = texts.train_captions
        self._normalizer, self._vocabulary = texts.normalizer, texts.vocabulary
        self._resources, self._store, self._progress = resources, store, progress
        self._kernels: dict[str, WordKernel] = {}

    def word_kernel(self, similarities: Sequence[str]) -> WordKernel | None:
        """Combine similarities as `System.lexical` says; none of them gives exact matches."""
        if not similarities:
            return None
        by_cooccurrence = [self._kernel(n) for n in similarities if n in _BY_COOCCURRENCE]
        others = [self._kernel(name) for name in similarities if name not in _BY_COOCCURRENCE]
        if by_cooccurrence:
            others.append(combine(*by_cooccurrence, how="mean"))
        return combine(*others)

    def _kernel(self, name: str) -> WordKernel:
        if name not in self._kernels:
            make: Callable[[], tuple[str, Callable[[], WordKernel]]] = {
                "A": self._alignment,
                "D_ic": self._cooccurrence_in_captions,
                "D_out": self._cooccurrence_outside,
                "Lin": self._wordnet,
            }[name]
            key, compute = make()
            with working(self._progress, f"Word similarities {name}"):
                self._kernels[name] = self._store.value(
                    f"words-{name}", key, compute, WordKernel.save, WordKernel.load
                )
        return self._kernels[name]

    def _key(self, *parts: object) -> str:
        """Digest of what all similarities depend on, and of these parts."""
        options = self._normalizer.to_dict()
        del options["spacy_model"]  # which tags, and so matters to A alone
        return key_of(list(self._vocabulary), options, self._captions, *parts)

    def _alignment(self) -> tuple[str, Callable[[], WordKernel]]:
        pipeline = load_model(self._resources.spacy_model)
        # Without what grows as texts are read.
        key = self._key("A", pipeline.to_bytes(exclude=["tokenizer", "vocab"]))

        def compute() -> WordKernel:
            tagged = self._normalizer.tag_images(self._captions)
            return Alignment().fit(tagged).word_kernel(self._vocabulary)

        return key, compute

    def _cooccurrence_in_captions(self) -> tuple[str, Callable[[], WordKernel]]:
        def compute() -> WordKernel:
            words = self._normalizer.normalize_images(self._captions)
            return Distributional().fit(words).word_kernel(self._vocabulary)

        return self._key("D_ic"), compute

    def _cooccurrence_outside(self) -> tuple[str, Callable[[], WordKernel]]:
        path = self._resources.corpus_path()

        def compute() -> WordKernel:
            sentences = [
                " ".join(word for word, _ in sentence) for sentence in read_tagged_corpus(path)
            ]
            words = self._normalizer(sentences)
            passages = [words[i : i + PASSAGE] for i in range(0, len(words), PASSAGE)]
            similarity = Distributional(context="image").fit(passages)
            return similarity.word_kernel(self._vocabulary)

        return self._key("D_out", path.read_bytes(), PASSAGE), compute

    def _wordnet(self) -> tuple[str, Callable[[], WordKernel]]:
        folder = self._resources.wordnet_dir

        def compute() -> WordKernel:
            return WordNetLin(folder, self._vocabulary).word_kernel(self._vocabulary)

        files = [(Path(folder) / name).read_bytes() for name in DATABASE_FILES]
        return self._key("Lin", *files), compute
