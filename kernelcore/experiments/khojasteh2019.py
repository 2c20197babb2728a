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
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

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
    result_table,
    run_section,
    section,
    selection_section,
)
from kernelcore.experiments.result_files import read_files
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
        n_epochs=45,
        photos="whole",
        vectors="pretrained",
    ),
    printed(LANGUAGE): replace(_LANGUAGE, ranks_by="likelihood"),
}
"""The systems with the choices of the thesis, as far as it names them."""

_NAMES = ("R@1", "R@5", "R@10", "median_rank")

_COCO_1K = """
Random  0.1  0.6  1.1 631   0.1  0.5  1.0 500
STV    33.8 67.7 82.1   3  25.9 60.0 74.6   4
DVSA   38.4 69.9 80.5   1  27.4 60.2 74.8   3
GMM-FV 39.0 67.0 80.3   3  24.2 59.3 76.0   4
MM-ENS 39.4 67.9 80.9   2  25.1 59.8 76.6   4
m-RNN  41.0 73.0 83.5   2  29.0 42.2 77.0   3
m-CNN  42.8 73.1 84.1   2  32.6 68.6 82.8   3
HM-LSTM 43.9   - 87.8   2  36.1    - 86.7   3
SPE    50.1 79.7 89.2   -  39.6 75.2 86.9   -
VQA-A  50.5 80.1 89.7   -  37.0 70.9 82.9   -
2WayNet 55.8 75.2  -    -  39.7 63.3    -   -
sm-LSTM 53.2 83.1 91.5  1  40.7 75.8 87.4   2
RRF-Net 56.4 85.3 91.5  -  43.9 78.1 88.6   -
VSE++  64.6 90.0 95.7   1  52.0 84.3 92.0   1
SCAN   72.7 94.8 98.4   -  58.8 88.4 94.8   -
DeepTwt 47.5 81.0 91.0  2  48.4 84.3 91.5   2
"""

_COCO_5K = """
GMM-FV 17.3 39.0 50.2  10  10.8 28.3 40.1  17
DVSA   16.5 39.2 52.0   9  10.7 29.6 42.2  14
VQA-A  23.5 50.7 63.6   -  16.7 40.5 53.8   -
VSE++  41.3 71.1 81.2   2  30.3 59.4 72.4   4
SCAN   50.4 82.2 90.0   -  38.6 69.3 80.4   -
DeepTwt 23.8 53.7 67.3  4  25.6 55.1 68.4   3
"""


def _rows(pool: str, table: str) -> Iterator[Published]:
    """Read the lines of a table: a name, four numbers of annotation, four of search."""
    for line in table.strip().splitlines():
        name, *cells = line.split()
        numbers = {"annotation": cells[:4], "search": cells[4:]}
        yield Published(
            f"{name}, {pool}",
            SOURCE,
            {
                task: {
                    metric: float(cell) / (1 if metric == "median_rank" else 100)
                    for metric, cell in zip(_NAMES, own, strict=True)
                    if cell != "-"
                }
                for task, own in numbers.items()
            },
        )


PUBLISHED = (*_rows("COCO-1K", _COCO_1K), *_rows("COCO-5K", _COCO_5K))
"""All rows of table 4.1. The thesis cites those of other systems from their papers; its own
model is DeepTwt, on photos of COCO with their joined captions."""


