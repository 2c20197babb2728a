import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import roc_auc_score

from kernelcore.evaluation import LinkResult, Published, ResultTable, evaluate_links


def pairs(truth):
    return {(int(i), int(j)) for i, j in np.argwhere(truth)}


def expected_precision(scores, truth, cutoff, rng, n_orders=4000):
    """p@C averaged over orders in which ties are broken at random."""
    shares = []
    for _ in range(n_orders):
        order = np.lexsort((rng.random(scores.size), -scores.ravel()))
        shares.append(truth.ravel()[order][:cutoff].mean())
    return np.mean(shares)


levels = st.sampled_from([-2.0, -0.5, 0.0, 0.25, 0.5, 1.0])  # few, so that scores tie
sizes = st.tuples(st.integers(1, 5), st.integers(1, 5))


@st.composite
def documents(draw):
    shape = draw(sizes)
    dtype = draw(st.sampled_from([np.float64, np.float32]))
    scores = draw(hnp.arrays(dtype, shape, elements=levels))
    return scores, draw(hnp.arrays(np.bool_, shape))


@given(st.lists(documents(), min_size=1, max_size=6), st.integers(1, 12))
def test_auc_is_that_of_scikit_learn(collection, cutoff):
    scores, truths = zip(*collection, strict=True)
    judged = np.array([truth.any() and not truth.all() for truth in truths])
    links = [pairs(truth) for truth in truths]
    if not judged.any():
        with pytest.raises(ValueError, match=f"all of {len(scores)} are skipped"):
            evaluate_links(scores, links)
        return
    result = evaluate_links(scores, links, cutoffs=(cutoff,))
    assert result.n_documents == len(scores)
    assert result.n_judged == judged.sum()
    assert (np.isnan(result.auc) == ~judged).all()
    assert (np.isnan(result.precision[cutoff]) == ~judged).all()
    for i in np.flatnonzero(judged):
        assert result.auc[i] == pytest.approx(
            roc_auc_score(truths[i].ravel(), scores[i].ravel()), abs=1e-12
        )


@given(documents().filter(lambda d: d[1].any() and not d[1].all()), st.integers(1, 12))
def test_precision_counts_what_stands_first(document, cutoff):
    scores, truth = document
    result = evaluate_links([scores], [pairs(truth)], cutoffs=(cutoff,))
    # Of tied pairs, each order is equally likely: the bounds are the best and the worst one.
    ends = []
    for sign in (-1, 1):
        order = np.lexsort((sign * truth.ravel(), -scores.ravel()))
        ends.append(truth.ravel()[order][:cutoff].mean())
    assert ends[1] - 1e-12 <= result.precision[cutoff][0] <= ends[0] + 1e-12
    if len(np.unique(scores)) == scores.size:
        assert result.precision[cutoff][0] == ends[0] == ends[1]


def test_precision_of_ties_is_its_expectation():
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 4, (5, 6)).astype(float)
    truth = rng.random((5, 6)) < 0.3
    result = evaluate_links([scores], [pairs(truth)], cutoffs=(1, 5, 12))
    for cutoff in (1, 5, 12):
        expected = expected_precision(scores, truth, cutoff, rng)
        assert result.precision[cutoff][0] == pytest.approx(expected, abs=0.03)


def test_numbers_by_hand():
    scores = [[0.9, 0.5, 0.5], [0.5, 0.1, 0.0]]
    result = evaluate_links([scores], [{(0, 1), (1, 1)}], cutoffs=(1, 2, 3, 5, 99))
    # The link at 0.5 ties with two others and beats one; the link at 0.1 beats one.
    assert result.auc[0] == ((0.5 + 0.5 + 1) + 1) / (2 * 4)
    precision = {cutoff: float(shares[0]) for cutoff, shares in result.precision.items()}
    assert precision == pytest.approx({1: 0, 2: 1 / 6, 3: 2 / 9, 5: 2 / 5, 99: 2 / 6})


def test_constant_scores_reach_chance():
    truth = np.zeros((10, 10), bool)
    truth[np.arange(5), np.arange(5)] = True
    result = evaluate_links([np.zeros((10, 10))], [pairs(truth)], cutoffs=(1, 5))
    assert result.mean == {"AUC": 0.5, "p@1": 0.05, "p@5": 0.05}


