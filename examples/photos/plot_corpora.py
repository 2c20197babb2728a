"""
Read captioned photos
=====================

Every reader returns the same type, `CaptionedImages`: ids, photos, captions, splits.
"""

# %%
# A folder in the layout of Flickr8k, here of drawn scenes:

import json
import tempfile
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from kernelcore.datasets import (
    CaptionedImages,
    DatasetWarning,
    find_leaks,
    load_coco_captions,
    load_flickr,
    load_folder,
    load_karpathy,
    make_scenes,
    random_splits,
)

folder = Path(tempfile.mkdtemp())
make_scenes(20).write(folder)
corpus = load_flickr(folder)
print(corpus)

# %%
# A folder of photos and a table of captions. A row without a photo is left out, and one warning
# says so.

names = [path.name for path in corpus.paths[:4]]
rows = [f"{name}\tPicture number {i}." for i, name in enumerate([*names, "missing.png"])]
(folder / "captions.tsv").write_text("\n".join(rows))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always", DatasetWarning)
    mine = load_folder(folder / "images", folder / "captions.tsv")
print(mine)
print(str(caught[0].message).replace(f"{folder}/", ""))
mine = random_splits(mine, 0.5, 0.25, 0.25, rng=0)

# %%
# Files of Karpathy and of COCO:

photo = {"filename": "a.jpg", "split": "val", "sentences": [{"raw": "A dog."}]}
(folder / "dataset_tiny.json").write_text(json.dumps({"dataset": "tiny", "images": [photo]}))
print(load_karpathy(folder / "dataset_tiny.json"))
coco = {
    "images": [{"id": 7, "file_name": "000000000007.jpg"}],
    "annotations": [{"id": 70, "image_id": 7, "caption": "A dog on a sofa."}],
}
(folder / "captions_tiny.json").write_text(json.dumps(coco))
print(load_coco_captions(folder / "captions_tiny.json"))

# %%
# Photos in memory. The same photo in training and test is found by its content:

snow, night = np.full((8, 8, 3), 255, np.uint8), np.zeros((8, 8, 3), np.uint8)
photos = CaptionedImages.from_pairs(
    [
        (snow, "Snow.", "train", "1"),
        (night, "A dark road.", "train", "2"),
        (snow, "All white.", "test", "copy of 1"),
    ]
)
leaks = find_leaks(*photos.split_sets("train", "test"))
leak = leaks[0]
print(leak)

# %%
# How long the captions are:

lengths = [len(text.split()) for own in corpus.captions for text in own]
figure, ax = plt.subplots(layout="constrained")
ax.hist(lengths, bins=range(3, 22))
ax.set(xlabel="words of a caption", ylabel="captions")
