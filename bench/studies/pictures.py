"""Draw docs/images/search.png, the best drawn scenes for two sentences.

The other pictures of drawn scenes come from `kernelcore reproduce`, as docs/deep.md and
docs/documents.md say.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from PIL import Image, ImageDraw, ImageFont

from kernelcore.datasets import make_scenes
from kernelcore.images import CNN
from kernelcore.models import PhotoRanker

PICTURE = Path(__file__).resolve().parents[2] / "docs" / "images" / "search.png"
SENTENCES = ("a brown dog jumps over a fence", "a girl in a red dress rides a horse")
N_SHOWN, SIDE, GAP, LINE = 5, 176, 8, 34
N_COLOURS = 256


def main() -> None:
    """Learn from 900 scenes, and search 300 others."""
    scenes = make_scenes(1500, rng=5, size=(224, 224))
    dataset = scenes.dataset
    train, test = dataset.split("train"), dataset.split("test")
    captions = [dataset.captions[i] for i in train]
    ranker = PhotoRanker(features=CNN()).fit(scenes.images[train], captions)
    index = ranker.index(scenes.images[test], names=[dataset.image_ids[i] for i in test])
    place = {name: i for i, name in enumerate(dataset.image_ids)}
    height = LINE + SIDE + GAP
    size = (N_SHOWN * (SIDE + GAP) + GAP, len(SENTENCES) * height + GAP)
    picture = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(picture)
    font = ImageFont.truetype(f"{mpl.get_data_path()}/fonts/ttf/DejaVuSans.ttf", 19)
    found = ranker.search(SENTENCES, index, k=N_SHOWN)
    for row, (sentence, matches) in enumerate(zip(SENTENCES, found, strict=True)):
        top = GAP + row * height
        draw.text((GAP, top + 4), sentence, fill="#1a1a1a", font=font)
        for column, match in enumerate(matches):
            scene = Image.fromarray(scenes.images[place[match.name]])
            scene = scene.resize((SIDE, SIDE), Image.Resampling.LANCZOS)
            picture.paste(scene, (GAP + column * (SIDE + GAP), top + LINE))
    picture.quantize(N_COLOURS, dither=Image.Dither.NONE).save(PICTURE, optimize=True)


if __name__ == "__main__":
    main()
