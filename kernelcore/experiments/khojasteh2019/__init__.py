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
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from kernelcore._check import Array
from kernelcore.deep import Captioner, OrderRanker
from kernelcore.evaluation import Result, evaluate
from kernelcore.experiments.captioning import (
    PUBLISHED_WRITERS,
    references_of,
    writing_section,
)
from kernelcore.experiments.khojasteh2019.findings import (
    beside_the_thesis,
    figures,
    lists_section,
    single_section,
    training_sections,
)
from kernelcore.experiments.khojasteh2019.ordering import (
    Ordering,
    Values,
    comparison_section,
    order_section,
)
from kernelcore.experiments.khojasteh2019.published import PUBLISHED, SOURCE
from kernelcore.experiments.khojasteh2019.scoring import (
    OrderScores,
    joined_pool,
    likelihood_ratios,
    likelihoods,
    summed_by_photo,
)
from kernelcore.experiments.khojasteh2019.systems import (
    BATCH_SIZE,
    LANGUAGE,
    NO_ORDER,
    PRINTED,
    SETTINGS,
    SYSTEMS,
    THESIS,
    System,
)
from kernelcore.experiments.scores import Scores, hub_corrected_name
from kernelcore.experiments.sections import photo_recalls
from kernelcore.experiments.steps import Kind, Source, Step
from kernelcore.experiments.study import StudyResults
from kernelcore.experiments.training import TrainedStudy
from kernelcore.lexical import WordVectors
from kernelcore.report import Section

__all__ = ["PUBLISHED", "SYSTEMS", "Khojasteh2019", "Ordering", "System", "run"]

_EVERY: Mapping[str, System] = {**SYSTEMS, **PRINTED}


