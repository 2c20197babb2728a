"""Unsupervised discovery of multimodal links (Hessel, Lee and Mimno, EMNLP 2019).

Captioned photos are combined to documents of several sentences and several images. The systems
learn from documents without links. They are measured by the links that they find inside other
documents.

Collections, features and sizes are not those of the paper: see docs/experiments/hessel2019.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kernelcore._check import Array, check_choice, check_integer
from kernelcore.captions.tokens import tokenize
from kernelcore.datasets import Document, DocumentCollection
from kernelcore.evaluation import Published, Result, Table, evaluate_links
from kernelcore.evaluation.overlap import overlap_test
from kernelcore.evaluation.significance import holm
from kernelcore.experiments.corpus import Corpus
from kernelcore.experiments.documents import Photos, explain_auc
from kernelcore.experiments.page import (
    Files,
    beside_published,
    numbers_of,
    published_rows,
    result_table,
    run_section,
    section,
    side_by_side,
)
from kernelcore.experiments.result_files import read_files
from kernelcore.experiments.scores import printed
from kernelcore.experiments.steps import Source, key_of
from kernelcore.experiments.study import Found, Measured
from kernelcore.experiments.training import DeepStudy
from kernelcore.models import ChanceLinker, ObjectLabelLinker
from kernelcore.report import Section

SOURCE = "Hessel et al. 2019"
CHANCE, LABELS, NO_STRUCT, MAIN = "Random", "Obj Detect", "NoStruct", "AP"
_FEWEST_FOR_REGRESSION = 60


MODELS: Mapping[str, Mapping[str, Any]] = {
    NO_STRUCT: {"similarity": "NoStruct"},
    f"{NO_STRUCT}, mean of negatives": {"similarity": "NoStruct", "negatives": "mean"},
    "DC": {"similarity": "DC"},
    "TK half-k": {"similarity": "TK", "k": "half"},
    MAIN: {"similarity": "AP"},
    "AP half-k": {"similarity": "AP", "k": "half"},
}
"""Parameters of `kernelcore.deep.DocumentLinker` by which the models differ. Where documents
have as many sentences as images, TK equals DC. With the paper's loss, the hardest negative,
NoStruct may stay at chance: a random sentence and image of a document are rarely linked."""

SYSTEMS = (CHANCE, LABELS, *MODELS)
"""Names of all systems, in the order of the paper."""

PRINTED = tuple(printed(name) for name in (LABELS, NO_STRUCT, MAIN))
"""Systems that are run with the paper's own choices too."""


@dataclass(frozen=True)
class Recipe:
    """How the models are trained.

    Attributes
    ----------
    photos : {"joined", "whole"}
        Features of a photo, see `kernelcore.experiments.documents.Photos`.
    n_components, n_epochs, patience, n_warm_up, learning_rate, dropout, n_negatives, negatives
        Parameters of `kernelcore.deep.DocumentLinker`.
    """

    photos: str = "joined"
    n_components: int = 128
    n_epochs: int = 12
    patience: int | None = None
    n_warm_up: int = 1
    learning_rate: float = 2e-3
    dropout: float = 0.4
    n_negatives: int = 10
    negatives: str = "hardest"


OURS = Recipe()
"""Chosen on development documents."""

AS_PRINTED = Recipe(
    photos="whole", n_components=256, n_epochs=50, n_warm_up=0, learning_rate=1e-4
)
"""The paper's choices, but for the number of components, 1,024 in the paper."""


class Variant(NamedTuple):
    """A collection of documents.

    Attributes
    ----------
    description : str
    counterpart : str
        The most similar collection of the paper.
    options : mapping of str to Any
        For `Photos.documents`. The corpus has fewer photos than the paper, so that each is in
        many documents.
    explained : tuple of float, optional
        Share of the variance of AP's AUC that spread explains in the paper, and spread and
        content together, in percent.
    figures : str
        AUC, p@1 and p@5 of each system in the paper, in percent.
    n_warm_up : int
        Epochs of our recipe with the mean over all negatives. With the hardest one from the
        second epoch on, models that take half of the links stay near the loss of equal scores
        where most sentences have no image.
    """

    description: str
    counterpart: str
    options: Mapping[str, Any]
    figures: str
    explained: tuple[float, float] | None = None
    n_warm_up: int = OURS.n_warm_up

    @property
    def published(self) -> dict[str, Published]:
        """The figures of each system as a row of a table."""
        source, metrics = f"{self.counterpart}, {SOURCE}", ("AUC", "p@1", "p@5")
        rows = published_rows(source, self.figures, metrics, ("links",))
        return {row.system: row for row in rows}


