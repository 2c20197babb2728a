"""Whole files for each reader that needs no torch, and how they are read and used."""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from kernelcore.captions import (
    CaptionNormalizer,
    EncodedCaptions,
    FragmentExtractor,
    SentenceFragments,
    SentenceTrees,
    Vocabulary,
)
from kernelcore.captions._spelling import read_hunspell
from kernelcore.cli.files import read_sentences
from kernelcore.datasets import (
    RelevanceJudgments,
    load_bison,
    load_bison_predictions,
    load_coco_captions,
    load_documents,
    load_eccv_caption,
    load_flickr,
    load_flickr_crowd,
    load_flickr_expert,
    load_folder,
    load_karpathy,
    make_scenes,
)
from kernelcore.evaluation import (
    FoldedResult,
    LinkResult,
    RelevanceResult,
    RetrievalResult,
    SelectionResult,
    evaluate,
    evaluate_folds,
    evaluate_links,
    evaluate_relevance,
)
from kernelcore.experiments.hodosh2013.scorer import Scores
from kernelcore.experiments.store import Store
from kernelcore.images import SpatialHistograms, VisualWords
from kernelcore.images._rows import Rows
from kernelcore.images.cache import FeatureCache, _checksum
from kernelcore.kcca import KCCA, KernelBasis, kernel_basis
from kernelcore.kernels import bag_of_words, spatial_pyramid, word_sequence, write_gram
from kernelcore.lexical import (
    WordKernel,
    WordNetLin,
    load_word_vectors,
    read_tagged_corpus,
)
from kernelcore.lexical._wordnet_files import NounDatabase
from kernelcore.models import KCCARanker, PhotoIndex, PhotoRanker

Files = Mapping[str, bytes]
_SMALL = 64  # sizes up to which what was read is used, too
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(6, 3)), RNG.normal(size=(6, 2))
CAPTIONS = [[["dog", "run"], ["dog"]], [["dog", "swim"]], [["cat"], ["a", "cat", "sit"]]]
VOCABULARY = Vocabulary.from_captions(CAPTIONS)
SCORES = np.eye(6) + 0.1 * np.arange(6)


