"""Captions as ragged arrays of word ids: the form that every text kernel reads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class EncodedCaptions:
    """Word ids of the captions of a list of images (or of single captions, one per image).

    The ids of caption c are ``word_ids[caption_offsets[c]:caption_offsets[c + 1]]``; the
    captions of image i are ``image_offsets[i] .. image_offsets[i + 1] - 1``.

    Attributes
    ----------
    word_ids : ndarray of int32, shape (n_tokens,)
        Ids >= 0 are rows of the vocabulary. Negative ids stand for words outside it: equal
        words have equal ids, whatever the call or process that encoded them.
    caption_offsets : ndarray of int64, shape (n_captions + 1,)
        Start of each caption in `word_ids`, and the end of the last.
    image_offsets : ndarray of int64, shape (n_images + 1,)
        Start of each image's captions, and the end of the last.
    caption_numbers : ndarray of int64, shape (n_captions,)
        Number of each caption within its image, as in
        `kernelcore.datasets.records.CaptionedImages`.
    n_words : int
        Size of the vocabulary: every id is below it.
    """

    word_ids: npt.NDArray[np.int32]
    caption_offsets: npt.NDArray[np.int64]
    image_offsets: npt.NDArray[np.int64]
    caption_numbers: npt.NDArray[np.int64]
    n_words: int

    # Placeholder methods are listed here so that users of the type can rely on them:
    # __post_init__ (checks), __len__ (n_images), n_captions, select(image_indices),
    # with_caption(number) -> one caption per image, caption_as_image() -> every caption alone.
