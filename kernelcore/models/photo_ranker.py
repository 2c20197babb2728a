"""The full pipeline, from raw photos and sentences to rankings, as one estimator."""

from __future__ import annotations

import numbers
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, check_choice, check_integer, check_real, check_rng
from kernelcore._estimator import Estimator, params_to_json
from kernelcore._store import Contents, check_tensor, reading
from kernelcore._threads import Progress, resolve_n_threads, working
from kernelcore.captions import CaptionNormalizer, EncodedCaptions
from kernelcore.errors import DatasetWarning
from kernelcore.evaluation.metrics import chance_recall_at_k
from kernelcore.images import VisualWords
from kernelcore.images._describe import OnError
from kernelcore.kcca import KCCAFactorization, KernelBasis, factorize
from kernelcore.kcca.kcca import Pair
from kernelcore.kernels import power
from kernelcore.models.base import as_strings, count, dev_parts, held_out, take_images
from kernelcore.models.calibration import Foreign
from kernelcore.models.kcca_ranker import JointSpace, KCCARanker, products, unit_rows
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
    Rows,
    Scaling,
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
    TrainingItems,
    blocks,
    by_photo,
)

_RANKER = "ranker.safetensors"
_FOREIGN = "foreign.safetensors"

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


class Choice(NamedTuple):
    """The chosen settings and their results on the development photos; see `PhotoRanker`."""

    image_power: float
    scaling: Scaling | None
    setting: KCCASetting
    hub_neighbors: int
    dev_recalls: npt.NDArray[np.float64]
    dev_chance: npt.NDArray[np.float64]
    n_dev: tuple[int, int]

    @classmethod
    def from_json(cls, values: Mapping[str, Any], scalings: Sequence[Scaling | None]) -> Choice:
        """Read and check the fields as JSON."""
        if values["scaling"] not in scalings:
            raise ValueError(
                f"scaling must be one of {scalings}, got {values['scaling']!r:.80}"
            )
        recalls, chance = (
            check_tensor(name, np.array(values[name], np.float64), (2, 3))
            for name in ("dev_recalls", "dev_chance")
        )
        n_photos, n_captions = (check_integer("n_dev", n, minimum=0) for n in values["n_dev"])
        return cls(
            check_real("image_power", values["image_power"], minimum=1.0, maximum=2.0),
            values["scaling"],
            KCCASetting.from_json(values["setting"]),
            check_integer("hub_neighbors", values["hub_neighbors"], minimum=0),
            recalls,
            chance,
            (n_photos, n_captions),
        )


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
    training_ : TrainingItems
        Training photos and captions, with the features, vocabulary and kernels learned.
    image_power_ : float
        The exponent of the photos' kernel that was chosen: 1, or 2 with visual words.
    scaling_ : {"square_roots", "length"} or None
        The chosen scaling of vectors; None where there are none.
    setting_ : KCCASetting
        The settings of kernel CCA that were chosen.
    hub_neighbors_ : int
        The correction for hubs that was chosen.
    dev_recalls_ : ndarray of float64, shape (2, 3)
        R@1, R@5 and R@10, as shares, of annotation (row 0) and search (row 1) that they
        reached on the development photos with all captions of these in the pool.
    dev_chance_ : ndarray of float64, shape (2, 3)
        Expected recalls of a random order.
    n_dev_ : (int, int)
        Number of development photos and captions.
    ranker_ : KCCARanker
        Ranks by the two kernels, without the correction for hubs.

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

    image_power_: float = field(init=False)
    scaling_: Scaling | None = field(init=False)
    setting_: KCCASetting = field(init=False)
    hub_neighbors_: int = field(init=False)
    dev_recalls_: npt.NDArray[np.float64] = field(init=False)
    dev_chance_: npt.NDArray[np.float64] = field(init=False)
    n_dev_: tuple[int, int] = field(init=False)

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
        training = TrainingItems(own, known)
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
        return self._keep(training, *self._learn(training, new, grid, **run))

    def _learn(
        self,
        training: TrainingItems,
        dev: tuple[Described, EncodedCaptions] | None,
        grid: _Grid,
        *,
        n_threads: int | None,
        progress: Progress,
    ) -> tuple[PhotoKernel, KCCARanker, Choice]:
        """Choose the settings on the development items and learn from the training items.

        Without development items some training photos are held out while the settings are
        chosen; the ranker that is returned learns from all.
        """
        run: dict[str, Any] = {"n_threads": n_threads, "progress": progress}
        settings, hubs = grid
        if dev is None:
            numbers = training.photos.numbers()
            kept, items = held_out(numbers, self.rng)
            _, first, owners = np.unique(numbers[items], return_index=True, return_inverse=True)
            dev_captions = training.captions.encoded.select(items)
        else:
            dev_captions = dev[1]
            kept, owners = np.arange(len(training)), np.arange(len(dev_captions))
        owners = np.repeat(owners, np.diff(dev_captions.image_offsets))
        captions, square = training.captions.gram(**run), np.ix_(kept, kept)
        dev_rows = training.captions.gram(dev_captions.caption_as_image(), **run)[:, kept]

        def factorized(photos: Array, known: Array | KernelBasis) -> KCCAFactorization:
            with working(progress, "Factorising kernels"):
                return factorize(
                    photos,
                    known,
                    decomposition="eigen",
                    max_rank=self.max_rank,
                    n_threads=n_threads,
                    names=("the kernel of images", "the kernel of captions"),
                )

        found = []
        basis: Array | KernelBasis = captions[square]  # decomposed once
        scalings = training.photos.scalings
        for scaling in scalings:
            kernel = PhotoKernel(training.photos.photos, scaling)
            photos = kernel.gram(**run)
            rows = photos[items[first]] if dev is None else kernel.gram(dev[0], **run)
            tried = []
            for exponent in _WORDS_POWERS if scaling is None else _VECTORS_POWERS:
                factorization = factorized(power(photos[square], exponent), basis)
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
            exponent, new, selection = max(tried, key=lambda one: one[2].best_recalls.sum())
            factorization, setting = selection.factorization, selection.best()
            ranker = KCCARanker.from_factorization(factorization, **setting._asdict())
            tasks = []
            for k in hubs:
                space = JointSpace(ranker, k)
                scores = products(space.images(new), space.captions(dev_rows))
                tasks.append(recalls_of(scores, owners, n_threads=n_threads))
            recalls = np.array(tasks)
            best = int(recalls.sum(axis=(1, 2)).argmax())
            choice = Choice(
                exponent,
                scaling,
                setting,
                hubs[best],
                recalls[best],
                _chance(len(new), owners),
                (len(new), len(dev_rows)),
            )
            found.append((choice, kernel, photos, ranker))
        choice, kernel, photos, ranker = max(found, key=lambda one: one[0].dev_recalls.sum())
        if dev is None:
            factorization = factorized(power(photos, choice.image_power), captions)
            n_components = min(choice.setting.n_components, factorization.rank)
            setting = choice.setting._replace(n_components=n_components)
            ranker = KCCARanker.from_factorization(factorization, **setting._asdict())
        return kernel, ranker, choice

    def _keep(
        self, training: TrainingItems, kernel: PhotoKernel, ranker: KCCARanker, choice: Choice
    ) -> PhotoRanker:
        self.training_, self.ranker_ = training, ranker
        self._kernel, self._space = kernel, JointSpace(ranker, choice.hub_neighbors)
        self._foreign: Foreign | None = None
        for name, value in choice._asdict().items():
            setattr(self, f"{name}_", value)
        return self

    @property
    def fingerprint(self) -> str:
        """Digest of the learned space; an index stores it to recognise its model."""
        self._check_fitted("_space")
        return self._space.fingerprint

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
        self._check_fitted("_space")
        check_choice("on_error", on_error, ("raise", "skip"))
        known = self.training_.photos
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
        self._check_fitted("_space")
        checked = check_photos(name, photos, self.training_.photos.feature)
        described, _ = self.training_.photos.describe(name, checked, n_threads=n_threads)
        return checked_names(checked, None), self._embed(described, n_threads=n_threads)

    def _embed(self, described: Described, **run: Any) -> npt.NDArray[np.float32]:
        rows = self._kernel_rows(described, **run)
        return np.concatenate([self._space.images(K) for K in rows])

    def _kernel_rows(self, described: Described, **run: Any) -> Iterator[Array]:
        """Yield the kernel of photos with the training photos, some rows at a time."""
        for part in blocks(count(described)):
            K = self._kernel.gram(take_images(described, part), **run)
            yield power(K, self.image_power_)

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
        self._check_fitted("_space")
        texts = as_strings("captions", captions)
        known = self.training_.captions
        rows = known.rows(known.encode([[one] for one in texts]), n_threads=n_threads)
        return np.concatenate([self._space.captions(K) for K in rows])

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
        self._check_fitted("_space")
        if self._foreign is None:
            self._foreign = Foreign.of(
                self.training_, self._space, self._kernel_rows, n_threads=n_threads
            )
        return self._foreign

    def directions(self, places: Array) -> npt.NDArray[Any]:
        """Return image embeddings without the hub-correction coordinates."""
        self._check_fitted("_space")
        return unit_rows(places[:, : self._space.n_directions])

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
        self._check_fitted("_space")
        params = self.get_params(deep=False)
        del params["features"], params["normalizer"]
        params["rng"] = int(self.rng) if isinstance(self.rng, numbers.Integral) else None
        choice = {name: getattr(self, f"{name}_") for name in Choice._fields}
        description = {
            "params": params_to_json(params),
            **params_to_json({**choice, "setting": self.setting_._asdict()}),
            "photos": self.training_.photos.about(),
            "caption_kernel": self.training_.captions.kernel,
        }

        def write_parts(parts: Path) -> None:
            self.ranker_.save(parts / _RANKER)
            self.training_.captions.save(parts)
            self.training_.photos.save(parts)
            self.foreign().save(parts / _FOREIGN, self.fingerprint)

        save_parts(folder, MODEL, description, write_parts, overwrite=overwrite)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> PhotoRanker:
        """Load a folder of `save`; errors name the missing or damaged file."""
        return load_parts(folder, MODEL, cls._of_parts)

    @classmethod
    def _of_parts(cls, description: Contents, parts: Path) -> PhotoRanker:
        training = TrainingItems.load(parts, description)
        kcca_ranker = KCCARanker.load(parts / _RANKER)
        n_training = len(kcca_ranker.kcca_.x_scores_)
        if n_training != len(training):
            raise ValueError(
                f"{parts} must hold the files of one model, got {len(training)} training "
                f"photos and a ranker of {n_training}"
            )
        with reading(parts.parent / MODEL):
            choice = Choice.from_json(description, training.photos.scalings)
            ranker = cls.from_json(description["params"]).set_params(
                features=training.photos.feature, normalizer=training.captions.normalizer
            )
        kernel = PhotoKernel(training.photos.photos, choice.scaling)
        ranker._keep(training, kernel, kcca_ranker, choice)
        ranker._foreign = Foreign.load(parts / _FOREIGN, training, ranker._space)
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
        check_rng("rng", self.rng)
        check_integer("max_rank", self.max_rank, minimum=1)
        default = _WORDS_GRID if isinstance(feature, VisualWords) else _VECTORS_GRID
        given = {name: getattr(self, name) for name in default}
        settings = default | {name: own for name, own in given.items() if own is not None}
        for name, values in settings.items():
            settings[name] = checked_grid(name, values, GRID_CHECKS[name])
        natural = partial(check_integer, minimum=0)
        return settings, checked_grid("hub_neighbors_grid", self.hub_neighbors_grid, natural)


def _chance(n_photos: int, caption_image: Rows) -> npt.NDArray[np.float64]:
    """Return the expected recalls of annotation and search in random orders."""
    own = np.bincount(caption_image, minlength=n_photos)[:, np.newaxis]
    annotation = chance_recall_at_k(len(caption_image), CUTOFFS, n_relevant=own)
    search = chance_recall_at_k(n_photos, CUTOFFS)
    return np.stack([annotation.mean(axis=0), search])
