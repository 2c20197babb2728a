"""Texts of order embeddings: joined captions, and vectors of stems."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from kernelcore._check import as_integer_array, check_non_negative
from kernelcore.captions import STOP_WORDS
from kernelcore.evaluation.caption_metrics import bleu_tokens, rouge_tokens
from kernelcore.lexical import WordVectors


def join_captions(
    captions: Sequence[str], caption_image: npt.ArrayLike
) -> tuple[list[str], npt.NDArray[np.intp]]:
    """Join the captions of each image into one text.

    Parameters
    ----------
    captions : sequence of str
    caption_image : array_like of int, shape (n_captions,)
        Number of the image of each caption.

    Returns
    -------
    texts : list of str
        The captions of each image, joined in their order.
    images : ndarray of intp, shape (n_texts,)
        Number of each text's image, ascending.

    Raises
    ------
    TypeError, ValueError
        If `caption_image` does not hold one integer >= 0 for each caption.

    Examples
    --------
    >>> from kernelcore.deep import join_captions
    >>> join_captions(["a dog", "the sea", "it runs"], [4, 2, 4])
    (['the sea', 'a dog it runs'], array([2, 4]))
    """
    owners = as_integer_array("caption_image", caption_image, ndim=1, dtype=np.intp)
    check_non_negative("caption_image", owners)
    if len(owners) != len(captions):
        raise ValueError(
            f"caption_image must have one entry per caption ({len(captions)}), "
            f"got {len(owners)}"
        )
    texts: defaultdict[int, list[str]] = defaultdict(list)
    for caption, owner in zip(captions, owners.tolist(), strict=True):
        texts[owner].append(caption)
    images = sorted(texts)
    return [" ".join(texts[image]) for image in images], np.array(images, np.intp)


def stem_vectors(texts: Iterable[str], vectors: WordVectors) -> WordVectors:
    """Return, for each stem in the texts, the vector of its most frequent word.

    Stems are Porter stems of words that are no stop words. Stems of words without a vector
    are omitted. Ties are resolved in alphabetical order.
    """
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for text in texts:
        words = [word for word in bleu_tokens(text) if word not in STOP_WORDS]
        for stem, word in zip(rouge_tokens(text), words, strict=True):
            if word in vectors:
                counts[stem][word] += 1
    names = sorted(counts)
    chosen = [min(counts[stem], key=lambda w: (-counts[stem][w], w)) for stem in names]
    rows = [vectors[word] for word in chosen]
    return WordVectors(names, np.reshape(rows, (len(rows), vectors.n_dimensions)))