@dataclass(kw_only=True)
class Khojasteh2019(TrainedStudy[OrderScores]):
    """The study of Khojasteh (2019); `TrainedStudy` documents its options.

    Systems with a batch size of their own keep it.
    """

    NAME = "khojasteh2019"
    TITLE = f"Order embeddings, {SOURCE}"
    SYSTEMS, PRINTED, MAIN = SYSTEMS, PRINTED, THESIS
    BEFORE = ("captions", "regions of photos")
    AFTER = ("binary image selection",)
    SOURCE, SETTINGS, PUBLISHED = SOURCE, SETTINGS, PUBLISHED

    batch_size: int = BATCH_SIZE

    _images: dict[str, Source[Array]] = field(init=False, repr=False)
    _vectors: dict[str, WordVectors | None] = field(init=False, repr=False)

    def prepare(self) -> None:
        """Read the corpus and compute the features of photos."""
        with self.stages.stage("captions"):
            self.read()
        with self.stages.stage("regions of photos"):
            self.describe()
        whole = Source(self.whole_photos())
        self._images = {"joined": self.photos, "whole": whole}
        self._vectors = {"joined": self.embeddings, "pretrained": self.vectors, "none": None}

    def _trained(self, name: str) -> Any:
        """Train a system."""
        system = _EVERY[name]
        params = {
            "batch_size": self.batch_size,
            **system.options,
            "n_epochs": self.n_epochs or system.n_epochs,
            "device": self.device,
            "rng": self.rng,
        }
        kind = OrderRanker if system.ranks_by == "order" else Captioner
        return self.train(
            kind(**params),
            self._images[system.photos],
            {own: self.raw_captions(own) for own in ("train", "dev")},
            word_vectors=self._vectors[system.vectors],
        )

    def score(self, name: str) -> OrderScores:
        """Train a system and score joined and single captions of the split."""
        system, ranker = _EVERY[name], self._trained(name)
        photos = self._images[system.photos].value()
        params = {**ranker.get_params(), "best_epoch": ranker.history_.best_epoch + 1}
        if system.ranks_by == "order":
            return self._by_order(ranker, photos, params)
        return self._by_likelihood(ranker, photos, system, params)

    def _by_order(
        self, ranker: OrderRanker, photos: Array, settings: Mapping[str, Any]
    ) -> OrderScores:
        """Score photos and captions by an order embedding."""
        split = self.split
        own = photos[self.corpus.photos(split)]
        pools = {part: self.corpus.pools[part] for part in (split, "train")}
        kinds = {
            "joined captions": {part: joined_pool(pool) for part, pool in pools.items()},
            "single captions": pools,
        }
        run: dict[str, Any] = {"n_threads": self.n_threads}
        found, orderings = {}, {}
        for kind, pool in kinds.items():
            texts = pool[split].texts
            scores = ranker.scores(own, texts, **run)
            known = photos, pool["train"].texts
            corrected = self.hub_corrected(ranker, scores, (own, texts), known)
            found[kind] = Scores(scores, scores, settings, corrected=corrected)
            owners = np.unique(pool[split].photos, return_inverse=True)[1]
            orderings[kind] = Ordering.of(ranker, own, texts, owners, **run)
        single = found["single captions"]
        return OrderScores(
            single.annotation,
            single.search,
            settings,
            corrected=single.corrected,
            history=ranker.history_,
            joined=found["joined captions"],
            orderings=orderings,
        )

    def _by_likelihood(
        self,
        ranker: Captioner,
        photos: Array,
        system: System,
        settings: Mapping[str, Any],
    ) -> OrderScores:
        """Score photos and captions by a language model; joined captions have sums."""
        pool = self.corpus.pools[self.split]
        images = photos[self.corpus.photos(self.split)]
        weights = [weight.cpu().numpy() for weight in ranker.space_.state_dict().values()]
        scores = Step(
            self.store,
            Kind.array("likelihoods", 1),
            partial(likelihoods, n_threads=self.n_threads),
            Source(ranker, list(ranker.vocabulary_.words), *weights),
            images,
            list(pool.texts),
        ).value()
        if system.ranks_by == "ratio":
            scores = likelihood_ratios(
                ranker, images, pool.texts, scores, n_threads=self.n_threads
            )
        joined = summed_by_photo(scores, pool)
        return OrderScores(
            scores,
            scores,
            settings,
            history=ranker.history_,
            ranker=ranker,
            joined=Scores(joined, joined, settings),
        )

    def page_results(self, scored: Mapping[str, OrderScores]) -> list[Result]:
        """Rank the joined captions of the split."""
        return [
            evaluate(
                annotation,
                search,
                system=variant,
                pool="joined captions",
                settings=own.settings,
                **self.labels,
            )
            for name, own in scored.items()
            for variant, annotation, search in own.joined.variants(name)
        ]

    def _photo_recalls(self, own: OrderScores) -> list[Values]:
        """Mean recall of each photo and its joined captions: plain, then corrected for hubs."""
        pool = joined_pool(self.corpus.pools[self.split])
        return [
            photo_recalls(evaluate(annotation, search, n_threads=self.n_threads), pool)
            for _, annotation, search in own.joined.variants("")
        ]

    def findings(self, scored: Mapping[str, OrderScores]) -> StudyResults:
        """Evaluate joined captions, single captions and orders."""
        joined = self.page_results(scored)
        pool = joined_pool(self.corpus.pools[self.split])
        with self.stages.stage("binary image selection"):
            selections = self.selection_section(scored)
        published = {THESIS: PUBLISHED[0]} if self.published else {}
        return StudyResults(
            self.TITLE,
            (*joined, *self.published),
            self.stages,
            sections=(
                *self.shared_sections(joined, published, pool),
                *self._order_sections(scored),
                selections,
                single_section(self.evaluate(scored)),
                lists_section(scored, self.corpus.pools[self.split]),
                *self._sections(joined, scored),
            ),
            figures=partial(figures, THESIS if THESIS in scored else self.names[0], scored),
            settings=self.settings_of_run(
                self.n_epochs or {name: _EVERY[name].n_epochs for name in self.names}
            ),
            summary=(
                "Made by `kernelcore reproduce khojasteh2019`. In the first table, all "
                "captions of an image are joined into one text, as in the thesis. The figures "
                "of the thesis are on COCO. The best epoch on dev is kept."
            ),
        )

    def _order_sections(self, scored: Mapping[str, OrderScores]) -> Iterator[Section]:
        if THESIS in scored and NO_ORDER in scored:
            yield self._comparison(scored)
        orderings = {name: own.orderings for name, own in scored.items() if own.orderings}
        if orderings:
            yield order_section(orderings)

    def _comparison(self, scored: Mapping[str, OrderScores]) -> Section:
        """Compare the model of the thesis with its variant without an order."""
        names = THESIS, NO_ORDER
        values: dict[str, list[Values]] = {}
        for name in names:
            ordering = scored[name].orderings["joined captions"]
            plain, corrected = self._photo_recalls(scored[name])
            measures = {
                "mean recall (%)": plain,
                "mean recall, hubs corrected (%)": corrected,
                "penalty, true / mismatched": ordering.ratios,
                "mismatched above true (%)": 100 * ordering.shares,
            }
            for measure, one in measures.items():
                values.setdefault(measure, []).append(one)
        return comparison_section(values, names, n_threads=self.n_threads)

    def _sections(
        self, joined: Sequence[Result], scored: Mapping[str, OrderScores]
    ) -> Iterator[Section]:
        if self.published:
            best = {result.system: result for result in joined}
            shown = hub_corrected_name(THESIS), THESIS, joined[0].system
            yield beside_the_thesis(next(best[name] for name in shown if name in best))
        if LANGUAGE in scored:
            yield self._written(scored[LANGUAGE].ranker)
        yield from training_sections(scored)

    def _written(self, captioner: Captioner) -> Section:
        """Measure the captions that the language model writes."""
        photos = self.photos.value()[self.corpus.photos(self.split)]
        written = {
            f"{LANGUAGE}, beam of {beam_size}": captioner.generate(
                photos, beam_size=beam_size, n_threads=self.n_threads
            )
            for beam_size in (1, 3, 5)
        }
        references = references_of(self.corpus.pools[self.split])
        return writing_section(
            written,
            references,
            published=PUBLISHED_WRITERS if self.published else {},
            store=self.store,
        )


run = Khojasteh2019.reproduce
