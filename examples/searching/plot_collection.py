"""
A folder that is searched while it changes
==========================================

An index follows a folder of photos. A search names words that no training
caption has, and draws the line from which on results are found by chance.
"""

# %%
# A model of 50 scenes, and a folder of 15 others:

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from kernelcore.datasets import make_scenes
from kernelcore.images import CNN
from kernelcore.models import ChanceLine, Encoders, PhotoRanker
from kernelcore.report import write_found
from kernelcore.search import Collection, unknown_words, update_index, word_shares
from kernelcore.web import make_app

captioned, others = make_scenes(50), make_scenes(15, rng=1)
ranker = PhotoRanker(CNN()).fit(captioned.images, captioned.dataset.captions)

folder = Path(tempfile.mkdtemp())
others.write(folder)
photos = folder / "images"
names = sorted(path.name for path in photos.iterdir())
index, changes = update_index(None, ranker, photos, names)
print(changes)

# %%
# Photos come and go; only new ones are read.

index, changes = update_index(index, ranker, photos, names[1:])
print(changes)

# %%
# What a sentence finds, and how each of its words contributes to the first score:

collection = Collection(ranker, photos, index)
sentence = "a brown dog runs on the grass"
ranking = collection.search(sentence)
print(ranking.n_fitting, ranking.numbers[:3])
shares = collection.contributions(sentence, int(ranking.numbers[0]))
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
left.imshow(others.images[names.index(collection.name(int(ranking.numbers[0])))])
left.axis("off")
right.barh([word for word, _ in shares], [share for _, share in shares])
right.invert_yaxis()
right.set_xlabel("share of the score")

# %%
# The best photos as a page that holds its pictures, to be sent or kept:

found = ranker.search([sentence], index, k=5)
page = folder / "found.html"
write_found(page, [(sentence, found[0])], lambda name: photos / name)
print(f"{page.name}: {page.stat().st_size / 1000:.0f} kB")

# %%
# The shares of words from their parts, with a constant at the end, and words that no training
# caption has:

words, values = word_shares(ranker, sentence, index.projections[:1])
print(words, values[:, 0].round(2))
unknown = collection.unknown_words("a dogg on the grass")
print(unknown, unknown_words(ranker.captions_, "a dogg") == unknown)

# %%
# The line of chance, from scores of photos that the sentence was not written for:

line = ChanceLine(np.random.default_rng(0).normal(size=200))
print(round(line.score_at(0.05), 2), line.by_chance([2.5, 0.0]).round(3))

# %%
# Vectors of another model take the place of the ranker. `make_app` is the page of `kernelcore
# serve`.


def letters(texts):
    """Count letters, in place of a network."""
    return [[str(text).count(letter) for letter in "abcdeghot"] for text in texts]


encoders = Encoders(letters, letters, name="letters")
collection = Collection(encoders, "photos", encoders.index(["dog.jpg", "cat.jpg"]))
print(collection.name(int(collection.search("a cat").numbers[0])))
app = make_app(collection)
print(type(app).__name__)
