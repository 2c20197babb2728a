"""Which of two images does a caption describe: asking, counting, comparing."""

import math
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcore.captions import CaptionNormalizer
from kernelcore.datasets import (
    BinarySelections,
    DatasetWarning,
    RelevanceJudgments,
    SelectionTriple,
    judged_selections,
    load_bison_predictions,
    load_flickr,
    load_flickr_crowd,
    write_bison_predictions,
)
from kernelcore.evaluation import (
    Published,
    ResultTable,
    SelectionResult,
    compare_selections,
    evaluate_selection_predictions,
    evaluate_selections,
)
from kernelcore.evaluation.metrics import wilson_interval
from kernelcore.evaluation.significance import mcnemar

NAN = float("nan")

IMAGES = ("a", "b", "c")
CAPTIONS = ("x", "y")


def asked(*rows):
    """Triples from rows of caption, true and other image."""
    return BinarySelections(
        "garden",
        [
            SelectionTriple(str(i), f"Text of {caption}.", caption, true, other)
            for i, (caption, true, other) in enumerate(rows)
        ],
    )


GARDEN = asked(("x", "a", "b"), ("x", "c", "b"), ("y", "b", "a"), ("y", "c", "a"))
SCORES = np.array([[0.9, 0.4], [0.1, 0.5], [0.1, 0.2]])


def evaluate(scores, selections=GARDEN, **options):
    options = {"image_ids": IMAGES, "caption_ids": CAPTIONS, **options}
    return evaluate_selections(selections, scores, **options)


def test_the_better_score_wins_and_a_tie_counts_half():
    result = evaluate(SCORES, system="toy", dataset="pets", split="test", settings={"k": 1})
    assert result.outcomes.tolist() == [1, 0.5, 1, 0]
    assert (result.accuracy, result.n_tied, result.n_answered) == (0.625, 1, 4)
    assert result.triple_ids == ("0", "1", "2", "3")
    assert (result.selections, result.system, result.dataset) == ("garden", "toy", "pets")
    assert result.settings == {"k": 1}
    assert evaluate(-SCORES).outcomes.tolist() == [0, 0.5, 0, 1]


def test_constant_scores_are_right_half_of_the_time():
    assert evaluate(np.zeros((3, 2))).accuracy == 0.5
    assert evaluate(np.full((3, 2), -np.inf)).accuracy == 0.5


@pytest.mark.parametrize(
    "scores",
    [
        SCORES.astype(np.float32),
        np.asfortranarray(SCORES),
        SCORES.astype(">f8"),
        SCORES.tolist(),
        (10 * SCORES).astype(np.int8),
        np.repeat(SCORES, 2, axis=1)[:, ::2],
    ],
)
def test_any_matrix_of_numbers(scores):
    assert evaluate(scores).outcomes.tolist() == [1, 0.5, 1, 0]


def test_rows_and_columns_are_found_by_their_ids():
    order, columns = [2, 0, 1], [1, 0]
    shuffled = evaluate(
        SCORES[np.ix_(order, columns)], image_ids=["c", "a", "b"], caption_ids=["y", "x"]
    )
    assert shuffled == evaluate(SCORES)
    # By default in the order of the triples themselves: images a, b, c and captions x, y.
    assert evaluate_selections(GARDEN, SCORES) == shuffled


def test_infinite_scores_and_nan_outside_the_triples():
    scores = SCORES.copy()
    scores[0, 0], scores[2, 0] = np.inf, np.inf
    assert evaluate(scores).outcomes.tolist() == [1, 1, 1, 0]
    scores = np.pad(SCORES, ((0, 1), (0, 0)), constant_values=NAN)
    assert evaluate(scores, image_ids=(*IMAGES, "unasked")) == evaluate(SCORES)


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


