"""A pool of captions made of random words, with judgments of some pairs."""

import numpy as np

from kernelcore.datasets import RelevanceJudgments
from kernelcore.evaluation import evaluate
from kernelcore.experiments.hodosh2013.judged import CaptionPool, Judgments
from kernelcore.experiments.scores import Scores

WORDS = ["dog", "cat", "boy", "girl", "ball", "red", "snow", "water", "jump", "run", "play"]
WORDS += ["sit", "grass", "hat", "bike", "park"]


def make_pool(n=40, n_captions=5, rng=0):
    """Captions of one image share most of their words."""
    generator = np.random.default_rng(rng)
    captions = []
    for _ in range(n):
        topic = generator.choice(WORDS, size=7, replace=False)
        captions.append(
            [" ".join(["a", *generator.choice(topic, size=5)]) for _ in range(n_captions)]
        )
    names = [f"{i}.jpg" for i in range(n)]
    return CaptionPool(
        tuple(names),
        tuple(f"{name}#2" for name in names),
        tuple(of[0] for of in captions),
        tuple(tuple(of[1:]) for of in captions),
    )


def make_judgments(pool, n_pairs=600, rng=0):
    """Experts and crowd judge random pairs by how many words they share, with noise."""
    generator = np.random.default_rng(rng)
    n = len(pool.captions)
    judged = generator.choice(n * n, size=min(n_pairs, n * n), replace=False)
    ratings, shares, pairs = [], [], []
    for image, caption in zip(*np.divmod(judged, n), strict=True):
        words = set(" ".join(pool.all_captions[image]).split())
        share = np.mean([word in words for word in set(pool.captions[caption].split())])
        noisy = 1 + 3 * share + generator.normal(0, 0.4, size=3)
        ratings.append(np.sort(np.clip(np.round(noisy), 1, 4)))
        shares.append(generator.binomial(3, share) / 3)
        pairs.append((pool.image_ids[image], pool.caption_ids[caption]))
    n_crowd = len(pairs) * 2 // 3
    ratings = np.array(ratings)
    expert = RelevanceJudgments.from_pairs("experts", pairs, ratings.mean(1), ratings=ratings)
    crowd = RelevanceJudgments.from_pairs("crowd", pairs[:n_crowd], shares[:n_crowd])
    ids = pool.image_ids, pool.caption_ids
    return Judgments(crowd.select(*ids), expert.select(*ids))


def make_scores(names, n=40, rng=0):
    """Scores of systems, of which the later ones are better."""
    generator = np.random.default_rng(rng)
    common = generator.normal(size=(n, n))
    scores = {}
    for i, name in enumerate(names):
        own = common + generator.normal(size=(n, n)) + (0.5 + i / 10) * np.eye(n)
        scores[name] = Scores(own, own, {})
    return scores


def evaluated(scores, **labels):
    """The results of such scores."""
    labels = {"split": "test", "pool": "caption #2", "dataset": "words", **labels}
    return [evaluate(of.annotation, system=name, **labels) for name, of in scores.items()]
