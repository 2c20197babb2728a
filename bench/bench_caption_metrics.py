"""Caption metrics of captions with five references each, against pycocoevalcap.

Both start from texts with their tokens between blanks and end with the scores of the corpus
and of every caption.
"""

from functools import cache

import numpy as np
import pytest
from common import N_CAPTIONS, caption_texts, size

from kernelcore.evaluation.caption_metrics import bleu, cider, cider_d, coco_tokenize, rouge_l


@cache
def corpus(n):
    """A caption of the same image every other time, with one word gone, or of the next."""
    texts = [" ".join(coco_tokenize(text)) for text in caption_texts()[: (n + 1) * N_CAPTIONS]]
    images = [texts[i : i + N_CAPTIONS] for i in range(0, len(texts), N_CAPTIONS)]
    candidates = [
        " ".join(images[i][0].split()[1:]) if i % 2 else images[i + 1][0] for i in range(n)
    ]
    return candidates, images[:n]


def by_pycocoevalcap(metric, candidates, references):
    from pycocoevalcap.bleu.bleu import Bleu
    from pycocoevalcap.cider.cider import Cider
    from pycocoevalcap.rouge.rouge import Rouge

    inputs = dict(enumerate(references)), {i: [text] for i, text in enumerate(candidates)}
    if metric is bleu:
        return Bleu().compute_score(*inputs, verbose=0)
    return (Cider if metric is cider_d else Rouge)().compute_score(*inputs)


@pytest.mark.parametrize("peer", ["kernelcore", "pycocoevalcap, compute_score"])
@pytest.mark.parametrize("n", [250, 500, 1000])
@pytest.mark.parametrize("metric", [bleu, rouge_l, cider_d, cider], ids=lambda m: m.__name__)
def test_metric(benchmark, peer, metric, n):
    if metric is cider and peer != "kernelcore":
        pytest.skip("the COCO code has no CIDEr without clipping and penalty")
    texts = corpus(size(n, 80))
    benchmark.extra_info["work"] = f"caption metrics, {metric.__name__}"
    benchmark.extra_info["size"] = f"{len(texts[0]):,} captions, {N_CAPTIONS} references each"
    if peer == "kernelcore":
        benchmark(metric, *texts)
        return
    ours, theirs = metric(*texts), by_pycocoevalcap(metric, *texts)
    np.testing.assert_allclose(theirs[0], ours.corpus, rtol=0, atol=1e-6)
    np.testing.assert_allclose(np.array(theirs[1]).T, ours.captions, rtol=0, atol=1e-6)
    benchmark(by_pycocoevalcap, metric, *texts)
