"""Table of files of text, JSON and arrays: drawn values, how they are written and read."""

import io
import json
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import strategies as some
from hypothesis import strategies as st
from scipy.sparse import csr_array

from kernelcore import datasets, lexical
from kernelcore.captions import Vocabulary
from kernelcore.captions.tokens import read_word_list
from kernelcore.datasets.folder import read_sentences
from kernelcore.evaluation import Result, evaluate, evaluate_links
from kernelcore.evaluation.trec import read_qrels, read_run, write_qrels, write_run
from kernelcore.lexical.wordnet import NounDatabase


class Format(NamedTuple):
    """A kind of file, or of folder.

    Attributes
    ----------
    values : strategy, or callable
        Values to draw, or a call that makes one.
    write : callable
        Writes a value into an empty folder.
    read : callable
        Reads the folder.
    use : callable
        Does with what was read what must not crash; it may raise ValueError.
    expected : callable
        What reading gives for a value.
    is_sealed : bool
        Whether a checksum tells any damage.
    """

    values: Any
    write: Callable[[Any, Path], Any]
    read: Callable[[Path], Any]
    use: Callable[[Any], Any] = lambda value: None
    expected: Callable[[Any], Any] = lambda value: value
    is_sealed: bool = False


def saved(kind: Any, values: Any, use: Callable[[Any], Any] = lambda value: None) -> Format:
    """Objects with `save` and `load`."""
    return Format(
        values, lambda value, folder: value.save(folder / "x"),
        lambda folder: kind.load(folder / "x"), use, is_sealed=True,
    )  # fmt: skip


def files(values: Any, contents: Mapping[str, Any], read: Any, **more: Any) -> Format:
    """Files by name: text or bytes that a function makes of a value, or a text."""

    def write(value: Any, folder: Path) -> None:
        for name, make in contents.items():
            content = make(value) if callable(make) else make
            (folder / name).parent.mkdir(exist_ok=True)
            is_raw = isinstance(content, bytes)
            (folder / name).write_bytes(content if is_raw else content.encode())

    return Format(values, write, read, **more)


def npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


# A caption in many kinds of file, in the place of CAPTION.


def sample(name: str) -> str:
    return Path(__file__).with_name("corpus").joinpath(name).read_text("utf-8")


def filled(name: str, caption: str) -> str:
    """Put a caption into a sample."""
    if name.endswith(".json"):
        caption = json.dumps(caption)[1:-1]
    if name.endswith(".csv"):
        caption = caption.replace('"', '""')
    return sample(name).replace("CAPTION", caption)


def captions_in(found: Any) -> list[str]:
    if isinstance(found, datasets.CaptionedImages):
        return [text for own in found.captions for text in own]
    if isinstance(found, datasets.DocumentCollection):
        return [text for document in found.split("val") for text in document.sentences]
    return found if isinstance(found, list) else [triple.caption for triple in found.triples]


# Readers, and names of samples by the names of the files that they read.
READERS: dict[str, tuple[Callable[[Path], Any], dict[str, str]]] = {
    "load_flickr": (datasets.load_flickr, {"x.token.txt": "tokens.txt"}),
    **{
        f"load_folder, {end}": (
            lambda at, end=end: datasets.load_folder(at, at / f"x.{end}"),
            {f"x.{end}": of, "a.jpg": of},
        )
        for end, of in {"tsv": "tokens.txt", "csv": "table.csv", "json": "coco.json"}.items()
    },
    "COCO": (lambda at: datasets.load_coco_captions(at / "x"), {"x": "coco.json"}),
    "load_karpathy": (lambda at: datasets.load_karpathy(at / "x"), {"x": "karpathy.json"}),
    "load_bison": (
        lambda at: datasets.load_bison(at / "x", at / "y"),
        {"x": "bison.json", "y": "coco.json"},
    ),
    "load_documents": (lambda at: datasets.load_documents(at / "x"), {"x": "documents.json"}),
    "load_recipeqa": (datasets.load_recipeqa, {"val.json": "recipes.json"}),
    "load_vist, descriptions": (
        partial(datasets.load_vist, n_photos=1),
        {"val.description-in-isolation.json": "albums.json"},
    ),
    "load_vist, stories": (
        partial(datasets.load_vist, tier="stories", n_photos=1),
        {"val.story-in-sequence.json": "albums.json"},
    ),
    "read_sentences": (lambda at: read_sentences(at / "x"), {"x": "tokens.txt"}),
}
CAPTIONS = {
    name: files(
        some.SENTENCES,
        {file: partial(filled, of) for file, of in samples.items()},
        lambda at, read=read: captions_in(read(at)),
        expected=lambda caption: [caption],
    )
    for name, (read, samples) in READERS.items()
}

# Judgments, scores and results.

GRADES = st.integers(1 - 2**63, 2**63 - 1)
RUNS = st.dictionaries(
    some.WORDS, st.dictionaries(some.WORDS, some.reals(np.float64), min_size=1), min_size=1
)
QRELS = st.dictionaries(some.WORDS, st.dictionaries(some.WORDS, GRADES, min_size=1), min_size=1)
SCORES = np.eye(6) + 0.1 * np.arange(6)
RESULTS = {
    "Result": lambda: evaluate(SCORES, system="é"),
    "Result of folds": lambda: evaluate(SCORES, n_folds=2),
    "Result of links": lambda: evaluate_links(
        [[[1.0, 0.2], [0.1, 0.9]]] * 2, [{(0, 0)}] * 2, images=[["a"], ["b"]]
    ),
}


