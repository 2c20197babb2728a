"""Framing image description as a ranking task (Hodosh, Young and Hockenmaier, JAIR 47, 2013).

Photos are compared by spatial pyramids of colour, texture and SIFT words, captions by text
kernels. The rankers are kernel CCA and nearest neighbours. Training images have all their
captions; the pools of the other splits have one caption per image. For each system and task,
the five best settings on ``dev`` by each of R@1, R@5 and R@10 are combined by Borda's count.
No setting is chosen on the reported split.

Choices that the paper leaves open are named in `GRID` and in docs/experiments/hodosh2013.md.
Systems as printed have those of `PRINTED_GRID`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from math import erfc, sqrt
from pathlib import Path
from typing import Any

from kernelcore._extras import require
from kernelcore._store import digest
from kernelcore._threads import cached_property
from kernelcore.captions.normalize import english_pipeline
from kernelcore.datasets import CaptionedImages
from kernelcore.evaluation import Published, Table, compare, evaluate
from kernelcore.experiments.corpus import SPLITS, Corpus, find_outside_corpus
from kernelcore.experiments.judges import Judges
from kernelcore.experiments.kernel_systems import GRID, PRINTED, PRINTED_GRID, SYSTEMS, Grid
from kernelcore.experiments.kernels import (
    BASES,
    KERNELS,
    Kernels,
    compute_kernels,
    describe_photos,
    pyramid_steps,
    score,
)
from kernelcore.experiments.page import (
    Files,
    main_sections,
    number_table,
    numbers_of,
    on_test,
    section,
)
from kernelcore.experiments.scores import Scores, hub_corrected_name, printed
from kernelcore.experiments.steps import Step, key_of
from kernelcore.experiments.study import Found, Measured, Study
from kernelcore.experiments.words import WORDS, Lexicon, check_pool
from kernelcore.models.base import TASKS
from kernelcore.report import Section

SOURCE = "Hodosh et al. 2013"
BASELINE = "Tri5Sem"
"""The paper's best system, the baseline of all comparisons."""
SHOWN = ("NN_F1^idf", "BoW1", "BoW5", "TagRank", "Tri5", BASELINE)
"""Systems of the paper's tables 1 and 2, whose first captions experts scored."""
AGREEMENT = "agreement of judges"
"""No system: how experts, the crowd and text metrics agree."""

PUBLISHED = Published(
    BASELINE,
    SOURCE,
    {
        "annotation": {"R@1": 0.083, "R@5": 0.216, "R@10": 0.303, "median_rank": 34},
        "search": {"R@1": 0.076, "R@5": 0.207, "R@10": 0.301, "median_rank": 38},
    },
)
"""The only row of the paper that we know, read in table 2 of Karpathy et al. (2014): 1,000
test images with caption #2 of each."""


