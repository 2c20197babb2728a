"""The nouns of a WordNet database, read from its own files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from kernelcore._reading import read_text, reading

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


class NounDatabase:
    """Noun senses and their hypernyms.

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
        self._synsets: dict[int, tuple[tuple[str, ...], tuple[int, ...]]] = {}
        self._ancestors: dict[int, frozenset[int]] = {}

    def first_sense(self, word: str) -> int | None:
        """Synset of the first sense of a noun, None if it is not in WordNet.

        Looks for the word as it stands, then for its base forms, then for a lemma that is
        the same but for hyphens and spaces.
        """
        for form in self._base_forms(word.lower().replace(" ", "_")):
            if form in self._first_senses:
                return self._first_senses[form]
        return self._joined_lemmas.get(word.lower())

    def words(self, synset: int) -> tuple[str, ...]:
        """Words of a synset, as WordNet writes them."""
        return self._synset(synset)[0]

    def hypernyms(self, synset: int) -> tuple[int, ...]:
        """Synsets one step above, of which this one is a kind or an instance."""
        return self._synset(synset)[1]

    def ancestors(self, synset: int) -> frozenset[int]:
        """All synsets above this one, and this one."""
        if synset not in self._ancestors:
            found, pending = {synset}, [synset]
            while pending:  # no recursion: a damaged file may lead in a circle
                above = set(self.hypernyms(pending.pop())) - found
                found |= above
                pending += above
            self._ancestors[synset] = frozenset(found)
        return self._ancestors[synset]

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
        """Compounds written as one word, for those that WordNet does not write so itself."""
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

    def _synset(self, offset: int) -> tuple[tuple[str, ...], tuple[int, ...]]:
        if offset not in self._synsets:
            self._synsets[offset] = self._parse(offset)
        return self._synsets[offset]

    def _parse(self, offset: int) -> tuple[tuple[str, ...], tuple[int, ...]]:
        end = self._data.find(b"\n", offset)
        record, _, _ = self._data[offset : end if end >= 0 else None].partition(b"|")
        fields = record.decode("utf-8", "replace").split()
        try:
            if int(fields[0]) != offset:
                raise ValueError
            n_words = int(fields[3], 16)
            words = tuple(fields[4 : 4 + 2 * n_words : 2])
            pointers = fields[5 + 2 * n_words :]
            n_pointers = int(fields[4 + 2 * n_words])
            targets = tuple(
                int(pointers[4 * i + 1])
                for i in range(n_pointers)
                if pointers[4 * i] in _HYPERNYM_POINTERS
            )
        except (IndexError, ValueError):
            raise ValueError(
                f"{self.directory / 'data.noun'} is damaged: no synset at byte {offset}"
            ) from None
        return words, targets
