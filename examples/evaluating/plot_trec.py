"""
Runs for trec_eval
==================

A run is a ranked list of candidates for each query. Other programs read the files, and
`rank_run` measures runs of other programs.
"""

# %%
# Scores of 50 images and 50 captions:

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from kernelcore.evaluation.trec import (
    rank_run,
    read_qrels,
    read_run,
    trec_qrels,
    trec_run,
    write_qrels,
    write_run,
)

rng = np.random.default_rng(0)
scores = rng.normal(size=(50, 50)) + 2 * np.eye(50)
images = [f"image{i}" for i in range(50)]
captions = [f"caption{i}" for i in range(50)]

run = trec_run(scores.T, captions, images, k=20)
folder = Path(tempfile.mkdtemp())
write_run(folder / "search.run.gz", run, tag="mine")
write_qrels(folder / "search.qrels", trec_qrels(images, captions, task="search"))

# %%
# A run may be cut off. What it lacks counts as not found.

ranked = rank_run(read_run(folder / "search.run.gz"), read_qrels(folder / "search.qrels"))
metrics = ranked.metrics()
print({name: values.mean() for name, values in metrics.items()})

ks = np.arange(1, 21)
figure, ax = plt.subplots(layout="constrained")
ax.plot(ks, [ranked.success_at_k(int(k)).mean() for k in ks])
ax.set(xlabel="k", ylabel="captions whose image is among the first k", ylim=(0, 1))