@dataclass(kw_only=True)
class Hodosh2013(Study):
    """The study of Hodosh et al. (2013); `Study` documents the options that all studies have.

    The cache holds the histograms of photos, word similarities, Gram matrices, bases, and the
    scores of each system. All 30 systems take about 5 GB.

    Parameters
    ----------
    pool : int, default 2
        Number of the caption of each image that is in the pool: 2 in the paper.
    grid : Grid, default GRID
        Settings to try.
    printed_grid : Grid, default PRINTED_GRID
        The same for the systems as printed.
    wordnet_dir : path, default "/usr/share/wordnet"
        Folder of the WordNet database, for the similarity Lin.
    outside_corpus : path, optional
        Tagged text for the similarity D_out; the default is ``brown_tagged.txt`` in `data`
        or in ``brown`` beside it.
    spacy_model : str, optional
        Pipeline that tags captions for the similarity A (extra ``text``); the default is
        an English one that is installed.
    spelling : path, optional
        Text file of correct words, one a line, for the systems as printed. Without one
        their spelling is not corrected.
    """

    NAME = "hodosh2013"
    TITLE = f"Sentence-based image description, {SOURCE}"
    SYSTEMS = (*SYSTEMS, AGREEMENT)
    PRINTED = PRINTED
    BEFORE = ("captions", "histograms of photos", WORDS, KERNELS, BASES)

    pool: int = 2
    grid: Grid = GRID
    printed_grid: Grid = PRINTED_GRID
    wordnet_dir: str | os.PathLike[str] = "/usr/share/wordnet"
    outside_corpus: str | os.PathLike[str] | None = None
    spacy_model: str | None = None
    spelling: str | os.PathLike[str] | None = None

    _dataset: CaptionedImages = field(init=False, repr=False)
    _steps: dict[str, Step[Scores]] = field(init=False, repr=False)

    def check(self) -> None:
        """Check the packages and the list of words, and find what is not given."""
        every = {**SYSTEMS, **PRINTED}
        if any("A" in every[name].lexical for name in self.names if name in every):
            require("spacy")
        if self.spelling is not None and not Path(self.spelling).is_file():
            raise FileNotFoundError(
                "spelling must be a list of words, and there is no file "
                f"{os.fspath(self.spelling)}"
            )
        self.outside_corpus = self.outside_corpus or find_outside_corpus(self.data)
        self.spacy_model = self.spacy_model or english_pipeline()

    def prepare(self) -> None:
        """Read the corpus and compute the kernels and bases of all systems."""
        every = {**SYSTEMS, **PRINTED}
        systems = {name: every[name] for name in self.names if name != AGREEMENT}
        grids = {name in PRINTED: self._grid(name) for name in systems}
        with self.stages.stage("captions"):
            corpus = Corpus.read(self.data)
            self._dataset = corpus.in_splits()
            learned = {"train" for system in systems.values() if system.single}
            check_pool(self._dataset, {"dev", self.split} | learned, self.pool)
            words = {kind: self._lexicon(corpus, grid) for kind, grid in grids.items()}
            for name, system in systems.items():
                words[name in PRINTED].steps(system.lexical)  # raises now, not after hours
        with self.stages.stage("histograms of photos"):
            recipes = {key_of(r): r for grid in grids.values() for r in grid.visual_words}
            run = {"cache_dir": self.cache_dir, **self.shared}
            described = {
                key: describe_photos(self._dataset, recipe, self.store, **run)
                for key, recipe in recipes.items()
            }
        kernels = {}
        for kind, grid in grids.items():
            features = [one for r in grid.visual_words for one in described[key_of(r)]]
            photos = pyramid_steps(features, self.store, mirror=grid.mirror, **self.shared)
            inputs = words[kind], photos, self.store, grid
            kernels[kind] = Kernels(*inputs, pool=self.pool, **self.shared)
        self._steps = {
            name: score(system, self.split, kernels[name in PRINTED])
            for name, system in systems.items()
        }
        compute_kernels(self._steps.values(), self.stages.stage, **self.shared)

    def _lexicon(self, corpus: Corpus, grid: Grid) -> Lexicon:
        """Encode the captions, with their spelling corrected if the grid says so."""
        return Lexicon(
            corpus,
            self.store,
            spacy_model=str(self.spacy_model),
            spelling=self.spelling if grid.spelling else None,
            wordnet_dir=self.wordnet_dir,
            outside_corpus=self.outside_corpus,
            progress=self.progress,
        )

    @cached_property
    def _judges(self) -> Judges | None:
        return Judges.of(self.data, self._dataset, self.split, self.pool)

    def _grid(self, name: str) -> Grid:
        return self.printed_grid if name in PRINTED else self.grid

    def inputs(self) -> str:
        """Return the digest of captions, photos, split, pool and recipe."""
        dataset = self._dataset
        rows = [i for split in SPLITS for i in dataset.split(split)]
        texts = [(dataset.image_ids[i], dataset.captions[i]) for i in rows]
        photos = digest(*(Path(str(dataset.paths[i])).read_bytes() for i in rows))
        return key_of(self.NAME, self.RECIPE, self.split, self.pool, texts, photos)

    def settings_of(self, name: str) -> dict[str, Any]:
        """Return the system, its grid, and the resources of words."""
        files = {"outside corpus": self.outside_corpus, "spelling": self.spelling}
        return {
            "system": asdict({**SYSTEMS, **PRINTED}[name]) if name != AGREEMENT else None,
            "grid": asdict(self._grid(name)),
            "spaCy pipeline": self.spacy_model,
            **{kind: path and Path(path).name for kind, path in files.items()},
        }

    def measure(self, name: str) -> Measured:
        """Choose settings, rank photos and captions, and compare with judgments."""
        if name == AGREEMENT:
            numbers = {} if self._judges is None else self._judges.agreement()
            return Measured({name: Found(numbers=numbers)}, {})
        scores = self._steps[name].value()
        found = {
            variant: self._found(variant, *both) for variant, *both in scores.variants(name)
        }
        return Measured(found, {**self.settings_of(name), **scores.settings})

    def _found(self, name: str, annotation: Any, search: Any) -> Found:
        labels: dict[str, Any] = {
            "system": name,
            "pool": f"caption #{self.pool}",
            "protocol": SOURCE,
            "dataset": self._dataset.name,
            "split": self.split,
        }
        ranked = evaluate(annotation, search, n_threads=self.n_threads, **labels)
        if self._judges is None:
            return Found({ranked.pool: ranked})
        crowd = self._judges.crowd_result(annotation, search, **labels)
        experts = self._judges.first_numbers(annotation)
        return Found({ranked.pool: ranked, "crowd": crowd}, numbers={"experts": experts})

    @classmethod
    def tables(cls, files: Files) -> Iterator[Section]:
        """Make the tables of the page from the files."""
        pool = f"caption #{cls.pool}"
        yield from main_sections(
            files, tuple(SYSTEMS), BASELINE, {BASELINE: PUBLISHED}, pool=pool
        )
        yield section("Comparison with the paper", _paper_table(files, pool))
        yield section("Human judgments of relevance", *_crowd_tables(files))
        shown = (*SHOWN, printed(BASELINE), hub_corrected_name(BASELINE))
        experts = number_table(numbers_of(files, shown, "experts"), caption="In percent")
        yield section("Expert scores of the first caption", experts)
        agreement = files[AGREEMENT].numbers if AGREEMENT in files else {}
        groups = [
            {name: own for name, own in agreement.items() if key in own}
            for key in ("relevant", "alpha", "kappa")
        ]
        agreements = [number_table(own, label="measure") for own in groups]
        yield section("Agreement of judges", *agreements)


