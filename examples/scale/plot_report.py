"""
A page with results, figures and examples
=========================================

A report is one file of HTML without scripts or outside resources, or of Markdown.
"""

# %%
# Results of two systems on drawn scenes:

import tempfile
from pathlib import Path

import numpy as np

from kernelcore import evaluate, show_config
from kernelcore.datasets import Document, make_scenes
from kernelcore.errors import MissingExtraError
from kernelcore.evaluation import Table
from kernelcore.report import (
    Section,
    StageRecorder,
    link_figure,
    query_examples,
    recall_figure,
    save_figures,
    similarity_figure,
    write_html,
    write_markdown,
)

scenes = make_scenes(30, rng=5)
captions = [own[0] for own in scenes.dataset.captions]
rng = np.random.default_rng(0)
recorder = StageRecorder()
with recorder.stage("rank"):
    scores = rng.normal(size=(30, 30)) + 3 * np.eye(30)
    results = [
        evaluate(scores, system="good"),
        evaluate(rng.random((30, 30)), system="chance"),
    ]
stage = recorder.stages[0]
print(stage.name)

# %%
# Examples are not picked by hand: they stand at the beginning, in the middle and at the end of
# the queries in the order of their ranks.

shown = scores, captions, scenes.images
searched = query_examples(*shown, task="search", n_examples=1)
annotated = query_examples(*shown, task="annotation", n_examples=1)
example = searched[0]
hit = example.hits[0]
thumbnail = hit.content
print(example.query, example.rank, hit.is_gold)

# %%
# Figures are drawn when they are shown, in light or dark. Matplotlib is an optional package:

garden = Document("garden", ("A dog digs.", "It was May."), ("dog", "tree"), {(0, 0)})
figure = recall_figure(results)
figures = [
    figure,
    similarity_figure(scores),
    link_figure(garden, [[0.9, 0.1], [0.2, 0.3]], system="mine"),
]
folder = Path(tempfile.mkdtemp())
print([path.name for path in save_figures(figures[:2], folder)])
try:
    figure.to_matplotlib()
except MissingExtraError as error:
    print(error)

# %%
# The page:

about = {"title": "Two systems", "results": results}
print(show_config()["version"])
notes = Section("Notes", ["Random scores."], [Table(columns=("n",), rows=(("30",),))])
write_markdown(folder / "report.md", **about, sections=[notes], stages=recorder)
write_html(
    folder / "report.html",
    **about,
    examples=[*searched, *annotated],
    figures=figures[:1],
    sections=[notes],
    stages=recorder,
)
