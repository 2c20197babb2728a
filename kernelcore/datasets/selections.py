"""Captions with an image that each describes and one that it does not."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import NamedTuple

import numpy as np

from kernelcore.datasets.judgments import Indices, as_ids


@dataclass(frozen=True)
class SelectionTriple:
    """The question which of two images a caption describes.

    Attributes
    ----------
    triple_id : str
        Id of the question, BISON's ``bison_id``.
    caption : str
        The caption as it is shown.
    caption_id : str
        Its id in the collection it comes from.
    true_image_id : str
        The image that it describes.
    other_image_id : str
        The image that it does not describe.

    Raises
    ------
    TypeError
        If a part is not a string.
    ValueError
        If both images are the same.
    """

    triple_id: str
    caption: str
    caption_id: str
    true_image_id: str
    other_image_id: str

    def __post_init__(self) -> None:
        for part in fields(self):
            value = getattr(self, part.name)
            if not isinstance(value, str):
                raise TypeError(f"{part.name} must be a string, got {value!r}")
        if self.true_image_id == self.other_image_id:
            raise ValueError(
                f"other_image_id must differ from true_image_id, got {self.true_image_id!r} "
                f"twice in triple {self.triple_id!r}"
            )


class SelectionPositions(NamedTuple):
    """Where the parts of each triple stand in a matrix of images by captions.

    Attributes
    ----------
    true_images, other_images : ndarray of intp, shape (n_triples,)
        Rows.
    captions : ndarray of intp, shape (n_triples,)
        Columns.
    """

    true_images: Indices
    other_images: Indices
    captions: Indices


@dataclass(frozen=True, eq=False, repr=False)
class BinarySelections:
    """Questions of binary image selection.

    Attributes
    ----------
    name : str
        What asks, as results will quote it.
    triples : tuple of SelectionTriple
        At least one. No id comes twice, and a caption id always has the same caption.
    filenames : mapping of str to str
        File name of each image, where the source gives one.

    Raises
    ------
    TypeError
        If a part is not of its kind.
    ValueError
        If there is no triple, an id comes twice, or a caption id has two captions.

    See Also
    --------
    kernelcore.datasets.load_bison : Reads them from a file.
    kernelcore.datasets.judged_selections : Makes them from the verdicts of people.
    kernelcore.datasets.neighbour_selections : Makes them from captions alone.
    kernelcore.evaluation.evaluate_selections : Asks a system.

    References
    ----------
    .. [1] H. Hu, I. Misra and L. van der Maaten, "Evaluating text-to-image matching using
       binary image selection (BISON)", ICCV workshops 2019.

    Examples
    --------
    >>> from kernelcore.datasets import BinarySelections, SelectionTriple
    >>> garden = BinarySelections(
    ...     "garden",
    ...     [
    ...         SelectionTriple("0", "A dog digs.", "dog#0", "dog.jpg", "fox.jpg"),
    ...         SelectionTriple("1", "A fox sleeps.", "fox#0", "fox.jpg", "dog.jpg"),
    ...     ],
    ... )
    >>> garden
    BinarySelections('garden', 2 triples of 2 images and 2 captions)
    >>> garden.positions(["dog.jpg", "fox.jpg"], ["fox#0", "dog#0"]).true_images
    array([0, 1])
    """

    name: str
    triples: Sequence[SelectionTriple]
    filenames: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise TypeError(f"name must be a string, got {self.name!r}")
        triples = tuple(self.triples)
        if not triples:
            raise ValueError("triples must hold at least one triple, got none")
        seen: set[str] = set()
        captions: dict[str, str] = {}
        for triple in triples:
            if not isinstance(triple, SelectionTriple):
                raise TypeError(f"triples must hold SelectionTriple objects, got {triple!r}")
            if triple.triple_id in seen:
                raise ValueError(f"triple_id must be unique, got {triple.triple_id!r} twice")
            seen.add(triple.triple_id)
            if captions.setdefault(triple.caption_id, triple.caption) != triple.caption:
                raise ValueError(
                    f"caption_id must stand for one caption, got {triple.caption_id!r} with "
                    f"{captions[triple.caption_id]!r} and {triple.caption!r}"
                )
        object.__setattr__(self, "triples", triples)
        object.__setattr__(self, "filenames", dict(self.filenames))

    def __len__(self) -> int:
        return len(self.triples)

    def __iter__(self) -> Iterator[SelectionTriple]:
        return iter(self.triples)

    def __repr__(self) -> str:
        return (
            f"BinarySelections({self.name!r}, {len(self)} triples of {len(self.image_ids)} "
            f"images and {len(self.captions)} captions)"
        )

    @property
    def triple_ids(self) -> tuple[str, ...]:
        """Id of each triple."""
        return tuple(triple.triple_id for triple in self)

    @property
    def image_ids(self) -> tuple[str, ...]:
        """Every image once, in the order in which they first come."""
        pairs = ((triple.true_image_id, triple.other_image_id) for triple in self)
        return tuple(dict.fromkeys(image for pair in pairs for image in pair))

    @property
    def captions(self) -> dict[str, str]:
        """Every caption by its id, in the order in which they first come."""
        return {triple.caption_id: triple.caption for triple in self}

    def select(self, image_ids: Collection[str]) -> BinarySelections:
        """Return the triples of which both images are among `image_ids`.

        BISON asks about images that some systems were trained on: what remains of it for a
        system is ``selections.select(test.image_ids)``.
        """
        inside = set(image_ids)
        return BinarySelections(
            self.name,
            [t for t in self if {t.true_image_id, t.other_image_id} <= inside],
            self.filenames,
        )

    def positions(
        self, image_ids: Sequence[str], caption_ids: Sequence[str]
    ) -> SelectionPositions:
        """Look up the triples in a matrix of scores.

        Parameters
        ----------
        image_ids, caption_ids : sequence of str
            Ids of its rows and columns; all that the triples need are among them.

        Returns
        -------
        SelectionPositions

        Raises
        ------
        TypeError, ValueError
            If the ids are not strings, one comes twice, or a triple's is not there.
        """
        rows, columns = (
            {entry: place for place, entry in enumerate(as_ids(name, ids))}
            for name, ids in (("image_ids", image_ids), ("caption_ids", caption_ids))
        )
        wanted = {
            "true_images": (rows, "image_ids", [t.true_image_id for t in self]),
            "other_images": (rows, "image_ids", [t.other_image_id for t in self]),
            "captions": (columns, "caption_ids", [t.caption_id for t in self]),
        }
        found = {}
        for part, (places, name, ids) in wanted.items():
            absent = [entry for entry in ids if entry not in places]
            if absent:
                raise ValueError(
                    f"{name} must hold those of every triple of {self.name}, and "
                    f"{len(set(absent))} are not there, the first is {absent[0]!r}"
                )
            found[part] = np.array([places[entry] for entry in ids], dtype=np.intp)
        return SelectionPositions(**found)
