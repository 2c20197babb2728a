"""Folders of drawn photos with a file of captions for each, as users have them."""

from pathlib import Path

from kernelcore.datasets import make_scenes


def write_corpus(folder: Path, n_old: int, n_new: int) -> None:
    """Write the folders ``old`` and ``new``, and ``old.tsv`` and ``new.tsv`` beside them."""
    scenes = make_scenes(n_old + n_new, size=(32, 40))
    scenes.write(folder)
    for part, numbers in (("old", range(n_old)), ("new", range(n_old, n_old + n_new))):
        (folder / part).mkdir()
        rows = []
        for i in numbers:
            name = scenes.dataset.image_ids[i]
            (folder / "images" / name).rename(folder / part / name)
            texts = scenes.dataset.captions[i]
            rows += [f"{name}#{k}\t{text}\n" for k, text in enumerate(texts)]
        (folder / f"{part}.tsv").write_text("".join(rows), encoding="utf-8")
