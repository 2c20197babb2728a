"""Training captions of a photo ranker, and the kernel of captions."""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from kernelcore._check import Array, as_ordered_list, as_strings
from kernelcore._ragged import n_items, take
from kernelcore._store import (
    as_read_back,
    json_value,
    load_json,
    read_text,
    reading,
    save_json,
)
from kernelcore._threads import Progress, cached_property, working
from kernelcore.captions import CaptionNormalizer, EncodedCaptions, Vocabulary
from kernelcore.kernels import bag_of_words, word_sequence, word_sequence_components
from kernelcore.kernels._texts import CheckedWordKernel, as_word_kernel
from kernelcore.models.base import Pairs, is_nested

if TYPE_CHECKING:
    from kernelcore.lexical import WordKernel

CaptionKernel: TypeAlias = Literal["bag_of_words", "word_sequence", "similar_words"]
"""How captions are compared: by their words, by sequences of words, or by sequences of similar
words."""

Captions: TypeAlias = Sequence[Sequence[str]] | Sequence[str]
"""Raw captions of each photo, or one after another."""

Nested: TypeAlias = Sequence[Sequence[str]]

ENOUGH_CAPTIONS = 2000
"""Number of captions from which similar words are worth learning. On samples of Flickr8k,
five captions a photo, they raised the mean recall by 0 points with 1,000 captions, by 1.5 with
2,000 and by 2.5 with 4,000."""

WORD = r"[^\W_]+(?:['-][^\W_]+)*"
"""Regular expression of a word as it is written."""

BLOCK = 2048
"""Number of new items whose kernel with the training items is computed at a time."""

_MAX_LENGTH, _MATCH_DECAY = 3, 0.5  # of word sequences
_SQUARE = 64  # captions whose similarities with themselves are computed at a time

_NORMALIZER = "normalizer.json"
_VOCABULARY = "vocabulary.json"
_CAPTIONS = "captions.safetensors"
_TEXTS = "captions.json"
_SIMILARITIES = "similar_words.safetensors"