@dataclass(kw_only=True)
class Khojasteh2019(TrainedStudy):
    """The study of Khojasteh (2019); `TrainedStudy` documents its options.

    Systems with a batch size of their own keep it.
    """

    NAME = "khojasteh2019"
    TITLE = f"Order embeddings, {SOURCE}"
    SYSTEMS, PRINTED, MAIN = SYSTEMS, PRINTED, THESIS
    BEFORE = ("captions", "regions of photos")
    SOURCE, SETTINGS, PUBLISHED = SOURCE, SETTINGS, PUBLISHED

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
        ranker = self.train(
            (OrderRanker if by_order else Captioner)(**params),
            self._images[system.photos],
            {split: self.raw_captions(split) for split in ("train", "dev")},
            word_vectors=self._vectors[system.vectors],
        )
        rank = self._by_order if by_order else self._by_likelihood
        single, joined, more = rank(ranker, self._images[system.photos].value(), system)
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
        own = photos[self.corpus.photos(self.split)]
        settings = {**ranker.get_params(), "photos": system.photos, "vectors": system.vectors}
        scored, numbers, arrays = [], {}, {}
        for kind in (SINGLE, JOINED):
            pools = {
                split: pool if kind == SINGLE else joined_pool(pool)
                for split, pool in self.corpus.pools.items()
            }
            pool = pools[self.split]
            scores = ranker.scores(own, pool.texts, n_threads=self.n_threads)
            known = photos, pools["train"].texts
            corrected = self.hub_corrected(ranker, scores, (own, pool.texts), known)
            scored.append(Scores(scores, scores, settings, corrected))
            owners = np.unique(pool.photos, return_inverse=True)[1]
            order = Order.of(ranker, own, pool.texts, owners, n_threads=self.n_threads)
            numbers[f"order, {kind}"] = order.numbers()
            if kind == JOINED:
                arrays = {"ratios": order.ratios, "shares": order.shares}
        return scored[0], scored[1], Found({}, arrays, numbers)

    def _by_likelihood(
        self, ranker: Any, photos: Array, system: System
    ) -> tuple[Scores, Scores, Found]:
        """Score captions by a language model, joined ones by sums, and let it write."""
        pool = self.corpus.pools[self.split]
        run: dict[str, Any] = {"n_threads": self.n_threads}
        images = photos[self.corpus.photos(self.split)]
        weights = [weight.cpu().numpy() for weight in ranker.space_.state_dict().values()]
        scores = Step(
            self.store,
            Kind.array("likelihoods", 1),
            partial(_likelihoods, **run),
            Source(ranker, list(ranker.vocabulary_.words), *weights),
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
        sums = scores @ is_own
        settings = {**ranker.get_params(), "photos": system.photos, "vectors": system.vectors}
        both = (Scores(own, own, settings) for own in (scores, sums))
        return (*both, Found(numbers=written))  # type: ignore[return-value]

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
    def sections(cls, results: Path) -> list[Section]:
        """Make the tables of the page from the files of a folder."""
        files = read_files(results, cls.NAME)
        ours = {row.system: row for row in PUBLISHED}
        published = {THESIS: ours["DeepTwt, COCO-1K"]}
        variants = [one for name in SYSTEMS for one in (name, hub_corrected_name(name))]
        every = [*SYSTEMS, *PRINTED]
        language = files[LANGUAGE].numbers if LANGUAGE in files else {}
        written = {name: own for name, own in language.items() if "BLEU-1" in own}
        orders = [
            number_table(numbers_of(files, every, f"order, {texts}"), caption=texts)
            for texts in (JOINED, SINGLE)
        ]
        return [
            *main_sections(files, tuple(SYSTEMS), THESIS, published, pool=JOINED),
            section("Which texts lie below which images", *orders),
            section("With and without the order", _order_test(files)),
            section("Single captions", result_table(files, every, "all captions")),
            section(
                "Ranked lists",
                number_table(numbers_of(files, variants, "lists"), caption="In percent"),
            ),
            selection_section(files, SYSTEMS),
            section("Captions written", number_table(written, label="captions")),
            section(
                "Table 4.1 of the thesis",
                result_table(files, [hub_corrected_name(THESIS), *PUBLISHED], JOINED),
            ),
            run_section(files, every),
        ]


def joined_pool(pool: Pool) -> Pool:
    """Return a pool with the captions of each photo joined into one text."""
    from kernelcore.deep import join_captions

    texts, photos = join_captions(pool.texts, pool.photos)
    return Pool(tuple(texts), np.zeros(len(texts), np.int64), photos)


class Order(NamedTuple):
    """Penalties of pairs of an image and a text, by the order that a system is trained for.

    Attributes
    ----------
    true, reverse : ndarray of float32, shape (n_texts,)
        Penalty of each text with its own image, by the order and by its reverse.
    mismatched : ndarray of float32, shape (n_images - 1, n_texts)
        Penalties of each text with all other images.
    spreads : tuple of float
        Of images and of texts: the mean squared distance of the vectors to their mean, divided
        by their mean square. It is 0 if all vectors are equal.
    """

    true: npt.NDArray[np.float32]
    reverse: npt.NDArray[np.float32]
    mismatched: npt.NDArray[np.float32]
    spreads: tuple[float, float]

    @classmethod
    def of(
        cls,
        ranker: Any,
        images: npt.ArrayLike,
        texts: Sequence[str],
        owners: npt.NDArray[np.intp],
        **run: Any,
    ) -> Order:
        """Compute the penalties of all pairs; text i belongs to image ``owners[i]``."""
        is_reverse = ranker.similarity == "images below"
        along, against = (
            ranker.penalties(images, texts, reverse=way, **run)
            for way in (is_reverse, not is_reverse)
        )
        own = owners, np.arange(len(texts))
        others = np.ones(along.shape, bool)
        others[own] = False
        mismatched = along.T[others.T].reshape(len(texts), len(along) - 1).T
        vectors = ranker.embed_images(images, **run), ranker.embed_captions(texts, **run)
        spreads = _spread(vectors[0]), _spread(vectors[1])
        return cls(along[own], against[own], mismatched, spreads)

    @property
    def ratios(self) -> npt.NDArray[np.float64]:
        """Penalty of each text with its own image, divided by the mean of its others.

        It is 1 if all penalties of the text are 0, and means nothing if only its own is not.
        """
        others = self.mismatched.mean(axis=0, dtype=np.float64)
        is_zero = (others == 0) & (self.true == 0)
        return np.where(is_zero, 1, self.true / np.where(others == 0, 1, others))

    @property
    def shares(self) -> npt.NDArray[np.float64]:
        """For each text, share of other images with a higher penalty than its own image.

        Equal penalties count half.
        """
        more, same = self.mismatched > self.true, self.mismatched == self.true
        shares: npt.NDArray[np.float64] = more.mean(axis=0) + same.mean(axis=0) / 2
        return shares

    def numbers(self) -> dict[str, float]:
        """Return means over the texts; without a ratio where a text has none."""
        has_ratios = (self.mismatched.any(axis=0) | (self.true == 0)).all()
        return {
            "true": float(self.true.mean()),
            "mismatched": float(self.mismatched.mean()),
            **({"ratio": float(self.ratios.mean())} if has_ratios else {}),
            "reverse": float(self.reverse.mean()),
            "below reverse (%)": 100 * float((self.true < self.reverse).mean()),
            "below mismatched (%)": 100 * float(self.shares.mean()),
            "spread of images": self.spreads[0],
            "spread of texts": self.spreads[1],
        }


def _spread(vectors: npt.NDArray[np.float32]) -> float:
    """Mean squared distance of rows to their mean, divided by their mean square."""
    rows = vectors.astype(np.float64)
    square = np.square(rows).sum()
    return float(np.square(rows - rows.mean(axis=0)).sum() / square) if square else 0.0


def _likelihoods(
    captioner: Source[Any], images: Array, captions: Sequence[str], *, n_threads: int | None
) -> Array:
    """Return log P(S | I) of all pairs."""
    ranker = captioner.value().set_params(score="likelihood")
    scores: Array = ranker.scores(images, captions, n_threads=n_threads)
    return scores


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
