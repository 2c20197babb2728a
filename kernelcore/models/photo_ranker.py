"""The full pipeline, from raw photos and sentences to rankings, as one estimator."""

from __future__ import annotations

import numbers
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from kernelcore._check import (
    Array,
    as_strings,
    check_choice,
    check_integer,
    check_non_negative,
    check_real,
    check_rng,
)
from kernelcore._estimator import Estimator, params_to_json
from kernelcore._store import Contents, check_tensor, reading
from kernelcore._threads import Progress, resolve_n_threads, working
from kernelcore.captions import CaptionNormalizer, EncodedCaptions
from kernelcore.errors import DatasetWarning
from kernelcore.images import VisualWords
from kernelcore.images._describe import OnError
from kernelcore.images._extractor import of_length_one
from kernelcore.kcca import KCCAFactorization, KernelBasis, factorize
from kernelcore.kcca.kcca import Pair
from kernelcore.kernels import power
from kernelcore.models.base import dev_parts, held_out
from kernelcore.models.calibration import Foreign
from kernelcore.models.kcca_ranker import KCCARanker
from kernelcore.models.kcca_settings import (
    CUTOFFS,
    GRID_CHECKS,
    KCCASetting,
    checked_grid,
    recalls_of,
    select_kcca,
)
from kernelcore.models.photo_features import (
    Described,
    Feature,
    PhotoFeature,
    PhotoKernel,
    Photos,
    check_feature,
    check_photos,
    checked_names,
)
from kernelcore.models.photo_index import PhotoIndex
from kernelcore.models.photo_search import PhotoSearch
from kernelcore.models.saving import MODEL, load_parts, save_parts
from kernelcore.models.training_items import (
    CaptionKernel,
    Captions,
    TrainingCaptions,
    by_photo,
    in_blocks,
)

_RANKER = "ranker.safetensors"
_FOREIGN = "foreign.safetensors"
_SAVED = ("image_power", "scaling", "dev_recalls", "dev_captions")

_WORDS_GRID: dict[str, Sequence[Any]] = {
    "n_components_grid": (16, 32, 64, 128, 256),
    "regularization_grid": tuple(product((0.03, 0.1, 0.3, 1.0), (0.3, 1.0, 3.0, 10.0))),
    "correlation_power_grid": (0.0, 2.0, 4.0),
}
# On samples of 100 to 800 photos of Flickr8k a grid of 700 values chose no better.
_VECTORS_GRID: dict[str, Sequence[Any]] = {
    "n_components_grid": (32, 64, 128, 200, 300, 400),
    "regularization_grid": ((0.3, 0.3), (1.0, 0.3), (1.0, 1.0), (3.0, 1.0)),
    "correlation_power_grid": (1.0, 2.0, 3.0, 4.0),
}
_WORDS_POWERS, _VECTORS_POWERS = (1.0, 2.0), (1.0,)  # of the kernel of photos


_Grid: TypeAlias = tuple[dict[str, Any], list[int]]
"""Values to try of the settings of kernel CCA by name, and of the correction for hubs."""


