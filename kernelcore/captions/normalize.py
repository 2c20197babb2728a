"""Caption normalisation: content words in base form."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import Any, Literal, TypeAlias, TypeVar

from kernelcore._check import as_list, as_strings, check_choice, check_integer
from kernelcore._extras import require
from kernelcore._threads import Progress, reporting
from kernelcore.captions.tokens import (
    COMPOUNDS,
    STOP_WORDS,
    CompoundSpelling,
    SpellingCorrector,
    lemma,
    read_word_list,
    tokenize,
)

SMALL_PIPELINE = "en_core_web_sm"
BATCH_SIZE = 1000  # captions that a pipeline takes at once
_NOT_FOR_TAGS = ("parser", "ner", "senter")

TaggedWord: TypeAlias = tuple[str, str]
"""A base form and its universal part-of-speech tag, such as ``("run", "VERB")``."""
_CAPTIONS_PER_REPORT = 500
T = TypeVar("T")


@lru_cache(maxsize=4)
def load_model(name: str, exclude: tuple[str, ...] = _NOT_FOR_TAGS) -> Any:
    """Load a spaCy pipeline without the parts that a task does not need."""
    spacy = require("spacy")
    try:
        return spacy.load(name, exclude=exclude)
    except OSError as error:
        raise ValueError(
            f"spacy_model must name an installed spaCy pipeline, got {name!r}: install it with "
            f"`python -m spacy download {name}`"
        ) from error


def english_pipeline() -> str:
    """Name of an installed English pipeline, preferably spaCy's small one."""
    from importlib.metadata import entry_points

    installed = {entry.name for entry in entry_points(group="spacy_models")}
    english = sorted(name for name in installed if name.startswith("en_"))
    return SMALL_PIPELINE if SMALL_PIPELINE in english or not english else english[0]


def analyze(sentences: Iterable[Sequence[str]], model: str) -> Iterator[list[tuple[str, str]]]:
    """Lemma and universal part-of-speech tag of every word of every sentence."""
    pipeline = load_model(model)
    doc_type = require("spacy.tokens").Doc
    docs = (doc_type(pipeline.vocab, words=list(words)) for words in sentences)
    for doc in pipeline.pipe(docs, batch_size=BATCH_SIZE):
        yield [(token.lemma_.lower() or token.text, token.pos_) for token in doc]