def test_missing_predictions_are_counted(tmp_path):
    write_bison_predictions({"1": "c", "2": "a"}, tmp_path / "p.json")
    predictions = load_bison_predictions(tmp_path / "p.json")
    message = r"2 of 4 triples of garden without a prediction \(not counted\): 0, 3$"
    with pytest.warns(DatasetWarning, match=message):
        result = evaluate_selection_predictions(GARDEN, predictions, system="s")
    np.testing.assert_array_equal(result.outcomes, [NAN, 1, 0, NAN])
    assert (result.accuracy, result.n_answered, result.n_triples) == (0.5, 2, 4)
    assert repr(result) == "SelectionResult('s', accuracy=0.5000, 2 of 4 triples, 0 tied)"
    many = asked(*((f"x{i}", "a", "b") for i in range(6)))
    with pytest.warns(DatasetWarning, match="5 of 6 .*: 0, 1, 2 and 2 more"):
        evaluate_selection_predictions(many, {"5": "a"})
    with pytest.warns(DatasetWarning, match="3 of 6 .*: 0, 1, 2$"):
        evaluate_selection_predictions(many, dict.fromkeys("345", "a"))


@pytest.mark.parametrize(
    ("predictions", "error", "message"),
    [
        (
            {"0": "a", "9": "a"},
            ValueError,
            "triples of garden, and 1 are not, the first is '9'",
        ),
        ({"0": "c"}, ValueError, "one of the two images of a triple, got 'c' for '0'"),
        ([("0", "a")], TypeError, "predictions must be a mapping, got list"),
    ],
)
def test_bad_predictions(predictions, error, message):
    with pytest.raises(error, match=message):
        evaluate_selection_predictions(GARDEN, predictions)


def test_no_prediction_at_all():
    with (
        pytest.warns(DatasetWarning, match="4 of 4"),
        pytest.raises(ValueError, match="at least one answer, got none to 4 triples"),
    ):
        evaluate_selection_predictions(GARDEN, {})


def swap(entry, value):
    scores = SCORES.copy()
    scores[entry] = value
    return scores


@pytest.mark.parametrize(
    ("scores", "options", "error", "message"),
    [
        (SCORES[:2], {}, ValueError, r"each of 3 images .* 2 captions, got shape \(2, 2\)"),
        (SCORES.T, {}, ValueError, r"got shape \(2, 3\)"),
        (SCORES[0], {}, ValueError, "scores must be a 2-D array"),
        (SCORES.astype(str), {}, TypeError, "scores must hold real numbers"),
        (swap((2, 1), NAN), {}, ValueError, "must not hold NaN, got NaN for triple '3'"),
        (SCORES, {"image_ids": "abc"}, TypeError, "image_ids must be a sequence of strings"),
        (SCORES, {"image_ids": ("a", "b", "d")}, ValueError, "image_ids must hold .* 'c'"),
        (SCORES, {"caption_ids": ("x", "z")}, ValueError, "caption_ids must hold .* 'y'"),
        (lambda i, c: np.ones(len(i)), {}, ValueError, "omitted where scores is a function"),
    ],
)
def test_bad_scores(scores, options, error, message):
    with pytest.raises(error, match=message):
        evaluate(scores, **options)


def test_bad_functions_and_selections():
    with pytest.raises(ValueError, match=r"one score per pair \(6\), got 1"):
        evaluate_selections(GARDEN, lambda images, captions: [1.0])
    for name in ("image_ids", "caption_ids"):
        with pytest.raises(ValueError, match="omitted where scores is a function"):
            evaluate_selections(GARDEN, lambda images, captions: [1.0], **{name: "abc"})
    with pytest.raises(ValueError, match="NaN for triple '0'"):
        evaluate_selections(GARDEN, lambda images, captions: [NAN] * 6)
    for function in (evaluate_selections, evaluate_selection_predictions):
        with pytest.raises(TypeError, match="selections must be BinarySelections, got tuple"):
            function(GARDEN.triples, SCORES)


OUTCOMES = st.lists(st.sampled_from([0, 0.5, 1, NAN]), min_size=1, max_size=12).filter(
    lambda xs: not all(map(math.isnan, xs))
)


