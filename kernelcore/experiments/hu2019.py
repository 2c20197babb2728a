"""Binary image selection (Hu, Misra and van der Maaten, 2019).

Visual-semantic embeddings and stacked cross attention rank photos and captions, and tell
which of two photos a caption describes. Kernel CCA on the same features is a baseline that the
paper does not have. A captioner writes captions, and selects photos by the likelihood of a
caption.

Features, regions and training data are not those of the paper: see docs/experiments/hu2019.md.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.stats import kendalltau, spearmanr

from kernelcore._check import Array
from kernelcore._ragged import take
from kernelcore.evaluation import Published, Table
from kernelcore.experiments import kernel_systems
from kernelcore.experiments.captioning import (
    NEAREST,
    nearest_captions,
    references_of,
    selection_scorer,
    written_numbers,
)
from kernelcore.experiments.corpus import joined, mean_of_regions
from kernelcore.experiments.feature_kernels import KernelModels
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
from kernelcore.experiments.scores import Scores, evaluate_pool, hub_corrected_name
from kernelcore.experiments.steps import Kind, Source, Step
from kernelcore.experiments.study import Found, Measured
from kernelcore.experiments.training import TrainedStudy, identified
from kernelcore.report import Section

SOURCE = "Hu et al. 2019"
MAIN, CAPTIONER = "ConvNet+Bi-GRU", "CNN-LSTM, 256 units"
BEAM_SIZE = 3

TWO_NETWORKS = "KCCA, Tri5Sem, two networks"
KERNELS: Mapping[str, kernel_systems.System] = {
    "KCCA, one caption": kernel_systems.SYSTEMS["Tri1"],
    "KCCA, Tri5Sem": kernel_systems.SYSTEMS["Tri5Sem"],
    TWO_NETWORKS: kernel_systems.SYSTEMS["Tri5Sem"],
}
"""Caption kernels of Hodosh et al. (2013), for training images with one caption or with all.
With two networks, EfficientNet-Lite2 describes the photos, too."""

SUM = "sum of z-scores"
"""The scores of kernel CCA with two networks and of the two best systems of the paper."""
WEIGHTS = (0.0, 0.25, 0.5, 1.0, 2.0)
"""Weights of the latter, of which one is chosen on the development split."""


class System(NamedTuple):
    """A system of the paper.

    Attributes
    ----------
    kind : {"EmbeddingRanker", "CrossAttentionRanker"}
        A ranker of `kernelcore.deep`.
    images : {"photos", "regions"}
        Input of a photo: the whole photo joined with the mean of its regions, each with square
        roots, or the features of all regions.
    options : mapping of str to Any
        Parameters of the ranker beside those of all systems.
    """

    kind: Literal["EmbeddingRanker", "CrossAttentionRanker"]
    images: Literal["photos", "regions"]
    options: Mapping[str, Any]


_REGIONS = {"square_root": True, "n_drawn": 10}

SYSTEMS: Mapping[str, System] = {
    "ConvNet+BoW": System("EmbeddingRanker", "photos", {"image": "first", "sentence": "mean"}),
    MAIN: System("EmbeddingRanker", "photos", {"image": "first"}),
    "Obj+Bi-GRU": System("EmbeddingRanker", "regions", {"image": "gru", **_REGIONS}),
    "SCAN i2t": System("CrossAttentionRanker", "regions", {"attention": "i2t", **_REGIONS}),
    "SCAN t2i": System("CrossAttentionRanker", "regions", {"attention": "t2i", **_REGIONS}),
}
"""The systems of the paper's table 3."""

SETTINGS: Mapping[str, Any] = {
    "n_components": 256,
    "n_embedding": 300,
    "dropout": 0.3,
    "margin": 0.2,
    "negatives": "hardest",
    "learning_rate": 1e-3,
    "n_epochs": 30,
}
"""Settings of all systems, chosen on the development split with other word embeddings."""

CAPTIONER_SETTINGS: Mapping[str, Any] = {
    "n_components": 256,
    "n_embedding": 256,
    "n_epochs": 20,
}
"""Settings of the captioner. The paper has other ones, in its supplement."""

_TABLE = {
    "ConvNet+BoW": (45.19, 79.26, 56.60, 85.70, 80.48),
    "ConvNet+Bi-GRU": (49.34, 82.22, 61.16, 89.02, 81.75),
    "Obj+Bi-GRU": (53.97, 85.26, 66.86, 91.40, 83.90),
    "SCAN i2t": (52.35, 84.44, 67.00, 92.62, 84.94),
    "SCAN t2i": (54.10, 85.58, 67.50, 92.98, 85.89),
}

