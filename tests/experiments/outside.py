"""A corpus of tagged sentences beside that of a study, as the Brown corpus is."""

from kernelcore.datasets import make_scenes


def write_outside_corpus(folder, n_scenes=100):
    """Write the captions of other scenes, each word with a tag."""
    scenes = make_scenes(n_scenes, rng=9, size=(32, 32)).dataset
    texts = [caption.split() for own in scenes.captions for caption in own]
    sentences = [" ".join(f"{word}/x" for word in words) for words in texts]
    (folder / "brown_tagged.txt").write_text("\n".join(sentences), encoding="utf-8")
