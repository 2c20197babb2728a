"""Fragments of captions: a relation and two words each."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._estimator import Estimator
from kernelcore._files import load_tensors, save_tensors
from kernelcore._progress import Progress, reporting
from kernelcore._reading import reading
from kernelcore._validation import (
    CheckedRecord,
    as_integer_array,
    check_choice,
    check_flag,
    check_indices,
    check_integer,
    check_real,
    owned,
)
from kernelcore.captions.encoded import check_offsets, offsets_of, take_ragged
from kernelcore.captions.normalize import SMALL_PIPELINE, checked_captions, parse
from kernelcore.captions.tokens import tokenize
from kernelcore.captions.vocabulary import Vocabulary

_KIND = "sentence fragments"
_IDS = ("relation_ids", "first_ids", "second_ids")

_PREPOSITIONS = ("prep", "agent")
_OBJECTS = ("pobj", "pcomp")
FragmentKind: TypeAlias = Literal["dependencies", "bigrams", "words"]
_KINDS = ("dependencies", "bigrams", "words")
_CAPTIONS_PER_REPORT = 500


@dataclass(frozen=True, eq=False)
class SentenceFragments(CheckedRecord):
    """Fragments of a list of captions: a relation and the ids of two words each.

    The fragments of caption c are ``offsets[c] .. offsets[c + 1] - 1``. A caption may have
    none. The arrays are checked once and then read-only.

    Attributes
    ----------
    relation_ids : ndarray of int32, shape (n_fragments,)
        Ids in [0, n_relations).
    first_ids, second_ids : ndarray of int32, shape (n_fragments,)
        Head and dependent, or the words in their order. Ids >= 0 are rows of a vocabulary;
        negative ids stand for words outside it, as in `EncodedCaptions`.
    offsets : ndarray of int64, shape (n_captions + 1,)
        Start of each caption's fragments, and the end of the last.
    n_relations, n_words : int
        Numbers of relations and of words in the vocabulary.

    Raises
    ------
    TypeError
        If an array does not hold integers.
    ValueError
        If the arrays differ in length, an id is out of range, or `offsets` does not start at
        0, falls, or ends elsewhere than the fragments.

    See Also
    --------
    kernelcore.captions.FragmentExtractor : Makes them from raw captions.

    Examples
    --------
    >>> from kernelcore.captions import SentenceFragments
    >>> fragments = SentenceFragments(
    ...     relation_ids=[0, 1, 0], first_ids=[2, 0, 1], second_ids=[1, 2, 0],
    ...     offsets=[0, 2, 2, 3], n_relations=2, n_words=3,
    ... )
    >>> fragments
    SentenceFragments(3 captions, 3 fragments, n_relations=2, n_words=3)
    >>> fragments.select([2, 0]).first_ids
    array([1, 2, 0], dtype=int32)
    """

    relation_ids: npt.NDArray[np.int32]
    first_ids: npt.NDArray[np.int32]
    second_ids: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int64]
    n_relations: int
    n_words: int

    def __post_init__(self) -> None:
        for name in (*_IDS, "offsets"):
            dtype = np.int64 if name == "offsets" else np.int32
            array = as_integer_array(name, getattr(self, name), ndim=1, dtype=dtype)
            object.__setattr__(self, name, owned(array))
        for name in ("n_relations", "n_words"):
            number = check_integer(name, getattr(self, name), minimum=0, maximum=2**31)
            object.__setattr__(self, name, number)
        for name in _IDS:
            array = getattr(self, name)
            if len(array) != len(self.relation_ids):
                raise ValueError(
                    f"{name} must have one entry per fragment ({len(self.relation_ids)}), "
                    f"got {len(array)}"
                )
        check_offsets("offsets", self.offsets, len(self.relation_ids))
        check_indices("relation_ids", self.relation_ids, self.n_relations)
        for name in ("first_ids", "second_ids"):
            largest = getattr(self, name).max(initial=-1)
            if largest >= self.n_words:
                raise ValueError(
                    f"{name} must be below n_words ({self.n_words}), got {largest}"
                )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return (
            f"SentenceFragments({len(self)} captions, {len(self.relation_ids)} fragments, "
            f"n_relations={self.n_relations}, n_words={self.n_words})"
        )

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """Number of fragments of each caption."""
        return np.diff(self.offsets)

    def select(self, captions: npt.ArrayLike) -> SentenceFragments:
        """Return the captions at these positions, in that order; one may come repeatedly."""
        positions, offsets = take_ragged(
            self.offsets, check_indices("captions", captions, len(self))
        )
        return SentenceFragments(
            self.relation_ids[positions],
            self.first_ids[positions],
            self.second_ids[positions],
            offsets,
            n_relations=self.n_relations,
            n_words=self.n_words,
        )

    def without_unknown(self) -> SentenceFragments:
        """Return the same captions without fragments that have a word of no id."""
        known = (self.first_ids >= 0) & (self.second_ids >= 0)
        if known.all():
            return self
        return SentenceFragments(
            self.relation_ids[known],
            self.first_ids[known],
            self.second_ids[known],
            offsets_of(known)[self.offsets],
            n_relations=self.n_relations,
            n_words=self.n_words,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the arrays as a safetensors file, whole or not at all."""
        arrays = {name: getattr(self, name) for name in (*_IDS, "offsets")}
        sizes = {"n_relations": self.n_relations, "n_words": self.n_words}
        save_tensors(path, _KIND, arrays, sizes)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SentenceFragments:
        """Read a file of `save`; raise ValueError if it is damaged."""
        with reading(path):
            arrays, sizes = load_tensors(path, _KIND)
            return cls(
                **arrays.exactly(*_IDS, "offsets"), **sizes.exactly("n_relations", "n_words")
            )


