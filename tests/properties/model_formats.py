"""Table of files of records and models: made once, read, and then used."""

import io
import tempfile
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import strategies as some
from formats import SCORES, Format, files, saved
from hypothesis import strategies as st
from PIL import Image

from kernelcore import deep
from kernelcore.captions import EncodedCaptions, SentenceFragments, SentenceTrees
from kernelcore.datasets import Document, make_scenes
from kernelcore.distributed import LandmarkKCCA, fit_landmark_kcca
from kernelcore.evaluation import evaluate
from kernelcore.experiments.result_files import SystemFile
from kernelcore.experiments.scores import Scores
from kernelcore.images import CNN, SpatialHistograms, VisualWords, read_image
from kernelcore.kcca import KCCA, KernelBasis, kernel_basis
from kernelcore.kernels import bag_of_words, spatial_pyramid, word_sequence
from kernelcore.lexical import WordVectors
from kernelcore.models import KCCARanker, PhotoFile, PhotoIndex, PhotoRanker

X, Y = np.random.default_rng(0).random((2, 6, 3))
SCENES = make_scenes(12, size=(32, 32))


def compare_captions(found: EncodedCaptions) -> None:
    found.select(np.arange(len(found)))
    if found.n_words < 64:
        for kernel in (bag_of_words, word_sequence):
            kernel(found, word_weights=np.ones(found.n_words))


def encoded_captions() -> EncodedCaptions:
    return EncodedCaptions.from_lists([[[0, 1], []], [], [[2, -1]]], n_words=9)


def fragments() -> SentenceFragments:
    return SentenceFragments([0, 1, 0], [2, 0, 1], [1, 2, 0], [0, 1, 2, 3], 2, 4)


def trees() -> SentenceTrees:
    return SentenceTrees([0, 1, 2, 3], [0, 1, 0, 0], [1, -1, -1, -1], [0, 2, 3, 4], 2, 4)


def histograms() -> SpatialHistograms:
    return SpatialHistograms.from_finest(np.arange(1, 61).reshape(3, 4, 5), 2)


def transform(kcca: KCCA) -> None:
    rows = np.zeros((1, len(kcca.x_scores_)))
    assert kcca.transform_x(rows).shape == kcca.transform_y(rows).shape


def landmarks() -> LandmarkKCCA:
    with tempfile.TemporaryDirectory() as folder:
        return fit_landmark_kcca(X, X, Path(folder, "m"), n_landmarks=3, n_components=1)


@st.composite
def indices(draw: Any) -> PhotoIndex:
    names = draw(st.lists(some.ANY_TEXT.filter(bool), unique=True, max_size=3))
    vectors = draw(some.arrays(draw(some.FLOATS), (len(names), 2), some.reals(np.float32)))
    facts = [PhotoFile(9, 8, f"{i:032x}") for i in range(len(names))]
    return PhotoIndex(names, vectors, "1f0e", files=facts if draw(st.booleans()) else None)


def visual_words() -> VisualWords:
    words = VisualWords(n_words={"colour": 4, "sift": 3}, n_sample_images=4, n_levels=1)
    return words.fit(SCENES.images, n_threads=1)


def photo_ranker(features: Any, photos: Any, **options: Any) -> PhotoRanker:
    grids = {"n_components_grid": (2,), "regularization_grid": (0.1,)}
    ranker = PhotoRanker(features, **grids, **options)
    return ranker.fit(photos, SCENES.dataset.captions, n_threads=1)


def search(ranker: PhotoRanker) -> None:
    photos: Any = ranker.photos_.photos
    is_raw = isinstance(photos, dict)
    ranker.scores(SCENES.images[:2] if is_raw else np.ones((2, photos.shape[1])), ["A dog."])


MODELS: dict[str, Format] = {
    "EncodedCaptions": saved(EncodedCaptions, encoded_captions, compare_captions),
    "SentenceFragments": saved(SentenceFragments, fragments),
    "SentenceTrees": saved(SentenceTrees, trees, lambda own: own.select([]).heights),
    "SpatialHistograms": saved(
        SpatialHistograms, histograms, lambda own: len(own) and spatial_pyramid(own.mirrored()),
    ),
    "VisualWords": saved(VisualWords, cache(visual_words), VisualWords.get_params),
    "KCCA": saved(KCCA, cache(lambda: KCCA(2).fit(X @ X.T, Y @ Y.T)), transform),
    "KernelBasis": saved(
        KernelBasis, cache(lambda: kernel_basis(X @ X.T)),
        lambda basis: basis.coordinates(np.zeros((1, len(basis.vectors)))),
    ),
    "KCCARanker": saved(
        KCCARanker,
        cache(lambda: KCCARanker(2).fit(X @ X.T, Y @ Y.T, caption_image=np.arange(6)[::-1])),
        lambda own: transform(own.kcca_),
    ),
    "LandmarkKCCA": saved(LandmarkKCCA, cache(landmarks), lambda own: own.embed("images", X)),
    "PhotoIndex": saved(PhotoIndex, indices()),
    "PhotoRanker": saved(
        PhotoRanker, cache(lambda: photo_ranker(visual_words(), SCENES.images)), search,
    ),
    "PhotoRanker of vectors": saved(
        PhotoRanker,
        cache(lambda: photo_ranker("precomputed", np.eye(12), caption_kernel="similar_words")),
        search,
    ),
    "Scores": saved(Scores, cache(lambda: Scores(SCORES, SCORES, {"k": 1}))),
    "SystemFile": Format(
        cache(lambda: SystemFile("s", "x", "1", "2", {"all": evaluate(SCORES)}, {"n": X[0]})),
        lambda value, folder: value.save(folder),
        lambda folder: SystemFile.load(folder / "s" / "x.json"), is_sealed=True,
    )
}  # fmt: skip

