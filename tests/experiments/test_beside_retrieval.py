"""Binary image selection beside retrieval, on a corpus small enough to answer by hand."""

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("cv2")

from small_corpus import COLUMNS, CROWD, EXPERT, NO, OWN, ROWS, YES, scores, write

from kernelcore.experiments.hu2019.beside_retrieval import (
    accepted_section,
    correlation_section,
)
from kernelcore.experiments.judged import Questions
from kernelcore.experiments.scores import evaluate_pool

KNOWN = {
    "all": OWN,
    "half": OWN * np.array([[1], [1], [0], [0]]),
    "none": -OWN,
}


def measured(corpus, vectors, systems):
    pool = corpus.pools["test"]
    results = {name: evaluate_pool(own, pool, system=name) for name, own in systems.items()}
    return results, Questions.of(corpus, vectors, "test").results(systems)


def test_systems_that_retrieve_better_select_better_here(six, vectors):
    results, selected = measured(six, vectors, KNOWN)
    (table,) = correlation_section(results, selected).tables
    assert table.rows[0][1:] == ("search R@1", "1.00", "1.00")


def test_two_systems_have_no_order_to_compare(six, vectors):
    results, selected = measured(six, vectors, KNOWN)
    del results["none"]
    assert correlation_section(results, selected) is None


def test_people_accept_some_errors(folder, six, vectors):
    columns = [column for column in COLUMNS if column.endswith("#1")]
    write(
        folder,
        CROWD,
        [("puppy", "dog#1", YES), ("car", "boat#1", NO), ("boat", "dog#1", NO)],
    )
    taken = {("puppy", "dog#1"): 1, ("car", "boat#1"): 1, ("dog", "puppy#1"): 1}
    systems = {"some": scores({**taken, ("car", "car#1"): 1}), "none": OWN}
    questions = Questions.of(six, vectors, "test")
    section = accepted_section(systems, questions, six.pools["test"], number=1)
    (table,) = section.tables
    assert table.rows[0] == ("some", "3", "2", "1", "33.3", "50.0")
    assert table.rows[1] == ("none", "0", "0", "0", "-", "-")
    assert "211" in table.rows[2]
    assert f"{len(columns)} captions" in table.caption


def test_nobody_accepts_what_nobody_judged(six, vectors):
    questions = Questions.of(six, vectors, "test")
    assert accepted_section({"own": OWN}, questions, six.pools["test"], number=1) is None


def test_experts_accept_from_three_on(folder, six, vectors):
    write(folder, EXPERT, [("puppy", "dog#1", "3\t3\t3"), ("car", "boat#1", "2\t3\t3")])
    systems = {"some": scores({("puppy", "dog#1"): 1, ("car", "boat#1"): 1})}
    questions = Questions.of(six, vectors, "test")
    section = accepted_section(systems, questions, six.pools["test"], number=1)
    assert section.tables[0].rows[0][3] == "1"


def test_rows_are_photos_in_the_order_of_the_files(six):
    assert [path.stem for path in six.files if path.stem in ROWS] == ROWS
