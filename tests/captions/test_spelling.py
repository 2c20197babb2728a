import pytest
from refusals import refuses

from kernelcore.captions import CaptionNormalizer
from kernelcore.captions.tokens import SpellingCorrector, read_word_list


@pytest.fixture
def listed(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("\ufeffwalked\r\nCarry\n\nKäse\u2028\ncarry", encoding="utf-8")
    return path


def test_a_list_has_one_word_a_line(listed):
    assert read_word_list(listed) == {"walked", "carry", "käse"}


@pytest.mark.parametrize("line", ["happy/AS", "two words"])
def test_a_line_that_is_not_one_word_is_refused(listed, line):
    listed.write_text(f"dog\n{line}\n", encoding="utf-8")
    refuses(ValueError, rf"words\.txt, line 2: .* {line!r}", read_word_list, listed)
    refuses(FileNotFoundError, "nowhere", CaptionNormalizer, spelling="nowhere")


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


def test_captions_are_corrected_after_fitting(listed):
    normalize = CaptionNormalizer(spelling=listed, stop_words=[], lemmatizer="none")
    refuses(ValueError, "spelling", normalize, ["walkd"])
    normalize.fit([["walked carry"]])
    assert normalize(["wakled carri"]) == [["walked", "carry"]]
    again = CaptionNormalizer.from_dict(normalize.to_dict())
    assert again(["wakled carri"]) == [["walked", "carry"]]