@given(documents().filter(lambda d: d[1].any() and not d[1].all()), st.randoms())
def test_no_order_of_sentences_and_images_matters(document, random):
    scores, truth = document
    rows = random.sample(range(len(scores)), len(scores))
    columns = random.sample(range(scores.shape[1]), scores.shape[1])
    plain = evaluate_links([scores], [pairs(truth)])
    moved = evaluate_links(
        [scores[np.ix_(rows, columns)]], [pairs(truth[np.ix_(rows, columns)])]
    )
    assert plain == moved


def test_negated_scores_reverse_the_auc():
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(8, 4, 5))
    links = [{(i % 4, i % 5)} for i in range(8)]
    forward, backward = (evaluate_links(s, links).auc for s in (scores, -scores))
    assert forward + backward == pytest.approx(1)


def test_documents_do_not_mix():
    rng = np.random.default_rng(2)
    shapes = [(3, 2), (1, 7), (4, 4), (2, 2)]
    scores = [rng.normal(i * 10, 1, shape) for i, shape in enumerate(shapes)]
    links = [{(0, 0)}, {(0, 6)}, {(1, 1), (3, 0)}, {(1, 0)}]
    together = evaluate_links(scores, links)
    apart = [evaluate_links([s], [k]) for s, k in zip(scores, links, strict=True)]
    assert together.auc.tolist() == [one.auc[0] for one in apart]
    assert together.precision[5].tolist() == [one.precision[5][0] for one in apart]


@pytest.mark.parametrize(
    "change",
    [
        np.asfortranarray,
        lambda a: np.repeat(a, 2, axis=1)[:, ::2],
        lambda a: a.astype(">f8"),
        lambda a: a.tolist(),
        lambda a: (a * 1000).astype(np.int32),
    ],
)
def test_any_layout_gives_the_same(change):
    scores = np.random.default_rng(3).integers(-9, 9, (3, 4, 5)) / 8.0
    links = [{(0, 1)}, np.array([[1, 1], [3, 4]]), [(2, 2), (2, 2)]]
    plain = evaluate_links(scores, links)
    read_only = scores.copy()
    read_only.flags.writeable = False
    assert evaluate_links(list(read_only), links) == plain
    assert evaluate_links([change(matrix) for matrix in scores], links) == plain


def test_infinite_scores_rule_in_and_out():
    result = evaluate_links([[[np.inf, 0.0], [-np.inf, 0.0]]], [{(0, 0)}], cutoffs=(1,))
    assert result.mean == {"AUC": 1.0, "p@1": 1.0}


ONE = [[[0.5, 0.1]]]


@pytest.mark.parametrize(
    ("scores", "links", "error", "message"),
    [
        ([], [], ValueError, "same documents, at least one, got 0 and 0"),
        (ONE, [], ValueError, "same documents, at least one, got 1 and 0"),
        ([[0.5, 0.1]], [{(0, 0)}], ValueError, r"scores\[0\] must be a 2-D array"),
        ([[[]]], [{(0, 0)}], ValueError, r"scores\[0\] must have at least one"),
        ([[[0.5], [0.1, 0]]], [{(0, 0)}], ValueError, r"scores\[0\] .* unequal length"),
        ([[["a", "b"]]], [{(0, 0)}], TypeError, r"scores\[0\] must hold real numbers"),
        ([*ONE, [[1, 2], [0, np.nan]]], [{(0, 0)}] * 2, ValueError, r"scores\[1\] .* \[1, 1\]"),
        (ONE, [None], ValueError, r"links\[0\] must be known, got None"),
        (ONE, [3], TypeError, r"links\[0\] must be a collection of \(sentence, image\)"),
        (
            ONE,
            [{(0, 2)}],
            ValueError,
            r"links\[0\] must lie within 1 .* 2 images, got \(0, 2\)",
        ),
        (ONE, [{(1, 0)}], ValueError, r"links\[0\] must lie within 1 .* got \(1, 0\)"),
        (ONE, [{(0, -1)}], ValueError, r"links\[0\] must lie within .* got \(0, -1\)"),
        (ONE, [{(0, 0.5)}], TypeError, r"links\[0\] must hold integers"),
        (ONE, [[(0, 0, 0)]], ValueError, r"links\[0\] must be pairs"),
        (ONE, [[0]], ValueError, r"links\[0\] must be a 2-D array"),
        (ONE, [()], ValueError, "all of 1 are skipped"),
    ],
)
def test_bad_input_is_refused(scores, links, error, message):
    with pytest.raises(error, match=message):
        evaluate_links(scores, links)


