"""Binary image selection of an experiment, on a corpus small enough to answer by hand."""

import numpy as np
import pytest

pytest.importorskip("cv2")

from small_corpus import CROWD, EXPERT, NO, OWN, YES, scores, write

from kernelcore.evaluation import Published
from kernelcore.experiments.judged import judged_section


def accuracies(table):
    return {row[0]: row[1].split()[0] for row in table.rows}


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
    section = judged_section(six, vectors, "test", systems)
    table = section.tables[0]
    assert "2 triples" in table.caption  # the dog itself and a puppy, a car and a boat
    assert accuracies(table) == {
        "knows the dog": "75.0",
        "takes the puppy": "25.0",
        "takes the boat": "50.0",
        "knows nothing": "50.0",
        "knows all": "100.0",
    }


def test_experts_ask_with_what_is_not_in_doubt(folder, six, vectors):
    rows = [
        ("dog", "puppy#0", "3\t3\t3"),
        ("boat", "puppy#0", "2\t2\t2"),
        ("car", "puppy#0", "2\t2\t3"),
        ("car", "boat#1", "2\t3\t3"),
    ]
    write(folder, EXPERT, rows)
    systems = {
        "own photos": OWN,
        "right": scores(
            {("dog", "puppy#0"): 1, ("puppy", "puppy#0"): 1, ("car", "puppy#0"): 2}
        ),
    }
    section = judged_section(six, vectors, "test", systems)
    assert "2 triples" in section.tables[0].caption
    assert accuracies(section.tables[0]) == {"own photos": "75.0", "right": "100.0"}
    assert f"no judgments of people in a file {CROWD}" in section.paragraphs[1]


def test_without_people_every_photo_is_set_against_its_neighbour(folder, six, vectors):
    systems = {"own photos": OWN, "others": -OWN, "dogs": OWN * [[0], [0], [1], [1]]}
    section = judged_section(six, vectors, "test", systems)
    (table,) = section.tables
    assert "4 triples" in table.caption
    assert accuracies(table) == {"own photos": "100.0", "others": "0.0", "dogs": "75.0"}
    assert all(row[1].count(" to ") == 1 for row in table.rows)
    assert len(section.paragraphs) == 3  # what it is, and two files that are not there


def test_published_rows_stand_below(folder, six, vectors):
    published = (Published("theirs", "Doe 2019", {"accuracy": 0.875}),)
    section = judged_section(six, vectors, "test", {"ours": OWN}, published=published)
    assert section.tables[0].rows[-1][:2] == ("theirs (Doe 2019)", "87.5")


def test_it_says_why_a_split_has_no_triples(folder, six, vectors):
    write(folder, CROWD, [("boat", "dog#1", NO)])
    section = judged_section(six, vectors, "dev", {"ours": np.ones((1, 2))})
    assert not section.tables
    text = " ".join(section.paragraphs)
    assert f"{CROWD} has no judgments of this split" in text
    assert "No triples: image_vectors must have at least 2 rows" in text
    write(folder, CROWD, [("dog", "dog#1", YES)])
    section = judged_section(six, vectors, "test", {"ours": OWN})
    assert "No triples: judgments must hold captions with a score >= 0.5" in " ".join(
        section.paragraphs
    )


def test_damaged_judgments_are_an_error(folder, six, vectors):
    write(folder, CROWD, [("boat", "dog#1", "0.5\t0\t3")])
    with pytest.raises(ValueError, match=CROWD):
        judged_section(six, vectors, "test", {"ours": OWN})