def evaluated(folder: Path) -> Any:
    try:
        return evaluate(folder / "x.npy")
    except ValueError as error:
        if str(error).startswith(("annotation_scores", "caption_image")):
            return None  # an array, but none of scores
        raise


JUDGMENTS = {
    "load_flickr_expert": files(
        st.lists(st.integers(1, 4), min_size=3, max_size=3),
        {"x.txt": lambda own: "a.jpg\ta.jpg#2\t" + "\t".join(map(str, own))},
        lambda at: datasets.load_flickr_expert(at / "x.txt").ratings[0].tolist(),
    ),
    "load_flickr_crowd": files(
        st.tuples(st.integers(0, 999), st.integers(1, 999)),
        {"x.txt": lambda n: f"a.jpg\ta.jpg#2\t{n[0] / sum(n):.12f}\t{n[0]}\t{n[1]}\n"},
        lambda at: datasets.load_flickr_crowd(at / "x.txt").scores[0],
        expected=lambda n: n[0] / sum(n),
    ),
    "load_eccv_caption": files(
        st.just([[0], [0, 1]]),
        {
            "coco_test_ids.npy": lambda value: npy([11, 12]),
            "original_caption_to_image.json": '{"11": [1], "12": [2]}',
            "eccv_image_to_caption.json": '{"1": [11], "2": [11, 12]}',
            "eccv_caption_to_image.json": '{"11": [1], "12": [1]}',
        },
        lambda at: [
            own.tolist() for own in datasets.load_eccv_caption(at)[0].relevant_captions(1)
        ],
    ),
    "read_run": Format(
        RUNS, lambda run, at: write_run(at / "x.gz", run), lambda at: read_run(at / "x.gz")
    ),
    "read_qrels": Format(
        QRELS, lambda qrels, at: write_qrels(at / "x", qrels), lambda at: read_qrels(at / "x")
    ),
    "evaluate": files(
        some.FLOATS.flatmap(lambda kind: some.arrays(kind, (5, 5), some.reals(np.float32))),
        {"x.npy": npy},
        evaluated,
        expected=evaluate,
    ),
    **{name: saved(Result, cache(make), str) for name, make in RESULTS.items()},
}

# Words.


@st.composite
def word_kernels(draw: Any) -> lexical.WordKernel:
    words = draw(st.lists(some.ANY_TEXT, unique=True, max_size=4))
    kind = st.sampled_from([0.0, 0.5, -1.0])
    half = np.tril(draw(some.arrays(np.float64, (len(words), len(words)), kind)), -1)
    matrix = half + half.T + np.eye(len(words))
    return lexical.WordKernel(words, csr_array(matrix) if draw(st.booleans()) else matrix)


def use_word_kernel(kernel: lexical.WordKernel) -> None:
    if len(kernel):
        kernel.most_similar(kernel.words[0])
        kernel.over([*kernel.words, "another one"])


VECTORS = st.dictionaries(
    some.WORDS, st.lists(some.reals(np.float32), min_size=2, max_size=2), min_size=1
)


def vector_lines(value: Any) -> str:
    return "".join(f"{word} {' '.join(map(repr, row))}\n" for word, row in value.items())


def read_vectors(folder: Path) -> Any:
    found = lexical.load_word_vectors(folder / "x.txt")
    return dict(zip(found.words, found.vectors.tolist(), strict=True))


WORDNET = {name: sample(name) for name in ("data.noun", "index.noun", "noun.exc")}


def look_up(folder: Path) -> Any:
    words = ("dogs", "animal", "men")
    senses = [NounDatabase(folder).first_sense(word) for word in words]
    if any(sense is not None for sense in senses):
        lin = lexical.WordNetLin(folder, dict.fromkeys(words, 1))
        for measure in ("cosine", "lin"):
            lin.word_kernel(["dog", "animal", "x"], measure=measure)
    return senses


LEXICAL = {
    "read_word_list": files(
        st.frozensets(some.WORDS.map(str.lower)),
        {"x.txt": "\n".join},
        lambda at: read_word_list(at / "x.txt"),
    ),
    "read_tagged_corpus": files(
        st.lists(st.lists(st.tuples(some.WORDS, some.WORDS), min_size=1), max_size=4),
        {"x.txt": lambda value: "\n".join(" ".join(map("/".join, own)) for own in value)},
        lambda at: lexical.read_tagged_corpus(at / "x.txt"),
    ),
    "load_word_vectors, GloVe": files(VECTORS, {"x.txt": vector_lines}, read_vectors),
    "load_word_vectors, word2vec": files(
        VECTORS, {"x.txt": lambda own: f"{len(own)} 2\n{vector_lines(own)}"}, read_vectors
    ),
    "WordNet": files(st.just([12, 65, None]), WORDNET, look_up),
    "Vocabulary": saved(
        Vocabulary,
        st.lists(st.lists(st.lists(some.ANY_TEXT, max_size=3), max_size=2), max_size=2).map(
            Vocabulary.from_captions
        ),
        lambda own: own.encode([[["dog"]]]),
    ),
    "WordKernel": saved(lexical.WordKernel, word_kernels(), use_word_kernel),
    "WordKernel of three": saved(
        lexical.WordKernel,
        cache(lambda: lexical.WordKernel(list("abc"), csr_array(np.eye(3)))),
        use_word_kernel,
    ),
}