@pytest.mark.parametrize("cutoffs", [(0,), (1.5,), ("1",)])
def test_bad_cutoffs_are_refused(cutoffs):
    with pytest.raises((TypeError, ValueError), match="cutoffs must be an integer"):
        evaluate_links(ONE, [{(0, 0)}], cutoffs=cutoffs)


NAN = float("nan")


def result(auc=(0.5, NAN, 1.0), precision=None, **labels):
    precision = {5: [0.2, NAN, 0.4], 1: [0, NAN, 1]} if precision is None else precision
    return LinkResult(auc, precision, **labels)


def test_means_and_standard_errors_leave_skipped_documents_out():
    ours = result(system="AP")
    assert ours.mean == pytest.approx({"AUC": 0.75, "p@1": 0.5, "p@5": 0.3})
    assert list(ours.mean) == ["AUC", "p@1", "p@5"]
    # The standard deviation of two values is their difference over the root of 2.
    assert ours.standard_error == pytest.approx({"AUC": 0.25, "p@1": 0.5, "p@5": 0.1})
    assert (ours.n_documents, ours.n_judged) == (3, 2)
    assert (
        repr(ours) == "LinkResult('AP', AUC=0.7500, p@1=0.5000, p@5=0.3000, 2 of 3 documents)"
    )
    one = LinkResult([0.5], {1: [1]})
    assert np.isnan(list(one.standard_error.values())).all()


def test_results_are_kept_in_files(tmp_path):
    ours = result(
        system="AP",
        dataset="Flickr8k",
        split="test",
        protocol="p",
        settings={"b": np.int64(10)},
    )
    ours.save(tmp_path / "ap.json")
    loaded = LinkResult.load(tmp_path / "ap.json")
    assert loaded == ours
    assert loaded.settings == {"b": 10}
    assert loaded != result(system="AP")
    content = json.loads((tmp_path / "ap.json").read_text())
    assert content["AUC"] == 0.75
    assert content["per_document"]["p@5"] == [0.2, None, 0.4]
    with pytest.raises(ValueError, match="must say that it holds a link result"):
        LinkResult.from_dict({**content, "kind": "retrieval result"})
    del content["per_document"]["p@5"]
    with pytest.raises(ValueError, match="document must hold 'p@5', and it does not"):
        LinkResult.from_dict(content)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"auc": [0.5, 1.1, 1]}, ValueError, r"auc must lie in \[0, 1\], got values from 0.5"),
        ({"auc": [-0.1, 1, 1]}, ValueError, r"auc must lie in \[0, 1\], got values from -0.1"),
        ({"auc": [NAN] * 3}, ValueError, "auc must have a value .* all of 3 are skipped"),
        ({"auc": []}, ValueError, "auc must have a value"),
        ({"auc": [[0.5]]}, ValueError, "auc must be a 1-D array"),
        ({"auc": ["a"]}, TypeError, "auc must hold real numbers"),
        ({"precision": {1: [0, 0, 1]}}, ValueError, r"precision\[1\] must be NaN where auc is"),
        ({"precision": {1: [0, NAN]}}, ValueError, r"precision\[1\] must be NaN where auc is"),
        ({"precision": {1: [0, NAN, 2]}}, ValueError, r"precision\[1\] must lie in \[0, 1\]"),
        ({"precision": {0: [0, NAN, 1]}}, ValueError, "precision must be an integer >= 1"),
        ({"system": "a\nb"}, ValueError, "system must be one line"),
        ({"settings": {"f": print}}, TypeError, "must fit into JSON"),
    ],
)
def test_bad_results_are_refused(changes, error, message):
    with pytest.raises(error, match=message):
        result(**changes)


def test_values_are_read_only():
    with pytest.raises(ValueError, match="read-only"):
        result().auc[0] = 1


