"""
Count every caption that fits
=============================

A caption may describe photos that it was not written for. Where people have judged such pairs,
metrics can count them.
"""

# %%
# Forty drawn scenes and one caption of each. In place of people, a rule judges: a caption fits
# a scene of the same agent and the same relation.

import json
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from kernelcore.datasets import (
    RelevanceJudgments,
    load_eccv_caption,
    load_flickr_crowd,
    load_flickr_expert,
    make_scenes,
)
from kernelcore.evaluation import (
    ResultTable,
    evaluate,
    evaluate_relevance,
    rank_lists,
    rank_relevant,
)

scenes = make_scenes(200, rng=3, size=(32, 32))
test = scenes.dataset.split("test")
(photos,) = scenes.dataset.split_sets("test")
pool = photos.pool(2)
shown = [(scenes.scenes[i].agent.kind, scenes.scenes[i].relation) for i in test]
fits = np.array([[own == other for other in shown] for own in shown])
pairs = [(photos.image_ids[i], pool.caption_ids[j]) for i, j in np.argwhere(fits)]
judgments = RelevanceJudgments.from_pairs("rule", pairs, np.ones(len(pairs)))
judgments = judgments.union(RelevanceJudgments.gold(photos))
judgments = judgments.select(photos.image_ids, pool.caption_ids)
print(judgments)

# %%
# A model that knows agents and relations, and nothing else:

rng = np.random.default_rng(0)
scores = fits + 0.4 * rng.normal(size=fits.shape)
gold = evaluate(scores, system="gold pairs alone")
result = evaluate_relevance(scores, judgments=judgments, threshold=0.5, system="judged pairs")
print(gold)
print(result)
print(ResultTable([result], metrics=["S@1", "mAP@R"]))

# %%
# The value of each query:

of_search = result.values["search"]
figure, ax = plt.subplots(layout="constrained")
ax.hist(of_search["R-precision"], bins=10)
ax.set(xlabel="R-precision of a query", ylabel="queries")

# %%
# The parts: ranks of all relevant items, and metrics of them. Ranked lists of ids do as well.

ranked = rank_relevant(scores, judgments.relevant_captions(0.5))
metrics = ranked.metrics(ks=(1, 5))
print({name: values.mean() for name, values in metrics.items()})
print(rank_lists([["a", "b", "c"]], [{"b", "z"}]).average_precision())

# %%
# The judgments of Flickr8k and of ECCV Caption have readers:

folder = Path(tempfile.mkdtemp())
(folder / "expert.txt").write_text("a.jpg\tb.jpg#2\t3\t4\t4\n")
(folder / "crowd.txt").write_text("a.jpg\tb.jpg#2\t0.666666666667\t2\t1\n")
print(load_flickr_expert(folder / "expert.txt").scores)
print(load_flickr_crowd(folder / "crowd.txt").scores)

np.save(folder / "coco_test_ids.npy", [11, 12])
files = {
    "original_image_to_caption": {"1": [11], "2": [12]},
    "original_caption_to_image": {"11": [1], "12": [2]},
    "eccv_image_to_caption": {"1": [11, 12]},
    "eccv_caption_to_image": {"12": [1, 2]},
}
for name, content in files.items():
    (folder / f"{name}.json").write_text(json.dumps(content))
eccv = load_eccv_caption(folder)
print(eccv.annotation)
