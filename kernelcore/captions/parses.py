"""Parsed captions: fragments, a relation and two words each, and whole dependency trees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._check import as_strings, check_choice, check_flag, check_integer, check_real
from kernelcore._estimator import Estimator
from kernelcore._ragged import Record, column, offsets_of, row_offsets, size
from kernelcore._threads import Progress, cached_property
from kernelcore.captions.normalize import (
    BATCH_SIZE,
    SMALL_PIPELINE,
    load_model,
    reported,
)
from kernelcore.captions.tokens import tokenize
from kernelcore.captions.vocabulary import Vocabulary

_NOT_FOR_TREES = ("tagger", "attribute_ruler", "lemmatizer", "ner", "senter")
_PREPOSITIONS = ("prep", "agent")
_OBJECTS = ("pobj", "pcomp")
FragmentKind: TypeAlias = Literal["dependencies", "bigrams", "words"]
_KINDS = ("dependencies", "bigrams", "words")


@dataclass(frozen=True, eq=False, repr=False)
class SentenceFragments(Record):
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

    _kind: ClassVar[str] = "sentence fragments"
    _axis: ClassVar[str] = "caption"

    relation_ids: npt.NDArray[np.int32] = field(
        metadata=column("fragment", np.int32, minimum=0, below="n_relations")
    )
    first_ids: npt.NDArray[np.int32] = field(
        metadata=column("fragment", np.int32, below="n_words")
    )
    second_ids: npt.NDArray[np.int32] = field(
        metadata=column("fragment", np.int32, below="n_words")
    )
    offsets: npt.NDArray[np.int64] = field(metadata=row_offsets("caption", "fragment"))
    n_relations: int = field(metadata=size())
    n_words: int = field(metadata=size())

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """Number of fragments of each caption."""
        return np.diff(self.offsets)

    def without_unknown(self) -> SentenceFragments:
        """Return the same captions without fragments that have a word of no id."""
        known = (self.first_ids >= 0) & (self.second_ids >= 0)
        if known.all():
            return self
        return self._replaced(
            relation_ids=self.relation_ids[known],
            first_ids=self.first_ids[known],
            second_ids=self.second_ids[known],
            offsets=offsets_of(known)[self.offsets],
        )


@dataclass(frozen=True, eq=False, repr=False)
class SentenceTrees(Record):
    """Dependency trees of a list of captions: each word with its relation to its head.

    The words of caption c are ``offsets[c] .. offsets[c + 1] - 1``, in their order. The
    arrays are checked once and then read-only.

    Attributes
    ----------
    word_ids : ndarray of int32, shape (n_words_in_all,)
        Ids >= 0 are rows of a vocabulary; negative ids stand for words outside it.
    relation_ids : ndarray of int32, shape (n_words_in_all,)
        Ids in [0, n_relations) of each word's relation to its head.
    heads : ndarray of int32, shape (n_words_in_all,)
        Position of each word's head within its caption; -1 for the one root.
    offsets : ndarray of int64, shape (n_captions + 1,)
        Start of each caption's words, and the end of the last.
    n_relations, n_words : int
        Numbers of relations and of words in the vocabulary.

    Raises
    ------
    TypeError
        If an array does not hold integers.
    ValueError
        If the arrays differ in length, an id is out of range, `offsets` do not divide the
        words, or the heads of a caption do not form a tree.

    See Also
    --------
    kernelcore.captions.parse_trees : Makes them from raw captions.

    Examples
    --------
    >>> from kernelcore.captions import SentenceTrees
    >>> trees = SentenceTrees(  # "a dog runs", "cats"
    ...     word_ids=[0, 1, 2, 3], relation_ids=[0, 1, 2, 2], heads=[1, 2, -1, -1],
    ...     offsets=[0, 3, 4], n_relations=3, n_words=4,
    ... )
    >>> trees
    SentenceTrees(2 captions, 4 words, n_relations=3, n_words=4)
    >>> trees.heights
    array([0, 1, 2, 0])
    """

    _kind: ClassVar[str] = "sentence trees"
    _axis: ClassVar[str] = "caption"

    word_ids: npt.NDArray[np.int32] = field(metadata=column("word", np.int32, below="n_words"))
    relation_ids: npt.NDArray[np.int32] = field(
        metadata=column("word", np.int32, minimum=0, below="n_relations")
    )
    heads: npt.NDArray[np.int32] = field(metadata=column("word", np.int32))
    offsets: npt.NDArray[np.int64] = field(metadata=row_offsets("caption", "word"))
    n_relations: int = field(metadata=size())
    n_words: int = field(metadata=size())

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """Number of words of each caption."""
        return np.diff(self.offsets)

    @property
    def parents(self) -> npt.NDArray[np.int64]:
        """Position of each word's head among the words of all captions; -1 for roots."""
        starts = np.repeat(self.offsets[:-1], self.counts)
        return np.where(self.heads < 0, -1, starts + self.heads)

    @cached_property
    def heights(self) -> npt.NDArray[np.int64]:
        """Length of the longest path from each word down to a leaf: 0 for leaves."""
        parents = self.parents
        depths = _depths(parents)
        heights = np.zeros(len(parents), np.int64)
        ends = np.cumsum(np.bincount(depths, minlength=1))
        by_depth = np.argsort(depths, kind="stable")
        for start, end in zip(ends[-2::-1], ends[:0:-1], strict=True):  # the deepest first
            children = by_depth[start:end]
            np.maximum.at(heights, parents[children], heights[children] + 1)
        return heights

    def _check(self) -> None:
        lengths = np.repeat(self.counts, self.counts)
        if ((self.heads < -1) | (self.heads >= lengths)).any():
            raise ValueError("heads must be positions within their caption, or -1 for a root")
        roots = np.add.reduceat(np.r_[self.heads == -1, False], self.offsets[:-1])
        if (roots[self.counts > 0] != 1).any():
            raise ValueError("heads must name one root in each caption that has words")
        _depths(self.parents)  # raises if heads form a cycle


