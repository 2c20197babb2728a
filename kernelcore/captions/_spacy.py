"""What spaCy is asked for: lemmas and tags of words that we cut, and dependency trees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from importlib.metadata import entry_points
from typing import Any

from kernelcore._extras import require

SMALL_PIPELINE = "en_core_web_sm"
_BATCH_SIZE = 1000


_NOT_FOR_TAGS = ("parser", "ner", "senter")
_NOT_FOR_TREES = ("tagger", "attribute_ruler", "lemmatizer", "ner", "senter")


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
    """Name of an installed English pipeline: spaCy's own small one if there is none other."""
    installed = {entry.name for entry in entry_points(group="spacy_models")}
    english = sorted(name for name in installed if name.startswith("en_"))
    return SMALL_PIPELINE if SMALL_PIPELINE in english or not english else english[0]


def analyze(sentences: Iterable[Sequence[str]], model: str) -> Iterator[list[tuple[str, str]]]:
    """Lemma and universal part-of-speech tag of every word of every sentence."""
    pipeline = load_model(model)
    doc_type = require("spacy.tokens").Doc
    docs = (doc_type(pipeline.vocab, words=list(words)) for words in sentences)
    for doc in pipeline.pipe(docs, batch_size=_BATCH_SIZE):
        yield [(token.lemma_.lower() or token.text, token.pos_) for token in doc]


def parse(captions: Iterable[str], model: str, *, n_process: int) -> Iterator[Any]:
    """Dependency tree of every caption, as a spaCy ``Doc``."""
    pipeline = load_model(model, _NOT_FOR_TREES)
    if "parser" not in pipeline.pipe_names:
        raise ValueError(
            f"spacy_model must name a pipeline with a parser, got {model!r} with "
            f"{', '.join(pipeline.pipe_names) or 'nothing'}"
        )
    yield from pipeline.pipe(captions, batch_size=_BATCH_SIZE, n_process=n_process)
