"""Order embeddings of images and their joined captions, and a language model (Khojasteh, 2019).

An image and all its captions as one text are embedded in a partial order: the text should lie
below the image. The thesis' model runs beside three variants: with the variance in the loss,
with cosines instead of an order, and with single captions. Its language model ranks captions
by their likelihood. The study also reports which texts are nearer to lying below which images.

Features, training data and sizes are not those of the thesis: see
docs/experiments/khojasteh2019.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array
from kernelcore.evaluation import Published, Table, evaluate, rank_relevant
from kernelcore.evaluation.significance import fisher_randomization
from kernelcore.experiments.captioning import references_of, written_numbers
from kernelcore.experiments.corpus import Pool
from kernelcore.experiments.page import (
    Files,
    main_sections,
    number_table,
    numbers_of,
    published_rows,
    result_table,
    section,
    selection_section,
)
from kernelcore.experiments.scores import Scores, hub_corrected_name, printed
from kernelcore.experiments.steps import Kind, Source, Step
from kernelcore.experiments.study import Found, Measured
from kernelcore.experiments.training import TrainedStudy
from kernelcore.lexical import WordVectors
from kernelcore.report import Section

SOURCE = "Khojasteh 2019"
THESIS, NO_ORDER, LANGUAGE = "joined captions", "no order", "language model"
JOINED, SINGLE = "joined captions", "single captions"
_LISTED = ("P@5", "P@10", "recall@10", "F1@10", "mean_average_precision")


@dataclass(frozen=True)
class System:
    """A system of the study.

    Attributes
    ----------
    options : mapping of str to Any
        Parameters of the ranker.
    ranks_by : {"order", "ratio", "likelihood"}
        "order": an `OrderRanker`. Otherwise a `Captioner`, by its likelihood ratio or by its
        likelihood, equation 4.2 of the thesis.
    n_epochs : int
        Maximum number of epochs; the best one on ``dev`` is kept.
    photos : {"joined", "whole"}
        Features of a photo: those of the whole photo joined with the mean of its regions, or
        those of the whole photo alone.
    vectors : {"joined", "pretrained", "none"}
        Start of the word embeddings: pretrained vectors joined with learned ones, pretrained
        vectors, or random.
    """

    options: Mapping[str, Any]
    ranks_by: Literal["order", "ratio", "likelihood"] = "order"
    n_epochs: int = 40
    photos: Literal["joined", "whole"] = "joined"
    vectors: Literal["joined", "pretrained", "none"] = "joined"


SETTINGS: Mapping[str, Any] = {
    "n_components": 256,
    "n_hidden": 512,
    "n_states": 128,
    "margin": 0.05,
    "dropout": 0.1,
    "learning_rate": 2e-3,
    "min_learning_rate": 5e-4,
    "patience": 6,
}
"""Settings of all order embeddings, chosen on the development split with GloVe alone."""

_LANGUAGE = System(
    {
        "n_components": 256,
        "n_embedding": 256,
        "dropout": 0.3,
        "learning_rate": 1e-3,
        "batch_size": 128,
        "patience": 2,
    },
    ranks_by="ratio",
    n_epochs=30,
    vectors="none",
)

SYSTEMS: Mapping[str, System] = {
    THESIS: System(SETTINGS),
    "with variance": System({**SETTINGS, "variance_weight": 0.1}),
    NO_ORDER: System({**SETTINGS, "similarity": "cosine", "margin": 0.2}),
    SINGLE: System(
        {**SETTINGS, "joined": False, "learning_rate": 1e-3, "min_learning_rate": 2.5e-4},
        n_epochs=20,
    ),
    LANGUAGE: _LANGUAGE,
}

PRINTED: Mapping[str, System] = {
    printed(THESIS): System(
        {
            **SETTINGS,
            "n_components": 1024,
            "n_hidden": 1024,
            "n_states": None,
            "unit_length": "none",
            "dropout": 0.0,
            "learning_rate": 0.1,
            "min_learning_rate": 1e-7,
            "batch_size": 16,
            "patience": None,
        },
        n_epochs=4,  # of at least six minutes, and none leaves the level of chance
        photos="whole",
        vectors="pretrained",
    ),
    printed(LANGUAGE): replace(_LANGUAGE, ranks_by="likelihood"),
}
"""The systems with the choices of the thesis, as far as it names them."""

PUBLISHED = published_rows(
    SOURCE,
    """
    Random, COCO-1K    0.1  0.6  1.1 631   0.1  0.5  1.0 500
    STV, COCO-1K      33.8 67.7 82.1   3  25.9 60.0 74.6   4
    DVSA, COCO-1K     38.4 69.9 80.5   1  27.4 60.2 74.8   3
    GMM-FV, COCO-1K   39.0 67.0 80.3   3  24.2 59.3 76.0   4
    MM-ENS, COCO-1K   39.4 67.9 80.9   2  25.1 59.8 76.6   4
    m-RNN, COCO-1K    41.0 73.0 83.5   2  29.0 42.2 77.0   3
    m-CNN, COCO-1K    42.8 73.1 84.1   2  32.6 68.6 82.8   3
    HM-LSTM, COCO-1K  43.9    - 87.8   2  36.1    - 86.7   3
    SPE, COCO-1K      50.1 79.7 89.2   -  39.6 75.2 86.9   -
    VQA-A, COCO-1K    50.5 80.1 89.7   -  37.0 70.9 82.9   -
    2WayNet, COCO-1K  55.8 75.2    -   -  39.7 63.3    -   -
    sm-LSTM, COCO-1K  53.2 83.1 91.5   1  40.7 75.8 87.4   2
    RRF-Net, COCO-1K  56.4 85.3 91.5   -  43.9 78.1 88.6   -
    VSE++, COCO-1K    64.6 90.0 95.7   1  52.0 84.3 92.0   1
    SCAN, COCO-1K     72.7 94.8 98.4   -  58.8 88.4 94.8   -
    DeepTwt, COCO-1K  47.5 81.0 91.0   2  48.4 84.3 91.5   2
    GMM-FV, COCO-5K   17.3 39.0 50.2  10  10.8 28.3 40.1  17
    DVSA, COCO-5K     16.5 39.2 52.0   9  10.7 29.6 42.2  14
    VQA-A, COCO-5K    23.5 50.7 63.6   -  16.7 40.5 53.8   -
    VSE++, COCO-5K    41.3 71.1 81.2   2  30.3 59.4 72.4   4
    SCAN, COCO-5K     50.4 82.2 90.0   -  38.6 69.3 80.4   -
    DeepTwt, COCO-5K  23.8 53.7 67.3   4  25.6 55.1 68.4   3
    """,
)
"""All rows of table 4.1. The thesis cites those of other systems from their papers; its own
model is DeepTwt, on photos of COCO with their joined captions."""


@dataclass(kw_only=True)
class Khojasteh2019(TrainedStudy):
    """The study of Khojasteh (2019); `TrainedStudy` documents its options.

    Systems with a batch size of their own keep it.
    """

    NAME = "khojasteh2019"
    TITLE = f"Order embeddings, {SOURCE}"
    SYSTEMS, PRINTED = SYSTEMS, PRINTED
    BEFORE = ("captions", "regions of photos")
    SOURCE, SETTINGS = SOURCE, SETTINGS

    batch_size: int = 64

    _images: dict[str, Source[Array]] = field(init=False, repr=False)
    _vectors: dict[str, WordVectors | None] = field(init=False, repr=False)

    def prepare(self) -> None:
        """Read the corpus and compute the features of photos."""
        with self.stages.stage("captions"):
            self.read()
        with self.stages.stage("regions of photos"):
            self.describe()
        self._images = {"joined": self.photos, "whole": Source(self.whole)}
        self._vectors = {"joined": self.embeddings, "pretrained": self.vectors, "none": None}

    def settings_of(self, name: str) -> dict[str, Any]:
        """Return the parameters of a system, and what it reads."""
        system = {**SYSTEMS, **PRINTED}[name]
        own = vars(system) | {"n_epochs": self.n_epochs or system.n_epochs}
        return {"batch_size": self.batch_size, "rng": self.rng, **own}

    def measure(self, name: str) -> Measured:
        """Train a system, and rank joined and single captions of the split."""
        from kernelcore.deep import Captioner, OrderRanker

        system = {**SYSTEMS, **PRINTED}[name]
        by_order = system.ranks_by == "order"
        params = {
            "batch_size": self.batch_size,
            **system.options,
            "n_epochs": self.n_epochs or system.n_epochs,
            "device": self.device,
            "rng": self.rng,
        }
        ranker = (OrderRanker if by_order else Captioner)(**params)
        images, vectors = self._images[system.photos], self._vectors[system.vectors]
        ranker = self.train(ranker, images, self.raw_captions, word_vectors=vectors)
        rank = self._by_order if by_order else self._by_likelihood
        single, joined, more = rank(ranker, images.value(), system)
        measured = self.evaluated(name, single, ranker)
        found = {}
        for variant, annotation, search in joined.variants(name):
            own = measured.found[variant]
            ranked = evaluate(annotation, search, system=variant, pool=JOINED, **self.labels)
            added = more if variant == name else Found()
            found[variant] = Found(
                {JOINED: ranked, **own.results},
                {**own.arrays, **added.arrays},
                {**own.numbers, **added.numbers},
            )
        return measured._replace(found=found)

    def _by_order(
        self, ranker: Any, photos: Array, system: System
    ) -> tuple[Scores, Scores, Found]:
        """Score single and joined captions by an order embedding, and measure the order."""
        about = {"photos": system.photos, "vectors": system.vectors}
        images = photos[self.corpus.photos(self.split)]
        joined = {split: joined_pool(pool) for split, pool in self.corpus.pools.items()}
        scored, found = [], Found()
        for kind, pools in {SINGLE: self.corpus.pools, JOINED: joined}.items():
            new = images, pools[self.split].texts
            scored.append(self.scored(ranker, new, (photos, pools["train"].texts), **about))
            owners = np.unique(pools[self.split].photos, return_inverse=True)[1]
            own, arrays = measure_order(ranker, *new, owners, n_threads=self.n_threads)
            # of the arrays, those of joined captions are kept
            found = Found({}, arrays, {**found.numbers, f"order, {kind}": own})
        return scored[0], scored[1], found

    def _by_likelihood(
        self, ranker: Any, photos: Array, system: System
    ) -> tuple[Scores, Scores, Found]:
        """Score captions by a language model, joined ones by sums, and let it write."""
        pool = self.corpus.pools[self.split]
        run: dict[str, Any] = {"n_threads": self.n_threads}
        images = photos[self.corpus.photos(self.split)]
        weights = [weight.cpu().numpy() for weight in ranker.space_.state_dict().values()]
        ranker.set_params(score="likelihood")
        scores = Step(
            self.store,
            Kind.array("likelihoods", 1),
            lambda *_: ranker.scores(images, pool.texts, **run),
            Source(None, list(ranker.vocabulary_.words), *weights),
            images,
            list(pool.texts),
        ).value()
        written: dict[str, dict[str, float]] = {}
        if system.ranks_by == "ratio":
            # The first image is scored once more: its two scores differ by log P(S), which is
            # the same for all images.
            first = ranker.set_params(score="ratio").scores(images[:1], pool.texts, **run)
            scores = scores - (scores[:1] - first)
            texts = {
                f"beam of {size}": ranker.generate(images, beam_size=size, **run)
                for size in (1, 3, 5)
            }
            written = written_numbers(texts, references_of(pool), self.store)
        is_own = (pool.photos[:, np.newaxis] == np.unique(pool.photos)).astype(scores.dtype)
        settings = {**ranker.get_params(), "photos": system.photos, "vectors": system.vectors}
        single, joined = (Scores(own, own, settings) for own in (scores, scores @ is_own))
        return single, joined, Found(numbers=written)

    def found(self, name: str, annotation: Array, search: Array) -> Found:
        """Rank the captions, and measure ranked lists as chapter 3 of the thesis does."""
        found = super().found(name, annotation, search)
        owners = np.unique(self.corpus.pools[self.split].photos, return_inverse=True)[1]
        is_own = np.arange(owners.max() + 1)[:, np.newaxis] == owners
        metrics = rank_relevant(annotation, is_own).metrics(ks=(5, 10))
        back = rank_relevant(search.T, owners).average_precision()
        lists = {f"annotation {own}": 100 * np.nanmean(metrics[own]) for own in _LISTED}
        lists["search mean_average_precision"] = 100 * np.nanmean(back)
        numbers = {"lists": {key: float(value) for key, value in lists.items()}}
        return replace(found, numbers=numbers)

    @classmethod
    def tables(cls, files: Files) -> Iterator[Section]:
        """Make the tables of the page from the files."""
        ours = {row.system: row for row in PUBLISHED}
        published = {THESIS: ours["DeepTwt, COCO-1K"]}
        every = [*SYSTEMS, *PRINTED]
        yield from main_sections(files, tuple(SYSTEMS), THESIS, published, pool=JOINED)
        orders = [
            number_table(numbers_of(files, every, f"order, {texts}"), caption=texts)
            for texts in (JOINED, SINGLE)
        ]
        yield section("Which texts lie below which images", *orders)
        yield section("With and without the order", _order_test(files))
        yield section("Single captions", result_table(files, every, "all captions"))
        lists = number_table(numbers_of(files, SYSTEMS, "lists"), caption="In percent")
        yield section("Ranked lists", lists)
        yield selection_section(files, SYSTEMS)
        language = files[LANGUAGE].numbers if LANGUAGE in files else {}
        written = {name: own for name, own in language.items() if "BLEU-1" in own}
        yield section("Captions written", number_table(written, label="captions"))
        rows: list[str | Published] = [hub_corrected_name(THESIS), *PUBLISHED]
        yield section("Table 4.1 of the thesis", result_table(files, rows, JOINED))


def joined_pool(pool: Pool) -> Pool:
    """Return a pool with the captions of each photo joined into one text."""
    from kernelcore.deep import join_captions

    texts, photos = join_captions(pool.texts, pool.photos)
    return Pool(tuple(texts), np.zeros(len(texts), np.int64), photos)


def measure_order(
    ranker: Any,
    images: npt.ArrayLike,
    texts: Sequence[str],
    owners: npt.NDArray[np.intp],
    **run: Any,
) -> tuple[dict[str, float], dict[str, npt.NDArray[np.float64]]]:
    """Measure penalties of pairs of an image and a text, by the order that was trained.

    Parameters
    ----------
    ranker : OrderRanker
    images : array_like of shape (n_images, n_features)
    texts : sequence of str
        Text i belongs to image ``owners[i]``.
    owners : ndarray of intp

    Returns
    -------
    numbers : dict of str to float
        Means over the texts: of the penalty of a text with its own image, by the order and by
        its reverse, and with all other images. Without "ratio" where a text has none. The
        spread of vectors is their mean squared distance to their mean, divided by their mean
        square: 0 if all are equal.
    arrays : dict of str to ndarray of shape (n_texts,)
        ``ratios``: the penalty of a text with its own image, divided by the mean of its others.
        It is 1 if all its penalties are 0, and means nothing if only its own is not.
        ``shares``: the share of other images with a higher penalty; equal ones count half.
    """
    is_reverse = ranker.similarity == "images below"
    along, against = (
        ranker.penalties(images, texts, reverse=way, **run)
        for way in (is_reverse, not is_reverse)
    )
    own = owners, np.arange(len(texts))
    others = np.ones(along.shape, bool)
    others[own] = False
    true, reverse = along[own], against[own]
    mismatched = along.T[others.T].reshape(len(texts), len(along) - 1).T
    means = mismatched.mean(axis=0, dtype=np.float64)
    is_zero = (means == 0) & (true == 0)
    ratios = np.where(is_zero, 1, true / np.where(means == 0, 1, means))
    shares = (mismatched > true).mean(axis=0) + (mismatched == true).mean(axis=0) / 2
    numbers = {
        "true": float(true.mean()),
        "mismatched": float(mismatched.mean()),
        **({"ratio": float(ratios.mean())} if ((means > 0) | is_zero).all() else {}),
        "reverse": float(reverse.mean()),
        "below reverse (%)": 100 * float((true < reverse).mean()),
        "below mismatched (%)": 100 * float(shares.mean()),
        "spread of images": _spread(ranker.embed_images(images, **run)),
        "spread of texts": _spread(ranker.embed_captions(texts, **run)),
    }
    return numbers, {"ratios": ratios, "shares": shares}


def _spread(vectors: npt.NDArray[np.float32]) -> float:
    """Mean squared distance of rows to their mean, divided by their mean square."""
    rows = vectors.astype(np.float64)
    square = np.square(rows).sum()
    return float(np.square(rows - rows.mean(axis=0)).sum() / square) if square else 0.0


def _order_test(files: Files) -> Table:
    """Compare the model of the thesis with its variant without an order, text by text."""
    rows = []
    if {THESIS, NO_ORDER} <= files.keys():
        for measure, name, scale in (
            ("penalty, true / mismatched", "ratios", 1),
            ("mismatched above true (%)", "shares", 100),
        ):
            ours, theirs = (scale * files[own].arrays[name] for own in (THESIS, NO_ORDER))
            test = fisher_randomization(ours, theirs, rng=0)
            means = f"{ours.mean():.2f}", f"{theirs.mean():.2f}"
            rows.append((measure, *means, f"{test.difference:+.2f}", f"{test.p_value:.2g}"))
    return Table(
        ("measure", THESIS, NO_ORDER, "difference", "p"),
        tuple(rows),
        caption="Joined captions; Fisher's randomisation test over photos with 100,000 "
        "reassignments. The systems differ in their similarity, in the margin, and in the "
        "lengths of the vectors of texts",
    )


run = Khojasteh2019.reproduce
