import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcore.evaluation.caption_metrics import bleu_tokens, coco_tokenize, rouge_tokens
from kernelcore.evaluation.caption_metrics.tokens import porter_stem


@pytest.mark.parametrize(
    ("caption", "tokens"),
    [
        ("A man, standing; here: now!", "a man standing here now"),
        ("The dog's ball isn't dogs' .", "the dog 's ball is n't dogs"),
        ("I can't, you cannot, we'll gonna", "i ca n't you can not we 'll gon na"),
        ("t-shirt black/white -- high-tech ...", "t-shirt black/white high-tech"),
        ("(a) [b] {c}", "-lrb- a -rrb- -lsb- b -rsb- -lcb- c -rcb-"),
        ("\u201cthe U.S. open\u201d at 10:30 p.m.", "the u.s. open at 10:30 p.m."),
        ("3.5 miles, 4x4, a 2-story house & $5", "3.5 miles 4x4 a 2-story house & $ 5"),
        ("O'Neill \u2018s caf\u00e9 cafe\u0301", "o'neill 's caf\u00e9 caf\u00e9"),
        ("", ""),
        (" \t\n", ""),
    ],
)
def test_coco_tokenize(caption, tokens):
    assert coco_tokenize(caption) == tokens.split()


@given(caption=st.text())
def test_tokens_hold_no_white_space_and_no_capitals(caption):
    for token in coco_tokenize(caption):
        assert token.split() == [token]
        assert token == token.lower()
    assert all(token.isalnum() for token in bleu_tokens(caption))


def flickr_captions(folder):
    path = folder / "flickr8k" / "Flickr8k.token.txt"
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.split("\t")[1] for line in lines]


@pytest.mark.realdata
@pytest.mark.tools
def test_coco_tokenize_is_close_to_that_of_stanford(data_root):
    tokenizer = pytest.importorskip("pycocoevalcap.tokenizer.ptbtokenizer")
    if shutil.which("java") is None:
        pytest.skip("the tokeniser of the COCO evaluation is a Java program")
    captions = flickr_captions(data_root)
    records = {i: [{"caption": caption}] for i, caption in enumerate(captions)}
    theirs = tokenizer.PTBTokenizer().tokenize(records)
    pairs = ((caption, theirs[i][0].split()) for i, caption in enumerate(captions))
    different = [caption for caption, expected in pairs if coco_tokenize(caption) != expected]
    assert len(different) < len(captions) / 1000


def test_bleu_tokens_are_the_letters_and_digits_of_words():
    caption = "A \"snow-covered\" T-shirt; the man's dog doesn't bark_ at 10:30 (and/or) ."
    expected = "a snow covered t shirt the man s dog does nt bark at 1030 lrb and or rrb"
    assert bleu_tokens(caption) == [w for w in expected.split() if w not in {"lrb", "rrb"}]


def test_rouge_tokens_are_stems_of_content_words():
    assert rouge_tokens("The ponies are Running through it") == ["poni", "run"]


@pytest.mark.parametrize(
    "pairs",
    [
        "caresses:caress ponies:poni ties:ti caress:caress cats:cat",
        "feed:feed agreed:agre plastered:plaster bled:bled motoring:motor sing:sing",
        "conflated:conflat troubled:troubl sized:size hopping:hop falling:fall hissing:hiss",
        "fizzed:fizz failing:fail filing:file happy:happi sky:sky is:is",
        "relational:relat conditional:condit rational:ration vietnamization:vietnam",
        "triplicate:triplic formative:form electrical:electr hopeful:hope goodness:good",
        "revival:reviv adoption:adopt adjustment:adjust replacement:replac effective:effect",
        "probate:probat rate:rate cease:ceas controll:control roll:roll",
    ],
)
def test_stems_of_words_in_the_paper(pairs):
    for word, stem in (pair.split(":") for pair in pairs.split()):
        assert porter_stem(word) == stem


@pytest.mark.realdata
def test_stems_equal_those_of_nltk(data_root):
    porter = pytest.importorskip("nltk.stem.porter")
    peer = porter.PorterStemmer(mode=porter.PorterStemmer.ORIGINAL_ALGORITHM)
    words = {word for caption in flickr_captions(data_root) for word in bleu_tokens(caption)}
    words = {word for word in words if len(word) > 2}  # the author's program leaves those
    assert len(words) > 5000
    assert {w: porter_stem(w) for w in words} == {w: peer.stem(w) for w in words}