def _crowd_tables(files: Files) -> list[Table]:
    """Tabulate success at k and R-precision, with tests against the paper's best system."""
    every = (*SYSTEMS, *PRINTED, hub_corrected_name(BASELINE))
    names = [name for name in every if name in files]
    known = [files[name].results["crowd"] for name in names if "crowd" in files[name].results]
    if len(known) < 2 or BASELINE not in names:
        return []
    return [compare(known, baseline=BASELINE, correction="holm", rng=0).to_table()]


def _paper_table(files: Files, pool: str) -> Table:
    """Test the paper's best system against its published figures, by an unpaired z test."""
    rows = []
    for name in (printed(BASELINE), BASELINE):
        if name not in files or not on_test(files):
            continue
        result = files[name].results[pool]
        for task in TASKS:
            theirs, n = PUBLISHED.values[task], len(result.values[task]["R@1"])
            for metric in ("R@1", "R@5", "R@10"):
                ours, share = result.mean[task][metric], theirs[metric]
                z, p = shares_test(ours, n, share, 1000)
                cells = f"{100 * ours:.1f}", f"{100 * share:.1f}", f"{z:.2f}", f"{p:.2g}"
                rows.append((name, f"{task} {metric}", *cells))
    return Table(("system", "metric", "here", "published", "z", "p"), tuple(rows), n_labels=2)


def shares_test(
    first: float, n_first: int, second: float, n_second: int
) -> tuple[float, float]:
    r"""Return z and the two-sided p-value of the unpaired test that two shares are equal.

    .. math:: z = \frac{p_1 - p_2}{\sqrt{p (1 - p) (1 / n_1 + 1 / n_2)}}, \qquad
        p = \frac{n_1 p_1 + n_2 p_2}{n_1 + n_2}
    """
    pooled = (n_first * first + n_second * second) / (n_first + n_second)
    if pooled in (0, 1):
        return 0.0, 1.0
    z = (first - second) / sqrt(pooled * (1 - pooled) * (1 / n_first + 1 / n_second))
    return z, erfc(abs(z) / sqrt(2))


run = Hodosh2013.reproduce