@dataclass(repr=False, eq=False)
class PhotoRanker(Estimator, PhotoSearch):
    r"""Search photos by sentences and annotate photos with sentences.

    Photos are described by visual words, by vectors of a network or by other features.
    Captions are normalised to words, which are weighted by the square root of the inverse
    document frequency. One kernel compares photos with the training photos, another compares
    captions with the training captions. Kernel CCA learns a common space from both kernels;
    scalar products in this space rank photos and captions [1]_.

    Several values of each setting are tried on held-out photos. The settings with the largest
    sum of recalls of both tasks are kept.

    Parameters
    ----------
    features : VisualWords, CNN or "precomputed", optional
        The features that describe photos.

        - ``VisualWords()``, the default, needs no trained network. Codebooks that were fitted
          before are used as they are. The kernel is the mean over the features of the spatial
          pyramid kernel, or its square.
        - ``CNN()`` is far better where its packages are installed.
        - "precomputed": photos are given as vectors, as a matrix, a memory map, the path of a
          ``.npy`` file, a list of paths (shards) or `kernelcore.images.CNNFeatures`.

        Vectors are scaled by `kernelcore.images.square_roots`, or those that are given also to
        length 1 alone, and compared by :math:`\exp(-\lVert x - y \rVert^2 / s)` with s the
        mean squared distance of the training photos.
    normalizer : CaptionNormalizer, optional
        Turns captions into words; the default is ``CaptionNormalizer()``.
    caption_kernel : {"bag_of_words", "word_sequence", "similar_words"}, optional
        Kernel of captions. `kernelcore.kernels.bag_of_words` ignores the order of words;
        `kernelcore.kernels.word_sequence` does not. "similar_words" is the word-sequence
        kernel with soft matches: two words match if captions of the same training photo use
        them interchangeably; see `kernelcore.lexical.Alignment`. The default is
        "similar_words" for 2,000 training captions or more, if there are at least two per
        photo on average, and "bag_of_words" otherwise.
    n_components_grid : sequence of int, optional
        Numbers of canonical components to try. Numbers beyond the rank of a kernel are left
        out; if none remains, all available components are used. The default depends on the
        features.
    regularization_grid : sequence of float or (float, float), optional
        Values to try for both kernels, or pairs for (photos, captions); see
        `kernelcore.kcca.KCCA`. The default depends on the features.
    correlation_power_grid : sequence of float, optional
        Weights of the components to try; see `KCCARanker`. The default depends on the
        features.
    hub_neighbors_grid : sequence of int, default (30, 0)
        Corrections for hubs to try on the best of the other settings: number of nearest
        training items from which an item's hubness is estimated. 0 is no correction; see
        `hub_corrected`.
    max_rank : int, default 1000
        Most eigenvectors that are kept of each kernel.
    rng : Generator or int, optional, default 0
        Chooses the fifth of the training photos that is held out to choose the settings by
        where `fit` is given no development photos. Codebooks, word weights, word similarities
        and the mean and width of the vector kernel are still learned from them, and the final
        model learns from them too.

    Attributes
    ----------
    photos_ : PhotoFeature
        Training photos, with the feature that describes them.
    captions_ : TrainingCaptions
        Their captions, with the vocabulary and the kernel; photo i has captions i.
    image_power_ : float
        The exponent of the photos' kernel that was chosen: 1, or 2 with visual words.
    scaling_ : {"square_roots", "length"} or None
        The chosen scaling of vectors; None where there are none.
    setting_ : KCCASetting
        The settings of kernel CCA that were chosen.
    dev_recalls_ : ndarray of float64, shape (2, 3)
        R@1, R@5 and R@10, as shares, of annotation (row 0) and search (row 1) that they
        reached on the development photos with all captions of these in the pool.
    dev_captions_ : ndarray of int64, shape (n_photos,)
        Number of captions of each development photo.
    ranker_ : KCCARanker
        Ranks by the two kernels, with the settings and the correction for hubs that were
        chosen.

    Notes
    -----
    The result is the same, bit for bit, for every number of threads. New photos and sentences
    are compared with the training items 2,048 at a time.

    References
    ----------
    .. [1] M. Hodosh, P. Young and J. Hockenmaier, "Framing image description as a ranking
       task", Journal of Artificial Intelligence Research 47, 2013.

    Examples
    --------
    >>> from kernelcore.datasets import make_scenes
    >>> from kernelcore.images import VisualWords
    >>> from kernelcore.models import PhotoRanker
    >>> scenes = make_scenes(60)
    >>> words = VisualWords(n_words={"colour": 16, "sift": 16}, n_sample_images=10)
    >>> ranker = PhotoRanker(features=words)
    >>> _ = ranker.fit(scenes.images[:50], scenes.dataset.captions[:50])
    >>> [found] = ranker.search(["A dog chases a cat."], scenes.images[50:], k=3)
    >>> len(found)
    3
    """

    features: Feature | None = None
    _: KW_ONLY
    normalizer: CaptionNormalizer | None = None
    caption_kernel: CaptionKernel | None = None
    n_components_grid: Sequence[int] | None = None
    regularization_grid: Sequence[Pair] | None = None
    correlation_power_grid: Sequence[float] | None = None
    hub_neighbors_grid: Sequence[int] = (30, 0)
    max_rank: int = 1000
    rng: np.random.Generator | int | None = 0

    def fit(
        self,
        images: Photos,
        captions: Captions,
        *,
        caption_image: npt.ArrayLike | None = None,
        dev: tuple[Any, ...] | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        on_error: OnError = "raise",
        n_threads: int | None = None,
        progress: Progress = False,
    ) -> PhotoRanker:
        """Learn from photos and their captions.

        Parameters
        ----------
        images : sequence of paths or of uint8 arrays, or array_like
            Training photos; their vectors, one row per photo, where these are precomputed.
        captions : sequence of sequence of str, or sequence of str
            Raw captions of each photo, at least one; or one after another.
        caption_image : array_like of int, shape (n_captions,), optional
            Position in `images` of the photo of each caption, where these stand one after
            another and are not one per photo. Photos without captions are not used.
        dev : (images, captions) or (images, captions, caption_image), optional
            Photos and captions to choose the settings by, in the same forms; a
            `kernelcore.errors.DatasetWarning` says if training photos are among them. Without
            them a fifth of the training photos serves. Photos of one path, or that are
            described by the same bits, are held out together.
        cache_dir : path, optional
            Folder that keeps each photo's features as soon as they are computed, so that a
            call that was stopped can resume; see `VisualWords.transform` and `CNN.transform`.
        on_error : {"raise", "skip"}, default "raise"
            "skip" leaves out photos that cannot be read, with a warning that lists them.
        n_threads : int, optional
            Threads to use; the default is every core this process may run on.
        progress : bool or callable, default False
            True shows bars; a callable is called with the steps done and in all.

        Returns
        -------
        PhotoRanker

        Raises
        ------
        TypeError, ValueError
            If photos, captions or a parameter are not of their kind or out of range, a photo
            has no caption, or there are too few photos.
        UnreadableImagesError
            If photos cannot be read and `on_error` is "raise", or if none can.
        """
        grid, feature = self._check_params(), check_feature(self.features)
        check_choice("on_error", on_error, ("raise", "skip"))
        resolve_n_threads(n_threads)
        run: dict[str, Any] = {"n_threads": n_threads, "progress": progress}
        describing = {"cache_dir": cache_dir, "on_error": on_error, **run}
        photos = check_photos("images", images, feature)
        photos, texts = by_photo(photos, captions, caption_image)
        if dev is not None:
            dev_images, *of_dev = dev_parts(dev)
            dev_photos = check_photos("dev images", dev_images, feature)
            dev_photos, dev_texts = by_photo(dev_photos, *of_dev, prefix="dev ")
        own, rows = PhotoFeature.fit(feature, photos, **describing)
        known = TrainingCaptions.learn(
            [texts[i] for i in rows],
            self.normalizer or CaptionNormalizer(),
            self.caption_kernel,
            progress=progress,
        )
        new: tuple[Described, EncodedCaptions] | None = None
        if dev is not None:
            described, rows = own.describe("dev images", dev_photos, **describing)
            n_known = int(own.contains(described).sum())
            if n_known:
                warnings.warn(
                    f"dev holds {n_known} photos that are in images too: settings that are "
                    "chosen by them fit these photos, and dev_recalls_ are too high",
                    DatasetWarning,
                    stacklevel=2,
                )
            new = described, known.encode([dev_texts[i] for i in rows])
        learned = self._learn(own, known, new, grid, **run)
        self.photos_, self.captions_ = own, known
        return self._keep(*learned)

    def _learn(
        self,
        photos: PhotoFeature,
        captions: TrainingCaptions,
        dev: tuple[Described, EncodedCaptions] | None,
        grid: _Grid,
        *,
        n_threads: int | None,
        progress: Progress,
    ) -> tuple[PhotoKernel, KCCARanker, Array, Array]:
        """Choose the settings on the development items and learn from the training items.

        Without development items some training photos are held out while the settings are
        chosen; the ranker that is returned learns from all.
        """
        run: dict[str, Any] = {"n_threads": n_threads, "progress": progress}
        settings, hubs = grid
        if dev is None:
            numbers = photos.numbers()
            kept, items = held_out(numbers, self.rng)
            _, first, owners = np.unique(numbers[items], return_index=True, return_inverse=True)
            dev_captions = captions.encoded.select(items)
        else:
            dev_captions = dev[1]
            kept, owners = np.arange(len(captions)), np.arange(len(dev_captions))
        owners = np.repeat(owners, np.diff(dev_captions.image_offsets))
        text_gram, square = captions.gram(**run), np.ix_(kept, kept)
        dev_rows = captions.gram(dev_captions.caption_as_image(), **run)[:, kept]

        def factorized(images: Array, texts: Array | KernelBasis) -> KCCAFactorization:
            with working(progress, "Factorising kernels"):
                return factorize(
                    images,
                    texts,
                    decomposition="eigen",
                    max_rank=self.max_rank,
                    n_threads=n_threads,
                    names=("the kernel of images", "the kernel of captions"),
                )

        found = []
        basis: Array | KernelBasis = text_gram[square]  # decomposed once
        for scaling in photos.scalings:
            kernel = PhotoKernel(photos.photos, scaling)
            gram = kernel.gram(**run)
            rows = gram[items[first]] if dev is None else kernel.gram(dev[0], **run)
            tried = []
            for exponent in _WORDS_POWERS if scaling is None else _VECTORS_POWERS:
                factorization = factorized(power(gram[square], exponent), basis)
                basis, rank = factorization.y, factorization.rank
                within = [n for n in settings["n_components_grid"] if n <= rank] or [rank]
                new = power(rows[:, kept], exponent)
                selection = select_kcca(
                    factorization,
                    new,
                    dev_rows,
                    **(settings | {"n_components_grid": within}),
                    caption_image=owners,
                    **run,
                )
                tried.append((exponent, new, selection))
            exponent, new, selection = max(
                tried, key=lambda one: one[2].recalls.sum(axis=(1, 2)).max()
            )
            ranker = KCCARanker.from_factorization(
                selection.factorization, **selection.best()._asdict()
            )
            tasks = []
            for k in hubs:
                scores = ranker.set_params(hub_neighbors=k).scores(new, dev_rows)
                tasks.append(recalls_of(scores, owners, n_threads=n_threads))
            recalls = np.array(tasks)
            best = int(recalls.sum(axis=(1, 2)).argmax())
            ranker.set_params(hub_neighbors=hubs[best])
            kernel.exponent = exponent
            found.append((recalls[best], kernel, gram, ranker))
        best_recalls, kernel, gram, ranker = max(found, key=lambda one: one[0].sum())
        if dev is None:
            factorization = factorized(power(gram, kernel.exponent), text_gram)
            n_components = min(len(ranker.kcca_.correlations_), factorization.rank)
            ranker.set_params(n_components=n_components).solve(factorization)
        return kernel, ranker, best_recalls, np.bincount(owners, minlength=len(new))

    def _keep(
        self, kernel: PhotoKernel, ranker: KCCARanker, dev_recalls: Array, dev_captions: Array
    ) -> PhotoRanker:
        self.ranker_, self._kernel, self._fingerprint = ranker, kernel, ranker.fingerprint()
        self._foreign: Foreign | None = None
        self.image_power_, self.scaling_ = kernel.exponent, kernel.scaling
        self.dev_recalls_, self.dev_captions_ = dev_recalls, dev_captions
        self.setting_ = KCCASetting(*(getattr(ranker, name) for name in KCCASetting._fields))
        return self

    @property
    def n_dev_(self) -> tuple[int, int]:
        """Number of development photos and captions."""
        return len(self.dev_captions_), int(self.dev_captions_.sum())

    @property
    def dev_chance_(self) -> npt.NDArray[np.float64]:
        """Expected recalls of a random order of the development items."""
        from kernelcore.evaluation.metrics import chance_recall_at_k

        n_photos, n_captions = self.n_dev_
        own = self.dev_captions_[:, np.newaxis]
        annotation = chance_recall_at_k(n_captions, CUTOFFS, n_relevant=own)
        return np.stack([annotation.mean(axis=0), chance_recall_at_k(n_photos, CUTOFFS)])

    @property
    def fingerprint(self) -> str:
        """Digest of the learned space; an index stores it to recognise its model."""
        self._check_fitted("ranker_")
        return self._fingerprint

    def index(
        self,
        photos: Photos,
        *,
        names: Sequence[str] | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        on_error: OnError = "raise",
        n_threads: int | None = None,
        progress: Progress = False,
    ) -> PhotoIndex:
        """Project photos into the learned space, to be searched or annotated many times.

        Parameters
        ----------
        photos : sequence of paths or of uint8 arrays, or array_like
            Photos as `fit` takes them.
        names : sequence of str, optional
            Name of each photo; the default is its path, or its number where it has none.
        cache_dir, on_error, n_threads, progress
            See `fit`. Photos that were skipped are not in the index.

        Returns
        -------
        PhotoIndex

        Raises
        ------
        TypeError, ValueError
            If photos are not of their kind or `names` does not fit them.
        UnreadableImagesError
            If photos cannot be read and `on_error` is "raise", or if none can.
        """
        self._check_fitted("ranker_")
        check_choice("on_error", on_error, ("raise", "skip"))
        known = self.photos_
        checked = check_photos("photos", photos, known.feature)
        own = checked_names(checked, names)
        run: dict[str, Any] = {"n_threads": n_threads, "progress": progress}
        described, rows = known.describe(
            "photos", checked, cache_dir=cache_dir, on_error=on_error, **run
        )
        return PhotoIndex(
            [own[i] for i in rows],
            self._embed(described, **run),
            self.fingerprint,
            is_known=known.contains(described),
        )

    def _embed_photos(
        self, photos: Any, n_threads: int | None, name: str
    ) -> tuple[list[str], Array]:
        self._check_fitted("ranker_")
        checked = check_photos(name, photos, self.photos_.feature)
        described, _ = self.photos_.describe(name, checked, n_threads=n_threads)
        return checked_names(checked, None), self._embed(described, n_threads=n_threads)

    def _embed(self, described: Described, **run: Any) -> Array:
        return in_blocks(
            lambda part: self.ranker_.embed_images(self._kernel.gram(part, **run)), described
        )

    def embed_captions(
        self, captions: Sequence[str], *, n_threads: int | None = None
    ) -> npt.NDArray[Any]:
        """Project sentences into the learned space; see `embed_images`.

        Parameters
        ----------
        captions : sequence of str
            Raw sentences.
        n_threads : int, optional
            Threads to use; the default is every core this process may run on.

        Returns
        -------
        ndarray of float32, of as many columns as `embed_images` has
        """
        self._check_fitted("ranker_")
        texts = as_strings("captions", captions)
        known = self.captions_
        return in_blocks(
            lambda part: self.ranker_.embed_captions(known.gram(part, n_threads=n_threads)),
            known.encode([[one] for one in texts]),
        )

    def knows(self, sentence: str) -> bool:
        """Whether a training caption has a word of a sentence."""
        self._check_fitted("ranker_")
        [words] = self.captions_.normalizer([sentence])
        return any(word in self.captions_.vocabulary for word in words)

    def foreign(self, *, n_threads: int | None = None) -> Foreign:
        """Return leave-one-out embeddings of training items, see `chance_lines`.

        Parameters
        ----------
        n_threads : int, optional
            Threads to use; the default is every core this process may run on.

        Returns
        -------
        Foreign
        """
        self._check_fitted("ranker_")
        if self._foreign is None:
            self._foreign = Foreign.of(
                self.photos_,
                self.captions_,
                self.ranker_,
                self._kernel.gram,
                n_threads=n_threads,
            )
        return self._foreign

    def directions(self, places: Array) -> npt.NDArray[Any]:
        """Return image embeddings without the hub-correction coordinates."""
        self._check_fitted("ranker_")
        return of_length_one(places[:, : self.ranker_.kcca_.x_scores_.shape[1]])

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the fitted ranker as a folder of safetensors and JSON files, all or nothing.

        Raises
        ------
        FileExistsError
            If something is in the folder, unless it is a model and `overwrite` is True.
        ValueError
            If the normaliser's lemmatiser is a function, which cannot be saved.

        Notes
        -----
        An ONNX file that describes photos is copied into the folder. A torch module cannot be
        saved: give its vectors with ``features="precomputed"``.
        """
        self._check_fitted("ranker_")
        params = self.get_params(deep=False)
        del params["features"], params["normalizer"]
        params["rng"] = int(self.rng) if isinstance(self.rng, numbers.Integral) else None
        description = {
            "params": params_to_json(params),
            **params_to_json({name: getattr(self, f"{name}_") for name in _SAVED}),
            "photos": self.photos_.about(),
            "caption_kernel": self.captions_.kernel,
        }

        def write_parts(parts: Path) -> None:
            self.ranker_.save(parts / _RANKER)
            self.captions_.save(parts)
            self.photos_.save(parts)
            self.foreign().save(parts / _FOREIGN, self.fingerprint)

        save_parts(folder, MODEL, description, write_parts, overwrite=overwrite)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> PhotoRanker:
        """Load a folder of `save`; errors name the missing or damaged file."""
        return load_parts(folder, MODEL, cls._of_parts)

    @classmethod
    def _of_parts(cls, description: Contents, parts: Path) -> PhotoRanker:
        with reading(parts.parent / MODEL):
            captions_by, about = description["caption_kernel"], description["photos"]
            check_choice("caption_kernel", captions_by, get_args(CaptionKernel))
        photos = PhotoFeature.load(parts, about)
        captions = TrainingCaptions.load(parts, captions_by)
        kcca_ranker = KCCARanker.load(parts / _RANKER)
        own = photos.photos
        described = own.values() if isinstance(own, Mapping) else [own]
        lengths = {len(captions), len(kcca_ranker.kcca_.x_scores_), *map(len, described)}
        if len(lengths) != 1:
            raise ValueError(
                f"{parts} must hold the files of one model, got {sorted(lengths)} items"
            )
        with reading(parts.parent / MODEL):
            scaling = description["scaling"]
            if scaling not in photos.scalings:
                raise ValueError(
                    f"scaling must be one of {photos.scalings}, got {scaling!r:.80}"
                )
            exponent = check_real(
                "image_power", description["image_power"], minimum=1.0, maximum=2.0
            )
            recalls = np.array(description["dev_recalls"], np.float64)
            counts = np.array(description["dev_captions"])
            check_tensor("dev_recalls", recalls, (2, 3))
            check_tensor("dev_captions", counts, (None,), np.int64)
            check_non_negative("dev_captions", counts)
            ranker = cls.from_json(description["params"]).set_params(
                features=photos.feature, normalizer=captions.normalizer
            )
        kernel = PhotoKernel(own, scaling, exponent)
        ranker.photos_, ranker.captions_ = photos, captions
        ranker._keep(kernel, kcca_ranker, recalls, counts)
        ranker._foreign = Foreign.load(parts / _FOREIGN, ranker.fingerprint, kcca_ranker)
        return ranker

    def _check_params(self) -> _Grid:
        """Check the parameters, and return the values to try."""
        feature = check_feature(self.features)
        if not isinstance(self.normalizer, (CaptionNormalizer, type(None))):
            raise TypeError(
                f"normalizer must be a CaptionNormalizer, got {self.normalizer!r:.80}"
            )
        if self.caption_kernel is not None:
            check_choice("caption_kernel", self.caption_kernel, get_args(CaptionKernel))
        if type(self.rng) is not int or self.rng < 0:  # generators take long to import
            check_rng("rng", self.rng)
        check_integer("max_rank", self.max_rank, minimum=1)
        default = _WORDS_GRID if isinstance(feature, VisualWords) else _VECTORS_GRID
        given = {name: getattr(self, name) for name in default}
        settings = default | {name: own for name, own in given.items() if own is not None}
        for name, values in settings.items():
            settings[name] = checked_grid(name, values, GRID_CHECKS[name])
        natural = partial(check_integer, minimum=0)
        return settings, checked_grid("hub_neighbors_grid", self.hub_neighbors_grid, natural)
