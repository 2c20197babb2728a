"""Binary image selection beside retrieval, on a corpus small enough to answer by hand."""

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("cv2")

from small_corpus import COLUMNS, CROWD, EXPERT, NO, OWN, ROWS, YES, scores, write

from kernelcore.evaluation import SelectionResult
from kernelcore.experiments.hu2019.beside_retrieval import (
    _difference,
    accepted_section,
    correlation_section,
    hub_section,
)
from kernelcore.experiments.judged import NEIGHBOURS, Questions
from kernelcore.experiments.scores import evaluate_pool, hub_corrected_name

KNOWN = {
    "all": OWN,
    "half": OWN * np.array([[1], [1], [0], [0]]),
    "none": -OWN,
    hub_corrected_name("none"): np.where(OWN > 0, -0.5, 0),
}


def measured(corpus, vectors, systems):
    pool = corpus.pools["test"]
    results = [evaluate_pool(own, pool, system=name) for name, own in systems.items()]
    questions = Questions.of(corpus, vectors, "test")
    return results, questions.results(systems), questions, pool


def test_systems_that_retrieve_better_select_better_here(six, vectors):
    section = correlation_section(*measured(six, vectors, KNOWN))
    orders, claim = section.tables
    assert orders.rows[0][1] == "search R@1"
    rho, tau, p, *of_plain = orders.rows[0][2:]
    assert (rho, tau) == ("1.00", "1.00")  # the two worst are tied in both
    assert 0 < float(p) < 1
    assert of_plain[:2] == ["1.00", "1.00"]
    assert orders.groups[1][0] == "all 4 systems"
    assert orders.groups[2][0] == "3 without correction"
    assert claim.rows[0][1] in KNOWN


def test_two_systems_have_no_order_to_compare(six, vectors):
    some = {name: KNOWN[name] for name in ("all", "half")}
    assert correlation_section(*measured(six, vectors, some)) is None


def test_a_difference_is_resampled_by_photo():
    rng = np.random.default_rng(1)
    photos = np.repeat(np.arange(300), 2)
    values = np.repeat((rng.random(300) < 0.5).astype(float), 2)  # twice the same
    zeros = np.zeros(300)
    difference, error, p = _difference(values, photos, zeros, np.arange(300))
    assert difference == values.mean()
    assert error == pytest.approx(np.sqrt(0.25 / 300), rel=0.1)  # not of 600 values
    assert p == pytest.approx(1 / 2001)
    assert _difference(values, photos, values, photos)[::2] == (0, 1)


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


def test_the_effect_of_the_correction_is_tested():
    triples = [str(i) for i in range(8)]
    plain = SelectionResult(triples, [0] * 7 + [1], system="x", selections="s")
    better = SelectionResult(triples, [1] * 8, system=hub_corrected_name("x"), selections="s")
    other = SelectionResult(triples, [1] * 8, system="y", selections="s")
    section = hub_section({NEIGHBOURS: [plain, better, other]}, {}, ["x", "y"])
    (table,) = section.tables
    assert table.rows == (("s", "x", "12.5", "100.0", "0.016", "-", "-", "-"),)
    section = hub_section({CROWD: [plain, better]}, {CROWD: [better, plain]}, ["x"])
    assert section.tables[0].rows[0][2:5] == section.tables[0].rows[0][5:]
    assert hub_section({NEIGHBOURS: [other]}, {}, ["y"]) is None


def test_rows_are_photos_in_the_order_of_the_files(six):
    assert [path.stem for path in six.files if path.stem in ROWS] == ROWS