VARIANTS: Mapping[str, Variant] = {
    "mixed": Variant(
        "5 photos with a caption each, 5 more photos and 5 more captions, all at random",
        "MSCOCO",
        {"documents_per_image": 20, "is_topical": False},
        """
        Random 49.7 5.0 4.6
        Obj Detect 89.5 67.7 45.9
        NoStruct 87.5 50.6 34.6
        DC 98.9 93.6 80.1
        TK half-k 99.0 95.0 81.1
        AP 98.7 91.0 78.0
        AP half-k 98.9 93.9 80.4
        """,
    ),
    "topical": Variant(
        "5 similar photos with a caption each",
        "Story-DII",
        {
            "documents_per_image": 10,
            "is_topical": True,
            "n_distractor_images": 0,
            "n_distractor_captions": 0,
        },
        """
        Random 49.4 19.5 19.2
        Obj Detect 65.3 50.2 35.2
        NoStruct 76.6 60.1 46.2
        DC 82.8 71.5 55.5
        TK half-k 82.0 72.6 54.9
        AP 82.6 70.5 55.0
        AP half-k 81.6 72.4 54.4
        """,
        (42, 52),
    ),
    "stress": Variant(
        "5 similar photos with a caption each, and 45 captions of other photos",
        "DII-Stress",
        {
            "documents_per_image": 4,
            "is_topical": True,
            "n_distractor_images": 0,
            "n_distractor_captions": 45,
        },
        """
        Random 50.0 2.0 2.0
        Obj Detect 76.9 25.7 17.5
        NoStruct 84.2 21.4 15.6
        DC 94.9 64.6 44.8
        TK half-k 94.7 64.0 43.7
        AP 95.3 65.5 45.7
        AP half-k 94.5 65.0 43.4
        """,
        (16, 38),
        n_warm_up=3,
    ),
}


