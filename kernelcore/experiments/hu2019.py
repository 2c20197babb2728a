"""Binary image selection (Hu, Misra and van der Maaten, 2019).

Visual-semantic embeddings and stacked cross attention rank photos and captions, and tell
which of two photos a caption describes. Kernel CCA on the same features is a baseline that the
paper does not have. A captioner writes captions, and selects photos by the likelihood of a
caption.

Features, regions and training data are not those of the paper: see docs/experiments/hu2019.md.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.stats import kendalltau, rankdata, spearmanr

from kernelcore._check import Array
from kernelcore._ragged import take
from kernelcore.captions.normalize import english_pipeline
from kernelcore.evaluation import Published, Table
from kernelcore.experiments import kernel_systems as hodosh
from kernelcore.experiments.captioning import (
    NEAREST,
    nearest_captions,
    references_of,
    written_numbers,
)
from kernelcore.experiments.corpus import (
    SPLITS,
    Corpus,
    find_outside_corpus,
    joined,
    mean_of_regions,
)
from kernelcore.experiments.kernels import Kernels, compute_kernels, feature_steps, score
from kernelcore.experiments.page import (
    Files,
    main_sections,
    number_table,
    numbers_of,
    published_rows,
    result_table,
    section,
    selection_section,
    side_by_side,
    source_name,
)
from kernelcore.experiments.scores import Scores, evaluate_pool
from kernelcore.experiments.steps import Kind, Source, Step, Store
from kernelcore.experiments.study import Found, Measured
from kernelcore.experiments.training import TrainedStudy, identified
from kernelcore.experiments.words import Lexicon, check_pool
from kernelcore.report import Section

SOURCE = "Hu et al. 2019"
MAIN, CAPTIONER = "ConvNet+Bi-GRU", "CNN-LSTM, 256 units"
BEAM_SIZE = 3

TWO_NETWORKS = "KCCA, Tri5Sem, two networks"
KERNELS: Mapping[str, hodosh.System] = {
    "KCCA, one caption": hodosh.SYSTEMS["Tri1"],
    "KCCA, Tri5Sem": hodosh.SYSTEMS["Tri5Sem"],
    TWO_NETWORKS: hodosh.SYSTEMS["Tri5Sem"],
}
"""Caption kernels of Hodosh et al. (2013), for training images with one caption or with all.
With two networks, EfficientNet-Lite2 describes the photos, too."""

POOL = 2  # as in Hodosh et al.
"""Number of the caption of each image on which settings are chosen. A system of one caption is
also trained on this caption."""

KERNEL_GRID = hodosh.Grid(
    powers=(1.0,),
    n_components=(100, 150, 200, 300, 400),
    regularization=tuple(
        (photos, captions) for photos in (0.3, 1.0, 3.0) for captions in (0.3, 1.0, 3.0)
    ),
    ridge=(1.0,),
    correlation_power=(1.0, 2.0, 3.0),
)
"""Settings that are tried on the development split. The width of the kernel of photos is fixed:
half of the mean squared distance and twice as much do as well."""

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

_TABLE = published_rows(
    f"{SOURCE}, COCO-1K",
    """
    ConvNet+BoW     56.60 85.70   45.19 79.26
    ConvNet+Bi-GRU  61.16 89.02   49.34 82.22
    Obj+Bi-GRU      66.86 91.40   53.97 85.26
    SCAN i2t        67.00 92.62   52.35 84.44
    SCAN t2i        67.50 92.98   54.10 85.58
    """,
    ("R@1", "R@5"),
)
PUBLISHED: Mapping[str, Published] = {row.system: row for row in _TABLE}
"""Table 3 of the paper, by system: five folds of 1,000 photos of COCO, all five captions of
each."""

PUBLISHED_SELECTIONS = published_rows(
    f"{SOURCE}, COCO-BISON",
    """
    ConvNet+BoW     80.48
    ConvNet+Bi-GRU  81.75
    Obj+Bi-GRU      83.90
    SCAN i2t        84.94
    SCAN t2i        85.89
    """,
    ("accuracy",),
    ("selection",),
)
"""Accuracy of binary image selection in the same table."""

_ERRORS = ("errors", "judged", "accepted", "% of errors", "% of judged")


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
    BEFORE = ("captions", "features of photos")
    NUMBER = POOL
    SOURCE, SETTINGS = SOURCE, SETTINGS

    batch_size: int = 128
    outside_corpus: str | os.PathLike[str] | None = None
    spacy_model: str | None = None

    _kernels: KernelModels = field(init=False, repr=False)
    _by_two: Array = field(init=False, repr=False)

    def prepare(self) -> None:
        """Read the corpus and compute features."""
        with self.stages.stage("captions"):
            self.read()
        with self.stages.stage("features of photos"):
            self.describe()
            if {TWO_NETWORKS, SUM} & {*self.names}:
                other = {**self.described, "network": "efficientnet-lite2"}
                features = self.corpus.whole_photos(**other).features
                self._by_two = joined([self.whole, mean_of_regions(self.regions), features])
        wanted = {TWO_NETWORKS if name == SUM else name for name in self.names}
        if kernels := [own for name, own in KERNELS.items() if name in wanted]:
            self._kernels = KernelModels(
                self.corpus,
                self.store,
                kernels,
                outside_corpus=self.outside_corpus,
                spacy_model=self.spacy_model,
                **self.shared,
            )

    def settings_of(self, name: str) -> dict[str, Any]:
        """Return the parameters of a network; those of kernel CCA are chosen on dev."""
        if name in KERNELS:
            return {"outside_corpus": str(self.outside_corpus), "spacy": str(self.spacy_model)}
        params = {**self.params, "device": None}
        if name == CAPTIONER:
            return {**params, **CAPTIONER_SETTINGS}
        if name == SUM:
            how = {"weights": WEIGHTS, "kernel CCA": "logarithms of ranks"}
            return {**how, **self.settings_of(TWO_NETWORKS), **params}
        own = SYSTEMS[name]
        return {**params, **own.options, "images": own.images}

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
        ranker = getattr(deep, kind)(**{**self.params, **options})
        captions, vectors = self.raw_captions, self.embeddings
        return self.train(ranker, described, captions, word_vectors=vectors), described

    def _scored(self, name: str, split: str) -> tuple[Scores, Any]:
        """Train a system and score a split; return its ranker, too."""
        if name in KERNELS:
            features = self._by_two if name == TWO_NETWORKS else self.photos.value()
            return self._kernels.scores(KERNELS[name], features, split), None
        ranker, described = self._trained(name)
        every, pools = described.value(), self.corpus.pools
        new = take(every, self.corpus.photos(split)), pools[split].texts
        known = every, pools["train"].texts
        return self.scored(ranker, new, known, images=SYSTEMS[name].images), ranker

    def _summed(self) -> Scores:
        """Add up z-scores of kernel CCA and of the two best systems of the paper.

        All are corrected for hubs. The two and their weight are chosen on dev.
        """
        losses = {name: min(self._trained(name)[0].history_.dev_losses) for name in SYSTEMS}
        names = [TWO_NETWORKS, *sorted(losses, key=losses.__getitem__)[:2]]
        parts = {
            split: [z_scores(name, self._scored(name, split)[0]) for name in names]
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
            return evaluate_pool(annotation, pool, search=search).rsum / 100

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
                zip(_ERRORS, map(float, counts), strict=True)
            )
        return replace(super().found(name, annotation, search), numbers=numbers)

    def _measure_captioner(self) -> Measured:
        """Train the captioner; measure what it writes, and what it selects and ranks.

        Pairs are ranked by the likelihood of the caption given the photo, divided by its
        likelihood without a photo. The pool has one caption of each photo, because each pair
        costs a pass of the network over the caption.
        """
        from kernelcore.deep import Captioner

        own = {name: self.params[name] for name in ("batch_size", "device", "rng")}
        if self.n_epochs is not None:
            own["n_epochs"] = self.n_epochs
        captioner: Any = Captioner(**{**CAPTIONER_SETTINGS, **own})
        raw, pool = self.raw_captions, self.corpus.pools[self.split]
        captioner = self.train(captioner, self.photos, raw, word_vectors=None)
        run: dict[str, Any] = {"n_threads": self.n_threads}
        photos = self.photos.value()[self.corpus.photos(self.split)]
        written = {
            NEAREST: nearest_captions(self.corpus, self.photos.value(), self.split),
            CAPTIONER: captioner.generate(photos, beam_size=BEAM_SIZE, **run),
        }
        row_of = {name: row for row, name in enumerate(self.questions.image_ids)}
        text_of = dict(zip(pool.ids, pool.texts, strict=True))

        def likelihoods(images: Sequence[str], captions: Sequence[str]) -> Any:
            owners, own = [row_of[name] for name in images], [text_of[c] for c in captions]
            return captioner.log_likelihoods(photos, own, caption_image=owners, **run)

        columns = np.flatnonzero(pool.numbers == self.NUMBER)
        texts = [pool.texts[column] for column in columns]
        learned = captioner.get_params(), self.photos.key, raw["train"], raw["dev"]
        scores = np.zeros((len(photos), len(pool.texts)), np.float32)
        scores[:, columns] = Step(
            self.store,
            Kind.array("caption-ratios", 2),
            lambda *_: captioner.scores(photos, texts, **run),
            Source(None, *learned),
            photos,
            texts,
        ).value()
        named = {"number": self.NUMBER, "system": CAPTIONER, **self.labels}
        ranked = evaluate_pool(scores, pool, **named)
        found = Found(
            {ranked.pool: ranked, **self.questions.results(CAPTIONER, likelihoods)},
            numbers=written_numbers(written, references_of(pool), self.store),
        )
        history = list(captioner.history_.epochs)
        return Measured({CAPTIONER: found}, captioner.get_params(), history)

    @classmethod
    def tables(cls, files: Files) -> Iterator[Section]:
        """Make the tables of the page from the files."""
        rankers = (*KERNELS, *SYSTEMS, SUM)
        yield from main_sections(files, rankers, MAIN, PUBLISHED)
        one = result_table(files, cls.SYSTEMS, f"caption #{cls.NUMBER}")
        yield section("One caption of each image", one)
        yield selection_section(files, cls.SYSTEMS, PUBLISHED_SELECTIONS)
        yield section("Selection beside retrieval", _correlation_table(files))
        groups = dict.fromkeys(group for file in files.values() for group in file.numbers)
        errors = [
            (
                source_name(group.removeprefix("errors, ")),
                number_table(numbers_of(files, rankers, group)),
            )
            for group in groups
            if group.startswith("errors")
        ]
        yield section("Errors that people accept", side_by_side(*errors))
        captions = files[CAPTIONER].numbers if CAPTIONER in files else {}
        about = {"label": "captions", "caption": "Metrics of the COCO evaluation, times 100"}
        yield section("Captions written", number_table(captions, **about))


class KernelModels:
    """Rank all captions of a split for its photos, and all photos for its captions.

    Photos are compared by a radial basis function of their features. For each task the five
    best settings on the development split by R@1, R@5 and R@10 are combined by Borda's count.

    Parameters
    ----------
    corpus : Corpus
    store : Store
    systems : iterable of System
        Systems whose resources must be there.
    grid : Grid, default KERNEL_GRID
    outside_corpus : path, optional
        Tagged text for word similarities; the default is ``brown_tagged.txt`` in the folder of
        the corpus or in ``brown`` beside it.
    spacy_model : str, optional
        Pipeline that tags captions; the default is an English one that is installed.
    **run
        Threads and progress.

    Raises
    ------
    ValueError
        If an image of the three splits has no caption number `POOL`.
    FileNotFoundError, MissingExtraError
        If photos are missing, or an outside corpus or a pipeline that the systems need.
    """

    def __init__(
        self,
        corpus: Corpus,
        store: Store,
        systems: Iterable[hodosh.System],
        *,
        grid: hodosh.Grid = KERNEL_GRID,
        outside_corpus: str | os.PathLike[str] | None = None,
        spacy_model: str | None = None,
        **run: Any,
    ) -> None:
        self._lexicon = Lexicon(
            corpus,
            store,
            spacy_model=spacy_model or english_pipeline(),
            outside_corpus=outside_corpus or find_outside_corpus(corpus.folder),
            progress=run["progress"],
        )
        self._dataset = self._lexicon.dataset
        check_pool(self._dataset, SPLITS, POOL)
        for system in systems:
            self._lexicon.steps(system.lexical)  # raises now, not after hours of training
        place = {path: i for i, path in enumerate(corpus.files)}
        paths = self._dataset.paths
        self._order = np.array([place[path] for path in paths if path is not None])
        self._store, self._grid, self._run = store, grid, run

    def scores(self, system: hodosh.System, features: Array, split: str) -> Scores:
        """Train a system and score the photos and captions of a split, as cached steps.

        Parameters
        ----------
        system : System
        features : ndarray of shape (n_photos, n_features)
            A description of the photos of ``corpus.files``, in their order; see
            `kernelcore.experiments.corpus.joined`.
        split : {"dev", "test"}

        Returns
        -------
        Scores
            Rows are the photos of the split in the order of ``corpus.files``, columns the
            captions of ``corpus.pools[split]``. They come as they are and corrected for hubs.
        """
        photos = feature_steps(self._dataset, features[self._order], self._store)
        inputs = self._lexicon, photos, self._store, self._grid
        kernels = Kernels(*inputs, pool=POOL, **self._run)
        step = score(system, split, kernels, every=True)
        compute_kernels([step], **self._run)
        scores, rows = step.value(), np.argsort(self._order[self._dataset.split(split)])
        ordered = [one[rows] for _, *pair in scores.variants("") for one in pair]
        return Scores(ordered[0], ordered[1], scores.settings, (ordered[2], ordered[3]))


def z_scores(name: str, scores: Scores) -> tuple[Array, Array]:
    """Return z-scores of the candidates of each query, corrected for hubs.

    The counts of Borda by which kernel CCA ranks lie as close together among the first
    candidates as among the last. Logarithms of their ranks tell the first ones apart.
    """
    assert scores.corrected is not None, "all systems are corrected"
    annotation, search = (
        -np.log(rankdata(-own, axis=axis)) if name in KERNELS else own
        for axis, own in zip((1, 0), scores.corrected, strict=True)
    )
    return _standardized(annotation, 1), _standardized(search, 0)


def _standardized(scores: Array, axis: int) -> Array:
    """Bring scores to mean 0 and variance 1; scores that are all alike become 0."""
    deviations = scores - scores.mean(axis, keepdims=True)
    standardized: Array = deviations / np.maximum(scores.std(axis, keepdims=True), 1e-12)
    return standardized


def _correlation_table(files: Files) -> Table:
    """Tabulate the rank correlation of selection and search over the systems."""
    own = [files[name].results for name in (*KERNELS, *SYSTEMS) if name in files]
    rows = []
    for source, result in own[0].items() if len(own) > 2 else ():
        if "selection" not in result.values:
            continue
        accuracies = [results[source].mean["selection"]["accuracy"] for results in own]
        cells = []
        for metric in ("R@1", "R@5", "R@10"):
            recalls = [results["all captions"].mean["search"][metric] for results in own]
            if np.ptp(accuracies) and np.ptp(recalls):
                both = spearmanr(accuracies, recalls), kendalltau(accuracies, recalls)
                cells.append("{:.2f} ({:.2f})".format(*(found.statistic for found in both)))
            else:
                cells.append("")
        rows.append((source_name(source), *cells))
    return Table(
        ("triples", "search R@1", "search R@5", "search R@10"),
        tuple(rows),
        caption="Spearman's correlation of the accuracy with a recall, in brackets Kendall's, "
        f"over {len(own)} systems as they are",
    )


run = Hu2019.reproduce
