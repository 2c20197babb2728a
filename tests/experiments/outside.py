"""A corpus of tagged sentences beside that of a study, as the Brown corpus is."""

from kernelcore.datasets import make_scenes


def write_outside_corpus(folder, n_scenes=100):
    """Write the captions of other scenes, each word with a tag."""
    sentences = [
        " ".join(f"{word}/x" for word in caption.split())
        for own in make_scenes(n_scenes, rng=9, size=(32, 32)).dataset.captions
        for caption in own
    ]
    (folder / "brown_tagged.txt").write_text("\n".join(sentences), encoding="utf-8")