@dataclass(kw_only=True)
class Hessel2019(DeepStudy):
    """The study of Hessel et al. (2019); `DeepStudy` documents its other options.

    Settings are chosen on ``val``.

    Parameters
    ----------
    variant : {"mixed", "topical", "stress"}, default "mixed"
        Documents of photos and captions at random, of similar photos, or of similar photos
        with many captions of others. See `VARIANTS`.
    n_components : int, optional
        Takes the place of that of both recipes, ours and the one as printed.
    """

    NAME = "hessel2019"
    TITLE = f"Links within documents, {SOURCE}"
    SYSTEMS, PRINTED = SYSTEMS, PRINTED
    SPLITS = ("test", "val")
    BEFORE = ("features of photos", "documents")

    variant: str = "mixed"
    n_components: int | None = None

    _corpus: str = field(init=False, repr=False)
    _photos: Photos = field(init=False, repr=False)
    _collection: DocumentCollection = field(init=False, repr=False)
    _documents: Sequence[Document] = field(init=False, repr=False)

    def check(self) -> None:
        """Check the variant and the options of training."""
        super().check()
        check_choice("variant", self.variant, tuple(VARIANTS))
        if self.n_components is not None:
            check_integer("n_components", self.n_components, minimum=1)

    def prepare(self) -> None:
        """Compute the features of photos and build the documents."""
        with self.stages.stage("features of photos"):
            corpus = Corpus.read(self.data)
            corpus.check_photos()
            self._corpus = corpus.identity(network=self.network, pooling=self.pooling)
            self._photos = Photos.of(
                corpus,
                word_vectors_file=self.word_vectors_file,
                pooling=self.pooling,
                **self.described,
            )
        with self.stages.stage("documents"):
            options = VARIANTS[self.variant].options
            self._collection = self._photos.documents(self.rng, **options)
        self._documents = self._collection.split(self.split)

    @property
    def collection(self) -> str:
        """Name of the folder of the files: one for each variant of documents."""
        return f"{self.NAME}-{self.variant}"

    def inputs(self) -> str:
        """Return the digest of the corpus, the documents, seed and recipe."""
        splits = [self._collection.split(split) for split in ("train", "val", "test")]
        documents = [
            [(d.sentences, d.images, sorted(d.links or ())) for d in s] for s in splits
        ]
        own = self.NAME, self.RECIPE, self.variant, self.split, self.rng
        return key_of(*own, documents, self._corpus)

    def settings_of(self, name: str) -> dict[str, Any]:
        """Return the model and the recipe of a system."""
        system, recipe = self._system(name)
        vectors = repr(self._photos.vectors)
        return {"model": MODELS.get(system), "recipe": asdict(recipe), "word vectors": vectors}

    def measure(self, name: str) -> Measured:
        """Score the links of the documents by one system, and evaluate them."""
        system, recipe = self._system(name)
        if system == CHANCE:
            drawn = ChanceLinker(rng=self.rng).link_scores(self._documents)
            shares = [
                len(d.links or ()) / (len(d.sentences) * len(d.images)) for d in self._documents
            ]
            about: dict[str, float] = {
                "documents": len(shares),
                "% of pairs that are links": 100 * float(np.mean(shares)),
            }
            found = Found(self._evaluated(name, drawn), numbers={"documents": about})
            return Measured({name: found}, {})
        if system == LABELS:
            kind = "all names" if name == system else "one name"
            own = self._photos.labels[kind]
            known = ObjectLabelLinker(self._photos.vectors, labels=own.names)
            known.fit(self._collection.split("val"), own.scores)
            results = self._evaluated(name, known.link_scores(self._documents, own.scores))
            return Measured(
                {name: Found(results)}, {"labels": kind, "n_labels": known.n_labels_}
            )
        linker = self._trained(name, MODELS[system], recipe)
        features = self._photos.features[recipe.photos]
        scores = linker.link_scores(self._documents, features, n_threads=self.n_threads)
        results = self._evaluated(name, scores)
        explained = self._explained(results["links"].values["links"]["AUC"])
        found = Found(results, numbers={"explained": explained} if explained else {})
        settings = {**asdict(recipe), **MODELS[system]}
        return Measured({name: found}, settings, list(linker.history_.epochs))

    def _system(self, name: str) -> tuple[str, Recipe]:
        """Return the plain name of a system, and its recipe with the options of the run."""
        sizes = {"n_epochs": self.n_epochs, "n_components": self.n_components}
        given: dict[str, Any] = {name: size for name, size in sizes.items() if size}
        if name in SYSTEMS:
            n_warm_up = VARIANTS[self.variant].n_warm_up
            return name, replace(OURS, n_warm_up=n_warm_up, **given)
        plain = next(own for own in SYSTEMS if printed(own) == name)
        return plain, replace(AS_PRINTED, **given)

    def _evaluated(self, name: str, scores: Sequence[Any]) -> dict[str, Result]:
        result = evaluate_links(
            scores,
            [document.links or () for document in self._documents],
            images=[document.images for document in self._documents],
            system=name,
            protocol=SOURCE,
            dataset=f"{self._photos.dataset.name}, {self.variant} documents",
            split=self.split,
        )
        return {"links": result}

    def _explained(self, auc: Array) -> dict[str, float]:
        """Regress the AUC of documents on their spread and content; in percent, with p."""
        if np.isfinite(auc).sum() < _FEWEST_FOR_REGRESSION:
            return {}
        whole, vectors = self._photos.features["whole"], self._photos.vectors
        explained = explain_auc(
            auc,
            [np.array([whole[name] for name in d.images]) for d in self._documents],
            [vectors.mean([tokenize(text) for text in d.sentences]) for d in self._documents],
            [d.images for d in self._documents],
        )
        shares = {name: 100 * of.r2 for name, of in explained.items()}
        return shares | {f"p of {name}": of.p_value for name, of in explained.items()}

    def _trained(self, name: str, options: Mapping[str, Any], recipe: Recipe) -> Any:
        """Train a model on documents without links, as a cached step."""
        from kernelcore.deep import DocumentLinker

        params: dict[str, Any] = {**asdict(recipe), **options}
        features, vectors = self._photos.features[params.pop("photos")], self._photos.vectors
        linker = DocumentLinker(**params, rng=self.rng, device=self.device)
        train = self._collection.without_links().split("train")
        dev = self._collection.split("val")
        known = {"dev": dev, "word_vectors": vectors, **self.shared}

        def fit(folder: Path) -> Any:
            return linker.fit(train, features, folder=folder, **known)

        texts = [[d.sentences, d.images] for part in (train, dev) for d in part]
        seen = np.array(list(features.values()))
        inputs = Source(None, texts, vectors.words, vectors.vectors, seen)
        return self.trained(name.replace(", ", "-").replace(" ", "-"), linker, fit, inputs)

    @classmethod
    def sections(cls, results: Path) -> list[Section]:
        """Make the tables of the page from the files of a folder: of each variant."""
        files = {own: read_files(results, f"{cls.NAME}-{own}") for own in VARIANTS}
        made = [
            replace(own, title=f"{own.title}, {variant}")
            for variant, known in files.items()
            for own in (*cls.tables(known, variant), run_section(known, (*SYSTEMS, *PRINTED)))
        ]
        explained = [(own, _explained_table(known, own)) for own, known in files.items()]
        return [*made, section("Hard documents", side_by_side(*explained))]

    @classmethod
    def tables(cls, files: Files, variant: str = "mixed") -> Iterator[Section]:
        """Make the tables of a variant from its files."""
        rows = beside_published(files, SYSTEMS, VARIANTS[variant].published)
        links = result_table(files, rows, "links", uncertainty="standard_error")
        both = ("", links), (f"difference to {MAIN}", _difference_table(files))
        yield section("Links", side_by_side(*both))