@dataclass(frozen=True, eq=False)
class TrainingCaptions:
    """Training captions, with which new captions are compared.

    Attributes
    ----------
    normalizer : CaptionNormalizer
        Fitted; turns captions into words.
    vocabulary : Vocabulary
        Words of the training captions.
    encoded : EncodedCaptions
        Training captions; photo i has captions i.
    kernel : {"bag_of_words", "word_sequence", "similar_words"}
        How captions are compared.
    similarities : WordKernel or None
        Of the words of the vocabulary, for "similar_words".
    texts : sequence of sequence of str
        The raw captions of each photo.
    """

    normalizer: CaptionNormalizer
    vocabulary: Vocabulary
    encoded: EncodedCaptions
    kernel: CaptionKernel
    similarities: WordKernel | None
    texts: Nested
    _known: list[Array] = field(default_factory=list, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.encoded)

    @classmethod
    def learn(
        cls,
        texts: Nested,
        normalizer: CaptionNormalizer,
        kernel: CaptionKernel | None,
        *,
        progress: Progress,
    ) -> TrainingCaptions:
        """Learn the words of raw captions and, if the kernel needs them, their similarities."""
        normalizer = copy.copy(normalizer).fit(texts)
        words = normalizer.normalize_images(texts, progress=progress)
        vocabulary = Vocabulary.from_captions(words)
        if kernel is None:
            n_captions = sum(map(len, texts))
            are_enough = n_captions >= max(ENOUGH_CAPTIONS, 2 * len(texts))
            kernel = "similar_words" if are_enough else "bag_of_words"
        similarities = None
        if kernel == "similar_words":
            from kernelcore.lexical import Alignment  # other kernels start without SciPy

            with working(progress, "Word similarities"):
                # Alignments need no parts of speech: all words are nouns.
                tagged = [[[(w, "N") for w in caption] for caption in own] for own in words]
                alignment = Alignment(noun_tags=("N",), verb_tags=()).fit(tagged)
                similarities = alignment.word_kernel(vocabulary)
        encoded = vocabulary.encode(words)
        kept = tuple(tuple(own) for own in texts)
        return cls(normalizer, vocabulary, encoded, kernel, similarities, kept)

    def encode(self, captions: Captions) -> EncodedCaptions:
        """Turn raw captions into ids of the vocabulary."""
        return self.vocabulary.encode(self.normalizer.normalize_images(captions))

    def gram(
        self,
        captions: EncodedCaptions | None = None,
        *,
        n_threads: int | None = None,
        progress: Progress = False,
    ) -> Array:
        """Similarity of captions with the training captions, words weighted by sqrt(idf).

        Without `captions` the symmetric kernel of the training captions themselves.
        """
        run: dict[str, Any] = {"n_threads": n_threads, "progress": progress}
        X, Y = (self.encoded, None) if captions is None else (captions, self.encoded)
        if self.kernel == "bag_of_words":
            return bag_of_words(X, Y, dtype=np.float32, **self._weights, **run)
        if captions is None:
            return self._sequences(X, dtype=np.float32, normalize=True, **run)
        sums = self._sequences(X, Y, **run)
        sums *= self._scale_of(captions, n_threads)
        return sums.astype(np.float32)

    @cached_property
    def written(self) -> Mapping[str, str]:
        """The most frequent word of the captions for each base form."""
        texts = (text for own in self.texts for text in own)
        counts = Counter(word for text in texts for word in re.findall(WORD, text.lower()))
        rare_first = [word for word, _ in counts.most_common()][::-1]
        bases = zip(self.normalizer(rare_first), rare_first, strict=True)
        return {own[0]: word for own, word in bases if len(own) == 1}

    @cached_property
    def _word_kernel(self) -> CheckedWordKernel:
        """The similarities of words, checked once for all searches."""
        return as_word_kernel(self.similarities, len(self.vocabulary))

    @property
    def _weights(self) -> dict[str, Any]:
        """Weights of words: the square roots of their inverse document frequencies."""
        return {
            "word_weights": np.sqrt(self.vocabulary.idf()),
            "unknown_weight": float(np.sqrt(self.vocabulary.unknown_idf)),
        }

    def _sequences(
        self, X: EncodedCaptions, Y: EncodedCaptions | None = None, **options: Any
    ) -> Array:
        return word_sequence(
            X,
            Y,
            word_kernel=self._word_kernel,
            max_length=_MAX_LENGTH,
            match_decay=_MATCH_DECAY,
            **{"normalize": False, **self._weights, **options},
        )

    def _scale_of(self, captions: EncodedCaptions, n_threads: int | None) -> Array:
        """Return what normalises the word sequences of captions with the training captions.

        The similarities of the training captions with themselves are computed once: a search
        for one sentence would take several times as long.
        """
        if not self._known:
            self._known.append(self._self_similarities(self.encoded, n_threads))
        own = self._self_similarities(captions, n_threads)
        squared = np.outer(np.maximum(own, 0), np.maximum(self._known[0], 0))
        scale: Array = np.zeros_like(squared)
        np.divide(1, np.sqrt(squared), out=scale, where=squared > 0)
        return scale

    def _self_similarities(self, captions: EncodedCaptions, n_threads: int | None) -> Array:
        return np.concatenate(
            [
                self._sequences(take(captions, part), n_threads=n_threads).diagonal()
                for part in blocks(len(captions), _SQUARE)
            ]
        )

    def parts(self, words: Sequence[str], *, n_threads: int | None = None) -> Array:
        """Divide the row of `gram` of a caption among its words.

        Each subsequence of l words that it shares with a training caption gives each of the
        words the l-th part of what it contributes.

        Parameters
        ----------
        words : sequence of str
            Normalised words of the caption.
        n_threads : int, optional
            Threads to use; the default is every core this process may run on.

        Returns
        -------
        ndarray of float64, shape (n_words, n_training)
            The sum over the words is the row.
        """
        texts = [list(words), *([*words[:i], *words[i + 1 :]] for i in range(len(words)))]
        encoded = self.vocabulary.encode([[own] for own in texts])
        exponent = 1.0 if self.kernel == "bag_of_words" else 0.5
        sums = word_sequence_components(
            encoded,
            self.encoded,
            word_kernel=self._word_kernel,
            word_weights=self.vocabulary.idf() ** exponent,
            unknown_weight=self.vocabulary.unknown_idf**exponent,
            max_length=1 if self.kernel == "bag_of_words" else _MAX_LENGTH,
            n_threads=n_threads,
        )
        lengths = np.arange(1, sums.shape[2] + 1)
        sums *= _MATCH_DECAY ** (2.0 * lengths)
        parts: Array = ((sums[:1] - sums[1:]) / lengths).sum(axis=2)
        caption = take(encoded, slice(0, 1))
        if self.kernel != "bag_of_words":
            return parts * self._scale_of(caption, n_threads)
        whole = parts.sum(axis=0)
        row = self.gram(caption, n_threads=n_threads)[0]
        parts *= np.divide(row, whole, out=np.zeros_like(whole), where=whole > 0)
        return parts

    def save(self, folder: Path) -> None:
        """Write the parts as files of `folder`."""
        save_json(folder / _NORMALIZER, self.normalizer.to_dict())
        self.vocabulary.save(folder / _VOCABULARY)
        self.encoded.save(folder / _CAPTIONS)
        (folder / _TEXTS).write_text(json.dumps(as_read_back(self.texts)), encoding="utf-8")
        if self.similarities is not None:
            self.similarities.save(folder / _SIMILARITIES)

    @classmethod
    def load(cls, folder: Path, kernel: CaptionKernel) -> TrainingCaptions:
        """Load the output of `save`; a damaged file raises ValueError."""
        with reading(folder / _NORMALIZER):
            normalizer = CaptionNormalizer.from_dict(load_json(folder / _NORMALIZER))
        vocabulary = Vocabulary.load(folder / _VOCABULARY)
        with reading(folder / _CAPTIONS):
            encoded = EncodedCaptions.load(folder / _CAPTIONS)
            if encoded.n_words != len(vocabulary):
                raise ValueError(
                    f"n_words must be that of the vocabulary ({len(vocabulary)}), "
                    f"got {encoded.n_words}"
                )
        similarities = None
        if kernel == "similar_words":
            from kernelcore.lexical import WordKernel

            with reading(folder / _SIMILARITIES):
                similarities = WordKernel.load(folder / _SIMILARITIES)
                if similarities.words != tuple(vocabulary.words):
                    raise ValueError("its words must be those of the vocabulary")
        texts = _read_texts(folder / _TEXTS, encoded)
        return cls(normalizer, vocabulary, encoded, kernel, similarities, texts)


