"""Counts of the words in the captions of each image."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore.captions.encoded import EncodedCaptions

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class WordCounts(NamedTuple):
    """Counts of the words of each image.

    Attributes
    ----------
    counts : csr_array of float64, shape (n_images, n_words + len(unknown_ids))
        Words of the vocabulary by their ids, and behind them those outside it.
    n_words : int
        Size of the vocabulary.
    unknown_ids : ndarray of int32
        Negative ids of the words outside the vocabulary, ascending.
    """

    counts: csr_array
    n_words: int
    unknown_ids: npt.NDArray[np.int32]

    def over(self, unknown_ids: npt.NDArray[np.int32]) -> csr_array:
        """Return the counts over the columns of more unknown words, ascending too."""
        from scipy.sparse import csr_array

        shape = (self.counts.shape[0], self.n_words + len(unknown_ids))
        if shape == self.counts.shape:
            return self.counts
        new = self.n_words + np.searchsorted(unknown_ids, self.unknown_ids)
        columns = self.counts.indices
        is_unknown = columns >= self.n_words
        columns = columns.copy()
        columns[is_unknown] = new[columns[is_unknown] - self.n_words]
        parts = (self.counts.data, columns, self.counts.indptr)
        made: csr_array = csr_array(parts, shape=shape)
        return made


def count_words(captions: EncodedCaptions) -> WordCounts:
    """Count the words of all captions of each image together."""
    from scipy.sparse import csr_array

    ids = captions.word_ids
    is_unknown = ids < 0
    unknown_ids, places = np.unique(ids[is_unknown], return_inverse=True)
    columns = (
        ids.astype(np.int64) if captions.n_words + len(unknown_ids) >= 2**31 else ids.copy()
    )
    columns[is_unknown] = captions.n_words + places
    starts = captions.caption_offsets[captions.image_offsets]
    shape = (len(captions), captions.n_words + len(unknown_ids))
    counts = csr_array((np.ones(len(ids)), columns, starts), shape=shape)
    counts.sum_duplicates()
    return WordCounts(counts, captions.n_words, unknown_ids)
