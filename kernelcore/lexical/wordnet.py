"""Lin's similarity: two nouns are alike if what they have in common says much."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from kernelcore._validation import check_choice, check_integer, check_real
from kernelcore.captions.vocabulary import Vocabulary
from kernelcore.lexical._cosine import cosine_kernel
from kernelcore.lexical._wordnet_files import NounDatabase
from kernelcore.lexical.word_kernel import WordKernel, checked_words


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

    def sense(self, word: str) -> tuple[str, ...] | None:
        """Words of the synset that `word` stands for, None if it is not a noun of WordNet."""
        synset = self._nouns.first_sense(word)
        return None if synset is None else self._nouns.words(synset)

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
        """-log F(synset) in nats, infinite where the corpus has nothing of the kind."""
        mass = self._mass[synset]
        return float(np.log(self._total / mass)) if mass else np.inf

    def _vectors(self, senses: list[int]) -> sparse.csr_array:
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
        matrix = sparse.csr_array((values, (rows, cols)), shape=(len(senses), len(columns)))
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
