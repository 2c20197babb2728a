"""Every Gram matrix of the study and its basis, computed once and kept on disk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from kernelcore._blas import one_blas_thread
from kernelcore._parallel import in_threads, resolve_n_threads
from kernelcore._progress import Progress, reporting
from kernelcore._validation import Array
from kernelcore.captions import EncodedCaptions
from kernelcore.experiments.hodosh2013.corpus import Texts
from kernelcore.experiments.hodosh2013.lexicon import Lexicon
from kernelcore.experiments.hodosh2013.photo_kernels import PhotoKernels
from kernelcore.experiments.hodosh2013.systems import Grid, System
from kernelcore.experiments.store import Store, key_of
from kernelcore.kcca import KernelBasis, kernel_basis
from kernelcore.kernels import (
    TagRank,
    bag_of_words,
    bag_of_words_f1,
    normalize,
    power,
    word_sequence,
)

_IDF_EXPONENTS = {"none": 0.0, "sqrt_idf": 0.5, "idf": 1.0}
_TAG_RANK_WIDTH = 0.5  # of the mean chi-square distance


class Grams:
    """Kernels of the photos and captions of each split with those of training.

    Rows of ``dev`` and ``test`` are photos, or the captions of the pool's number; rows of
    ``train`` are the columns.

    Parameters
    ----------
    texts : Texts
    photos : PhotoKernels
    lexicon : Lexicon
    store : Store
    grid : Grid
    pool : int
    n_threads : int or None
    progress : bool or callable
    """

    def __init__(
        self,
        texts: Texts,
        photos: PhotoKernels,
        lexicon: Lexicon,
        store: Store,
        grid: Grid,
        *,
        pool: int,
        n_threads: int | None,
        progress: Progress,
    ) -> None:
        self._texts, self._lexicon, self._store = texts, lexicon, store
        self._photos = photos
        self.grid, self._pool, self._pool_is_whole = grid, pool, False
        self.n_threads, self.progress = n_threads, progress
        self._run: dict[str, Any] = {"n_threads": n_threads, "progress": progress}
        self._word_keys: dict[tuple[str, ...], str] = {}

    def with_pool(self, pool: int) -> Grams:
        """Return the same for captions of another number in the pool."""
        other = copy(self)
        other._pool = pool
        return other

    def with_all_captions(self) -> Grams:
        """Return the same with every caption of an image in the pool, one a row."""
        other = copy(self)
        other._pool_is_whole = True
        return other

    def image_key(self, split: str, system: System) -> str:
        """Digest of what `image` depends on."""
        return self._photos.key(split, system)

    def image(self, split: str, system: System) -> Array:
        """Kernel of the split's photos with the training photos."""

        def compute() -> Mapping[str, Array]:
            return {"kernel": self._photos.kernel(split, system)}

        key = self.image_key(split, system)
        return self._store.arrays("gram-photos", key, compute)["kernel"]

    def text_key(self, split: str, system: System) -> str:
        """Digest of what `text` depends on."""
        rows, train = self._captions(split, system)
        parts = [array for captions in (rows, train) for array in _arrays(captions)]
        about = [system.text, system.weights, self._word_key(system), _TAG_RANK_WIDTH]
        return key_of("captions", about, self._texts.vocabulary.idf(), *parts)

    def text(self, split: str, system: System) -> Array:
        """Similarity of the split's captions with those of the training images."""

        def compute() -> Mapping[str, Array]:
            rows, train = self._captions(split, system)
            return {"kernel": self._compare(rows, None if rows is train else train, system)}

        key = self.text_key(split, system)
        return self._store.arrays("gram-captions", key, compute)["kernel"]

    def image_basis(self, exponent: float, system: System) -> KernelBasis:
        """Basis of a power of the training photos' kernel; all systems share it."""
        key = key_of(self.image_key("train", system), exponent, self.grid.max_rank)

        def compute() -> KernelBasis:
            return self._decompose(power(self.image("train", system), exponent))

        return self._store.value("basis", key, compute, KernelBasis.save, KernelBasis.load)

    def text_basis(self, system: System) -> KernelBasis:
        """Basis of the training captions' kernel."""
        key = key_of(self.text_key("train", system), self.grid.max_rank)

        def compute() -> KernelBasis:
            return self._decompose(self.text("train", system))

        return self._store.value("basis", key, compute, KernelBasis.save, KernelBasis.load)

    def prepare_bases(self, systems: Iterable[System]) -> None:
        """Decompose the kernels of several systems side by side, one on each thread.

        A decomposition hardly gains from a second thread, and on one its bits are the same
        everywhere.
        """
        kernels = {self.text_key("train", s): (None, s) for s in systems} | {
            f"{self.image_key('train', s)} {p}": (p, s)
            for s in systems
            for p in self.grid.powers
        }

        def decompose(kernel: tuple[float | None, System]) -> None:
            exponent, system = kernel
            if exponent is None:
                self.text_basis(system)
            else:
                self.image_basis(exponent, system)

        with one_blas_thread(), reporting(self.progress, "Decomposing kernels") as report:
            in_threads(
                decompose,
                kernels.values(),
                resolve_n_threads(self.n_threads),
                setting=one_blas_thread,
                report=report,
            )

    def key(self, system: System, *splits: str) -> str:
        """Digest of the system's kernels of these splits, and of the grid."""
        keys = [key(s, system) for key in (self.image_key, self.text_key) for s in splits]
        return key_of(system.ranker, keys, asdict(self.grid))

    def _captions(self, split: str, system: System) -> tuple[EncodedCaptions, EncodedCaptions]:
        """Captions of the rows and of the columns; the same object for the training split."""
        train = self._texts.of_split("train")
        if system.single:
            train = train.with_caption(self._pool)
        if split == "train":
            return train, train
        rows = self._texts.of_split(split)
        if self._pool_is_whole:
            return rows.caption_as_image(), train
        return rows.with_caption(self._pool), train

    def _compare(
        self, rows: EncodedCaptions, others: EncodedCaptions | None, system: System
    ) -> Array:
        if system.text == "tag_rank":
            return self._tag_rank(rows, others)
        exponent = _IDF_EXPONENTS[system.weights]
        weights = self._texts.vocabulary.idf() ** exponent
        unknown_weight = self._texts.vocabulary.unknown_idf**exponent
        if system.text == "word_sequence":
            similarity = self._lexicon.word_kernel(system.lexical)
            return word_sequence(
                rows,
                others,
                word_kernel=None if similarity is None else similarity.matrix,
                word_weights=weights,
                unknown_weight=unknown_weight,
                dtype=np.float32,
                **self._run,
            )
        compare = {"bag_of_words": bag_of_words, "bag_of_words_f1": bag_of_words_f1}
        return compare[system.text](
            rows, others, weights=weights, unknown_weight=unknown_weight, dtype=np.float32
        )

    def _tag_rank(self, rows: EncodedCaptions, others: EncodedCaptions | None) -> Array:
        """Tag-rank kernel, normalised over an image's captions as the paper does."""
        train = rows if others is None else others
        kernel = TagRank(width_factor=_TAG_RANK_WIDTH).fit(train)
        training = kernel.gram(train, dtype=np.float32, **self._run)
        if others is None:
            return normalize(training)
        # A single caption has similarity 1 with itself.
        single = np.ones(len(rows))
        return normalize(
            kernel.gram(rows, others, dtype=np.float32, **self._run),
            single,
            training.diagonal(),
        )

    def _word_key(self, system: System) -> str:
        if system.lexical not in self._word_keys:
            kernel = self._lexicon.word_kernel(system.lexical)
            parts: tuple[Array, ...] = ()
            if kernel is not None:
                matrix = kernel.to_sparse()
                parts = (matrix.data, matrix.indices, matrix.indptr)
            self._word_keys[system.lexical] = key_of(*parts)
        return self._word_keys[system.lexical]

    def _decompose(self, K: Array) -> KernelBasis:
        return published_basis(K, self.grid.max_rank)


def published_basis(K: Array, max_rank: int) -> KernelBasis:
    """Largest eigenvectors of a kernel, above n eps of the largest eigenvalue without a ridge.

    In float32 that is a thousand times what rounding is. The study's figures were computed
    before `kernel_basis` knew, and are kept as they are.
    """
    basis = kernel_basis(K, decomposition="eigen", max_rank=max_rank, n_threads=1)
    floor = len(K) * np.finfo(K.dtype).eps * basis.eigenvalues[0]
    return replace(basis, rounding=float(floor))


def _arrays(captions: EncodedCaptions) -> tuple[Array, ...]:
    return captions.word_ids, captions.caption_offsets, captions.image_offsets
