import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcore.evaluation.caption_metrics import rouge_tokens, unigram_bleu, unigram_rouge
from kernelcore.reference import evaluation as reference

CAPTIONS = st.lists(st.sampled_from(["a", "b", "c", "día"]), max_size=7).map(" ".join)
SETS = st.lists(CAPTIONS, min_size=1, max_size=4)
METRICS = [(unigram_bleu, reference.unigram_bleu), (unigram_rouge, reference.unigram_rouge)]


@pytest.mark.parametrize(("metric", "expected"), METRICS)
@given(candidates=st.lists(CAPTIONS, min_size=1), data=st.data())
@settings(max_examples=100, deadline=None)
def test_scores_equal_the_reference(metric, expected, candidates, data):
    images = data.draw(st.lists(SETS, min_size=1, max_size=6))
    table = metric(candidates, images, tokenize=str.split)
    words = [list(map(str.split, own)) for own in images]
    values = [[expected(text.split(), own) for text in candidates] for own in words]
    np.testing.assert_allclose(table, values, rtol=1e-15)


def test_more_images_than_a_block():
    rng = np.random.default_rng(0)
    words = np.array([f"w{i}" for i in range(30)])
    texts = [" ".join(words[rng.integers(0, 30, 8)]) for _ in range(1200)]
    images = [texts[i : i + 2] for i in range(1199)]
    for metric, _ in METRICS:
        table = metric(texts[:50], images)
        for i in (0, 511, 512, 1023, 1024, 1198):
            assert table[i].tolist() == metric(texts[:50], [images[i]])[0].tolist()


def test_values_by_hand():
    references = ["The dog runs; the dog barks.", "A DOG!"]
    # the counts at most twice, dog at most twice, cat not at all
    assert unigram_bleu(["the the the dog dog dog cat"], [references]) == 4 / 7
    # dog once of twice, run of run, bark not; dog of dog
    assert unigram_rouge(["a running dog"], [references]) == 3 / 5
    assert unigram_bleu(["a running cat"], [references], tokenize=rouge_tokens) == 1 / 2
    assert unigram_rouge(["The cats"], [references]) == 0


@pytest.mark.realdata
def test_filter_on_flickr8k_keeps_what_experts_like(data_root):
    """It must spare judges most pairs and lose few that the experts find right."""
    folder = data_root / "flickr8k"
    names = (folder / "Flickr_8k.testImages.txt").read_text().split()
    row = {name: i for i, name in enumerate(names)}
    captions = [[""] * 5 for _ in names]
    for line in (folder / "Flickr8k.token.txt").read_text(encoding="utf-8").splitlines():
        key, text = line.split("\t")
        name, _, number = key.partition("#")
        if name in row:
            captions[row[name]][int(number)] = text
    pool = [own[2] for own in captions]
    unlikely = unigram_bleu(pool, captions, tokenize=rouge_tokens) < 0.25
    judged = map(str.split, (folder / "ExpertAnnotations.txt").read_text().splitlines())
    good = [
        (row[image], row[caption.partition("#")[0]])
        for image, caption, *scores in judged
        if image in row and sum(map(int, scores)) / 3 >= 3
    ]
    assert len(good) > 500
    assert not unlikely.diagonal().any()
    assert 0.75 < unlikely.mean() < 0.95
    assert np.mean([unlikely[pair] for pair in good]) < 0.08
