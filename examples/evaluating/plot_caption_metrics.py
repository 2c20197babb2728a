"""
BLEU, ROUGE and CIDEr
=====================

Metrics of captions count the words that a caption has in common with reference captions. This
example shows what they see and what they do not.
"""

# %%
# One reference set, and four captions that a system may have written:

import matplotlib.pyplot as plt
import numpy as np

from kernelcore.evaluation.caption_metrics import (
    DocumentFrequencies,
    bleu,
    bleu_tokens,
    cider,
    cider_d,
    coco_tokenize,
    rouge_l,
    rouge_tokens,
    unigram_bleu,
    unigram_rouge,
)

references = ["A brown dog runs across the snow.", "The dog is running in deep snow."]
written = {
    "right": "A dog runs in the snow.",
    "roles exchanged": "The snow runs across a dog.",
    "another animal": "A brown cat runs across the snow.",
    "other words": "A hound races over white ground.",
}

# %%
# CIDEr weights n-grams by how rare they are, counted in other captions:

others = [["A cat sleeps."], ["A man rides a horse."], ["Two dogs play."], ["Snow falls."]]
tokens = [[coco_tokenize(text) for text in own] for own in [references, *others]]
frequencies = DocumentFrequencies.from_references(tokens)
candidates = [coco_tokenize(text) for text in written.values()]
same = [tokens[0]] * len(candidates)
bleu_scores = bleu(candidates, same)
cider_scores = cider_d(candidates, same, document_frequencies=frequencies)
plain = cider(candidates, same, document_frequencies=frequencies)
scores = {
    "BLEU-1": bleu_scores.captions[:, 0],
    "ROUGE-L": rouge_l(candidates, same).captions,
    "CIDEr-D / 10": cider_scores.captions / 10,
    "CIDEr / 10": plain.captions / 10,
}

# %%
# The exchange of the roles is invisible to single words, and synonyms count as wrong:

figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
places = np.arange(len(written))
for number, (name, values) in enumerate(scores.items()):
    ax.bar(places + 0.2 * number, values, width=0.2, label=name)
ax.set_xticks(places + 0.3, list(written))
ax.set_ylabel("score")
ax.legend()

# %%
# The unigram metrics of Hodosh et al. (2013), for all pairs of photos and captions:

print(bleu_tokens(written["right"]), rouge_tokens(written["right"]))
texts = list(written.values())
print(unigram_bleu(texts, [references, others[0]]).round(2))
print(unigram_rouge(texts, [references, others[0]]).round(2))
