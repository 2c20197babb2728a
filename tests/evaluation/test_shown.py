"""Every result gives a data frame and shows itself in a notebook."""

import numpy as np
import pytest

from kernelcore.evaluation import Table, compare, evaluate, tie_groups
from kernelcore.evaluation.significance import fisher_randomization, mcnemar, paired_bootstrap

pandas = pytest.importorskip("pandas")
SCORES = np.random.default_rng(0).random((20, 20)) + np.eye(20)
OTHERS = np.random.default_rng(1).random((20, 20))
RESULT = evaluate(SCORES, system="ours")
HITS = np.random.default_rng(2).random((3, 40))


SHOWN = {
    "result": RESULT,
    "metrics of a direction": RESULT.annotation,
    "folds": evaluate(SCORES, n_folds=4),
    "metrics of folds": evaluate(SCORES, n_folds=4).search,
    "table": Table(("system", "n"), (("ours", "1"),)),
    "test": fisher_randomization(HITS, HITS[0], n_reassignments=99, rng=0),
    "bootstrap": paired_bootstrap(HITS[1], HITS[0], n_resamples=99, rng=0),
    "mcnemar": mcnemar(HITS > 0.5, HITS[0] > 0.5),
    "comparison": compare([RESULT, evaluate(OTHERS, system="theirs")], baseline="ours", rng=0),
    "tie groups": tie_groups([RESULT, evaluate(OTHERS, system="theirs")], rng=0),
}


@pytest.mark.parametrize("name", SHOWN)
def test_a_frame_and_a_table_of_html(name):
    frame = SHOWN[name].to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert len(frame) >= 1
    html = SHOWN[name]._repr_html_()
    assert html.startswith("<table>")
    assert html.count("<tr>") > 1


def test_columns_hold_numbers():
    frame = SHOWN["metrics of a direction"].to_frame()
    assert frame["R@1"].tolist() == [RESULT.annotation.recall[1]]
    frame = SHOWN["bootstrap"].to_frame()
    assert list(frame.columns) == ["difference", "p_value", "low", "high"]
    assert len(SHOWN["test"].to_frame()) == 3
    assert SHOWN["table"].to_frame().columns.tolist() == ["system", "n"]