@given(OUTCOMES)
def test_what_sums_up_the_outcomes(outcomes):
    result = SelectionResult([str(i) for i in range(len(outcomes))], outcomes, "garden")
    answered = [x for x in outcomes if not math.isnan(x)]
    assert result.accuracy == pytest.approx(sum(answered) / len(answered))
    assert result.n_answered == len(answered)
    assert result.n_triples == len(outcomes)
    assert result.n_tied == answered.count(0.5)
    assert result.interval(0.9) == wilson_interval(
        result.accuracy, len(answered), confidence=0.9
    )
    again = SelectionResult.from_dict(result.to_dict())
    assert again == result
    assert SelectionResult.from_json(result.to_json()).to_dict() == result.to_dict()


def test_results_in_files(tmp_path):
    result = evaluate(SCORES, system="toy", settings={"power": np.float32(2)})
    result.save(tmp_path / "r.json")
    again = SelectionResult.load(tmp_path / "r.json")
    assert again == result
    assert again.settings == {"power": 2.0}
    document = result.to_dict()
    assert document["accuracy"] == 0.625
    assert document["interval"] == list(result.interval())
    with pytest.raises(ValueError, match="must hold 'outcomes'"):
        SelectionResult.from_dict({k: v for k, v in document.items() if k != "outcomes"})
    with pytest.raises(ValueError, match="holds a selection result"):
        SelectionResult.from_dict({**document, "kind": "link result"})
    assert result != evaluate(SCORES)
    assert result != "toy"


@pytest.mark.parametrize(
    ("ids", "outcomes", "error", "message"),
    [
        (["a"], [0.25], ValueError, "outcomes must be 0, 0.5, 1 or NaN, got 0.25"),
        (["a"], [np.inf], ValueError, "outcomes must be 0, 0.5, 1 or NaN, got inf"),
        (["a"], [1, 0], ValueError, r"one entry per triple \(1\), got 2"),
        (["a", "a"], [1, 0], ValueError, "triple_ids must be unique, got 'a'"),
        ([1], [1], TypeError, "triple_ids must be a sequence of strings"),
        (["a"], [NAN], ValueError, "at least one answer"),
        ([], [], ValueError, "at least one answer, got none to 0"),
    ],
)
def test_bad_results(ids, outcomes, error, message):
    with pytest.raises(error, match=message):
        SelectionResult(ids, outcomes)


def test_wilson_interval_against_statsmodels():
    proportion = pytest.importorskip("statsmodels.stats.proportion")

    @given(st.integers(1, 10_000), st.floats(0, 1), st.floats(0.01, 0.99))
    def check(n, share, confidence):
        successes = round(share * n)
        expected = proportion.proportion_confint(
            successes, n, alpha=1 - confidence, method="wilson"
        )
        low, high = wilson_interval(successes / n, n, confidence=confidence)
        assert 0 <= low <= high <= 1
        np.testing.assert_allclose([low, high], expected, rtol=1e-9, atol=1e-12)

    check()


def test_wilson_interval_solves_its_equation():
    """The ends are the shares p0 with |share - p0| = z sqrt(p0 (1 - p0) / n)."""
    z = 1.959963984540054
    for end in wilson_interval(0.3, 40):
        assert abs(0.3 - end) == pytest.approx(z * math.sqrt(end * (1 - end) / 40))
    for bad in ({"confidence": 0.0}, {"confidence": 1.0}):
        with pytest.raises(ValueError, match="confidence must be between 0 and 1"):
            wilson_interval(0.5, 10, **bad)
    with pytest.raises(ValueError, match="n must be an integer >= 1"):
        wilson_interval(0.5, 0)
    with pytest.raises(ValueError, match="share must be a number <= 1"):
        wilson_interval(1.5, 10)


def result_of(outcomes, **labels):
    return SelectionResult([str(i) for i in range(len(outcomes))], outcomes, **labels)


@given(
    st.lists(
        st.tuples(st.sampled_from([0, 0.5, 1, NAN]), st.sampled_from([0, 0.5, 1, NAN])),
        min_size=1,
        max_size=20,
    ).filter(lambda pairs: any(not math.isnan(a + b) for a, b in pairs)),
    st.booleans(),
)
def test_comparison_is_mcnemar_on_what_both_answered(pairs, mid_p):
    first, second = (result_of(outcomes) for outcomes in zip(*pairs, strict=True))
    both = [(a, b) for a, b in pairs if not math.isnan(a + b)]
    expected = mcnemar([a == 1 for a, _ in both], [b == 1 for _, b in both], mid_p=mid_p)
    test = compare_selections(first, second, mid_p=mid_p)
    assert (test.difference, test.p_value) == (expected.difference, expected.p_value)
    assert compare_selections(second, first).difference == -test.difference


