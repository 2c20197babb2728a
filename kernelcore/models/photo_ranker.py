"""From photos and sentences as they come to rankings: the whole line as one estimator."""

from __future__ import annotations

import hashlib
import numbers
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from kernelcore._estimator import Estimator, params_to_json
from kernelcore._progress import Progress
from kernelcore._reading import check_tensor, reading
from kernelcore._validation import check_choice
from kernelcore.captions import CaptionNormalizer
from kernelcore.images import VisualWords
from kernelcore.images._each import OnError
from kernelcore.kcca.factorization import Pair
from kernelcore.kernels import power
from kernelcore.models.base import Task, check_task
from kernelcore.models.kcca_grid import KCCASetting
from kernelcore.models.kcca_ranker import KCCARanker, products, unit_rows
from kernelcore.models.model_folder import DESCRIPTION
from kernelcore.models.pairs import count, dev_parts
from kernelcore.models.photo_files import PhotoModel, read_model, write_model
from kernelcore.models.photo_index import Match, PhotoIndex, best_matches
from kernelcore.models.photo_settings import SettingsSearch
from kernelcore.models.training_items import (
    CaptionKernel,
    Captions,
    Photos,
    TrainingItems,
    by_photo,
    describe,
    names_of,
)

_REGULARIZATION = tuple(
    (photos, captions) for photos in (0.03, 0.1, 0.3, 1.0) for captions in (0.3, 1.0, 3.0, 10.0)
)