def _depths(parents: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Length of the path from each word up to its root, by pointer doubling."""
    depths, above = (parents >= 0).astype(np.int64), parents
    for _ in range(len(parents).bit_length() + 1):
        below = np.flatnonzero(above >= 0)
        if not below.size:
            return depths
        reached = above[below]
        depths[below] += depths[reached]
        above = above.copy()
        above[below] = above[reached]
    raise ValueError("heads must not form a cycle")


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


def _parsed(captions: Iterable[str], model: str, n_process: int) -> Iterator[Any]:
    """Yield the dependency tree of every caption, as a spaCy ``Doc``."""
    pipeline = load_model(model, _NOT_FOR_TREES)
    if "parser" not in pipeline.pipe_names:
        raise ValueError(
            f"spacy_model must name a pipeline with a parser, got {model!r} with "
            f"{', '.join(pipeline.pipe_names) or 'nothing'}"
        )
    yield from pipeline.pipe(captions, batch_size=BATCH_SIZE, n_process=n_process)


class FragmentExtractor(Estimator):
    r"""Extracts fragments of captions: a relation R and two words :math:`w_1, w_2` each.

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
    SentenceFragments : The output.

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
        progress: Progress = False,
    ) -> SentenceFragments:
        """Extract fragments of the relations that were learned.

        Parameters
        ----------
        captions : iterable of str
            Raw captions.
        progress : bool or callable, default False
            Show a bar, or call this with (captions done, captions in all).

        Returns
        -------
        SentenceFragments
            In the order of the captions, fragments in that of their second words. Words
            outside the vocabulary have negative ids as in `Vocabulary.encode`; the method
            `SentenceFragments.without_unknown` leaves out fragments with such a word.

        Raises
        ------
        TypeError, ValueError
            If `fit` was not called, or as `fit`.
        """
        self._check_fitted("relations_")
        return self._encode(self._analyses(captions, progress))

    def fit_transform(
        self,
        captions: Iterable[str],
        *,
        progress: Progress = False,
    ) -> SentenceFragments:
        """Fit and transform with one pass of the parser."""
        analyses = self._analyses(captions, progress)
        self._learn(analyses)
        return self._encode(analyses)

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
        """Return options and learned state as JSON values."""
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
        """Restore an extractor from the output of `to_dict`; its vocabulary is then fixed."""
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
        texts = as_strings("captions", captions)
        results: Iterator[Analysis]
        if self.kind == "dependencies":
            docs = _parsed(texts, self.spacy_model, n_process)
            results = (fragments_of(doc, collapsed=collapsed) for doc in docs)
        else:
            step = int(self.kind == "bigrams")
            results = (_neighbours(tokenize(text), step) for text in texts)
        return list(reported(results, len(texts), progress, f"find {self.kind}"))

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

    def _encode(self, analyses: list[Analysis]) -> SentenceFragments:
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
        return SentenceFragments(
            relations,
            first,
            second,
            offsets_of(counts),
            n_relations=len(self.relations_),
            n_words=len(self.vocabulary_),
        )


