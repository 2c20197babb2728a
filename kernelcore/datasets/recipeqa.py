"""Cooking recipes of RecipeQA as documents: steps of a recipe and their photos."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kernelcore.datasets._collect import OddRows, field, read_json
from kernelcore.datasets.documents import Document, DocumentCollection, documents_of_splits


def load_recipeqa(folder: str | os.PathLike[str]) -> DocumentCollection:
    r"""Load the recipes of RecipeQA [1]_ from its own files.

    The folder has ``train.json``, ``val.json`` and ``test.json``, or some of them. Each is an
    object with a list ``data`` of questions. A question has the id and the steps of a recipe::

        {"recipe_id": "...", "context": [{"body": "...", "images": ["..."], ...}, ...], ...}

    A document is a recipe. Its sentences are the bodies of the steps, its images those of all
    steps. A step is linked to its own images.

    Parameters
    ----------
    folder : path

    Returns
    -------
    DocumentCollection
        Splits without a file are empty. The id of a document is that of the recipe. The text
        of a step is one sentence, however long it is.

    Warns
    -----
    DatasetWarning
        Recipes without a photo or without text are left out and named.

    Raises
    ------
    FileNotFoundError
        If the folder has none of the files.
    ValueError
        If a file is damaged or of another form; the error says where.

    See Also
    --------
    load_documents : Reads the form of Hessel et al.

    Notes
    -----
    Several questions may be about one recipe, and the steps of some have no photos. Of these
    questions the first one with the most photos is read. A step without text gives no
    sentence; its photos have no link.

    References
    ----------
    .. [1] S. Yagcioglu, A. Erdem, E. Erdem and N. Ikizler-Cinbis, "RecipeQA: a challenge
       dataset for multimodal comprehension of cooking recipes", EMNLP 2018.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kernelcore.datasets import load_recipeqa
    >>> text = '''{"data": [{"recipe_id": "toast", "context": [
    ...     {"body": "Cut the bread.", "images": ["toast_0_0.jpg"]},
    ...     {"body": "Toast it.", "images": []}]}]}'''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "val.json").write_text(text)
    ...     recipes = load_recipeqa(folder)
    >>> recipes.split("val")
    (Document('toast', 2 sentences, 1 images, 1 links),)
    """
    return documents_of_splits("RecipeQA", Path(folder), ".json", _documents)


def _documents(path: Path, odd: OddRows) -> Iterator[Document]:
    recipes: dict[str, list[tuple[str, list[str]]]] = {}
    n_images: dict[str, int] = {}
    for number, question in enumerate(read_json(path, ["data"])["data"]):
        where = f"data[{number}]"
        recipe = field(path, where, question, "recipe_id", str)
        steps = [
            _step(path, f"{where} context[{i}]", step)
            for i, step in enumerate(field(path, where, question, "context", list))
        ]
        n_shown = sum(len(shown) for _, shown in steps)
        if n_shown > n_images.get(recipe, -1):
            recipes[recipe], n_images[recipe] = steps, n_shown
    for recipe, steps in recipes.items():
        sentences: list[str] = []
        images: list[str] = []
        links: set[tuple[int, int]] = set()
        for text, shown in steps:
            if text:
                links |= {(len(sentences), len(images) + i) for i in range(len(shown))}
                sentences.append(text)
            images += shown
        if sentences and images:
            yield Document(recipe, tuple(sentences), tuple(images), frozenset(links))
        else:
            odd.add("recipes without a photo or without text (left out)", recipe)


def _step(path: Path, where: str, step: Any) -> tuple[str, list[str]]:
    """Return the text and the images of a step."""
    text = field(path, where, step, "body", str).strip()
    images = field(path, where, step, "images", list)
    for i, image in enumerate(images):
        if not isinstance(image, str):
            raise ValueError(f"{path}: {where} images[{i}] must be a string, got {image!r:.80}")
    return text, images