def test_a_table_of_results():
    better = result((0.9, NAN, 1.0), system="AP", dataset="toy")
    poorer = result(system="DC", dataset="toy")
    theirs = Published("AP", "MSCOCO, Hessel et al. 2019", {"AUC": 0.987, "p@1": 0.91})
    table = ResultTable([poorer, better, theirs]).to_table()
    assert table.columns == ("system", "AUC", "p@1", "p@5")
    assert table.rows == (
        ("DC", "75.0", "50.0", "30.0"),
        ("AP", "95.0", "50.0", "30.0"),
        ("AP (MSCOCO, Hessel et al. 2019)", "98.7", "91.0", "n/a"),
    )
    assert table.emphasized == {(1, 1), (0, 2), (1, 2), (0, 3), (1, 3)}
    assert table.caption.startswith("In percent; toy, 3 documents, 2 judged, kernelcore")
    with_errors = ResultTable([poorer, theirs], standard_errors=True).to_table()
    assert with_errors.rows[0] == ("DC", "75.0 ± 25.0", "50.0 ± 50.0", "30.0 ± 10.0")
    assert with_errors.rows[1][1] == "98.7"
    assert with_errors.caption.endswith("; ± standard error")
    assert not with_errors.emphasized


def test_results_on_other_documents_are_not_compared():
    table = ResultTable([result(dataset="a"), result(dataset="b", split="test")]).to_table()
    assert table.columns[:3] == ("system", "dataset", "split")
    assert table.rows[1][:3] == ("(unnamed)", "b", "test")
    assert not table.emphasized
    fewer = result((0.5, 0.5, 1), {1: [0, 0, 1], 5: [0, 0, 1]})
    table = ResultTable([result(), fewer]).to_table()
    assert table.columns[1] == "n_judged"
    assert not table.emphasized


def test_a_result_prints_as_a_table():
    assert str(result(system="AP")) == str(ResultTable([result(system="AP")]))
    assert "AP | 75.0 | 50.0 | 30.0" in result(system="AP").to_markdown()
    assert "AP & 75.0" in result(system="AP").to_latex()


@pytest.mark.parametrize(
    ("results", "error", "message"),
    [
        ([], ValueError, "results must hold at least one measured result, got none"),
        ([Published("a", "b")], ValueError, "at least one measured result"),
        ([3], TypeError, "results must hold .* got int"),
        (
            [result(), result(precision={1: [0, NAN, 1]})],
            ValueError,
            "results must have the same columns, got AUC, p@1, p@5 and AUC, p@1$",
        ),
    ],
)
def test_bad_tables_are_refused(results, error, message):
    with pytest.raises(error, match=message):
        ResultTable(results)


@pytest.mark.parametrize(
    "changes",
    [
        {"per_document": [1]},
        {"per_document": {"AUC": "x"}},
        {"cutoffs": 3},
        {"cutoffs": [[]]},
        {"system": 3},
        {"settings": []},
    ],
)
def test_a_damaged_file_is_named(changes, tmp_path):
    document = result().to_dict() | changes
    (tmp_path / "links.json").write_text(json.dumps(document))
    with pytest.raises(ValueError, match=r"links\.json is damaged or truncated"):
        LinkResult.load(tmp_path / "links.json")


def test_errors_take_shared_images_into_account(tmp_path):
    auc = [0.9, 0.8, 0.2, 0.3, NAN]
    apart = [("a",), ("b",), ("c",), ("d",), ("a",)]
    shared = [("a", "b"), ("b", "c"), ("d",), ("d", "e"), ("f",)]
    alone = result(auc, {}).standard_error["AUC"]
    assert result(auc, {}, images=apart).standard_error["AUC"] == pytest.approx(alone)
    ours = result(auc, {}, images=shared)
    assert ours.standard_error["AUC"] == pytest.approx(0.3)  # as in the docstring
    ours.save(tmp_path / "x.json")
    assert LinkResult.load(tmp_path / "x.json") == ours
    assert "images" not in result(auc, {}).to_dict()
    caption = ResultTable([ours], standard_errors=True).to_table().caption
    assert caption.endswith("± standard error, shared images taken into account")
    both = ResultTable([ours, result(auc, {})], standard_errors=True).to_table()
    assert both.caption.endswith("shared images taken into account, where they are known")


@pytest.mark.parametrize(
    ("images", "error"),
    [([("a",)], ValueError), (["a", "b"], TypeError), ([(1,), ("b",)], TypeError)],
)
def test_bad_images_are_refused(images, error):
    with pytest.raises(error, match="images"):
        evaluate_links([[[1, 0]], [[0, 1]]], [{(0, 0)}, {(0, 0)}], images=images)
