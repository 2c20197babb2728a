import pytest

pytest.importorskip("starlette")

from kernelcore.web.looking import sentence_about
from kernelcore.web.wording import advice, marked


def strengths(sentence, **shares):
    pieces = marked(sentence, list(shares.items()))
    assert "".join(piece.text for piece in pieces) == sentence
    return {piece.text: (piece.strength, piece.percent) for piece in pieces if piece.percent}


def test_words_are_marked_by_their_parts():
    found = strengths("The red dog, the dog's ball.", red=0.1, dog=0.6, ball=0.3)
    assert found == {"red": (1, 10), "dog": (3, 60), "ball": (2, 30)}


def test_parts_are_relative_to_what_helped():
    assert strengths("a dog runs", dog=0.02, runs=0.02, a=-5.0) == {
        "dog": (3, 50),
        "runs": (3, 50),
    }


def test_words_are_found_in_any_case_and_several_times():
    pieces = marked("Dog bites dog", [("DOG", 0.4), ("dog", 0.1)])
    assert [piece.percent for piece in pieces] == [80, 0, 0, 0, 80]


@pytest.mark.parametrize("shares", [[], [("dog", 0.0)], [("dog", -1.0)]])
def test_nothing_is_marked_where_nothing_helped(shares):
    assert all(piece.strength == 0 for piece in marked("a dog", shares))


def test_a_faint_word_is_not_marked():
    (dog, _, _) = marked("dog runs", [("dog", 0.04), ("runs", 0.96)])
    assert (dog.strength, dog.percent) == (0, 4)


def test_known_words_replace_unknown_ones_only_where_they_stand_alone():
    [found] = advice("Catt on a catt-tree, catty", {"catt": (r"cat\1", "hat")})
    assert found.word == "catt"
    assert [own.word for own in found.instead] == [r"cat\1", "hat"]
    assert found.instead[0].sentence == r"cat\1 on a cat\1-tree, catty"
    assert found.instead[1].sentence == "hat on a hat-tree, catty"


def test_unknown_words_may_hold_anything():
    [found] = advice("what is a c++ (dog)", {"c++": ("cat",)})
    assert found.instead[0].sentence == "what is a cat (dog)"
    assert advice("dog", {}) == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ((0, 0), "No new photos."),
        ((1, 0), "1 photo added."),
        ((1200, 3), "1,200 photos added, 3 removed."),
        ((0, 1), "1 photo removed."),
        ((0, 0, ("a", "b")), "No new photos. 2 files cannot be read."),
    ],
)
def test_a_look_is_told_in_a_sentence(changes, said):
    from kernelcore.search import Changes

    assert sentence_about(Changes(*changes)) == said