def test_results_that_cannot_be_compared():
    with pytest.raises(ValueError, match="over the triples of result, in the same order"):
        compare_selections(result_of([1, 0]), result_of([1]))
    with pytest.raises(ValueError, match="answered a triple both, got none"):
        compare_selections(result_of([1, NAN]), result_of([NAN, 1]))
    with pytest.raises(TypeError, match="baseline must be a SelectionResult, got list"):
        compare_selections(result_of([1]), [1])


def test_table_of_systems():
    good = result_of([1, 1, 1, 0.5], system="good", selections="garden")
    poor = result_of([0, 1, 0, 0], system="poor", selections="garden")
    published = Published("SCAN", "Hu et al. 2019", {"accuracy": 0.8589})
    table = ResultTable([good, poor, published]).to_table()
    low, high = wilson_interval(0.875, 4)
    assert table.rows == (
        ("good", "87.5", f"{100 * low:.1f} to {100 * high:.1f}", "1"),
        ("poor", "25.0", "4.6 to 69.9", "0"),
        ("SCAN (Hu et al. 2019)", "85.9", "n/a", "n/a"),
    )
    assert table.emphasized == {(0, 1)}
    assert table.caption.startswith("In percent; garden, 4 triples, 4 answered, kernelcore")
    with_gap = result_of([1, NAN, 1, 0], system="gap", selections="garden")
    table = ResultTable([good, with_gap, published]).to_table()
    assert table.columns == ("system", "n_answered", "accuracy", "interval", "ties")
    assert [row[1] for row in table.rows] == ["4", "3", ""]
    assert table.n_labels == 2
    assert not table.emphasized
    assert not good.to_table().emphasized
    with pytest.raises(ValueError, match="at least one measured result"):
        ResultTable([published])
    with pytest.raises(TypeError, match=r"results must hold .* got str"):
        ResultTable([good, "SCAN"])


@pytest.mark.realdata
@pytest.mark.filterwarnings("ignore::kernelcore.datasets.DatasetWarning")
def test_people_can_be_found_by_their_words(data_root):
    """On triples from Flickr8k's crowd, words shared with an image's other captions help."""
    flickr = load_flickr(data_root / "flickr8k", images=data_root / "flickr8k" / "images")
    test = flickr.subset(flickr.split("test"))
    pool = test.pool(2)
    crowd = load_flickr_crowd(data_root / "flickr8k" / "CrowdFlowerAnnotations.txt")
    crowd = crowd.union(RelevanceJudgments.gold(test), both="first")
    crowd = crowd.select(test.image_ids, pool.caption_ids)
    words = CaptionNormalizer().normalize_images(test.captions)
    vocabulary = {word: k for k, word in enumerate(sorted(set(chain(*chain(*words)))))}
    others, own = np.zeros((2, len(words), len(vocabulary)), np.float32)
    for i, (*first, two, three, four) in enumerate(words):
        others[i, [vocabulary[word] for word in chain(*first, three, four)]] = 1
        own[i, [vocabulary[word] for word in two]] = 1
    scores = others @ own.T
    both, sizes = others @ others.T, others.sum(axis=1)
    alike = both / np.maximum(sizes[:, np.newaxis] + sizes - both, 1)
    selections = judged_selections(crowd, test, right=0.5, wrong=0, similarity=alike)
    assert len(selections) == 3010
    result = evaluate_selections(
        selections, scores, image_ids=test.image_ids, caption_ids=pool.caption_ids
    )
    assert result.interval()[0] > 0.7
    chance = evaluate_selections(
        selections,
        np.random.default_rng(0).random(scores.shape),
        image_ids=test.image_ids,
        caption_ids=pool.caption_ids,
    )
    low, high = chance.interval(0.999)
    assert low < 0.5 < high
    assert compare_selections(result, chance).p_value < 1e-9