# Networks.

TEXTS = ["a red dog", "a blue cat", "a green boat"]
PHOTOS = np.eye(3)
FACTS = {"a": [1.0, 0.0], "b": [0.0, 1.0]}
PAIRS = [Document(i, ("a dog", "a cat"), ("a", "b")) for i in ("1", "2")]
TINY: dict[str, Any] = {"n_components": 3, "n_epochs": 1, "rng": 0}


def of_sentences(kind: Any, **options: Any) -> Format:
    def make() -> Any:
        ranker = kind(min_count=1, n_embedding=2, **TINY, **options)
        return ranker.fit(PHOTOS, TEXTS, dev=(PHOTOS, TEXTS), n_threads=1)

    def use(ranker: Any) -> None:
        if ranker.n_features_ == 3:
            ranker.scores(PHOTOS, TEXTS, n_threads=1)

    return saved(kind, cache(make), use)


def linker() -> deep.DocumentLinker:
    model = deep.DocumentLinker(min_count=1, n_embedding=2, **TINY)
    return model.fit(PAIRS, FACTS, dev=PAIRS, n_threads=1)


def link(model: deep.DocumentLinker) -> None:
    if len(model.space_.images.mean) == 2:
        model.link_scores(PAIRS, FACTS, n_threads=1)


def of_parses(parsed: Any, sentence: str) -> Format:
    def make() -> deep.FragmentRanker:
        vectors = WordVectors(list("abcd"), np.eye(4))
        ranker = deep.FragmentRanker(sentence=sentence, **TINY)
        dev = PHOTOS, parsed
        return ranker.fit(PHOTOS, parsed, word_vectors=vectors, dev=dev, n_threads=1)

    def use(ranker: deep.FragmentRanker) -> None:
        sizes = ranker.n_relations_, len(ranker.space_.captions.words)
        if (ranker.sentence, *sizes, len(ranker.space_.regions.mean)) == (sentence, 2, 4, 3):
            ranker.scores(PHOTOS, parsed, n_threads=1)

    return saved(deep.FragmentRanker, cache(make), use)


TINY_NETWORK = """<ir_version: 8, opset_import: ["": 13]>
tiny (float[b, 3, h, w] pixels) => (float[b, 3, 1, 1] mean) {
    mean = GlobalAveragePool (pixels)
}"""


def run_network(folder: Path) -> Any:
    cnn = CNN(folder / "x.onnx", input_size=16)
    try:
        return cnn.transform(SCENES.images[:1], n_threads=1).features.shape
    except ValueError as error:
        if str(error).startswith("the network must return"):
            return None  # a network, but of no photos
        raise


def encoded(kind: str, pixels: Any) -> bytes:
    name, mode, *options = kind.split()
    buffer = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(buffer, name, **dict.fromkeys(options, True))
    return buffer.getvalue()


KINDS = (
    *("JPEG RGB", "JPEG L progressive", "JPEG CMYK", "PNG 1", "PNG L", "PNG P", "PNG RGBA"),
    *("GIF P", "BMP 1", "BMP P", "BMP RGB", "WEBP RGB", "WEBP RGBA lossless"),
    *("TIFF RGB", "TIFF CMYK", "PPM 1", "PPM L", "PPM RGB"),
)
IMAGES: dict[str, Format] = {
    kind: files(
        some.arrays(np.uint8, (5, 7, 3), st.integers(0, 255)), {"x": partial(encoded, kind)},
        lambda at: read_image(at / "x", max_pixels=2**20).shape, expected=np.shape,
    )
    for kind in KINDS
}  # fmt: skip
NETWORKS: dict[str, Format] = {
    "EmbeddingRanker": of_sentences(deep.EmbeddingRanker, n_hidden=2),
    "CrossAttentionRanker": of_sentences(deep.CrossAttentionRanker),
    "OrderRanker": of_sentences(deep.OrderRanker, n_hidden=2, n_states=2, joined=False),
    "Captioner": of_sentences(deep.Captioner, n_prior=2),
    "DocumentLinker": saved(deep.DocumentLinker, cache(linker), link),
    "FragmentRanker": of_parses(fragments(), "fragments"),
    "FragmentRanker of trees": of_parses(trees(), "tree"),
    "ONNX": files(
        st.just((1, 3)),
        {"x.onnx": lambda value: onnx.parser.parse_model(TINY_NETWORK).SerializeToString()},
        run_network,
    ),
}
