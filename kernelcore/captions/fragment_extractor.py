"""From raw captions to pairs of related words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np

from kernelcore._estimator import Estimator
from kernelcore._progress import Progress, reporting
from kernelcore._validation import check_choice, check_flag, check_integer, check_real
from kernelcore.captions._dependencies import Fragment, fragments_of
from kernelcore.captions._spacy import SMALL_PIPELINE, parse
from kernelcore.captions._tokenize import tokenize
from kernelcore.captions.encoded import offsets_of
from kernelcore.captions.fragments import SentenceFragments
from kernelcore.captions.normalize import checked_captions
from kernelcore.captions.vocabulary import Vocabulary

FragmentKind: TypeAlias = Literal["dependencies", "bigrams", "words"]

_KINDS = ("dependencies", "bigrams", "words")
_CAPTIONS_PER_REPORT = 500

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
