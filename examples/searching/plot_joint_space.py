"""
A map of the common space
=========================

Kernel CCA places photos and captions in one space. The nearer a caption is to a photo, the
better it fits.
"""

# %%
# Photos are compared by their colours, captions by their words.

from kernelcore.captions import CaptionNormalizer, Vocabulary
from kernelcore.datasets import make_scenes
from kernelcore.images import VisualWords
from kernelcore.kernels import bag_of_words, spatial_pyramid
from kernelcore.models import KCCARanker
from kernelcore.plots import joint_space

scenes = make_scenes(100, rng=1)
photos = (
    VisualWords(n_words={"colour": 32}, n_sample_images=30)
    .fit(scenes.images)
    .transform(scenes.images)
)
words = CaptionNormalizer().normalize_images(scenes.dataset.captions)
captions = Vocabulary.from_captions(words).encode(words)

ranker = KCCARanker(20, image_kernel=spatial_pyramid, text_kernel=bag_of_words)
train, test = scenes.dataset.split("train"), scenes.dataset.split("test")
ranker.fit(photos["colour"].select(train), captions.select(train))

# %%
# Scalar products of the vectors are the scores of the ranker, so that any index of vectors can
# hold them.

image_vectors = ranker.embed_images(photos["colour"].select(test))
caption_vectors = ranker.embed_captions(captions.select(test).with_caption(0))
scores = image_vectors @ caption_vectors.T
print(scores.shape)

# %%
# The map shows the two directions in which the vectors differ most. A line joins a photo with
# its own caption.

joint_space(
    image_vectors,
    caption_vectors,
    texts=[scenes.dataset.captions[i][0] for i in test],
    pictures=scenes.images[test],
)
