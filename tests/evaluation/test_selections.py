"""Which of two images does a caption describe: asking, counting, comparing."""

import numpy as np
import pytest

from kernelcore.datasets import BinarySelections, DatasetWarning, SelectionTriple
from kernelcore.evaluation import evaluate_selections

NAN = float("nan")

IMAGES = ("a", "b", "c")
CAPTIONS = ("x", "y")


def asked(*rows):
    """Triples from rows of caption, true and other image."""
    triples = [SelectionTriple(str(i), f"Text of {r[0]}.", *r) for i, r in enumerate(rows)]
    return BinarySelections("garden", triples)


GARDEN = asked(("x", "a", "b"), ("x", "c", "b"), ("y", "b", "a"), ("y", "c", "a"))
SCORES = np.array([[0.9, 0.4], [0.1, 0.5], [0.1, 0.2]])


def outcomes(result):
    return result.values["selection"]["accuracy"].tolist()


def evaluate(scores, selections=GARDEN, **options):
    options = {"image_ids": IMAGES, "caption_ids": CAPTIONS, **options}
    return evaluate_selections(selections, scores, **options)


def test_the_better_score_wins_and_a_tie_counts_half():
    result = evaluate(SCORES, system="toy", dataset="pets", split="test", settings={"k": 1})
    assert outcomes(result) == [1, 0.5, 1, 0]
    assert result.mean["selection"] == {"accuracy": 0.625, "tied": 0.25}
    assert result.facts == {"selections": "garden", "n_triples": 4}
    assert (result.system, result.dataset, result.settings) == ("toy", "pets", {"k": 1})
    assert outcomes(evaluate(-SCORES)) == [0, 0.5, 0, 1]


def test_rows_and_columns_are_found_by_their_ids():
    order, columns = [2, 0, 1], [1, 0]
    moved = {"image_ids": ["c", "a", "b"], "caption_ids": ["y", "x"]}
    shuffled = evaluate(SCORES[np.ix_(order, columns)], **moved)
    assert shuffled == evaluate(SCORES)
    # By default in the order of the triples themselves: images a, b, c and captions x, y.
    assert evaluate_selections(GARDEN, SCORES) == shuffled


def test_a_function_is_asked_for_every_pair_once(monkeypatch):
    calls = []

    def score(images, captions):
        calls.append(list(zip(images, captions, strict=True)))
        rows = [IMAGES.index(image) for image in images]
        return SCORES[rows, [CAPTIONS.index(caption) for caption in captions]]

    assert evaluate_selections(GARDEN, score) == evaluate(SCORES)
    (pairs,) = calls
    assert pairs == sorted({(i, c) for i in "abc" for c in "xy"})
    monkeypatch.setattr("kernelcore.evaluation.selections._PAIRS_PER_CALL", 4)
    calls.clear()
    assert evaluate_selections(GARDEN, score) == evaluate(SCORES)
    assert [len(call) for call in calls] == [4, 2]
    assert [pair for call in calls for pair in call] == pairs


def test_missing_predictions_are_counted():
    predictions = {"1": "c", "2": "a"}
    message = r"2 of 4 triples of garden without a prediction \(not counted\): 0, 3$"
    with pytest.warns(DatasetWarning, match=message):
        result = evaluate_selections(GARDEN, predictions, system="s")
    np.testing.assert_array_equal(outcomes(result), [NAN, 1, 0, NAN])
    assert result.mean["selection"] == {"accuracy": 0.5, "tied": 0}
    many = asked(*((f"x{i}", "a", "b") for i in range(6)))
    with pytest.warns(DatasetWarning, match="5 of 6 .*: 0, 1, 2 and 2 more"):
        evaluate_selections(many, {"5": "a"})
    with (
        pytest.warns(DatasetWarning, match="4 of 4"),
        pytest.raises(ValueError, match="with one number at least"),
    ):
        evaluate_selections(GARDEN, {})


def test_any_matrix_of_numbers():
    for scores in (SCORES.astype(np.float32), np.asfortranarray(SCORES), SCORES.tolist()):
        assert outcomes(evaluate(scores)) == [1, 0.5, 1, 0]
    infinite, padded = SCORES.copy(), np.pad(SCORES, ((0, 1), (0, 0)), constant_values=NAN)
    infinite[0, 0] = infinite[2, 0] = np.inf
    assert outcomes(evaluate(infinite)) == [1, 1, 1, 0]
    assert evaluate(padded, image_ids=(*IMAGES, "unasked")) == evaluate(SCORES)
