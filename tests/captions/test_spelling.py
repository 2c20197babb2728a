from pathlib import Path

import pytest
from refusals import refuses

from kernelcore.captions import CaptionNormalizer
from kernelcore.captions._words import SpellingCorrector, read_hunspell

DEBIAN = Path("/usr/share/hunspell/en_US.dic")

AFFIXES = """\
# a comment
SET UTF-8
FORBIDDENWORD !
PFX U Y 1
PFX U 0 un .
PFX N N 1
PFX N 0 non .
SFX D Y 3
SFX D 0 d e
SFX D y ied [^aeiou]y
SFX D 0 ed [^ey]
SFX S N 1
SFX S 0 s .
"""
STEMS = """\
6
tie/UD
carry/D
Käse
wolf/SN
bad/!
walk/UDS	po:verb
"""


@pytest.fixture
def dictionary(tmp_path):
    (tmp_path / "xx.aff").write_text(AFFIXES, encoding="utf-8")
    path = tmp_path / "xx.dic"
    path.write_text(STEMS, encoding="utf-8")
    return path


def test_affixes_are_expanded(dictionary):
    # untied crosses a prefix with a suffix; nonwolfs may not, and bad is forbidden
    expected = """
        tie tied untie untied carry carried käse wolf wolfs nonwolf
        walk walked walks unwalk unwalked
    """
    assert read_hunspell(dictionary) == set(expected.split())


@pytest.mark.parametrize(("kind", "flags"), [("long", "UuDd"), ("num", "7,12")])
def test_flags_of_several_characters(tmp_path, kind, flags):
    first, second = flags.split(",") if kind == "num" else (flags[:2], flags[2:])
    (tmp_path / "xx.aff").write_text(
        f"FLAG {kind}\nPFX {first} Y 1\nPFX {first} 0 un\n"
        f"SFX {second} Y 1\nSFX {second} e ing e\n"
    )
    (tmp_path / "xx.dic").write_text(f"1\ntie/{flags}\n")
    assert read_hunspell(tmp_path / "xx.dic") == {"tie", "untie", "tiing", "untiing"}


def test_the_old_default_encoding(tmp_path):
    (tmp_path / "xx.aff").write_bytes(b"SET ISO8859-1\n")
    (tmp_path / "xx.dic").write_bytes("1\nKäse\n".encode("latin-1"))
    assert read_hunspell(tmp_path / "xx.dic") == {"käse"}


def test_the_suffix_may_be_left_out(dictionary):
    assert read_hunspell(dictionary.with_suffix("")) == read_hunspell(dictionary)


def test_a_missing_dictionary_says_how_to_install_one(tmp_path, dictionary):
    with pytest.raises(
        FileNotFoundError, match=r"nowhere\.dic.*apt-get install hunspell-en-us"
    ):
        CaptionNormalizer(spelling=tmp_path / "nowhere.dic")
    dictionary.with_suffix(".aff").unlink()
    with pytest.raises(FileNotFoundError, match=r"xx\.aff"):
        read_hunspell(dictionary)


@pytest.mark.parametrize("affixes", ["SET klingon\n", "PFX A Y 1\nPFX A 0 un [a\n", "SFX A\n"])
def test_a_broken_affix_file_is_named(dictionary, affixes):
    dictionary.with_suffix(".aff").write_text(affixes)
    with pytest.raises(ValueError, match=r"xx\.dic or its \.aff is not a hunspell file"):
        read_hunspell(dictionary)


@pytest.mark.parametrize(
    ("word", "corrected"),
    [
        ("frisbe", "frisbee"),  # one letter too few
        ("frisbeee", "frisbee"),  # one too many
        ("frosbee", "frisbee"),  # another
        ("frisbbee", "frisbee"),
        ("firsbee", "frisbee"),  # two neighbours swapped
        ("rfisbee", "frisbee"),
        ("frisbeex", "frisbee"),
        ("xfrisbee", "frisbee"),
        ("fr1sbee", "fr1sbee"),  # digits are no misspelling
        ("frsbe", "frsbe"),  # two edits away
        ("dgo", "dgo"),  # too short
        ("caxs", "cars"),  # the alphabet decides between the equally frequent cars and cats
        ("tshirt", "tshirt"),  # frequent, so no misspelling
        ("unuzed", "unuzed"),  # the training captions never say unused
    ],
)
def test_corrections(word, corrected):
    words = frozenset(["frisbee", "dog", "cars", "cats", "cart", "unused", "shirt"])
    counts = {"frisbee": 9, "dog": 50, "cars": 2, "cats": 2, "tshirt": 5, "shirt": 99}
    assert SpellingCorrector(words, counts)(word) == corrected


def test_the_most_frequent_candidate_wins():
    words = frozenset({"cart", "card", "care"})
    assert SpellingCorrector(words, {"cart": 1, "card": 3, "care": 2})("carx") == "card"


def test_captions_are_corrected_after_fitting(dictionary):
    normalize = CaptionNormalizer(spelling=dictionary, stop_words=[], lemmatizer="none")
    refuses(ValueError, "spelling", normalize, ["walkd"])
    normalize.fit([["walked carry"]])
    assert normalize(["wakled carri"]) == [["walked", "carry"]]
    again = CaptionNormalizer.from_dict(normalize.to_dict())
    assert again(["wakled carri"]) == [["walked", "carry"]]


@pytest.mark.tools
@pytest.mark.skipif(not DEBIAN.exists(), reason="needs Debian's hunspell-en-us")
def test_the_english_dictionary_is_read():
    words = read_hunspell(DEBIAN)
    assert len(words) > 100_000
    assert {"dog", "dogs", "running", "untied", "frisbee", "children"} <= words
    assert words.isdisjoint({"moutain", "runing", "litle", "feild"})


def test_conditions_are_no_regular_expressions(dictionary):
    dictionary.with_suffix(".aff").write_text("SFX S Y 2\nSFX S 0 s (a+)+b\nSFX S 0 t .[^b-]\n")
    dictionary.write_text("1\n" + "a" * 60 + "/S\n")
    assert read_hunspell(dictionary) == {"a" * 60, "a" * 60 + "t"}


def test_few_lines_do_not_ask_for_billions_of_words(dictionary):
    prefixes = "PFX A Y 3000\n" + "PFX A 0 x .\n" * 3000
    suffixes = "SFX B Y 3000\n" + "SFX B 0 x .\n" * 3000
    dictionary.with_suffix(".aff").write_text(prefixes + suffixes)
    dictionary.write_text("1\n" + "dog/AB\n" * 12)
    with pytest.raises(ValueError, match=r"at most 100000000 forms"):
        read_hunspell(dictionary)
