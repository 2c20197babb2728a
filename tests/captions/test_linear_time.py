"""No text takes more than linear time: ten times as much text, about ten times as long."""

import gc
import time

import pytest

from kernelcore.captions import CaptionNormalizer
from kernelcore.captions.tokens import SpellingCorrector, lemma, tokenize
from kernelcore.datasets.folder import _NUMBERED
from kernelcore.evaluation.caption_metrics import bleu_tokens, coco_tokenize, rouge_tokens

# Each is repeated between the two ends; a quadratic pattern needs seconds to minutes.
REPEATED = (
    "a", " ", "\n", "\t", "'", "'s", "s'", " 's", "n't", " n't", "-", "---a", ".", " .", "a.",
    "1", "1.", "1,1", "1-", "can", "cann", "gon", "_", "a_", "a-", "a/", "a'a", "#", "#1", "\\",
    "(", "\u2019", "\u0301", "a\u0301", "bcd", "aeiou", "y", "tt", "ing", "ed", "sses", "don't",
)  # fmt: skip
ENDS = ("", "ing")

normalize = CaptionNormalizer().fit([["a dog runs"]])
correct = SpellingCorrector(frozenset({"running", "dog"}), {"dog": 9})
FUNCTIONS = {
    "tokenize": tokenize, "normalize": lambda text: normalize([text]), "lemma": lemma,
    "correct": correct, "coco_tokenize": coco_tokenize, "bleu_tokens": bleu_tokens,
    "rouge_tokens": rouge_tokens, "number of a caption": _NUMBERED.fullmatch,
}  # fmt: skip


def seconds(function, texts):
    gc.disable()  # a collection of all that other tests have left takes half a second
    try:
        started = time.thread_time()
        for text in texts:
            function(text)
        return time.thread_time() - started
    finally:
        gc.enable()


@pytest.mark.parametrize("length", [10_000, pytest.param(100_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_hostile_text_takes_linear_time(name, length):
    function = FUNCTIONS[name]
    for part in REPEATED:
        lengths = length // 10, length
        short, long = ([f"a{part * (n // len(part))}{end}" for end in ENDS] for n in lengths)
        # Short times are not measured well; quadratic time grows a hundredfold.
        spent = seconds(function, long)
        assert spent < 0.1 or spent < 40 * seconds(function, short), repr(part)
