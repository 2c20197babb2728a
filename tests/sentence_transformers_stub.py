"""The calls of sentence-transformers that its documentation names, over a tiny network.

Tests put this module into `sys.modules`. Sentences become counts of colours by their names,
photos become the mean of their pixels, and both are multiplied by the weights in the folder.
"""

from pathlib import Path

import numpy as np
from PIL import Image

COLOURS = ("red", "green", "blue")
calls = []


def write_model(folder, weights=(1.0, 1.0, 1.0)):
    """Write a folder that `SentenceTransformer` reads."""
    (folder / "0_CLIPModel").mkdir(parents=True)
    (folder / "modules.json").write_text("[]")
    np.save(folder / "0_CLIPModel" / "weights.npy", np.array(weights, np.float32))
    return folder


class SentenceTransformer:
    def __init__(self, model_name_or_path, *, local_files_only=False):
        assert local_files_only, "a model may not be fetched"
        weights = Path(model_name_or_path, "0_CLIPModel", "weights.npy")
        if not weights.is_file():
            raise OSError(f"{model_name_or_path} is not cached")
        self._weights = np.load(weights)

    def encode(
        self,
        sentences,
        *,
        batch_size=32,
        show_progress_bar=None,
        convert_to_numpy=True,
        normalize_embeddings=False,
    ):
        assert convert_to_numpy
        calls.append(show_progress_bar)
        rows = np.array([self._row(one) for one in sentences], np.float32) * self._weights
        if normalize_embeddings:
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return rows

    def _row(self, item):
        if isinstance(item, Image.Image):
            assert item.mode == "RGB"
            return np.asarray(item).reshape(-1, 3).mean(axis=0)
        return [item.split().count(colour) for colour in COLOURS]