PUBLISHED: Mapping[str, Published] = {
    name: Published(
        name,
        f"{SOURCE}, COCO-1K",
        {
            "annotation": {"R@1": row[2] / 100, "R@5": row[3] / 100},
            "search": {"R@1": row[0] / 100, "R@5": row[1] / 100},
        },
    )
    for name, row in _TABLE.items()
}
"""Table 3 of the paper, by system: five folds of 1,000 photos of COCO, all five captions of
each."""

PUBLISHED_SELECTIONS = tuple(
    Published(name, f"{SOURCE}, COCO-BISON", {"accuracy": row[4] / 100})
    for name, row in _TABLE.items()
)
"""Accuracy of binary image selection in the same table."""

PUBLISHED_ERRORS = {
    "errors": 376,
    "judged": 376,
    "accepted": 211,
    "% of errors": 56.1,
    "% of judged": 56.1,
}
"""Table 1 of the paper: errors of SCAN t2i on COCO that people accept."""


@dataclass(kw_only=True)
class Hu2019(TrainedStudy):
    """The study of Hu et al. (2019); `TrainedStudy` documents its other options.

    The cache also holds Gram matrices.

    Parameters
    ----------
    outside_corpus : path, optional
        Tagged text for a word similarity of the kernel systems; the default is
        ``brown_tagged.txt`` in `data` or in ``brown`` beside it.
    spacy_model : str, optional
        Pipeline that tags captions for the kernel systems (extra ``text``); the default is an
        English one that is installed.
    """

    NAME = "hu2019"
    TITLE = f"Embeddings, cross attention and binary image selection, {SOURCE}"
    SYSTEMS = (*KERNELS, *SYSTEMS, SUM, CAPTIONER)
    MAIN = MAIN
    BEFORE = ("captions", "features of photos")
    NUMBER = 2  # as in Hodosh et al.
    SOURCE, SETTINGS, PUBLISHED = SOURCE, SETTINGS, tuple(PUBLISHED.values())

    batch_size: int = 128
    outside_corpus: str | os.PathLike[str] | None = None
    spacy_model: str | None = None

    _kernels: dict[str, KernelModels] = field(init=False, repr=False)

    def prepare(self) -> None:
        """Read the corpus and compute features."""
        with self.stages.stage("captions"):
            self.read()
        with self.stages.stage("features of photos"):
            self.describe()
        wanted = {*self.names} | ({TWO_NETWORKS} if SUM in self.names else set())
        self._kernels = {
            name: self._kernel_models(name, name == TWO_NETWORKS)
            for name in KERNELS
            if name in wanted
        }

    def _kernel_models(self, name: str, has_two: bool) -> KernelModels:
        """Describe photos by one network or two, and captions by a kernel."""
        photos = self.photos.value()
        if has_two:
            run = {"cache_dir": self.cache_dir, "device": self.device, **self.shared}
            other = self.corpus.whole_photos(network="efficientnet-lite2", **run).features
            parts = [self.whole, mean_of_regions(self.regions), other]
            photos = joined(parts, n_photos=len(self.corpus.files))
        return KernelModels(
            self.corpus,
            photos,
            self.store,
            [KERNELS[name]],
            outside_corpus=self.outside_corpus,
            spacy_model=self.spacy_model,
            **self.shared,
        )

    def settings_of(self, name: str) -> dict[str, Any]:
        """Return the parameters of a network; those of kernel CCA are chosen on dev."""
        if name in KERNELS:
            return {"outside_corpus": str(self.outside_corpus), "spacy": str(self.spacy_model)}
        if name == CAPTIONER:
            return {**self.params, **CAPTIONER_SETTINGS, "device": None}
        if name == SUM:
            return {
                "weights": WEIGHTS,
                **self.settings_of(TWO_NETWORKS),
                **self.params,
                "device": None,
            }
        own = SYSTEMS[name]
        return {**self.params, **own.options, "device": None, "images": own.images}

    def measure(self, name: str) -> Measured:
        """Train a system, and rank the photos and captions of the split."""
        if name == CAPTIONER:
            return self._measure_captioner()
        if name == SUM:
            return self.evaluated(name, self._summed())
        return self.evaluated(name, *self._scored(name, self.split))

    def _trained(self, name: str) -> tuple[Any, Source[Any]]:
        """Train a system of the paper; return the photos as it reads them, too."""
        from kernelcore import deep

        kind, images, options = SYSTEMS[name]
        described = self.photos if images == "photos" else identified(self.regions)
        ranker = self.train(
            getattr(deep, kind)(**{**self.params, **options}),
            described,
            {split: self.raw_captions(split) for split in ("train", "dev")},
            word_vectors=self.embeddings,
        )
        return ranker, described

    def _scored(self, name: str, split: str) -> tuple[Scores, Any]:
        """Train a system and score a split; return its ranker, too."""
        if name in KERNELS:
            return self._kernels[name].scores(KERNELS[name], split), None
        ranker, described = self._trained(name)
        every, texts = described.value(), self.corpus.pools[split].texts
        chosen = take(every, self.corpus.photos(split))
        scores = ranker.scores(chosen, texts, n_threads=self.n_threads)
        known = every, self.raw_captions("train").value()
        corrected = self.hub_corrected(ranker, scores, (chosen, texts), known)
        settings = {**ranker.get_params(), "images": SYSTEMS[name].images}
        return Scores(scores, scores, settings, corrected), ranker

    def _summed(self) -> Scores:
        """Add up z-scores of kernel CCA and of the two best systems of the paper.

        All are corrected for hubs. The two and their weight are chosen on dev.
        """
        losses = {name: min(self._trained(name)[0].history_.dev_losses) for name in SYSTEMS}
        names = [TWO_NETWORKS, *sorted(losses, key=losses.__getitem__)[:2]]
        parts = {
            split: [_standardized(self._scored(name, split)[0]) for name in names]
            for split in ("dev", self.split)
        }

        def summed(split: str, weight: float) -> tuple[Array, Array]:
            first, *others = parts[split]
            annotation, search = (
                own + weight * sum(other[side] for other in others)
                for side, own in enumerate(first)
            )
            return annotation, search

        def recalls(weight: float) -> float:
            annotation, search = summed("dev", weight)
            pool = self.corpus.pools["dev"]
            return evaluate_pool(annotation, pool, search=search).rsum

        best = max(WEIGHTS, key=recalls)
        settings = {"systems": names, "weight": best, "best_sum_on_dev": recalls(best)}
        return Scores(*summed(self.split, best), settings)

    def found(self, name: str, annotation: Array, search: Array) -> Found:
        """Rank captions, answer the triples, and count the errors that people accept.

        An error is a caption for which another photo than its own comes first. Of Flickr8k,
        the captions with the number `NUMBER` were judged, beside photos that the systems of
        others ranked high: the share of all errors is a lower bound.
        """
        pool, numbers = self.corpus.pools[self.split], {}
        columns = np.flatnonzero(pool.numbers == self.NUMBER)
        own = np.unique(pool.photos, return_inverse=True)[1][columns]
        first = search[:, columns].argmax(axis=0)
        is_error = first != own
        for source, judged in self.questions.judgments:
            verdicts = judged.scores_of(first[is_error], columns[is_error])
            n, n_judged = len(verdicts), int(np.isfinite(verdicts).sum())
            accepted = int((verdicts >= source.right).sum())
            shares = (100 * accepted / of if of else np.nan for of in (n, n_judged))
            counts = (n, n_judged, accepted, *shares)
            numbers[f"errors, {source.file}"] = dict(
                zip(PUBLISHED_ERRORS, map(float, counts), strict=True)
            )
        return replace(super().found(name, annotation, search), numbers=numbers)

    def _measure_captioner(self) -> Measured:
        """Train the captioner; measure what it writes, and what it selects and ranks.

        Pairs are ranked by the likelihood of the caption given the photo, divided by its
        likelihood without a photo. The pool has one caption of each photo, because each pair
        costs a pass of the network over the caption.
        """
        from kernelcore.deep import Captioner

        params = {**CAPTIONER_SETTINGS, "batch_size": self.batch_size, "rng": self.rng}
        if self.n_epochs is not None:
            params["n_epochs"] = self.n_epochs
        raw = {split: self.raw_captions(split) for split in ("train", "dev")}
        captioner = self.train(
            Captioner(**params, device=self.device),
            self.photos,
            raw,
            word_vectors=None,
        )
        pool = self.corpus.pools[self.split]
        run: dict[str, Any] = {"n_threads": self.n_threads}
        photos = self.photos.value()[self.corpus.photos(self.split)]
        written = {
            NEAREST: nearest_captions(self.corpus, self.photos.value(), self.split),
            CAPTIONER: captioner.generate(photos, beam_size=BEAM_SIZE, **run),
        }
        scorer = selection_scorer(
            captioner,
            photos,
            self.questions.image_ids,
            dict(zip(self.questions.caption_ids, pool.texts, strict=True)),
            **run,
        )
        columns = np.flatnonzero(pool.numbers == self.NUMBER)
        scores = np.zeros((len(photos), len(pool.texts)), np.float32)
        scores[:, columns] = Step(
            self.store,
            Kind.array("caption-ratios", 2),
            partial(_likelihood_ratios, **run),
            Source(captioner, captioner.get_params(), self.photos.key, *raw.values()),
            photos,
            [pool.texts[column] for column in columns],
        ).value()
        named = {"number": self.NUMBER, "system": CAPTIONER, **self.labels}
        ranked = evaluate_pool(scores, pool, **named)
        found = Found(
            {ranked.pool: ranked, **self.questions.results(CAPTIONER, scorer)},
            numbers=written_numbers(written, references_of(pool), self.store),
        )
        history = list(captioner.history_.epochs)
        return Measured({CAPTIONER: found}, captioner.get_params(), history)

    @classmethod
    def sections(cls, results: Path) -> list[Section]:
        """Make the tables of the page from the files of a folder."""
        files = read_files(results, cls.NAME)
        rankers = (*KERNELS, *SYSTEMS, SUM)
        variants = [one for name in rankers for one in (name, hub_corrected_name(name))]
        captioner = files[CAPTIONER].numbers if CAPTIONER in files else {}
        errors = [
            number_table(
                {
                    **numbers_of(files, variants, group),
                    f"SCAN t2i ({SOURCE}, COCO)": PUBLISHED_ERRORS,
                },
                caption=group,
            )
            for group in dict.fromkeys(
                group for file in files.values() for group in file.numbers
            )
            if group.startswith("errors")
        ]
        caption = "Metrics of the COCO evaluation, times 100"
        return [
            *main_sections(files, rankers, MAIN, PUBLISHED),
            section("One caption of each image", _one_caption(files)),
            selection_section(files, cls.SYSTEMS, PUBLISHED_SELECTIONS),
            section("Selection beside retrieval", _correlation_table(files)),
            section("Errors that people accept", *errors),
            section(
                "Captions written", number_table(captioner, label="captions", caption=caption)
            ),
            run_section(files, cls.SYSTEMS),
        ]


