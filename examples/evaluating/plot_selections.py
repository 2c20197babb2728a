"""
Which of two photos?
====================

Binary image selection asks which of two similar photos a caption describes. The second photo is
known to be wrong.
"""

# %%
# Questions from captions alone: the second photo is the nearest neighbour of the first, by
# their captions.

import json
import tempfile
from itertools import chain
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from kernelcore.captions import CaptionNormalizer
from kernelcore.datasets import (
    BinarySelections,
    RelevanceJudgments,
    SelectionTriple,
    judged_selections,
    load_bison,
    make_scenes,
    neighbour_selections,
)
from kernelcore.evaluation import (
    ResultTable,
    compare,
    evaluate_selections,
)
from kernelcore.lexical import learn_word_vectors

(photos,) = make_scenes(300, rng=4, size=(32, 32)).dataset.split_sets("test")
words = CaptionNormalizer().normalize_images(photos.captions)
vectors = learn_word_vectors(chain(*words), n_dimensions=30)
means = vectors.mean([list(chain(*own)) for own in words])
selections = neighbour_selections(photos, means, words, max_overlap=0.6)
print(selections)
triple = selections.triples[0]
print(triple.caption)

# %%
# Two models score photos and captions, one of them with more noise:

rng = np.random.default_rng(0)
pool = photos.pool()
right = pool.caption_image == np.arange(len(photos))[:, None]
results = []
for name, noise in (("sharp", 0.5), ("blurred", 1.5)):
    scores = right + noise * rng.normal(size=right.shape)
    ids = {"image_ids": photos.image_ids, "caption_ids": pool.caption_ids}
    results.append(evaluate_selections(selections, scores, **ids, system=name))
result = results[0]
print(ResultTable(results))
print(compare(results, rng=0))

figure, ax = plt.subplots(layout="constrained")
low, high = np.transpose([own.interval()["selection"]["accuracy"] for own in results])
means = np.array([own.mean["selection"]["accuracy"] for own in results])
ax.bar([own.system for own in results], means, yerr=[means - low, high - means], capsize=6)
ax.axhline(0.5, color="black", linestyle=":")
ax.set(ylabel="accuracy", ylim=(0, 1))

# %%
# Other questions come from human judgments: a caption that people found right for one photo and
# wrong for another.

gold = RelevanceJudgments.gold(photos)
wrong = [(image, pool.caption_ids[0]) for image in photos.image_ids[1:6]]
judged = gold.union(RelevanceJudgments.from_pairs("people", wrong, [0.0] * 5))
print(judged_selections(judged, photos, right=0.5, wrong=0))

# %%
# Files of COCO-BISON, and of the photos that a system selected:

folder = Path(tempfile.mkdtemp())
captions = {
    "images": [{"id": 7, "file_name": "7.jpg"}],
    "annotations": [{"id": 70, "image_id": 7, "caption": "A dog on a sofa."}],
}
(folder / "captions.json").write_text(json.dumps(captions))
candidates = [{"image_id": 7}, {"image_id": 8}]
question = {"bison_id": 0, "caption_id": 70, "true_image_id": 7, "image_candidates": candidates}
(folder / "bison.json").write_text(json.dumps({"info": {}, "data": [question]}))
bison = load_bison(folder / "bison.json", folder / "captions.json")

told = '[{"bison_id": 0, "predicted_image_id": 7}]'
predictions = {
    str(entry["bison_id"]): str(entry["predicted_image_id"]) for entry in json.loads(told)
}
print(evaluate_selections(bison, predictions))

# %%
# And by hand:

garden = BinarySelections(
    "garden", [SelectionTriple("0", "A dog digs.", "dog#0", "dog.jpg", "fox.jpg")]
)
positions = garden.positions(["dog.jpg", "fox.jpg"], ["dog#0"])
print(positions.true_images)
