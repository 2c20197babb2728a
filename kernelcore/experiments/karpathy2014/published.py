"""The paper's figures."""

from __future__ import annotations

from kernelcore.evaluation import Published

SOURCE = "Karpathy et al. 2014"


def _published(system: str, *numbers: float) -> Published:
    shares = [number / 100 for number in numbers]
    values = {
        task: dict(zip(("R@1", "R@5", "R@10"), shares[at:], strict=False))
        | {"median_rank": numbers[at + 3]}
        for task, at in (("annotation", 0), ("search", 4))
    }
    return Published(system, SOURCE, values)


PUBLISHED = (
    _published("Random Ranking", 0.1, 0.6, 1.1, 631, 0.1, 0.5, 1.0, 500),
    _published("Socher et al.", 4.5, 18.0, 28.6, 32, 6.1, 18.5, 29.0, 29),
    _published("DeViSE", 4.8, 16.5, 27.3, 28, 5.9, 20.1, 29.6, 29),
    _published("SDT-RNN", 6.0, 22.7, 34.0, 23, 6.6, 21.6, 31.7, 25),
    _published("Fragment Alignment Objective", 7.2, 21.9, 31.8, 25, 5.9, 20.0, 30.3, 26),
    _published("Global Ranking Objective", 5.8, 21.8, 34.8, 20, 7.5, 23.4, 35.0, 21),
    _published("Fragment + Global", 12.5, 29.4, 43.8, 14, 8.6, 26.7, 38.7, 17),
    _published("Fullframe Only", 5.9, 19.2, 27.3, 34, 5.2, 17.6, 26.5, 32),
    _published("BOW", 9.1, 25.9, 40.7, 17, 6.9, 22.4, 34.0, 23),
    _published("Bigrams", 8.7, 28.5, 41.0, 16, 8.5, 25.2, 37.0, 20),
    _published("Our model (+ MIL)", 12.6, 32.9, 44.0, 14, 9.7, 29.6, 42.5, 15),
)
"""Table 2 of the paper: Flickr8k, all five sentences of each of 1,000 test images."""

PUBLISHED_FIRST = (
    _published("Hodosh et al.", 8.3, 21.6, 30.3, 34, 7.6, 20.7, 30.1, 38),
    _published("Our model (+ MIL)", 9.3, 24.9, 37.4, 21, 8.8, 27.9, 41.3, 17),
)
"""The same table with only the first sentence of each image."""
