"""
From captions to word ids
=========================

Captions are normalised, then encoded. Fragments and trees keep how words relate.
"""

# %%
# Different spellings and forms become one word. Stop words are left out.

import matplotlib.pyplot as plt
import numpy as np
import spacy

from kernelcore.captions import (
    COMPOUNDS,
    STOP_WORDS,
    CaptionNormalizer,
    EncodedCaptions,
    FragmentExtractor,
    SentenceTrees,
    Vocabulary,
    parse_trees,
)
from kernelcore.datasets import make_scenes

normalize = CaptionNormalizer()
print(normalize(["Two dogs are chasing the boy's T-shirt.", "A tee shirt, hanging"]))
print(len(STOP_WORDS), len(COMPOUNDS))

# %%
# A vocabulary numbers the words in the order in which they occur.

(train,) = make_scenes(200, size=(32, 32)).dataset.split_sets("train")
normalize = CaptionNormalizer().fit(train.captions)
tokens = normalize.normalize_images(train.captions)
vocabulary = Vocabulary.from_captions(tokens)
encoded: EncodedCaptions = vocabulary.encode(tokens)
print(len(vocabulary), encoded.n_captions, vocabulary.words[:8])

# %%
# Few words are frequent and many are rare, as in any text:

figure, ax = plt.subplots(layout="constrained")
ax.loglog(np.arange(1, len(vocabulary) + 1), np.sort(vocabulary.document_frequency)[::-1], ".")
ax.set(
    xlabel="place of the word, the most frequent first", ylabel="images whose captions have it"
)

# %%
# A word that no training caption has gets a negative number and matches itself alone.

unknown = vocabulary.encode([[["dog", "zeppelin"]]])
print(unknown.word_ids, vocabulary.decode(unknown.word_ids))

# %%
# Fragments are pairs of related words: neighbours here, edges of the dependency tree with
# spaCy.

extractor = FragmentExtractor("bigrams")
fragments = extractor.fit_transform(["A dog runs.", "The dog"])
print(extractor.decode(fragments))

raw = ["A brown dog runs on the beach.", "Two cats sleep."]
known = Vocabulary.from_captions([[["a", "brown", "dog", "runs", "on", "the", "beach"]]])
pipeline = spacy.util.get_installed_models()[0]
trees: SentenceTrees = parse_trees(raw, known, ["amod", "nsubj"], spacy_model=pipeline)
print(trees, trees.heights)