class Fragment(NamedTuple):
    """A relation between two words, given by their positions in the list of words."""

    relation: str
    first: int
    second: int


def fragments_of(doc: Any, *, collapsed: bool) -> tuple[list[str], list[Fragment]]:
    """Words of a parsed caption in lower case, and its relations from head to dependent.

    Punctuation and the root are no relations. Where they are `collapsed`, prepositions and
    conjunctions become part of the relation between the words that they connect.
    """
    words = [token for token in doc if not (token.is_punct or token.is_space)]
    place = {token.i: position for position, token in enumerate(words)}
    edges = ((_edge(token, collapsed), place[token.i]) for token in words)
    return [token.lower_ for token in words], [
        Fragment(edge[0], place[edge[1].i], position)
        for edge, position in edges
        if edge is not None and edge[1].i in place
    ]


def _edge(token: Any, collapsed: bool) -> tuple[str, Any] | None:
    """Relation of a word to its head, and that head."""
    relation, head = token.dep_, token.head
    if relation == "ROOT" or (collapsed and _is_connective(token)):
        return None
    if collapsed and relation in _OBJECTS and head.dep_ in _PREPOSITIONS:
        return "agent" if head.dep_ == "agent" else f"prep_{head.lower_}", head.head
    if collapsed and relation == "conj":
        names = [child.lower_ for child in head.children if child.dep_ == "cc"]
        return f"conj_{names[0]}" if names else relation, head
    return relation, head


def _is_connective(token: Any) -> bool:
    """Whether a word only connects two others, and so names their relation."""
    if token.dep_ in _PREPOSITIONS:
        return any(child.dep_ in _OBJECTS for child in token.children)
    return token.dep_ == "cc" and any(child.dep_ == "conj" for child in token.head.children)


Analysis: TypeAlias = tuple[list[str], list[Fragment]]


