"""Lin's similarity of nouns from WordNet and the counts of a corpus."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from kernelcore._check import check_choice, check_integer, check_real
from kernelcore._store import read_text, reading
from kernelcore._threads import cached_property
from kernelcore.captions.vocabulary import Vocabulary
from kernelcore.lexical.word_kernel import WordKernel, checked_words, cosine_kernel

# WordNet's own rules of detachment for nouns: ending -> what takes its place
_DETACHMENTS = (
    ("s", ""),
    ("ses", "s"),
    ("ves", "f"),
    ("xes", "x"),
    ("zes", "z"),
    ("ches", "ch"),
    ("shes", "sh"),
    ("men", "man"),
    ("ies", "y"),
)
_HYPERNYM_POINTERS = frozenset({"@", "@i"})
DATABASE_FILES = ("index.noun", "data.noun", "noun.exc")


class Synset(NamedTuple):
    """A set of synonyms."""

    words: tuple[str, ...]  # as WordNet writes them
    hypernyms: tuple[int, ...]  # direct ones, those it is an instance of among them


class NounDatabase:
    """Noun synsets of WordNet and their hypernyms.

    A synset is named by its offset in ``data.noun``.

    Parameters
    ----------
    directory : path-like
        Folder with ``index.noun``, ``data.noun`` and ``noun.exc``.

    Raises
    ------
    FileNotFoundError
        If one of the files is not there.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = Path(directory)
        for name in DATABASE_FILES:
            if not (self.directory / name).is_file():
                raise FileNotFoundError(
                    f"no WordNet database in {self.directory}: {name} is missing. Install "
                    "one (Debian and Ubuntu: apt-get install wordnet-base, which puts it into "
                    "/usr/share/wordnet) or name the dict folder of WordNet 3.0"
                )
        with reading(self.directory / "data.noun"):
            self._data = (self.directory / "data.noun").read_bytes()
        self._synsets: dict[int, Synset] = {}

    def first_sense(self, word: str) -> int | None:
        """Synset of the first sense of a noun, None if it is not in WordNet.

        The word is looked up unchanged, then by its base forms, then by a lemma that differs
        in hyphens and spaces alone.
        """
        for form in self._base_forms(word.lower().replace(" ", "_")):
            if form in self._first_senses:
                return self._first_senses[form]
        return self._joined_lemmas.get(word.lower())

    def synset(self, offset: int) -> Synset:
        """Words and direct hypernyms of the synset at a byte of ``data.noun``."""
        if offset in self._synsets:
            return self._synsets[offset]
        end = self._data.find(b"\n", offset)
        record, _, _ = self._data[offset : end if end >= 0 else None].partition(b"|")
        fields = record.decode("utf-8", "replace").split()
        try:
            if int(fields[0]) != offset:
                raise ValueError
            pointers = 4 + 2 * int(fields[3], 16)  # their number, then four fields each
            starts = range(pointers + 1, pointers + 1 + 4 * int(fields[pointers]), 4)
            above = [int(fields[at + 1]) for at in starts if fields[at] in _HYPERNYM_POINTERS]
        except (IndexError, ValueError):
            raise ValueError(
                f"{self.directory / 'data.noun'} is damaged: no synset at byte {offset}"
            ) from None
        found = Synset(tuple(fields[4:pointers:2]), tuple(above))
        return self._synsets.setdefault(offset, found)

    def ancestors(self, synset: int) -> frozenset[int]:
        """All synsets above this one, and this one."""
        found, pending = {synset}, [synset]
        while pending:  # no recursion: a damaged file may hold a cycle
            above = set(self.synset(pending.pop()).hypernyms) - found
            found |= above
            pending += above
        return frozenset(found)

    def _base_forms(self, word: str) -> Iterator[str]:
        yield word
        yield from self._exceptions.get(word, ())
        for ending, replacement in _DETACHMENTS:
            if word.endswith(ending):
                yield word.removesuffix(ending) + replacement

    @cached_property
    def _first_senses(self) -> dict[str, int]:
        """Lemma -> the synset of its first sense."""
        first = {}
        for line in self._lines("index.noun"):
            if not line.startswith(" "):  # the licence
                fields = line.split()
                try:
                    first[fields[0]] = int(fields[len(fields) - int(fields[2])])
                except (IndexError, ValueError):
                    raise ValueError(
                        f"{self.directory / 'index.noun'} is damaged: {line[:60]!r}"
                    ) from None
        return first

    @cached_property
    def _joined_lemmas(self) -> dict[str, int]:
        """Compounds joined to one word, unless WordNet has that word."""
        joined: dict[str, int] = {}
        for lemma, synset in self._first_senses.items():
            plain = lemma.replace("_", "").replace("-", "")
            if plain != lemma:
                joined.setdefault(plain, synset)
        return joined

    @cached_property
    def _exceptions(self) -> dict[str, list[str]]:
        """Irregular plural -> its singulars."""
        rows = map(str.split, self._lines("noun.exc"))
        return {row[0]: row[1:] for row in rows if row}

    def _lines(self, name: str) -> list[str]:
        return read_text(self.directory / name).splitlines()


