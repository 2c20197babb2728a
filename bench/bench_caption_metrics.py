"""Caption metrics of captions with five references each, against pycocoevalcap.

Both start from texts with their tokens between blanks and end with the scores of the corpus
and of every caption.
"""

import data
import numpy as np
import pytest
from results import target

from kernelcore.evaluation.caption_metrics import (
    bleu,
    cider,
    cider_d,
    coco_tokenize,
    rouge_l,
    rouge_tokens,
    unigram_bleu,
)
from kernelcore.reference import evaluation as reference

N_IMAGES, N_REFERENCES, N_CHECKED = data.size(1000, 80), 5, 40


@pytest.fixture(scope="module")
def corpus():
    """A caption of the same image every other time, with one word gone, or of the next."""
    images = flickr_texts() if data.FLICKR.is_dir() else drawn_texts()
    candidates = [
        " ".join(images[i][0].split()[1:]) if i % 2 else images[i + 1][0]
        for i in range(N_IMAGES)
    ]
    return candidates, images[:N_IMAGES]


def flickr_texts():
    text = (data.FLICKR / "Flickr8k.token.txt").read_text(encoding="utf-8")
    lines = text.splitlines()[: (N_IMAGES + 1) * N_REFERENCES]
    texts = [" ".join(coco_tokenize(line.partition("\t")[2])) for line in lines]
    return [texts[i : i + N_REFERENCES] for i in range(0, len(texts), N_REFERENCES)]


def drawn_texts():
    drawn = data.drawn_captions(N_IMAGES + 1)
    return [
        [" ".join(f"w{word}" for word in caption) for caption in image]
        for image in data.as_lists(drawn)
    ]


def by_definition(metric, candidates, references):
    candidates = [text.split() for text in candidates]
    references = [[text.split() for text in texts] for texts in references]
    if metric is bleu:
        return reference.bleu(candidates, references)[1]
    if metric is rouge_l:
        pairs = zip(candidates, references, strict=True)
        return [reference.rouge_l(*pair) for pair in pairs]
    sigma = 6.0 if metric is cider_d else None
    return reference.cider(candidates, references, sigma=sigma)


def by_pycocoevalcap(metric, candidates, references):
    from pycocoevalcap.bleu.bleu import Bleu
    from pycocoevalcap.cider.cider import Cider
    from pycocoevalcap.rouge.rouge import Rouge

    inputs = dict(enumerate(references)), {i: [text] for i, text in enumerate(candidates)}
    if metric is bleu:
        return Bleu().compute_score(*inputs, verbose=0)
    return (Cider if metric is cider_d else Rouge)().compute_score(*inputs)


@pytest.mark.ways("kernelcore", "pycocoevalcap")
@pytest.mark.parametrize(
    "metric",
    [bleu, rouge_l, pytest.param(cider_d, marks=pytest.mark.readme), cider],
    ids=lambda metric: metric.__name__,
)
def test_metric(measure, corpus, metric):
    candidates, references = corpus
    few = candidates[:N_CHECKED], references[:N_CHECKED]
    tokens = [
        [text.split() for text in few[0]],
        [[text.split() for text in texts] for texts in few[1]],
    ]
    np.testing.assert_allclose(
        metric(*tokens).captions, by_definition(metric, *few), rtol=1e-10, atol=1e-14
    )
    ours = metric(*corpus)

    def check(scores):
        np.testing.assert_allclose(scores[0], ours.corpus, rtol=0, atol=1e-6)
        np.testing.assert_allclose(scores[1], ours.captions, rtol=0, atol=1e-6)

    # The COCO code has no CIDEr without clipping and penalty.
    peer = None if metric is cider else lambda: by_pycocoevalcap(metric, *corpus)
    measure(
        f"caption metrics, {metric.__name__}",
        {"kernelcore": lambda: metric(*corpus), "pycocoevalcap": peer},
        read={
            "kernelcore": lambda scores: (scores.corpus, scores.captions),
            "pycocoevalcap": lambda scores: (scores[0], np.array(scores[1]).T),
        },
        check=check,
        shape=f"{N_IMAGES:,} captions, {N_REFERENCES} references each",
        size=float(N_IMAGES),
        unit="captions",
        targets=[target("speed >= 10 x pycocoevalcap")] if metric is cider_d else [],
    )


def test_unigram_bleu_of_all_pairs(measure, corpus):
    """BLEU_pre of every caption for every image, from raw text."""
    candidates, references = corpus
    stems = [[rouge_tokens(text) for text in texts] for texts in references[:20]]
    expected = [
        [reference.unigram_bleu(rouge_tokens(text), own) for text in candidates[:20]]
        for own in stems
    ]
    measure(
        "caption metrics, BLEU_pre of every pair",
        {"kernelcore": lambda: unigram_bleu(*corpus, tokenize=rouge_tokens)},
        check=lambda matrix: np.testing.assert_allclose(matrix[:20, :20], expected, rtol=1e-14),
        shape=f"{N_IMAGES:,} captions for {N_IMAGES:,} images",
    )
