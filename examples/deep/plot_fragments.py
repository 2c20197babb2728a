"""
Which region shows which words?
===============================

Deep fragment embeddings compare regions of a photo with pairs of words. The model is told only
which captions belong to which photo.
"""

# %%
# Regions of drawn scenes, described by EfficientNet-Lite0:

from kernelcore.captions import FragmentExtractor
from kernelcore.datasets import make_scenes
from kernelcore.deep import FragmentRanker
from kernelcore.images import Grid, RegionCNN
from kernelcore.lexical import learn_word_vectors
from kernelcore.plots import aligned_regions, alignments, found_regions

scenes = make_scenes(16, rng=5)
regions = RegionCNN(proposers=[Grid((2, 3))], max_regions=10).transform(scenes.images)
photos = scenes.dataset
pool = photos.pool()

# %%
# Vectors of words come from the captions themselves. Fragments are pairs of neighbouring words.

words = [text.lower().rstrip(".").split() for text in pool.captions]
vectors = learn_word_vectors(words, n_dimensions=40, min_count=1)
ranker = FragmentRanker(fragments="bigrams", n_components=64, n_epochs=6, rng=0)
ranker.fit(regions, pool.captions, caption_image=pool.caption_image, word_vectors=vectors)

# %%
# Products of the regions of a photo with the fragments of its first caption. The best region of
# each fragment is framed.

caption = photos.captions[1][0]
extractor = FragmentExtractor("bigrams").fit(pool.captions)
[found] = extractor.decode(extractor.transform([caption]))
names = [f"{first} {second}" for _, first, second in found]
[products] = ranker.alignments(regions.select([1]), [caption])
alignments(products, names)

# %%

boxes = regions.boxes[regions.offsets[1] : regions.offsets[2]]
aligned_regions(scenes.images[1], boxes, products, names)

# %%
# The regions of all photos that fit two words best:

matches = ranker.search_regions(regions, ["a dog"], k=6)
match = matches[0]
found_regions(
    [scenes.images[match.image] for match in matches],
    [regions.boxes[regions.offsets[match.image] + match.region] for match in matches],
    [match.score for match in matches],
)
