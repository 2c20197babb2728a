"""Table 4.1 of the thesis, as published rows."""

from __future__ import annotations

from collections.abc import Iterator

from kernelcore.evaluation import Published

SOURCE = "Khojasteh 2019"

_NAMES = ("R@1", "R@5", "R@10", "median_rank")

_COCO_1K = """
Random  0.1  0.6  1.1 631   0.1  0.5  1.0 500
STV    33.8 67.7 82.1   3  25.9 60.0 74.6   4
DVSA   38.4 69.9 80.5   1  27.4 60.2 74.8   3
GMM-FV 39.0 67.0 80.3   3  24.2 59.3 76.0   4
MM-ENS 39.4 67.9 80.9   2  25.1 59.8 76.6   4
m-RNN  41.0 73.0 83.5   2  29.0 42.2 77.0   3
m-CNN  42.8 73.1 84.1   2  32.6 68.6 82.8   3
HM-LSTM 43.9   - 87.8   2  36.1    - 86.7   3
SPE    50.1 79.7 89.2   -  39.6 75.2 86.9   -
VQA-A  50.5 80.1 89.7   -  37.0 70.9 82.9   -
2WayNet 55.8 75.2  -    -  39.7 63.3    -   -
sm-LSTM 53.2 83.1 91.5  1  40.7 75.8 87.4   2
RRF-Net 56.4 85.3 91.5  -  43.9 78.1 88.6   -
VSE++  64.6 90.0 95.7   1  52.0 84.3 92.0   1
SCAN   72.7 94.8 98.4   -  58.8 88.4 94.8   -
DeepTwt 47.5 81.0 91.0  2  48.4 84.3 91.5   2
"""

_COCO_5K = """
GMM-FV 17.3 39.0 50.2  10  10.8 28.3 40.1  17
DVSA   16.5 39.2 52.0   9  10.7 29.6 42.2  14
VQA-A  23.5 50.7 63.6   -  16.7 40.5 53.8   -
VSE++  41.3 71.1 81.2   2  30.3 59.4 72.4   4
SCAN   50.4 82.2 90.0   -  38.6 69.3 80.4   -
DeepTwt 23.8 53.7 67.3  4  25.6 55.1 68.4   3
"""


def _rows(pool: str, table: str) -> Iterator[Published]:
    """Read the lines of a table: a name, four numbers of annotation, four of search."""
    for line in table.strip().splitlines():
        name, *cells = line.split()
        numbers = {"annotation": cells[:4], "search": cells[4:]}
        yield Published(
            f"{name}, {pool}",
            SOURCE,
            {
                task: {
                    metric: float(cell) / (1 if metric == "median_rank" else 100)
                    for metric, cell in zip(_NAMES, own, strict=True)
                    if cell != "-"
                }
                for task, own in numbers.items()
            },
        )


TABLE = (*_rows("COCO-1K", _COCO_1K), *_rows("COCO-5K", _COCO_5K))
"""All rows of the table. The thesis cites those of other systems from their papers."""

PUBLISHED = tuple(row for row in TABLE if row.system.startswith("DeepTwt"))
"""The model of the thesis: 1,000 and 5,000 photos of COCO with their joined captions."""
