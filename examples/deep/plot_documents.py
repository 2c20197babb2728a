"""
Links inside documents
======================

A document has sentences and images. A linker finds which sentence belongs to which image, and
is never told in training.
"""

# %%
# Documents of drawn scenes: three pairs, one more image, and one more caption. A scene stands
# in 25 of them: more mixtures of the same photos help.

import json
import tempfile
from pathlib import Path

import numpy as np

from kernelcore.datasets import (
    build_documents,
    load_documents,
    load_recipeqa,
    load_vist,
    make_scenes,
)
from kernelcore.deep import DocumentLinker
from kernelcore.evaluation import ResultTable, evaluate_links
from kernelcore.lexical import learn_word_vectors
from kernelcore.models import ChanceLinker, ObjectLabelLinker
from kernelcore.report import link_figure

scenes = make_scenes(150, size=(48, 64))
documents = build_documents(
    scenes.dataset,
    n_pairs=3,
    n_distractor_images=1,
    n_distractor_captions=1,
    documents_per_image=25,
    rng=0,
)
test = documents.split("test")
document = test[0]
print(documents, document)

# %%
# The features of an image say what a perfect detector would see: which kinds of things.

kinds = sorted({thing.kind for own in scenes.scenes for thing in (own.agent, own.patient)})
features = {
    name: np.array([kind in (own.agent.kind, own.patient.kind) for kind in kinds], float)
    for name, own in zip(scenes.dataset.image_ids, scenes.scenes, strict=True)
}
hidden = documents.without_links()
linker = DocumentLinker(
    n_components=32,
    n_embedding=32,
    n_epochs=9,
    n_warm_up=9,
    learning_rate=0.02,
    dropout=0.0,
    rng=0,
)
linker.fit(hidden.split("train"), features, dev=hidden.split("val"))

# %%
# Two baselines: chance, and the names of what the detector sees.

sentences = [
    text.lower().rstrip(".").split() for own in scenes.dataset.captions for text in own
]
vectors = learn_word_vectors(sentences, n_dimensions=30, min_count=1)
seen = {name: row / row.sum() for name, row in features.items()}
labels = ObjectLabelLinker(vectors, labels=kinds, n_labels=2).fit()
linked = {
    "linker": linker.link_scores(test, features),
    "labels": labels.link_scores(test, seen),
    "chance": ChanceLinker(rng=0).link_scores(test),
}
links = [own.links or () for own in test]
results = [evaluate_links(scores, links, system=name) for name, scores in linked.items()]
result = results[0]
print(ResultTable(results, uncertainty="standard_error"))

# %%
# The links of one document:

pictures = dict(zip(scenes.dataset.image_ids, scenes.images, strict=True))
link_figure(document, linked["linker"][0], pictures, system="linker").to_matplotlib()

# %%
# Files of the published collections:

folder = Path(tempfile.mkdtemp())
garden = [[["dog.jpg", 0]], [["A dog digs.", -1], ["It was May.", -1]], "garden"]
(folder / "year.json").write_text(json.dumps({"test": [garden]}))
print(load_documents(folder / "year.json"))

step = {"body": "Cut the bread.", "images": ["toast_0_0.jpg"]}
recipes = {
    "data": [{"recipe_id": "toast", "context": [step, {"body": "Toast it.", "images": []}]}]
}
(folder / "recipes").mkdir()
(folder / "recipes" / "val.json").write_text(json.dumps(recipes))
print(load_recipeqa(folder / "recipes"))

told = {"album_id": "7", "photo_flickr_id": "11", "original_text": "A dog."}
rows = [[{**told, "photo_order_in_story": 0}]]
rows.append([{**told, "photo_flickr_id": "12", "photo_order_in_story": 1}])
(folder / "albums").mkdir()
path = folder / "albums" / "val.description-in-isolation.json"
path.write_text(json.dumps({"annotations": rows}))
print(load_vist(folder / "albums", n_photos=2))
