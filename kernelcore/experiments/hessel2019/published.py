"""The paper's seven collections of documents and its figures for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelcore.evaluation import Published

SOURCE = "Hessel et al. 2019"


@dataclass(frozen=True)
class Collection:
    """A collection of documents of the paper, with figures of its tables 1 to 3.

    Attributes
    ----------
    n_documents : tuple of int
        Training, validation and test documents, in thousands.
    size : tuple of int
        Median numbers of sentences and images of a document.
    figures : mapping of str to tuple of float
        AUC, p@1 and p@5 of each system on the test documents, in percent.
    explained : tuple of float, optional
        Share of the variance of AP's AUC that spread explains, and spread and content
        together, in percent.
    """

    n_documents: tuple[int, int, int]
    size: tuple[int, int]
    figures: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    explained: tuple[float, float] | None = None

    def rows(self, name: str) -> dict[str, Published]:
        """Return the figures of each system as a row of a table."""
        return {
            system: Published(
                system,
                f"{name}, {SOURCE}",
                {"AUC": auc / 100, "p@1": first / 100, "p@5": fifth / 100},
            )
            for system, (auc, first, fifth) in self.figures.items()
        }


COLLECTIONS: Mapping[str, Collection] = {
    "MSCOCO": Collection(
        (25, 2, 2),
        (10, 10),
        {
            "Random": (49.7, 5.0, 4.6),
            "Obj Detect": (89.5, 67.7, 45.9),
            "NoStruct": (87.5, 50.6, 34.6),
            "DC": (98.9, 93.6, 80.1),
            "TK": (98.9, 93.9, 80.1),
            "TK half-k": (99.0, 95.0, 81.1),
            "AP": (98.7, 91.0, 78.0),
            "AP half-k": (98.9, 93.9, 80.4),
        },
    ),
    "Story-DII": Collection(
        (22, 3, 3),
        (5, 5),
        {
            "Random": (49.4, 19.5, 19.2),
            "Obj Detect": (65.3, 50.2, 35.2),
            "NoStruct": (76.6, 60.1, 46.2),
            "DC": (82.8, 71.5, 55.5),
            "TK": (82.9, 71.4, 55.5),
            "TK half-k": (82.0, 72.6, 54.9),
            "AP": (82.6, 70.5, 55.0),
            "AP half-k": (81.6, 72.4, 54.4),
        },
        explained=(42, 52),
    ),
    "Story-SIS": Collection(
        (37, 5, 5),
        (5, 5),
        {
            "Random": (50.0, 19.4, 19.7),
            "Obj Detect": (58.4, 40.8, 28.6),
            "NoStruct": (64.9, 43.2, 33.7),
            "DC": (68.8, 51.8, 38.6),
            "TK": (68.8, 50.9, 38.7),
            "TK half-k": (67.6, 51.9, 38.0),
            "AP": (68.5, 50.5, 38.3),
            "AP half-k": (67.4, 52.1, 37.7),
        },
        explained=(23, 35),
    ),
    "DII-Stress": Collection(
        (22, 3, 3),
        (50, 5),
        {
            "Random": (50.0, 2.0, 2.0),
            "Obj Detect": (76.9, 25.7, 17.5),
            "NoStruct": (84.2, 21.4, 15.6),
            "DC": (94.9, 64.6, 44.8),
            "TK": (95.2, 65.6, 45.3),
            "TK half-k": (94.7, 64.0, 43.7),
            "AP": (95.3, 65.5, 45.7),
            "AP half-k": (94.5, 65.0, 43.4),
        },
        explained=(16, 38),
    ),
    "RQA": Collection(
        (7, 1, 1),
        (6, 8),
        {
            "Random": (49.4, 17.8, 16.7),
            "Obj Detect": (58.7, 25.1, 21.5),
            "NoStruct": (60.5, 33.8, 27.0),
            "DC": (63.5, 38.3, 30.6),
            "TK": (67.9, 44.0, 35.8),
            "TK half-k": (68.1, 44.5, 35.4),
            "AP": (69.3, 47.3, 37.3),
            "AP half-k": (68.7, 47.2, 36.2),
        },
        explained=(2, 18),
    ),
    "DIY": Collection(
        (7, 1, 1),
        (15, 16),
        {
            "Random": (49.8, 6.3, 6.8),
            "Obj Detect": (53.4, 17.9, 11.8),
            "NoStruct": (57.0, 13.3, 11.8),
            "DC": (59.3, 20.8, 16.1),
            "TK": (60.5, 21.2, 16.0),
            "TK half-k": (56.0, 14.1, 12.5),
            "AP": (61.8, 22.5, 17.2),
            "AP half-k": (59.4, 21.6, 15.3),
        },
        explained=(1, 13),
    ),
    "WIKI": Collection((14, 1, 1), (86, 5)),  # links are unknown: the paper has no figures
}
