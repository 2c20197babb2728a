"""Search in a folder of photos: an index that follows it, and what a query finds.

`update_index` adds and removes photos, `Collection` answers queries: it ranks the photos, draws
the line from which on results are found by chance, and divides scores among the words of a
sentence.
"""

from kernelcore.search.collection import Collection
from kernelcore.search.update import update_index
from kernelcore.search.words import unknown_words, word_shares

__all__ = [
    "Collection",
    "unknown_words",
    "update_index",
    "word_shares",
]
