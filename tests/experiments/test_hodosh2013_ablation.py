"""The ablation of Tri5Sem: which system stands in which cell, and which letters it has."""

import numpy as np

from kernelcore.evaluation.significance import fisher_randomization
from kernelcore.experiments.hodosh2013.ablation import (
    COMPARED,
    SYSTEMS_COMPARED,
    ablation_section,
    system_name,
)
from kernelcore.experiments.hodosh2013.systems import SYSTEMS

CELLS = {
    "none": ("Tri5", "Tri5^sqrt-idf", "Tri5_A", "Tri5^sqrt-idf_A"),
    "D_out": ("Tri5_D_out", "Tri5^sqrt-idf_D_out", "Tri5_A,D_out", "Tri5^sqrt-idf_A,D_out"),
    "D_ic": ("Tri5_D_ic", "Tri5^sqrt-idf_D_ic", "Tri5_A,D_ic", "Tri5^sqrt-idf_A,D_ic"),
    "D_out,ic": ("Tri5_D_out,ic", "Tri5^sqrt-idf_D_out,ic", "Tri5_A,D_out,ic", "Tri5Sem"),
}


def values(rng=0):
    generator = np.random.default_rng(rng)
    return {name: generator.random(100) / 2 + i / 60 for i, name in enumerate(SYSTEMS_COMPARED)}


def test_the_comparisons_are_those_of_the_paper():
    assert {name for names in CELLS.values() for name in names} == set(SYSTEMS_COMPARED)
    assert set(SYSTEMS_COMPARED) <= set(SYSTEMS)
    assert len(COMPARED) == 12 + 8 + 8
    features = {"I": "sqrt_idf", "A": "A", "D": "D"}
    for effect in COMPARED:
        ours, theirs = SYSTEMS[effect.system], SYSTEMS[effect.without]
        if effect.feature == "I":
            assert (ours.weights, theirs.weights) == (features["I"], "none")
            assert set(ours.lexical) == set(theirs.lexical)
        else:
            assert ours.weights == theirs.weights
            gained = set(ours.lexical) - set(theirs.lexical)
            assert all(name.startswith(features[effect.feature]) for name in gained)
            assert gained
            kept = {name for name in ours.lexical if not name.startswith(effect.feature)}
            assert set(theirs.lexical) == kept
    assert system_name("sqrt_idf", {"A", "D_out", "D_ic"}) == "Tri5Sem"


def test_cells_and_letters():
    columns = {"annotation": values(0), "search": values(1)}
    [table] = ablation_section({"a caption": columns}, n_threads=1).tables
    assert table.caption == "a caption"
    marks = dict(table.superscripts)
    assert marks
    for i, (label, names) in enumerate(CELLS.items()):
        assert table.rows[i][0] == label
        for j, name in enumerate(names):
            for k, of in enumerate(columns.values()):
                place = i, 1 + 2 * j + k
                assert table.rows[i][place[1]] == f"{100 * of[name].mean():.1f}"
                letters = ""
                for feature, system, without in COMPARED:
                    if system != name:
                        continue
                    test = fisher_randomization(of[system], of[without], rng=0)
                    if test.difference > 0:
                        n = sum(test.p_value <= level for level in (0.1, 0.05, 0.01))
                        letters += feature * n
                assert marks.get(place, "") == letters, (name, place)


def test_a_feature_that_harms_has_no_letter():
    worse = {name: -of for name, of in values().items()}
    worse["Tri5"] = worse["Tri5"] + 10
    [table] = ablation_section({"": {"x": worse}}, n_threads=1).tables
    row = [mark for (i, j), mark in table.superscripts if (i, j) in ((1, 1), (2, 1), (3, 1))]
    assert not any("D" in mark for mark in row)
