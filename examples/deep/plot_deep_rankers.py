"""
Rankers in torch
================

Three published rankers keep the same contract as the kernel rankers. A few epochs on drawn
scenes show how they learn.
"""

# %%
# Mean colours of the 48 cells of a scene are its features; a second set of features has a row
# for each cell.

import matplotlib.pyplot as plt
import numpy as np

from kernelcore.datasets import make_scenes
from kernelcore.deep import CrossAttentionRanker, EmbeddingRanker, OrderRanker, join_captions
from kernelcore.evaluation import ResultTable, evaluate

scenes = make_scenes(120, size=(48, 64))
cells = scenes.images.reshape(120, 6, 8, 8, 8, 3).mean(axis=(2, 4)).reshape(120, -1)
train, dev, test = (scenes.dataset.split(name) for name in ("train", "dev", "test"))
pools = {name: scenes.dataset.split_sets(name)[0].pool() for name in ("train", "dev", "test")}

# %%
# Raw captions go in; each ranker learns its vocabulary.

rankers = {
    "one vector each": EmbeddingRanker(
        n_components=64, n_hidden=64, n_epochs=8, learning_rate=4e-3, rng=0
    ),
    "cross attention": CrossAttentionRanker(
        n_components=32, n_epochs=4, learning_rate=5e-3, rng=0
    ),
}
results, histories = [], {}
for name, ranker in rankers.items():
    ranker.fit(
        cells[train],
        pools["train"].captions,
        caption_image=pools["train"].caption_image,
        dev=(cells[dev], pools["dev"].captions, pools["dev"].caption_image),
    )
    scores = ranker.scores(cells[test], pools["test"].captions)
    owner = pools["test"].caption_image
    results.append(evaluate(scores, caption_image=owner, system=name))
    histories[name] = ranker.history_

print(ResultTable(results))

# %%
# The development loss, epoch by epoch:

figure, ax = plt.subplots(layout="constrained")
for name, history in histories.items():
    ax.plot(np.arange(1, len(history.dev_losses) + 1), history.dev_losses, "o-", label=name)
ax.set(xlabel="epoch", ylabel="development loss")
ax.legend()

# %%
# Order embeddings place texts below images. All captions of an image are one text.

order = OrderRanker(n_components=32, n_hidden=32, n_states=16, n_epochs=4, rng=0)
order.fit(
    cells[train],
    pools["train"].captions,
    caption_image=pools["train"].caption_image,
    dev=(cells[dev], pools["dev"].captions, pools["dev"].caption_image),
)
texts, owner = join_captions(pools["test"].captions, pools["test"].caption_image)
print(evaluate(order.scores(cells[test], texts), system="order embeddings"))