def _neighbours(words: list[str], step: int) -> Analysis:
    """Every word with itself (step 0) or with the next (step 1)."""
    relation = "bigram" if step else "word"
    return words, [Fragment(relation, i, i + step) for i in range(len(words) - step)]


def parse_trees(
    captions: Iterable[str],
    vocabulary: Vocabulary,
    relations: Iterable[str],
    *,
    spacy_model: str = SMALL_PIPELINE,
    n_process: int = 1,
    progress: Progress = False,
) -> SentenceTrees:
    """Parse captions (extra ``text``).

    Parameters
    ----------
    captions : iterable of str
        Raw captions.
    vocabulary : Vocabulary
        The words that have ids; others get negative ones.
    relations : iterable of str
        Names, in the pipeline, of the relations that have their own ids. All other relations
        share one id.
    spacy_model : str, default "en_core_web_sm"
        An installed spaCy pipeline with a parser.
    n_process : int, default 1
        Processes that parse, each with a copy of the pipeline.
    progress : bool or callable, default False
        Show a bar, or call this with (captions done, captions in all).

    Returns
    -------
    SentenceTrees
        Words in lower case, without punctuation. A word under a punctuation mark hangs under
        the mark's head; of several roots the first is the head of the others.

    Raises
    ------
    TypeError, ValueError
        If a caption is not a string or the pipeline is not installed.
    """
    n_process = check_integer("n_process", n_process, minimum=1)
    ids = {relation: i for i, relation in enumerate(relations)}
    texts = as_strings("captions", captions)
    words: list[list[str]] = []
    heads: list[int] = []
    relation_ids: list[int] = []
    docs = _parsed(texts, spacy_model, n_process)
    for doc in reported(docs, len(texts), progress, "parse captions"):
        tokens, own_heads = _tree_of(doc)
        words.append([token.lower_ for token in tokens])
        heads += own_heads
        relation_ids += [ids.get(token.dep_, len(ids)) for token in tokens]
    encoded = vocabulary.encode([words])
    return SentenceTrees(
        encoded.word_ids,
        np.array(relation_ids, np.int32),
        np.array(heads, np.int32),
        offsets_of([len(own) for own in words]),
        n_relations=len(ids) + 1,
        n_words=len(vocabulary),
    )


def _tree_of(doc: Any) -> tuple[list[Any], list[int]]:
    """Words of a parsed caption, and the position of each one's head among them."""
    words = [token for token in doc if not (token.is_punct or token.is_space)]
    place = {token.i: position for position, token in enumerate(words)}
    heads = []
    root: int | None = None
    for position, token in enumerate(words):
        head = token.head
        while head.i not in place and head.head.i != head.i:
            head = head.head
        if head.i in place and head.i != token.i:
            heads.append(place[head.i])
            continue
        heads.append(-1 if root is None else root)
        root = position if root is None else root
    return words, heads