def _explained_table(files: Files, variant: str) -> Table:
    """Tabulate what regressions explain of the AUC of documents, and the sizes of these."""
    parts, own = ("spread", "content", "spread and content"), VARIANTS[variant]
    rows = [
        (name, *(f"{numbers[part]:.1f} ({numbers[f'p of {part}']:.2g})" for part in parts))
        for name, numbers in numbers_of(files, [*MODELS, *PRINTED], "explained").items()
    ]
    if rows and own.explained is not None:
        published = f"AP ({own.counterpart}, {SOURCE})"
        rows.append((published, f"{own.explained[0]}", "", f"{own.explained[1]}"))
    sizes = [
        f"{variant}: {numbers['documents']:,.0f} documents, of whose pairs "
        f"{numbers['% of pairs that are links']:.0f} % are links"
        for numbers in numbers_of(files, [CHANCE], "documents").values()
    ]
    return Table(("system", *parts), tuple(rows), caption="".join(sizes))


def _difference_table(files: Files) -> Table:
    """Test the differences of all systems to AP, over documents that share photos."""
    names = [name for name in (*SYSTEMS, *PRINTED) if name in files]
    known = {name: files[name].results["links"] for name in names}
    others = [name for name in known if name != MAIN]
    if MAIN not in known or not others:
        return Table((f"to {MAIN}", "difference"), ())
    own = known[MAIN]
    judged = np.flatnonzero(np.isfinite(own.values["links"]["AUC"]))
    items = [own.items[i] for i in judged.tolist()] if own.items is not None else []
    columns = {}
    for measure in own.columns:
        values = [known[name].values["links"][measure][judged] for name in others]
        columns[measure] = overlap_test(values, own.values["links"][measure][judged], items)
    p_values = holm(np.concatenate([test.p_value for test in columns.values()]))
    adjusted = np.asarray(p_values).reshape(len(columns), -1)
    rows = []
    for j, name in enumerate(others):
        tests = zip(columns.values(), adjusted[:, j], strict=True)
        cells = (
            f"{100 * test.difference[j]:+.1f} (p {'< 0.001' if p < 0.001 else f'= {p:.2g}'})"
            for test, p in tests
        )
        rows.append((name, *cells))
    return Table(
        (f"to {MAIN}", *columns),
        tuple(rows),
        caption="differences in percentage points, by t-tests that take into account that "
        "documents share photos, with Holm's correction for all cells",
    )


run = Hessel2019.reproduce
