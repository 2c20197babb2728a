"""Search in a folder of photos: an index that follows it, and what a query finds.

`update_index` adds and removes photos, `Collection` answers queries. It folds near duplicates,
draws the line from which on results are found by chance, and divides scores among the words
of a sentence.
"""

from kernelcore.search.collection import Collection, Ranking
from kernelcore.search.growing import Changes, update_index
from kernelcore.search.photo_files import photo_file
from kernelcore.search.words import UnknownWord, WordShare, unknown_words, word_shares

__all__ = [
    "Changes",
    "Collection",
    "Ranking",
    "UnknownWord",
    "WordShare",
    "photo_file",
    "unknown_words",
    "update_index",
    "word_shares",
]