def _standardized(scores: Scores) -> tuple[Array, Array]:
    """Return z-scores of the candidates of each query, corrected for hubs."""
    assert scores.corrected is not None, "all systems are corrected"
    annotation, search = (
        (own - own.mean(axis, keepdims=True)) / np.maximum(own.std(axis, keepdims=True), 1e-12)
        for axis, own in zip((1, 0), scores.corrected, strict=True)
    )
    return annotation, search


def _one_caption(files: Files) -> Table:
    return result_table(files, Hu2019.SYSTEMS, f"caption #{Hu2019.NUMBER}")


def _correlation_table(files: Files) -> Table:
    """Tabulate the rank correlation of selection and search over the systems."""
    own = [files[name].results for name in (*KERNELS, *SYSTEMS) if name in files]
    rows = []
    for source in [
        name for name in (own[0] if own else ()) if "selection" in own[0][name].values
    ]:
        accuracies = [results[source].mean["selection"]["accuracy"] for results in own]
        for metric in ("R@1", "R@5", "R@10"):
            recalls = [results["all captions"].mean["search"][metric] for results in own]
            if np.ptp(accuracies) and np.ptp(recalls):
                found = spearmanr(accuracies, recalls), kendalltau(accuracies, recalls)
                cells = (f"{of.statistic:.2f}" for of in found)
                rows.append((source, f"search {metric}", *cells))
    return Table(
        ("triples", "recall", "Spearman", "Kendall"),
        tuple(rows) if len(own) > 2 else (),
        n_labels=2,
        caption=f"Over {len(own)} systems, as they are",
    )


def _likelihood_ratios(
    captioner: Source[Any], photos: Any, texts: list[str], *, n_threads: int | None
) -> Array:
    """Return the scores of every photo and caption."""
    scores: Array = captioner.value().scores(photos, texts, n_threads=n_threads)
    return scores


run = Hu2019.reproduce