class WordNetLin:
    r"""Lin's similarity of the first noun senses of words in WordNet.

    Every word stands for its first, that is its most frequent, noun sense. The probability
    :math:`F(s)` of a sense is the share of the corpus's nouns that are an instance of it or
    of anything below it. The similarity of two senses is

    .. math:: \mathrm{sim}(s, s') = \frac{2 \log F(\mathrm{lcs}(s, s'))}{\log F(s) + \log F(s')}

    with their least probable common hypernym lcs. The word kernel is the cosine of vectors
    with a component for each hypernym :math:`s_i` of s, itself included,

    .. math:: \mathbf{w}_i = \frac{2 \log F(s_i)}{\log F(s) + \log F(s_i)} .

    Parameters
    ----------
    wordnet_dir : path-like
        Folder with the database files of WordNet 3.0 (``index.noun``, ``data.noun``,
        ``noun.exc``), for example ``/usr/share/wordnet``.
    counts : mapping of str to int, or Vocabulary
        How often each word occurs in the corpus that the probabilities come from.
    threshold : float, default 0
        Similarities below it become 0.

    Raises
    ------
    FileNotFoundError
        If a file of the database is missing; the message says how to install it.
    TypeError, ValueError
        If a count is no non-negative integer, or no word of `counts` is in WordNet.

    Notes
    -----
    A sense that the corpus never names, nor anything below it, has no finite information
    and is similar to itself alone. A word that is not in WordNet as it stands is looked up
    by its base form (*geese*), then without hyphens and spaces (*tshirt*).

    References
    ----------
    .. [1] D. Lin, "An information-theoretic definition of similarity", ICML 1998.
    .. [2] S. Bloehdorn, R. Basili, M. Cammisa and A. Moschitti, "Semantic kernels for text
       classification based on topological measures of feature similarity", ICDM 2006.

    Examples
    --------
    >>> from kernelcore.lexical import WordNetLin
    >>> lin = WordNetLin("/usr/share/wordnet", {"dog": 8, "cat": 4, "car": 4})  # doctest: +SKIP
    >>> lin.word_kernel(["dog", "cat", "car"]).most_similar("dog", 1)  # doctest: +SKIP
    [('cat', 0.4...)]
    """

    def __init__(
        self,
        wordnet_dir: str | os.PathLike[str],
        counts: Mapping[str, int] | Vocabulary,
        *,
        threshold: float = 0.0,
    ) -> None:
        self.threshold = check_real("threshold", threshold, minimum=0, maximum=1)
        if isinstance(counts, Vocabulary):
            counts = dict(zip(counts.words, counts.counts.tolist(), strict=True))
        self._nouns = NounDatabase(wordnet_dir)
        self._mass: Counter[int] = Counter()
        self._total = 0
        for word, count in counts.items():
            number = check_integer(f"counts[{word!r}]", count, minimum=0)
            sense = self._nouns.first_sense(word)
            if sense is not None:
                self._total += number
                for ancestor in self._nouns.ancestors(sense):
                    self._mass[ancestor] += number
        if self._total == 0:
            raise ValueError("counts must hold a noun of WordNet, got none")

    def word_kernel(
        self, words: Iterable[str], *, measure: Literal["cosine", "lin"] = "cosine"
    ) -> WordKernel:
        """Similarities of words.

        Parameters
        ----------
        words : iterable of str
            Words of the kernel, for example a `Vocabulary`. Words that WordNet does not
            have as nouns are similar to themselves alone.
        measure : {"cosine", "lin"}, default "cosine"
            The cosine of the vectors of hypernyms, or Lin's similarity itself.

        Returns
        -------
        WordKernel
        """
        check_choice("measure", measure, ("cosine", "lin"))
        wanted = checked_words(words)
        senses = [self._nouns.first_sense(word) for word in wanted]
        if measure == "lin":
            return WordKernel(wanted, self._lin(senses))
        known = {
            word: sense for word, sense in zip(wanted, senses, strict=True) if sense is not None
        }
        index = {word: row for row, word in enumerate(known)}
        return cosine_kernel(wanted, index, self._vectors(list(known.values())), self.threshold)

    def _information(self, synset: int) -> float:
        """-log F(synset) in nats, infinite if the corpus has no word of it or below it."""
        mass = self._mass[synset]
        return float(np.log(self._total / mass)) if mass else np.inf

    def _vectors(self, senses: list[int]) -> scipy.sparse.csr_array:
        columns: dict[int, int] = {}
        rows, cols, values = [], [], []
        for row, sense in enumerate(senses):
            own = self._information(sense)
            for ancestor in sorted(self._nouns.ancestors(sense)):
                rows.append(row)
                cols.append(columns.setdefault(ancestor, len(columns)))
                values.append(
                    1.0 if ancestor == sense else _share(self._information(ancestor), own)
                )
        matrix = scipy.sparse.csr_array(
            (values, (rows, cols)), shape=(len(senses), len(columns))
        )
        matrix.eliminate_zeros()
        return matrix

    def _lin(self, senses: list[int | None]) -> npt.NDArray[np.float32]:
        """Lin's similarity of each pair of senses; None is similar to nothing."""
        below: dict[int, list[int]] = {}
        for row, sense in enumerate(senses):
            for ancestor in self._nouns.ancestors(sense) if sense is not None else ():
                below.setdefault(ancestor, []).append(row)
        shared = {a: rows for a, rows in below.items() if len(rows) > 1}
        common = np.zeros((len(senses), len(senses)), dtype=np.float32)
        # the last to write a pair is its common hypernym of the greatest information
        for ancestor in sorted(shared, key=lambda a: (self._information(a), a)):
            information = self._information(ancestor)
            if np.isfinite(information):
                common[np.ix_(shared[ancestor], shared[ancestor])] = information
        own = np.array([0.0 if s is None else self._information(s) for s in senses], np.float32)
        with np.errstate(invalid="ignore"):
            result = np.nan_to_num(2 * common / (own[:, None] + own[None, :]))
        for sense, rows in shared.items():
            same = [row for row in rows if senses[row] == sense]
            result[np.ix_(same, same)] = 1.0
        np.fill_diagonal(result, 1.0)
        result[result < self.threshold] = 0.0
        return result


def _share(information: float, own: float) -> float:
    """Lin's similarity of a sense of information `own` and a hypernym of it."""
    if information == 0.0 or np.isinf(own):
        return 0.0
    return 2.0 * information / (information + own)