def _read_texts(path: Path, encoded: EncodedCaptions) -> Nested:
    """Read the raw captions; there is one text for each encoded caption."""
    with reading(path):
        texts = json_value(read_text(path))
        counts = np.diff(encoded.image_offsets).tolist()
        if not is_nested(texts) or [len(own) for own in texts] != counts:
            raise ValueError(
                f"it must hold the {encoded.n_captions} captions of the model, a list for each "
                "photo"
            )
        return texts


def blocks(n_items: int, size: int | None = None) -> Iterator[slice]:
    """Divide items into blocks, by default such whose kernel values fit into memory."""
    step = size or BLOCK
    for start in range(0, max(1, n_items), step):
        yield slice(start, min(start + step, n_items))


def in_blocks(embed: Callable[[Any], Array], items: Any) -> Array:
    """Embed items some at a time, so that their kernel values fit into memory."""
    parts = (take(items, part) for part in blocks(n_items(items)))
    return np.concatenate([embed(part) for part in parts])


def by_photo(
    photos: Any, captions: Any, caption_image: Any = None, *, prefix: str = ""
) -> tuple[Any, Nested]:
    """Return photos with the captions of each, nested; `prefix` is of names in errors.

    Photos without captions are left out where captions stand one after another.
    """
    name = f"{prefix}captions"
    given = as_ordered_list(name, captions, "be a sequence of strings or of lists of strings")
    is_flat = not given or isinstance(given[0], str)
    if is_flat:
        given = as_strings(name, given)
    else:
        given = [as_strings(f"{name}[{i}]", own) for i, own in enumerate(given)]
    pairs = Pairs.of(photos, given, caption_image, prefix=prefix)
    if not is_flat:
        for i, own in enumerate(given):
            if not own:
                raise ValueError(
                    f"{name} must hold a caption of each photo, got none for [{i}]"
                )
        return photos, given
    pairs = pairs.compact()
    texts: list[list[str]] = [[] for _ in range(n_items(pairs.images))]
    for text, owner in zip(pairs.captions, pairs.caption_image, strict=True):
        texts[owner].append(text)
    return pairs.images, texts