class CaptionNormalizer:
    """Turns captions into lower-case content words in base form.

    A caption is cut into words, misspelt words are corrected, every compound gets one
    spelling, words become lemmas, and words that are stop words, as they stand or as a
    lemma, are left out.

    Parameters
    ----------
    compounds : bool or mapping of str to str, default True
        Write every compound in one way: by a table of ours (*t-shirt*, *tee shirt* ->
        *tshirt*) or by the given one (spelling -> preferred spelling, both in lower case
        with spaces for hyphens), and, once `fit` has seen training captions, in the way
        they write it most often. False leaves hyphenated words divided at their hyphens.
    stop_words : iterable of str, optional
        Words to leave out; the default is `kernelcore.captions.STOP_WORDS`.
    lemmatizer : {"rules", "spacy", "none"}, default "rules"
        "rules" strips regular English endings and knows the common irregular forms;
        where an ending can be read in two ways it takes the base form that the training
        captions have more often. "spacy" uses spaCy (extra ``text``), which may read *rides*
        as a form of *rid*; so the rules decide if the training captions have the lemma of the
        rules but not that of spaCy. "none" is for captions that were lemmatised before.
    spelling : path-like, optional
        Text file of correct words, one a line. A word that neither it nor the training
        captions know becomes the known word one edit away that the training captions have
        most often, so `fit` must come first.
    spacy_model : str, default "en_core_web_sm"
        spaCy pipeline for ``lemmatizer="spacy"`` and for `tag_images`.

    Raises
    ------
    TypeError, ValueError
        If an option is none of the above.
    FileNotFoundError
        If the list of words is not there.

    Examples
    --------
    >>> from kernelcore.captions import CaptionNormalizer
    >>> normalize = CaptionNormalizer()
    >>> normalize(["Two dogs are chasing the boy's T-shirt.", "A tee shirt, hanging"])
    [['two', 'dog', 'chase', 'boy', 'tshirt'], ['tshirt', 'hang']]
    """

    def __init__(
        self,
        *,
        compounds: bool | Mapping[str, str] = True,
        stop_words: Iterable[str] | None = None,
        lemmatizer: Literal["rules", "spacy", "none"] = "rules",
        spelling: str | os.PathLike[str] | None = None,
        spacy_model: str = SMALL_PIPELINE,
    ) -> None:
        words = STOP_WORDS if stop_words is None else stop_words
        listed = as_list("stop_words", words, "be a collection of words")
        if not all(isinstance(word, str) for word in listed):
            raise TypeError(f"stop_words must be strings, got {stop_words!r:.80}")
        check_choice("lemmatizer", lemmatizer, ("rules", "spacy", "none"))
        if not isinstance(compounds, (bool, Mapping)):
            raise TypeError(f"compounds must be a bool or a mapping, got {compounds!r:.80}")
        if not isinstance(spacy_model, str):
            raise TypeError(f"spacy_model must be a name, got {spacy_model!r:.80}")
        self.compounds = compounds
        self.stop_words = frozenset(listed)
        self.lemmatizer = lemmatizer
        self.spelling = None if spelling is None else os.fspath(spelling)
        self.spacy_model = spacy_model
        self._known = None if spelling is None else read_word_list(spelling)
        self._compounds = self._given_compounds()
        self._counts: dict[str, int] = {}

    def fit(self, captions: Sequence[Sequence[str]]) -> CaptionNormalizer:
        """Learn the spellings of compounds and the frequencies of words.

        Parameters
        ----------
        captions : sequence of sequence of str
            Raw captions of each training image.

        Returns
        -------
        CaptionNormalizer
            This object.
        """
        words = [tokenize(caption) for caption in as_strings("captions", _flat(captions))]
        self._counts = dict(Counter(chain.from_iterable(words)))
        if self.compounds:
            self._compounds = self._given_compounds().learned_from(
                self._corrected(words), self.stop_words
            )
        return self

    def __call__(
        self, captions: Iterable[str], *, progress: Progress = False
    ) -> list[list[str]]:
        """Normalise captions.

        Parameters
        ----------
        captions : iterable of str
            Raw captions.
        progress : bool or callable, default False
            Show a bar, or call this with (captions done, captions in all).

        Returns
        -------
        list of list of str
            Words of each caption; empty if it has stop words alone.
        """
        analyzed = self._analyzed(captions, with_tags=False, progress=progress)
        return [[word for word, _ in caption] for caption in analyzed]

    def normalize_images(
        self, captions: Sequence[Sequence[str]], *, progress: Progress = False
    ) -> list[list[list[str]]]:
        """Normalise the captions of a list of images, as `Vocabulary` takes them."""
        return _fold(self(_flat(captions), progress=progress), captions)

    def tag_images(
        self, captions: Sequence[Sequence[str]], *, progress: Progress = False
    ) -> list[list[list[TaggedWord]]]:
        """Normalise captions and tag every word that is kept with its part of speech.

        The tags are spaCy's universal ones (``NOUN``, ``VERB``, ``ADJ``, ...), which needs
        the extra ``text`` with every lemmatiser.

        Parameters
        ----------
        captions : sequence of sequence of str
            Raw captions of each image.
        progress : bool or callable, default False
            Show a bar, or call this with (captions done, captions in all).

        Returns
        -------
        nested list of (str, str)
            The words that `normalize_images` returns, each with its tag.
        """
        tagged = self._analyzed(_flat(captions), with_tags=True, progress=progress)
        return _fold(list(tagged), captions)

    def to_dict(self) -> dict[str, Any]:
        """Return options and learned state as JSON values."""
        return {
            "compounds": self._compounds.table,
            "stop_words": sorted(self.stop_words),
            "lemmatizer": self.lemmatizer,
            "spelling": self.spelling,
            "spacy_model": self.spacy_model,
            "counts": self._counts,
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> CaptionNormalizer:
        """Restore a normaliser from the output of `to_dict`."""
        names = ("compounds", "stop_words", "lemmatizer", "spelling", "spacy_model")
        normalizer = cls(**{name: state[name] for name in names})
        normalizer._counts = {
            word: check_integer(f"counts[{word!r}]", count, minimum=0)
            for word, count in state["counts"].items()
        }
        return normalizer

    def _analyzed(
        self, captions: Iterable[str], *, with_tags: bool, progress: Progress
    ) -> Iterator[list[TaggedWord]]:
        """Lemma and tag (empty unless asked for) of the words that are kept."""
        words = [tokenize(caption) for caption in as_strings("captions", captions)]
        words = [self._compounds(caption) for caption in self._corrected(words)]
        tagged: Iterable[list[TaggedWord]]
        if with_tags or self.lemmatizer == "spacy":
            tagged = analyze(words, self.spacy_model)
        else:
            tagged = ([(word, "") for word in caption] for caption in words)
        pairs = zip(words, tagged, strict=True)
        for caption, analysis in reported(pairs, len(words), progress, "normalise captions"):
            lemmas, tags = self._lemmas(caption, analysis), [tag for _, tag in analysis]
            yield [
                (base, tag)
                for word, base, tag in zip(caption, lemmas, tags, strict=True)
                if self.stop_words.isdisjoint((word, base))
            ]

    def _given_compounds(self) -> CompoundSpelling:
        if isinstance(self.compounds, Mapping):
            return CompoundSpelling(self.compounds)
        return CompoundSpelling(COMPOUNDS if self.compounds else {})

    def _corrected(self, captions: list[list[str]]) -> list[list[str]]:
        if self._known is None:
            return captions
        if not self._counts:
            raise ValueError(
                "spelling must be fitted: call fit with the training captions first"
            )
        correct = SpellingCorrector(self._known, self._counts)
        return [[correct(word) for word in caption] for caption in captions]

    def _lemmas(self, words: list[str], analysis: list[TaggedWord]) -> Sequence[str]:
        if self.lemmatizer == "none":
            return words
        if self.lemmatizer == "rules":
            return [lemma(word, self._counts) for word in words]
        return [
            self._attested(base, word) for (base, _), word in zip(analysis, words, strict=True)
        ]

    def _attested(self, base: str, word: str) -> str:
        """Prefer the rules' lemma where the training captions have it but not spaCy's."""
        if not self._counts or base in self._counts:
            return base
        other = lemma(word, self._counts)
        return other if other in self._counts else base


def reported(
    results: Iterable[T], n_captions: int, progress: Progress, description: str
) -> Iterator[T]:
    """Yield the results of captions, and report progress."""
    with reporting(progress, description) as report:
        for done, result in enumerate(results, 1):
            yield result
            if report and (done % _CAPTIONS_PER_REPORT == 0 or done == n_captions):
                report(done, n_captions)


def _flat(images: Sequence[Sequence[str]]) -> list[str]:
    """Captions of all images, one after another."""
    if any(isinstance(image, str) for image in images):
        raise TypeError(
            "captions must be nested as images, captions: got a string for an image"
        )
    return [caption for image in images for caption in image]


def _fold(flat: Iterable[T], images: Sequence[Sequence[str]]) -> list[list[T]]:
    """Divide `flat` among the images again."""
    remaining = iter(flat)
    return [list(islice(remaining, len(image))) for image in images]
