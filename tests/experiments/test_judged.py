"""Binary image selection of an experiment, on a corpus small enough to answer by hand."""

import numpy as np
import pytest

pytest.importorskip("cv2")

from small_corpus import CROWD, EXPERT, NO, OWN, YES, scores, write

from kernelcore.experiments.judged import CROWD_FILE, EXPERT_FILE, NEIGHBOURS, Questions


def accuracies(six, vectors, source, systems):
    """Accuracy of each system in percent."""
    questions = Questions.of(six, vectors, "test")
    found = {name: questions.results(name, own)[source] for name, own in systems.items()}
    return {name: 100 * own.mean["selection"]["accuracy"] for name, own in found.items()}


def test_the_crowd_asks_with_the_most_similar_wrong_photo(folder, six, vectors):
    rows = [("boat", "dog#1", NO), ("puppy", "dog#1", NO), ("car", "dog#1", YES)]
    write(folder, CROWD, rows)
    dog = {("dog", "dog#1"): 1}
    systems = {
        "knows the dog": scores(dog),
        "takes the puppy": scores(dog | {("puppy", "dog#1"): 2}),
        "takes the boat": scores(dog | {("boat", "dog#1"): 2}),
        "knows nothing": scores({}),
        "knows all": scores(dog | {("car", "dog#1"): 1}),
    }
    # the dog itself and a puppy, a car and a boat
    assert accuracies(six, vectors, CROWD_FILE, systems) == {
        "knows the dog": 75, "takes the puppy": 25, "takes the boat": 50, "knows nothing": 50,
        "knows all": 100,
    }  # fmt: skip


def test_experts_ask_with_what_is_not_in_doubt(folder, six, vectors):
    rows = [("dog", "puppy#0", "3\t3\t3"), ("boat", "puppy#0", "2\t2\t2")]
    rows += [("car", "puppy#0", "2\t2\t3"), ("car", "boat#1", "2\t3\t3")]
    write(folder, EXPERT, rows)
    right = {("dog", "puppy#0"): 1, ("puppy", "puppy#0"): 1, ("car", "puppy#0"): 2}
    systems = {"own photos": OWN, "right": scores(right)}
    found = accuracies(six, vectors, EXPERT_FILE, systems)
    assert found == {"own photos": 75, "right": 100}


def test_without_people_every_photo_is_set_against_its_neighbour(folder, six, vectors):
    systems = {"own photos": OWN, "others": -OWN, "dogs": OWN * [[0], [0], [1], [1]]}
    found = accuracies(six, vectors, NEIGHBOURS, systems)
    assert found == {"own photos": 100, "others": 0, "dogs": 75}


def test_a_split_without_triples_has_no_results(folder, six, vectors):
    write(folder, CROWD, [("boat", "dog#1", NO)])
    assert Questions.of(six, vectors, "dev").results("ours", np.ones((1, 2))) == {}
    write(folder, CROWD, [("dog", "dog#1", YES)])
    assert list(Questions.of(six, vectors, "test").selections) == [NEIGHBOURS]


def test_damaged_judgments_are_an_error(folder, six, vectors):
    write(folder, CROWD, [("boat", "dog#1", "0.5\t0\t3")])
    with pytest.raises(ValueError, match=CROWD):
        Questions.of(six, vectors, "test")