class FragmentExtractor(Estimator):
    r"""Cuts captions into fragments: a relation R and two words :math:`w_1, w_2` each.

    Parameters
    ----------
    kind : {"dependencies", "bigrams", "words"}, default "dependencies"
        "dependencies" are the edges of the dependency tree, from head to dependent, without
        root and punctuation; they need spaCy (extra ``text``). "bigrams" are words that
        follow one another, "words" are single words with :math:`w_1 = w_2`; both have one
        relation and need nothing.
    min_share : float, default 0.01
        Relations with a smaller share of the training captions' fragments are left out.
    collapsed : bool, default True
        Make prepositions and conjunctions part of the relation between the words that they
        connect: *a dog in water* gives (prep_in, dog, water) instead of (prep, dog, in) and
        (pobj, in, water). For "dependencies" alone.
    vocabulary : Vocabulary, optional
        The words that have ids, those of pretrained vectors say. By default those of the
        training captions.
    spacy_model : str, default "en_core_web_sm"
        An installed spaCy pipeline with a parser.
    n_process : int, default 1
        Processes that parse, each with a copy of the pipeline. The result is the same for
        every number.

    Attributes
    ----------
    relations_ : tuple of str
        Relations that are kept, by falling count in the training captions; a relation's
        position is its id.
    relation_counts_ : dict of str to int
        Count of every relation of the training captions, kept or not.
    vocabulary_ : Vocabulary
        The words that have ids.

    See Also
    --------
    SentenceFragments : What it makes.

    Notes
    -----
    Captions are neither corrected nor lemmatised, as in [1]_. Words are in lower case. With
    "dependencies" spaCy cuts them, with the others the package's own tokeniser, which drops
    *'s* and divides at hyphens. A caption may have no fragment: bigrams need two words.

    [1]_ takes Stanford CoreNLP's dependencies, whose collapsed form `collapsed` comes close
    to, and drops relations below 1 % of "the time": 17 of 170 remain for Flickr8k.

    References
    ----------
    .. [1] A. Karpathy, A. Joulin and L. Fei-Fei, "Deep fragment embeddings for bidirectional
       image sentence mapping", NIPS 2014.
    .. [2] M.-C. de Marneffe, B. MacCartney and C. D. Manning, "Generating typed dependency
       parses from phrase structure parses", LREC 2006.

    Examples
    --------
    >>> from kernelcore.captions import FragmentExtractor
    >>> extractor = FragmentExtractor("bigrams")
    >>> fragments = extractor.fit_transform(["A dog runs.", "The dog"])
    >>> fragments
    SentenceFragments(2 captions, 3 fragments, n_relations=1, n_words=4)
    >>> extractor.decode(fragments)
    [[('bigram', 'a', 'dog'), ('bigram', 'dog', 'runs')], [('bigram', 'the', 'dog')]]
    """

    def __init__(
        self,
        kind: FragmentKind = "dependencies",
        *,
        min_share: float = 0.01,
        collapsed: bool = True,
        vocabulary: Vocabulary | None = None,
        spacy_model: str = SMALL_PIPELINE,
        n_process: int = 1,
    ) -> None:
        self.kind = kind
        self.min_share = min_share
        self.collapsed = collapsed
        self.vocabulary = vocabulary
        self.spacy_model = spacy_model
        self.n_process = n_process

    def fit(self, captions: Iterable[str], *, progress: Progress = False) -> FragmentExtractor:
        """Learn relations and words from training captions.

        Parameters
        ----------
        captions : iterable of str
            Raw captions.
        progress : bool or callable, default False
            Show a bar, or call this with (captions done, captions in all).

        Returns
        -------
        FragmentExtractor
            This object.

        Raises
        ------
        TypeError, ValueError
            If an option is out of range, a caption is not a string, the pipeline is not
            installed, or the captions have no fragment.
        """
        self._learn(self._analyses(captions, progress))
        return self

    def transform(
        self,
        captions: Iterable[str],
        *,
        unknown: Literal["hash", "drop"] = "hash",
        progress: Progress = False,
    ) -> SentenceFragments:
        """Cut captions into fragments of the relations that were learned.

        Parameters
        ----------
        captions : iterable of str
            Raw captions.
        unknown : {"hash", "drop"}, default "hash"
            What becomes of words outside the vocabulary: "hash" gives them negative ids as
            `Vocabulary.encode` does, "drop" leaves out fragments with such a word.
        progress : bool or callable, default False
            Show a bar, or call this with (captions done, captions in all).

        Returns
        -------
        SentenceFragments
            In the order of the captions, fragments in that of their second words.

        Raises
        ------
        TypeError, ValueError
            If `fit` was not called, or as `fit`.
        """
        self._check_fitted("relations_")
        check_choice("unknown", unknown, ("hash", "drop"))
        return self._encode(self._analyses(captions, progress), unknown)

    def fit_transform(
        self,
        captions: Iterable[str],
        *,
        unknown: Literal["hash", "drop"] = "hash",
        progress: Progress = False,
    ) -> SentenceFragments:
        """Do as `fit` and then `transform`, but parse once."""
        check_choice("unknown", unknown, ("hash", "drop"))
        analyses = self._analyses(captions, progress)
        self._learn(analyses)
        return self._encode(analyses, unknown)

    def decode(
        self, fragments: SentenceFragments
    ) -> list[list[tuple[str, str | None, str | None]]]:
        """Return relation and words of the fragments of each caption.

        Words outside the vocabulary are None.
        """
        self._check_fitted("relations_")
        sizes = len(self.relations_), len(self.vocabulary_)
        if (fragments.n_relations, fragments.n_words) != sizes:
            raise ValueError(
                f"fragments must have {sizes[0]} relations and {sizes[1]} words as this "
                f"extractor has, got {fragments.n_relations} and {fragments.n_words}"
            )
        rows = list(
            zip(
                [self.relations_[i] for i in fragments.relation_ids.tolist()],
                self.vocabulary_.decode(fragments.first_ids),
                self.vocabulary_.decode(fragments.second_ids),
                strict=True,
            )
        )
        offsets = fragments.offsets.tolist()
        return [rows[start:end] for start, end in pairwise(offsets)]

    def to_dict(self) -> dict[str, Any]:
        """Return the options and all that `fit` learned, ready for JSON."""
        self._check_fitted("relations_")
        return {
            **{
                name: value for name, value in self.get_params().items() if name != "vocabulary"
            },
            "relation_counts": self.relation_counts_,
            "vocabulary": self.vocabulary_.to_dict(),
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> FragmentExtractor:
        """Make the extractor again that `to_dict` described; its vocabulary is then given."""
        options = dict(state)
        counts = {
            relation: check_integer(f"relation_counts[{relation!r}]", count, minimum=0)
            for relation, count in options.pop("relation_counts").items()
        }
        vocabulary = Vocabulary.from_dict(options.pop("vocabulary"))
        extractor = cls.from_json(options).set_params(vocabulary=vocabulary)
        extractor._keep(counts)
        extractor.vocabulary_ = vocabulary
        return extractor

    def _analyses(self, captions: Iterable[str], progress: Progress) -> list[Analysis]:
        """Words and fragments of every caption."""
        check_choice("kind", self.kind, _KINDS)
        n_process = check_integer("n_process", self.n_process, minimum=1)
        collapsed = check_flag("collapsed", self.collapsed)
        texts = list(checked_captions(captions))
        results: Iterator[Analysis]
        if self.kind == "dependencies":
            docs = parse(texts, self.spacy_model, n_process=n_process)
            results = (fragments_of(doc, collapsed=collapsed) for doc in docs)
        else:
            step = int(self.kind == "bigrams")
            results = (_neighbours(tokenize(text), step) for text in texts)
        analyses = []
        with reporting(progress, f"find {self.kind}") as report:
            for done, analysis in enumerate(results, 1):
                analyses.append(analysis)
                if report and (done % _CAPTIONS_PER_REPORT == 0 or done == len(texts)):
                    report(done, len(texts))
        return analyses

    def _learn(self, analyses: list[Analysis]) -> None:
        self._keep(Counter(f.relation for _, fragments in analyses for f in fragments))
        if self.vocabulary is None:
            self.vocabulary_ = Vocabulary.from_captions([[words] for words, _ in analyses])
        else:
            self.vocabulary_ = self.vocabulary

    def _keep(self, counts: Mapping[str, int]) -> None:
        """Keep the relations that are frequent enough."""
        min_share = check_real("min_share", self.min_share, minimum=0, maximum=1)
        total = sum(counts.values())
        if not total:
            raise ValueError("captions must have fragments, got none")
        by_count = sorted(counts, key=lambda relation: (-counts[relation], relation))
        self.relation_counts_ = {relation: counts[relation] for relation in by_count}
        self.relations_ = tuple(r for r in by_count if counts[r] >= min_share * total)

    def _encode(self, analyses: list[Analysis], unknown: str) -> SentenceFragments:
        relation_id = {relation: i for i, relation in enumerate(self.relations_)}
        kept = [
            [f for f in fragments if f.relation in relation_id] for _, fragments in analyses
        ]
        ids = self.vocabulary_.encode([[words] for words, _ in analyses])
        counts = np.array([len(caption) for caption in kept], dtype=np.int64)
        places = np.array(
            [(f.first, f.second) for caption in kept for f in caption], dtype=np.int64
        ).reshape(-1, 2)
        places += np.repeat(ids.caption_offsets[:-1], counts)[:, np.newaxis]
        first, second = ids.word_ids[places.T]
        relations = np.array(
            [relation_id[f.relation] for caption in kept for f in caption], dtype=np.int32
        )
        fragments = SentenceFragments(
            relations,
            first,
            second,
            offsets_of(counts),
            n_relations=len(self.relations_),
            n_words=len(self.vocabulary_),
        )
        return fragments.without_unknown() if unknown == "drop" else fragments


def _neighbours(words: list[str], step: int) -> Analysis:
    """Every word with itself (step 0) or with the next (step 1)."""
    relation = "bigram" if step else "word"
    return words, [Fragment(relation, i, i + step) for i in range(len(words) - step)]