class PhotoRanker(Estimator):
    r"""Search photos by sentences and annotate photos with sentences.

    Photos become spatial histograms of visual words, compared by the mean over the features
    of the spatial pyramid kernel, raised to a power p. Captions become normalised words,
    weighted by the square root of the inverse document frequency, and are compared as bags or
    as sequences. Kernel CCA learns from both a space in which angles compare them [1]_:

    .. math::

        K_I = \Bigl( \tfrac13 \sum_{f=1}^3 K_{\mathrm{pyramid}}^{(f)} \Bigr)^{p}

    Several values of a setting are tried on photos that were not trained on; those with the
    largest sum of recalls of both tasks are kept.

    Parameters
    ----------
    visual_words : VisualWords, optional
        How photos are described; the default is ``VisualWords()``. The codebooks of one that
        was fitted before are used as they are.
    normalizer : CaptionNormalizer, optional
        How captions become words; the default is ``CaptionNormalizer()``.
    caption_kernel : {"bag_of_words", "word_sequence"}, default "bag_of_words"
        How captions are compared: `kernelcore.kernels.bag_of_words`, to which a dog that
        chases a cat is a cat that chases a dog, or `kernelcore.kernels.word_sequence`.
    image_power : sequence of float, default (1, 2)
        Values of p to try.
    n_components : sequence of int, default (16, 32, 64, 128, 256)
        Numbers of canonical components to try. Numbers beyond the rank of a kernel are left
        out; where none remains, all components there are count.
    regularization : sequence of float or (float, float)
        Values to try for both kernels, or pairs for (photos, captions); see
        `kernelcore.kcca.KCCA`.
    correlation_power : sequence of float, default (0, 2, 4)
        Weights of the components to try; see `KCCARanker`.
    max_rank : int, default 1000
        Most eigenvectors that are kept of each kernel.
    dev_share : float, default 0.2
        Share of the training photos that is held out to choose the settings where `fit` is
        given no development photos. Codebooks and weights of words know them nevertheless,
        and the final model learns from them too.
    rng : Generator or int, optional, default 0
        Source of the held-out share.

    Attributes
    ----------
    training_ : TrainingItems
        Training photos and captions with the codebooks, the normaliser and the vocabulary.
    image_power_ : float
        The p that was chosen.
    setting_ : KCCASetting
        The other settings that were chosen.
    dev_recalls_ : ndarray of float64, shape (2, 3)
        R@1, R@5 and R@10, as shares, of annotation (row 0) and search (row 1) that they
        reached on the development photos with all captions of these in the pool.
    ranker_ : KCCARanker
        Ranks by the two kernels.

    Notes
    -----
    The result is the same, bit for bit, for every number of threads.

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
    >>> ranker = PhotoRanker(visual_words=words)
    >>> _ = ranker.fit(scenes.images[:50], scenes.dataset.captions[:50])
    >>> [found] = ranker.search(["A dog chases a cat."], scenes.images[50:], k=3)
    >>> len(found)
    3
    """

    training_: TrainingItems
    image_power_: float
    setting_: KCCASetting
    dev_recalls_: npt.NDArray[np.float64]
    ranker_: KCCARanker

    def __init__(
        self,
        *,
        visual_words: VisualWords | None = None,
        normalizer: CaptionNormalizer | None = None,
        caption_kernel: CaptionKernel = "bag_of_words",
        image_power: Sequence[float] = (1.0, 2.0),
        n_components: Sequence[int] = (16, 32, 64, 128, 256),
        regularization: Sequence[Pair] = _REGULARIZATION,
        correlation_power: Sequence[float] = (0.0, 2.0, 4.0),
        max_rank: int = 1000,
        dev_share: float = 0.2,
        rng: np.random.Generator | int | None = 0,
    ) -> None:
        self.visual_words = visual_words
        self.normalizer = normalizer
        self.caption_kernel = caption_kernel
        self.image_power = image_power
        self.n_components = n_components
        self.regularization = regularization
        self.correlation_power = correlation_power
        self.max_rank = max_rank
        self.dev_share = dev_share
        self.rng = rng

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
        images : sequence of paths or of uint8 arrays, or mapping of str to SpatialHistograms
            Training photos, or what a fitted `visual_words` made of them.
        captions : sequence of sequence of str, or sequence of str
            Raw captions of each photo, at least one; or one after another.
        caption_image : array_like of int, shape (n_captions,), optional
            Position in `images` of the photo of each caption, where these stand one after
            another and are not one per photo. Photos without captions are not used.
        dev : (images, captions) or (images, captions, caption_image), optional
            Photos and captions to choose the settings by, in the same forms. Without them a
            share of the training photos serves.
        cache_dir : path, optional
            Keeps the histograms of every photo as soon as they are known, so that a call
            that was stopped goes on where it was; see `VisualWords.transform`.
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
        search = self._check_params()
        photos, texts = by_photo("captions", images, captions, caption_image)
        if dev is not None:
            dev_photos, dev_texts = by_photo("the captions of dev", *dev_parts(dev))
        run: dict[str, Any] = {"n_threads": n_threads, "progress": progress}
        describing = {"cache_dir": cache_dir, "on_error": on_error, **run}
        training = TrainingItems.collect(
            photos,
            texts,
            self.visual_words or VisualWords(),
            self.normalizer or CaptionNormalizer(),
            self.caption_kernel,
            **describing,
        )
        dev_items = None
        if dev is not None:
            histograms, rows = describe(training.visual_words, dev_photos, **describing)
            dev_items = histograms, training.encode([dev_texts[i] for i in rows])
        self.ranker_, choice = search.learn(training, dev_items, **run)
        self.training_ = training
        self.image_power_ = choice.image_power
        self.setting_ = choice.setting
        self.dev_recalls_ = choice.recalls
        return self

    @property
    def fingerprint(self) -> str:
        """Digest of the learned space, by which an index knows the model it belongs to."""
        self._check_fitted("ranker_")
        space = self.ranker_.kcca_.x_scores_ * self.ranker_.weights
        return hashlib.blake2b(space.tobytes(), digest_size=16).hexdigest()

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
        """Place photos in the learned space, to be searched or annotated many times.

        Parameters
        ----------
        photos : sequence of paths or of uint8 arrays, or mapping of str to SpatialHistograms
            Photos, or what ``training_.visual_words`` made of them.
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
        names = names_of(photos) if names is None else names
        if len(names) != count(photos):
            raise ValueError(
                f"names must have one entry per photo ({count(photos)}), got {len(names)}"
            )
        run: dict[str, Any] = {"n_threads": n_threads, "progress": progress}
        histograms, rows = describe(
            self.training_.visual_words, photos, cache_dir=cache_dir, on_error=on_error, **run
        )
        K = power(self.training_.photo_kernel(histograms, **run), self.image_power_)
        projections = self.ranker_.kcca_.transform_x(K) * self.ranker_.weights
        return PhotoIndex([names[i] for i in rows], projections, self.fingerprint)

    def scores(
        self,
        images: Photos | PhotoIndex,
        captions: Sequence[str],
        *,
        task: Task = "annotation",
    ) -> npt.NDArray[Any]:
        """Score every photo against every sentence; see `Ranker.scores`.

        Parameters
        ----------
        images : sequence of paths or of uint8 arrays, mapping, or PhotoIndex
            Photos as `index` takes them, or what it returned.
        captions : sequence of str
            Sentences as they are typed.
        task : {"annotation", "search"}, default "annotation"
            Makes no difference.

        Returns
        -------
        ndarray of float32, shape (n_photos, n_sentences)
            Cosines, in [-1, 1].

        Raises
        ------
        TypeError, ValueError
            If photos or sentences are not of their kind, or the index is another model's.
        UnreadableImagesError
            If photos cannot be read.
        """
        self._check_fitted("ranker_")
        check_task(task)
        sentences = self.embed_captions(captions)
        return products(self.embed_images(images), sentences)

    def embed_images(self, images: Photos | PhotoIndex) -> npt.NDArray[Any]:
        """Place photos in the learned space as vectors of length 1, for an index say.

        Parameters
        ----------
        images : sequence of paths or of uint8 arrays, mapping, or PhotoIndex
            Photos as `index` takes them, or what it returned.

        Returns
        -------
        ndarray of float32, shape (n_photos, n_components)
            ``embed_images(images) @ embed_captions(captions).T`` are the scores.
        """
        self._check_fitted("ranker_")
        index = images if isinstance(images, PhotoIndex) else self.index(images)
        if index.model != self.fingerprint:
            raise ValueError("photos must be indexed by this very model, got another's index")
        return unit_rows(index.projections)

    def embed_captions(self, captions: Sequence[str]) -> npt.NDArray[Any]:
        """Place sentences in the learned space as vectors of length 1; see `embed_images`.

        Parameters
        ----------
        captions : sequence of str
            Sentences as they are typed.

        Returns
        -------
        ndarray of float32, shape (n_sentences, n_components)
        """
        self._check_fitted("ranker_")
        if isinstance(captions, str):
            raise TypeError(f"captions must be a sequence of strings, got {captions!r}")
        encoded = self.training_.encode([[sentence] for sentence in captions])
        return self.ranker_.embed_captions(self.training_.text_kernel(encoded))

    def search(
        self, sentences: Sequence[str], photos: Photos | PhotoIndex, *, k: int = 10
    ) -> list[list[Match]]:
        """Find the photos that fit each sentence best.

        The arguments are those of `scores`, and how many photos to name. Return a list for
        each sentence, the best first.
        """
        return [best_matches(column, k) for column in self.scores(photos, sentences).T]

    def annotate(
        self, photos: Photos | PhotoIndex, sentences: Sequence[str], *, k: int = 5
    ) -> list[list[Match]]:
        """Find the sentences that fit each photo best.

        The arguments are those of `scores`, and how many sentences to name.

        Returns
        -------
        list of list of Match
            For each photo the best sentences, the best first.
        """
        return [best_matches(row, k) for row in self.scores(photos, sentences)]

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the fitted ranker as a folder of safetensors and JSON files, all or nothing.

        Raises
        ------
        FileExistsError
            If something is in the folder, unless it is a model and `overwrite` is True.
        ValueError
            If the normaliser has a function for a lemmatiser, which no file can hold.
        """
        self._check_fitted("ranker_")
        params = self.get_params(deep=False)
        del params["visual_words"], params["normalizer"]
        params["rng"] = int(self.rng) if isinstance(self.rng, numbers.Integral) else None
        description = {
            "params": params_to_json(params),
            "image_power": self.image_power_,
            "setting": self.setting_._asdict(),
            "dev_recalls": self.dev_recalls_.tolist(),
        }
        model = PhotoModel(description, self.training_, self.ranker_)
        write_model(folder, model, overwrite=overwrite)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> PhotoRanker:
        """Read what `save` wrote; what is missing or damaged is named in the error."""
        description, training, kcca_ranker = read_model(folder)
        with reading(Path(folder) / DESCRIPTION):
            ranker = cls.from_json(description["params"]).set_params(
                visual_words=VisualWords(**training.visual_words.get_params()),
                normalizer=training.normalizer,
            )
            ranker.image_power_ = description["image_power"]
            power(np.ones((1, 1)), ranker.image_power_)  # raises if that is no exponent
            ranker.setting_ = KCCASetting.from_json(description["setting"])
            recalls = np.array(description["dev_recalls"], np.float64)
            ranker.dev_recalls_ = check_tensor("dev_recalls", recalls, (2, 3))
        ranker.training_, ranker.ranker_ = training, kcca_ranker
        return ranker

    def _check_params(self) -> SettingsSearch:
        search = SettingsSearch.of(self)
        check_choice("caption_kernel", self.caption_kernel, get_args(CaptionKernel))
        return search
