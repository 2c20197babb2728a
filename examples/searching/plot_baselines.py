"""
Recall of a ranker beside its baselines
=======================================

A recall says something only beside that of chance and that of a simple method: here nearest
neighbours.
"""

# %%
# Three rankers keep one contract: ``fit(images, captions)``, ``scores(images, captions)``.

from kernelcore.captions import CaptionNormalizer, Vocabulary
from kernelcore.datasets import make_scenes
from kernelcore.evaluation import Published, Result, ResultTable, evaluate
from kernelcore.images import VisualWords
from kernelcore.kernels import bag_of_words, bag_of_words_f1, spatial_pyramid
from kernelcore.models import ChanceRanker, KCCARanker, NearestNeighbourRanker, Ranker
from kernelcore.plots import rank_histogram, recall_curves

scenes = make_scenes(200, rng=2, size=(48, 64))
words = VisualWords(n_words={"colour": 32}, n_levels=2).fit(scenes.images[:40])
photos = words.transform(scenes.images)["colour"]
tokens = CaptionNormalizer().normalize_images(scenes.dataset.captions)
captions = Vocabulary.from_captions(tokens).encode(tokens)
train, test = scenes.dataset.split("train"), scenes.dataset.split("test")

rankers: dict[str, Ranker] = {
    "kernel CCA": KCCARanker(30, image_kernel=spatial_pyramid, text_kernel=bag_of_words),
    "nearest neighbour": NearestNeighbourRanker(bag_of_words_f1, spatial_pyramid),
    "chance": ChanceRanker(rng=0),
}

# %%
# The pool has one caption of each test photo. `evaluate` measures both tasks: a photo ranks the
# captions, and a caption ranks the photos.

results: list[Result] = []
for name, ranker in rankers.items():
    ranker.fit(photos.select(train), captions.select(train))
    queries = captions.select(test).with_caption(2)
    scores = {
        task: ranker.scores(photos.select(test), queries, task=task)
        for task in ("annotation", "search")
    }
    results.append(evaluate(scores["annotation"], scores["search"], system=name))
print(ResultTable(results))

# %%
# A row of a publication stands in the same table. Numbers of other pools are not compared: this
# one is for show.

published = Published("BoW5", "Hodosh et al. 2013", {"search": {"R@10": 0.283}})
print(ResultTable([results[0], published]))

# %%
# Recall at every k:

recall_curves(results)

# %%
# And the ranks themselves:

rank_histogram(results[:2])
