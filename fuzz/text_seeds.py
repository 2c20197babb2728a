"""Whole files of corpora, dictionaries and word vectors, and how they are read."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from fuzz.seed_files import Files, Readers, file, real, text, written
from kernelcore.captions.tokens import read_word_list
from kernelcore.datasets import (
    load_bison,
    load_coco_captions,
    load_documents,
    load_eccv_caption,
    load_flickr,
    load_flickr_crowd,
    load_flickr_expert,
    load_folder,
    load_karpathy,
    load_recipeqa,
    load_vist,
)
from kernelcore.datasets.folder import read_sentences
from kernelcore.lexical import (
    WordNetLin,
    load_word_vectors,
    read_tagged_corpus,
)
from kernelcore.lexical.wordnet import NounDatabase


def _vectors() -> bytes:
    return b"dog 1.0 0.5 -3e-1\ncat 0.5 1.0 2\nnewt 0 0 1\n"


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
_RECIPES = {
    "data": [
        {
            "recipe_id": name,
            "context": [
                {"body": "Cut it.", "images": [f"{name}_0.jpg"], "id": 0, "title": "Cut"},
                {"body": "Eat it.", "images": []},
            ],
        }
        for name in ("toast", "soup")
    ]
}
_STORIES = [
    [
        {
            "album_id": "7",
            "photo_flickr_id": str(i),
            "original_text": "A dog.",
            "photo_order_in_story": i % 2,
            "worker_arranged_photo_order": i % 2,
            "story_id": str(i // 2),
        }
    ]
    for i in range(4)
]
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
            nouns.synset(sense)
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
_BROWN = text(x__txt="The/at dog/nn ran/vbd ./.\n")

READERS: Readers = {
    "captions.read_word_list": (
        text(x__txt="dog\ncat\nété\n"),
        file(read_word_list, "x.txt"),
    ),
    "cli.read_sentences": (
        text(x__csv='image,caption\na.jpg,"A dog, digs"\nb.jpg,A cat\n'),
        file(read_sentences, "x.csv"),
    ),
    "lexical.WordNetLin": (_wordnet, _use_wordnet),
    "lexical.load_word_vectors-GloVe": (
        lambda: {"x.txt": _vectors()},
        file(load_word_vectors, "x.txt"),
    ),
    "lexical.load_word_vectors-word2vec": (
        lambda: {"x.txt": b"3 3\n" + _vectors()},
        file(load_word_vectors, "x.txt"),
    ),
    "lexical.read_tagged_corpus": (
        real(
            "brown/brown_tagged.txt", "x.txt", 2000, text(x__txt="The/at dog/nn ran/vbd ./.\n")
        ),
        file(read_tagged_corpus, "x.txt"),
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
    "datasets.load_flickr-splits": (text(**_FLICKR), load_flickr),
    "datasets.load_folder-tabs": (
        _with_photos(text(x__tsv=_TOKENS)),
        lambda folder: load_folder(folder / "images", folder / "x.tsv"),
    ),
    "datasets.load_folder-commas": (
        _with_photos(text(x__csv='image,caption\na.jpg,"A dog, digs"\nb.jpg,A cat\n')),
        lambda folder: load_folder(folder / "images", folder / "x.csv"),
    ),
    "datasets.load_folder-json": (
        _with_photos(text(x__json=_COCO)),
        lambda folder: load_folder(folder / "images", folder / "x.json"),
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
    "datasets.load_documents": (text(x__json=_DOCUMENTS), file(load_documents, "x.json")),
    "datasets.load_recipeqa": (text(val__json=_RECIPES), load_recipeqa),
    "datasets.load_vist-descriptions": (
        text(**{"val__description-in-isolation__json": {"annotations": _STORIES}}),
        partial(load_vist, n_photos=2),
    ),
    "datasets.load_vist-stories": (
        text(**{"val__story-in-sequence__json": {"annotations": _STORIES}}),
        partial(load_vist, tier="stories", n_photos=2),
    ),
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
}
