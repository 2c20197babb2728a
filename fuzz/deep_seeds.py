"""Whole files for each reader that needs torch or runs networks."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.seed_files import Files, Readers, written
from kernelcore.lexical import WordVectors

TEXTS = ["a red dog", "a blue cat", "a green boat"]
PHOTOS = np.eye(3)
_VECTORS = WordVectors(["a", "b", "c", "d"], np.eye(4))
_TINY: dict[str, Any] = {"n_components": 3, "n_epochs": 1, "rng": 0}


def _sentences(name: str, **options: Any) -> tuple[Callable[[], Files], Callable[[Path], Any]]:
    """Return the two functions of a ranker of images and raw sentences."""

    def make() -> Files:
        from kernelcore import deep

        ranker = getattr(deep, name)(min_count=1, n_embedding=2, **_TINY, **options)
        ranker.fit(PHOTOS, TEXTS, dev=(PHOTOS, TEXTS), n_threads=1)
        return written(lambda folder: ranker.save(folder / "x.safetensors"))

    def read(folder: Path) -> None:
        from kernelcore import deep

        ranker = getattr(deep, name).load(folder / "x.safetensors")
        if ranker.n_features_ == 3:
            with np.errstate(all="ignore"):
                try:
                    ranker.scores(PHOTOS, TEXTS, n_threads=1)
                except ValueError as error:  # finite weights may be too large for any photo
                    if not str(error).startswith("features of images must be"):
                        raise

    return make, read


def _linker() -> Files:
    from kernelcore.datasets import Document
    from kernelcore.deep import DocumentLinker

    features = {"a": [1.0, 0.0], "b": [0.0, 1.0]}
    documents = [Document(i, ("a dog", "a cat"), ("a", "b")) for i in ("1", "2")]
    linker = DocumentLinker(min_count=1, n_embedding=2, **_TINY)
    linker.fit(documents, features, dev=documents, n_threads=1)
    return written(lambda folder: linker.save(folder / "x.safetensors"))


def _use_linker(folder: Path) -> None:
    from kernelcore.datasets import Document
    from kernelcore.deep import DocumentLinker

    linker = DocumentLinker.load(folder / "x.safetensors")
    if len(linker.space_.images.mean) == 2:
        features = {"a": [1.0, 0.0], "b": [0.0, 1.0]}
        linker.link_scores([Document("1", ("a dog", "x"), ("a", "b"))], features, n_threads=1)


def _captions(sentence: str) -> Any:
    from kernelcore.captions import SentenceFragments, SentenceTrees

    if sentence == "tree":
        return SentenceTrees([0, 1, 2, 3], [0, 1, 0, 0], [1, -1, -1, -1], [0, 2, 3, 4], 2, 4)
    return SentenceFragments([0, 1, 0], [2, 0, 1], [1, 2, 0], [0, 1, 2, 3], 2, 4)


def _fragments(sentence: str) -> tuple[Callable[[], Files], Callable[[Path], Any]]:
    def make() -> Files:
        from kernelcore.deep import FragmentRanker

        captions = _captions(sentence)
        ranker = FragmentRanker(sentence=sentence, **_TINY)
        ranker.fit(PHOTOS, captions, word_vectors=_VECTORS, dev=(PHOTOS, captions), n_threads=1)
        return written(lambda folder: ranker.save(folder / "x.safetensors"))

    def read(folder: Path) -> None:
        from kernelcore.deep import FragmentRanker

        ranker = FragmentRanker.load(folder / "x.safetensors")
        captions = _captions(ranker.sentence)
        sizes = captions.n_relations, captions.n_words
        if sizes == (ranker.n_relations_, len(ranker.space_.captions.words)) and (
            len(ranker.space_.regions.mean) == 3
        ):
            ranker.scores(PHOTOS, captions, n_threads=1)

    return make, read


def _train(folder: Path) -> Any:
    from kernelcore.deep import EmbeddingRanker

    ranker = EmbeddingRanker(min_count=1, n_embedding=2, n_hidden=2, **_TINY)
    return ranker.fit(PHOTOS, TEXTS, dev=(PHOTOS, TEXTS), folder=folder, n_threads=1)


def _onnx() -> Files:
    source = Path(os.environ.get("KERNELCORE_DATA", "nowhere")) / "models"
    if (source / "FastestDet.onnx").is_file():
        return {
            "x.onnx": (source / "FastestDet.onnx").read_bytes(),
            "x.names": (source / "coco.names").read_bytes(),
        }
    return {"x.onnx": _tiny_onnx(), "x.names": b"dog\ncat\n"}


def _tiny_onnx() -> bytes:
    from onnx import TensorProto, helper, numpy_helper

    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["pixels", "filters"], ["map"], name="map"),
            helper.make_node("GlobalAveragePool", ["map"], ["mean"], name="mean"),
        ],
        "tiny",
        [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["b", 3, "h", "w"])],
        [helper.make_tensor_value_info("mean", TensorProto.FLOAT, ["b", 7, 1, 1])],
        [numpy_helper.from_array(np.ones((7, 3, 1, 1), np.float32), "filters")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    content: bytes = model.SerializeToString()
    return content


def _run_onnx(folder: Path) -> None:
    from kernelcore.images import CNN

    photo = np.zeros((16, 16, 3), np.uint8)
    with np.errstate(all="ignore"):
        try:
            CNN(folder / "x.onnx", input_size=16).transform([photo], n_threads=1)
        except ValueError as error:
            if not str(error).startswith("the network must return"):  # its answer is no file
                raise


def _detect(folder: Path) -> None:
    from kernelcore.images import FastestDet

    detector = FastestDet(folder / "x.onnx", class_names=folder / "x.names")
    with np.errstate(all="ignore"):
        detector.propose(np.zeros((352, 352, 3), np.uint8))


READERS: Readers = {
    "deep.EmbeddingRanker.load": _sentences("EmbeddingRanker", n_hidden=2),
    "deep.CrossAttentionRanker.load": _sentences("CrossAttentionRanker"),
    "deep.OrderRanker.load": _sentences("OrderRanker", n_hidden=2, n_states=2, joined=False),
    "deep.Captioner.load": _sentences("Captioner", n_prior=2),
    "deep.DocumentLinker.load": (_linker, _use_linker),
    "deep.FragmentRanker.load-fragments": _fragments("fragments"),
    "deep.FragmentRanker.load-tree": _fragments("tree"),
    "deep.train-checkpoint": (lambda: written(_train), _train),
    "images.CNN-ONNX": (lambda: {"x.onnx": _tiny_onnx()}, _run_onnx),
    "images.FastestDet": (_onnx, _detect),
}
