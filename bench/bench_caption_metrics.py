"""Caption metrics of 1,000 captions with five references each, against pycocoevalcap.

Both start from texts with their tokens between blanks and end with the scores of the corpus
and of every caption.
"""

import os
from pathlib import Path

import numpy as np
import pytest

from kernelcore.evaluation import (
    bleu,
    cider,
    cider_d,
    coco_tokenize,
    rouge_l,
    rouge_tokens,
    unigram_bleu_matrix,
)
from kernelcore.reference import caption_metrics as reference

N_IMAGES, N_REFERENCES = 1000, 5
DATA = Path(os.environ.get("KERNELCORE_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture(scope="module")
def corpus():
    """A caption of the same image every other time, with one word gone, or of the next."""
    images = flickr_captions() if (DATA / "flickr8k").is_dir() else drawn_captions()
    candidates = [
        " ".join(images[i][0].split()[1:]) if i % 2 else images[i + 1][0]
        for i in range(N_IMAGES)
    ]
    return candidates, images[:N_IMAGES]


def flickr_captions():
    path = DATA / "flickr8k" / "Flickr8k.token.txt"
    lines = path.read_text(encoding="utf-8").splitlines()[: (N_IMAGES + 1) * N_REFERENCES]
    texts = [" ".join(coco_tokenize(line.partition("\t")[2])) for line in lines]
    return [texts[i : i + N_REFERENCES] for i in range(0, len(texts), N_REFERENCES)]


def drawn_captions():
    """Zipf's law over 3,000 words, lengths as in Flickr8k."""
    rng = np.random.default_rng(0)
    frequencies = 1 / (np.arange(3000) + 3.0)
    frequencies /= frequencies.sum()

    def caption():
        return " ".join(
            f"w{word}" for word in rng.choice(3000, 5 + rng.poisson(6), p=frequencies)
        )

    return [[caption() for _ in range(N_REFERENCES)] for _ in range(N_IMAGES + 1)]


def tokens_of(candidates, references):
    return (
        [text.split() for text in candidates],
        [[text.split() for text in texts] for texts in references],
    )


def check(metric, corpus):
    """Few captions, so that the definition is done with them."""
    candidates, references = tokens_of(*(part[:40] for part in corpus))
    ours = metric(candidates, references).captions
    if metric is bleu:
        expected = reference.bleu(candidates, references)[1]
    elif metric is rouge_l:
        pairs = zip(candidates, references, strict=True)
        expected = [reference.rouge_l(*pair) for pair in pairs]
    else:
        expected = getattr(reference, metric.__name__)(candidates, references)
    np.testing.assert_allclose(ours, expected, rtol=1e-10, atol=1e-14)


def peers():
    from pycocoevalcap.bleu.bleu import Bleu
    from pycocoevalcap.cider.cider import Cider
    from pycocoevalcap.rouge.rouge import Rouge

    return {
        cider_d: Cider().compute_score,
        rouge_l: Rouge().compute_score,
        bleu: lambda *inputs: Bleu().compute_score(*inputs, verbose=0),
    }


@pytest.mark.parametrize("metric", [bleu, rouge_l, cider_d, cider], ids=lambda m: m.__name__)
def test_metric(benchmark, corpus, metric):
    check(metric, corpus)
    benchmark.group = f"{metric.__name__}, {N_IMAGES} captions"
    benchmark.pedantic(metric, args=corpus, rounds=7, warmup_rounds=1)
    benchmark.extra_info["captions_per_s"] = N_IMAGES / benchmark.stats["min"]


@pytest.mark.parametrize("metric", [bleu, rouge_l, cider_d], ids=lambda m: m.__name__)
def test_pycocoevalcap(benchmark, corpus, metric):
    pytest.importorskip("pycocoevalcap")
    candidates, references = corpus
    inputs = dict(enumerate(references)), {i: [text] for i, text in enumerate(candidates)}
    benchmark.group = f"{metric.__name__}, {N_IMAGES} captions"
    score, scores = benchmark.pedantic(peers()[metric], args=inputs, rounds=3)
    ours = metric(*corpus)
    np.testing.assert_allclose(ours.corpus, score, rtol=0, atol=1e-6)
    np.testing.assert_allclose(ours.captions.T, np.array(scores), rtol=0, atol=1e-6)
    benchmark.extra_info["captions_per_s"] = N_IMAGES / benchmark.stats["min"]


def test_unigram_bleu_of_all_pairs(benchmark, corpus):
    """BLEU_pre of every caption for every image, from raw text."""
    candidates, references = corpus
    few = unigram_bleu_matrix(candidates[:20], references[:20], tokenize=rouge_tokens)
    stems = [[rouge_tokens(text) for text in texts] for texts in references[:20]]
    expected = [
        [reference.unigram_bleu(rouge_tokens(text), own) for text in candidates[:20]]
        for own in stems
    ]
    np.testing.assert_allclose(few, expected, rtol=1e-14)
    benchmark.group = f"BLEU_pre, {N_IMAGES} captions for {N_IMAGES} images"
    benchmark.pedantic(
        unigram_bleu_matrix,
        args=corpus,
        kwargs={"tokenize": rouge_tokens},
        rounds=3,
        warmup_rounds=1,
    )