def written(write: Callable[[Path], object]) -> Files:
    """Return the files that a function writes into a folder."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        found = [path for path in Path(folder).rglob("*") if path.is_file()]
        return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def saved(make: Callable[[], Any], name: str = "x.safetensors") -> Callable[[], Files]:
    """Return what gives the file that an object saves."""
    return lambda: written(lambda folder: make().save(folder / name))


def text(**files: str | Any) -> Callable[[], Files]:
    """Return what gives files of text, or of JSON; ``__`` stands for the dot of a name."""

    def give() -> Files:
        return {
            name.replace("__", "."): (
                value if isinstance(value, str) else json.dumps(value)
            ).encode()
            for name, value in files.items()
        }

    return give


def real(path: str, name: str, n_bytes: int, made: Callable[[], Files]) -> Callable[[], Files]:
    """Return what gives the begin of a real file where ``KERNELCORE_DATA`` has it."""

    def give() -> Files:
        source = Path(os.environ.get("KERNELCORE_DATA", "nowhere")) / path
        if not source.is_file():
            return made()
        with source.open("rb") as file:
            return {**made(), name: b"\n".join(file.read(n_bytes).split(b"\n")[:-1]) + b"\n"}

    return give


def file(load: Callable[[Path], Any], name: str = "x.safetensors") -> Callable[[Path], Any]:
    """Return what reads one file of a folder."""
    return lambda folder: load(folder / name)


def _kcca() -> KCCA:
    return KCCA(2).fit(X @ X.T, Y @ Y.T)


def _use_kcca(folder: Path) -> None:
    kcca = KCCA.load(folder / "x.safetensors")
    n = len(kcca.x_scores_)
    with np.errstate(all="ignore"):
        assert kcca.transform_x(np.zeros((1, n))).shape == (1, len(kcca.correlations_))
        assert kcca.transform_y(np.zeros((1, n))).shape == (1, len(kcca.correlations_))


def _ranker() -> KCCARanker:
    return KCCARanker(2).fit(X @ X.T, Y @ Y.T)


def _use_ranker(folder: Path) -> None:
    ranker = KCCARanker.load(folder / "x.safetensors")
    n = len(ranker.kcca_.x_scores_)
    with np.errstate(all="ignore"):
        assert ranker.scores(np.zeros((1, n)), np.zeros((2, n))).shape == (1, 2)


def _use_basis(folder: Path) -> None:
    basis = KernelBasis.load(folder / "x.safetensors")
    with np.errstate(all="ignore"):
        rows = basis.coordinates(np.zeros((1, len(basis.vectors))))
    assert rows.shape == (1, len(basis.eigenvalues))


def _use_captions(folder: Path) -> None:
    captions = EncodedCaptions.load(folder / "x.safetensors")
    assert len(captions.select(np.arange(len(captions)))) == len(captions)
    if captions.n_words < _SMALL:
        bag_of_words(captions, weights=np.ones(captions.n_words))
        word_sequence(captions, word_weights=np.ones(captions.n_words))


def _use_histograms(folder: Path) -> None:
    histograms = SpatialHistograms.load(folder / "x.safetensors")
    spatial_pyramid(histograms.mirrored())


def _use_words(folder: Path) -> None:
    words = VisualWords.load(folder / "x.safetensors")
    if words.max_side < 300 and words.n_orientations < 9 and words.n_levels < 6:
        words.get_params()


def _use_word_kernel(folder: Path) -> None:
    kernel = WordKernel.load(folder / "x.safetensors")
    if len(kernel):
        kernel.most_similar(kernel.words[0])
        kernel.over([*kernel.words, "another"])


def _model(folder: Path) -> None:
    scenes = make_scenes(12, size=(32, 32))
    words = VisualWords(n_words={"colour": 4, "sift": 3}, n_sample_images=4, n_levels=1)
    ranker = PhotoRanker(visual_words=words, n_components=(2,), regularization=(0.1,))
    ranker.fit(scenes.images, scenes.dataset.captions, n_threads=1).save(folder / "model")


def _use_model(folder: Path) -> None:
    ranker = PhotoRanker.load(folder / "model")
    photos = {name: own.select([0]) for name, own in ranker.training_.histograms.items()}
    with np.errstate(all="ignore"):
        ranker.scores(photos, ["A dog."])
    assert ranker.fingerprint


def _visual_words() -> VisualWords:
    words = VisualWords(n_words={"colour": 4, "sift": 3}, n_sample_images=4)
    return words.fit(make_scenes(4, size=(32, 32)).images, n_threads=1)


def _histograms() -> SpatialHistograms:
    return SpatialHistograms.from_finest(RNG.integers(1, 9, (3, 4, 5)), 2)


def _cached(folder: Path) -> None:
    counts = {"colour": np.arange(6, dtype=np.uint16).reshape(2, 3)}
    FeatureCache(folder, "recipe").save("ab" * 20, counts)


def _use_cache(folder: Path) -> None:
    counts = FeatureCache(folder, "recipe").load("ab" * 20)
    assert counts is None or _checksum(counts)
    if counts is None:  # and is made again
        _cached(folder)
        assert FeatureCache(folder, "recipe").load("ab" * 20) is not None


def _rows(folder: Path) -> None:
    rows = Rows(folder / "rows", 3, {"features": ((2,), np.float32)})
    rows.put(1, {"features": [1.0, 2.0]})
    rows.arrays()


def _use_rows(folder: Path) -> None:
    rows = Rows(folder / "rows", 3, {"features": ((2,), np.float32)})
    for i in rows.missing:
        rows.put(int(i), {"features": [1.0, 2.0]})
    assert rows.arrays()["features"].shape == (3, 2)
    assert sum(path.stat().st_size for path in (folder / "rows").iterdir()) < 10_000


def _extractor() -> Files:
    extractor = FragmentExtractor("bigrams").fit(["A dog runs.", "The dog"])
    return {"x.json": json.dumps(extractor.to_dict()).encode()}


def _state(load: Callable[[Any], Any]) -> Callable[[Path], Any]:
    """Return what gives a stored JSON value to a function, by way of a reader that names it."""
    from kernelcore._reading import json_value, read_text, reading

    def read(folder: Path) -> Any:
        with reading(folder / "x.json"):
            return load(json_value(read_text(folder / "x.json")))

    return read


def _store(folder: Path) -> None:
    store = Store(folder / "store")
    store.json("a", "k", lambda: {"x": [1, 2.5, "s"]})
    store.arrays("b", "k", lambda: {"x": np.arange(3)})


def _use_store(folder: Path) -> None:
    store = Store(folder / "store")
    store.json("a", "k", lambda: {"x": [1, 2.5, "s"]})
    assert store.arrays("b", "k", lambda: {"x": np.arange(3)}) is not None


def _half_gram(folder: Path) -> None:
    class StopError(Exception):
        pass

    def kernel(A: Any, B: Any = None) -> Any:
        if len(done) == 2:
            raise StopError
        done.append(1)
        return A @ (A if B is None else B).T

    done: list[int] = []
    try:
        write_gram(folder / "K.npy", kernel, X, block_size=2)
    except StopError:
        pass


def _use_gram(folder: Path) -> None:
    def kernel(A: Any, B: Any = None) -> Any:
        return A @ (A if B is None else B).T

    with np.errstate(all="ignore"):
        write_gram(folder / "K.npy", kernel, X, block_size=2)


def _relevance() -> RelevanceResult:
    ids = [str(n) for n in range(6)]
    gold = RelevanceJudgments.from_pairs("gold", zip(ids, ids, strict=True), np.ones(6))
    return evaluate_relevance(SCORES, judgments=gold, threshold=1)


def _vectors() -> bytes:
    return b"dog 1.0 0.5 -3e-1\ncat 0.5 1.0 2\nnewt 0 0 1\n"


def _binary_vectors() -> bytes:
    row = np.array([1, 0.5, -2], "<f4").tobytes()
    return b"3 3\n" + b"".join(word + b" " + row + b"\n" for word in (b"dog", b"cat", b"newt"))


_COCO = {
    "images": [{"id": i, "file_name": f"{i}.jpg"} for i in (7, 8, 9)],
    "annotations": [{"id": 10 * i, "image_id": i, "caption": f"A dog {i}."} for i in (7, 8, 9)],
}
_BISON = {
    "info": {},
    "data": [
        {
            "bison_id": i,
            "caption_id": 10 * i,
            "true_image_id": i,
            "image_candidates": [
                {"image_id": j, "image_filename": f"{j}.jpg"} for j in (i, i + 10)
            ],
        }
        for i in (7, 8)
    ],
}
_KARPATHY = {
    "dataset": "tiny",
    "images": [
        {
            "filename": f"{split}.jpg",
            "split": split,
            "sentences": [{"raw": "A dog.", "sentid": 3}, {"raw": "One."}],
        }
        for split in ("train", "val", "test")
    ],
}
_DOCUMENTS = {
    "test": [[[["dog.jpg", 1], ["t.jpg", -1]], [["It was May.", -1], ["A dog.", -1]], "g"]],
    "val": [[[["dog.jpg", None]], [["A dog.", None]]]],
}
_ECCV = {
    "original_image_to_caption__json": {"1": [11], "2": [12]},
    "original_caption_to_image__json": {"11": [1], "12": [2]},
    "eccv_image_to_caption__json": {"1": [11, 12]},
    "eccv_caption_to_image__json": {"12": [1, 2]},
}


def _eccv() -> Files:
    return {
        **text(**_ECCV)(),
        **written(lambda folder: np.save(folder / "coco_test_ids.npy", [11, 12])),
    }


def _wordnet() -> Files:
    licence = "  1 licence\n"
    dog = f"{len(licence):08d} 03 n 01 dog 0 001 @ %08d n 0000 | barks\n"
    at = len(licence) + len(dog % 0)
    animal = f"{at:08d} 03 n 01 animal 0 000 | lives\n"
    index = f"dog n 1 1 @ 1 0 {len(licence):08d}\nanimal n 1 0 1 0 {at:08d}\n"
    return {
        "data.noun": (licence + dog % at + animal).encode(),
        "index.noun": (licence + index).encode(),
        "noun.exc": b"dice die\nmen man\n",
    }


def _use_wordnet(folder: Path) -> None:
    nouns = NounDatabase(folder)
    senses = [nouns.first_sense(word) for word in ("dogs", "dog", "men", "ani-mal")]
    for sense in senses:
        if sense is not None:
            nouns.words(sense)
            nouns.ancestors(sense)
    if any(sense is not None for sense in senses):
        lin = WordNetLin(folder, {"dogs": 3, "dog": 2, "men": 1, "ani-mal": 1})
        lin.word_kernel(["dog", "animal", "x"])
        lin.word_kernel(["dog", "animal", "x"], measure="lin")


def _with_photos(give: Callable[[], Files]) -> Callable[[], Files]:
    return lambda: {**give(), "images/7.jpg": b"x", "images/a.jpg": b"x", "images/b.jpg": b"x"}


_TOKENS = "".join(f"{name}.jpg#{k}\tA dog {k} .\n" for name in "abc" for k in range(3))
_FLICKR = {
    "Tiny__token__txt": _TOKENS,
    "Tiny__trainImages__txt": "a.jpg\n",
    "Tiny__devImages__txt": "b.jpg\n",
    "Tiny__testImages__txt": "c.jpg\n",
}
_AFFIXES = "SET UTF-8\nFLAG char\nPFX A Y 1\nPFX A 0 un .\nSFX S Y 2\nSFX S y ies [^aeiou]y\nSFX S 0 s [^y]\n"

READERS: dict[str, tuple[Callable[[], Files], Callable[[Path], Any]]] = {
    "models.PhotoRanker.load": (lambda: written(_model), _use_model),
    "models.KCCARanker.load": (saved(_ranker), _use_ranker),
    "models.PhotoIndex.load": (
        saved(lambda: PhotoIndex(["a.jpg", "b.jpg"], [[0.5, 0.1], [0.2, 0.3]], model="1f0e")),
        file(PhotoIndex.load),
    ),
    "kcca.KCCA.load": (saved(_kcca), _use_kcca),
    "kcca.KernelBasis.load": (saved(lambda: kernel_basis(X @ X.T)), _use_basis),
    "images.VisualWords.load": (saved(_visual_words), _use_words),
    "images.SpatialHistograms.load": (saved(_histograms), _use_histograms),
    "images.FeatureCache.load": (lambda: written(_cached), _use_cache),
    "images.Rows": (lambda: written(_rows), _use_rows),
    "captions.EncodedCaptions.load": (
        saved(lambda: VOCABULARY.encode(CAPTIONS)),
        _use_captions,
    ),
    "captions.SentenceFragments.load": (
        saved(lambda: SentenceFragments([0, 1, 0], [2, 0, 1], [1, 2, 0], [0, 2, 2, 3], 2, 3)),
        file(SentenceFragments.load),
    ),
    "captions.SentenceTrees.load": (
        saved(
            lambda: SentenceTrees([0, 1, 2, 3], [0, 1, 2, 2], [1, 2, -1, -1], [0, 3, 4], 3, 4)
        ),
        lambda folder: SentenceTrees.load(folder / "x.safetensors").select([]).heights,
    ),
    "captions.Vocabulary.load": (
        saved(lambda: VOCABULARY, "x.json"),
        lambda folder: Vocabulary.load(folder / "x.json").encode([[["dog", "newt"]]]),
    ),
    "captions.CaptionNormalizer.from_dict": (
        text(x__json=CaptionNormalizer().fit([["A dog."]]).to_dict()),
        _state(CaptionNormalizer.from_dict),
    ),
    "captions.FragmentExtractor.from_dict": (_extractor, _state(FragmentExtractor.from_dict)),
    "captions.read_hunspell": (
        text(x__aff=_AFFIXES, x__dic="3\nhappy/AS\ndog/S\ncat\n"),
        file(read_hunspell, "x.dic"),
    ),
    "lexical.WordKernel.load (dense)": (
        saved(lambda: WordKernel(["a", "b"], [[1, 0.5], [0.5, 1]])),
        _use_word_kernel,
    ),
    "lexical.WordKernel.load (sparse)": (
        saved(lambda: WordKernel(list("abc"), sparse.csr_array(np.eye(3)[::1]))),
        _use_word_kernel,
    ),
    "lexical.WordNetLin": (_wordnet, _use_wordnet),
    "lexical.load_word_vectors (GloVe)": (
        lambda: {"x.txt": _vectors()},
        file(load_word_vectors, "x.txt"),
    ),
    "lexical.load_word_vectors (word2vec)": (
        lambda: {"x.txt": b"3 3\n" + _vectors()},
        file(load_word_vectors, "x.txt"),
    ),
    "lexical.load_word_vectors (binary)": (
        lambda: {"x.bin": _binary_vectors()},
        file(load_word_vectors, "x.bin"),
    ),
    "lexical.load_word_vectors (packed)": (
        lambda: {"x.gz": gzip.compress(_vectors(), mtime=0)},
        file(load_word_vectors, "x.gz"),
    ),
    "lexical.read_tagged_corpus": (
        real(
            "brown/brown_tagged.txt", "x.txt", 2000, text(x__txt="The/at dog/nn ran/vbd ./.\n")
        ),
        file(read_tagged_corpus, "x.txt"),
    ),
    "evaluation.RetrievalResult.load": (
        saved(lambda: evaluate(SCORES), "x.json"),
        lambda folder: str(RetrievalResult.load(folder / "x.json")),
    ),
    "evaluation.FoldedResult.load": (
        saved(lambda: evaluate_folds(SCORES, n_folds=2), "x.json"),
        lambda folder: str(FoldedResult.load(folder / "x.json")),
    ),
    "evaluation.RelevanceResult.load": (
        saved(_relevance, "x.json"),
        lambda folder: str(RelevanceResult.load(folder / "x.json")),
    ),
    "evaluation.SelectionResult.load": (
        saved(lambda: SelectionResult(["0", "1", "2"], [1.0, 0.5, np.nan], "pets"), "x.json"),
        lambda folder: str(SelectionResult.load(folder / "x.json")),
    ),
    "evaluation.LinkResult.load": (
        saved(lambda: evaluate_links([[[1.0, 0.2], [0.1, 0.9]]] * 2, [{(0, 0)}] * 2), "x.json"),
        lambda folder: str(LinkResult.load(folder / "x.json")),
    ),
    "datasets.load_flickr": (
        real(
            "flickr8k/Flickr8k.token.txt",
            "Tiny.token.txt",
            3000,
            text(Tiny__token__txt=_TOKENS),
        ),
        load_flickr,
    ),
    "datasets.load_flickr (splits)": (text(**_FLICKR), load_flickr),
    "datasets.load_folder (tabs)": (
        _with_photos(text(x__tsv=_TOKENS)),
        lambda folder: load_folder(folder / "images", folder / "x.tsv"),
    ),
    "datasets.load_folder (commas)": (
        _with_photos(text(x__csv='image,caption\na.jpg,"A dog, digs"\nb.jpg,A cat\n')),
        lambda folder: load_folder(folder / "images", folder / "x.csv"),
    ),
    "datasets.load_coco_captions": (
        _with_photos(text(x__json=_COCO)),
        file(load_coco_captions, "x.json"),
    ),
    "datasets.load_karpathy": (
        _with_photos(text(x__json=_KARPATHY)),
        file(load_karpathy, "x.json"),
    ),
    "datasets.load_bison": (
        text(x__json=_BISON, captions__json=_COCO),
        lambda folder: load_bison(folder / "x.json", folder / "captions.json"),
    ),
    "datasets.load_bison_predictions": (
        text(x__json=[{"bison_id": 0, "predicted_image_id": "a.jpg"}]),
        file(load_bison_predictions, "x.json"),
    ),
    "datasets.load_documents": (text(x__json=_DOCUMENTS), file(load_documents, "x.json")),
    "datasets.load_flickr_expert": (
        real(
            "flickr8k/ExpertAnnotations.txt",
            "x.txt",
            2000,
            text(x__txt="a.jpg\ta.jpg#2\t3\t4\t4\nb.jpg\ta.jpg#2\t1\t1\t1\n"),
        ),
        file(load_flickr_expert, "x.txt"),
    ),
    "datasets.load_flickr_crowd": (
        real(
            "flickr8k/CrowdFlowerAnnotations.txt",
            "x.txt",
            2000,
            text(x__txt="a.jpg\ta.jpg#2\t0.666666666667\t2\t1\nb.jpg\ta.jpg#2\t0\t0\t3\n"),
        ),
        file(load_flickr_crowd, "x.txt"),
    ),
    "datasets.load_eccv_caption": (_eccv, load_eccv_caption),
    "experiments.Scores.load": (
        saved(lambda: Scores(SCORES, SCORES, {"k": 1})),
        file(Scores.load),
    ),
    "experiments.Store": (lambda: written(_store), _use_store),
    "kernels.write_gram": (lambda: written(_half_gram), _use_gram),
    "cli.read_sentences": (
        text(x__csv='image,caption\na.jpg,"A dog, digs"\nb.jpg,A cat\n'),
        file(read_sentences, "x.csv"),
    ),
}
