"""The tables of results, from results made up here."""

import growth_plot
import pytest
import report
import results
import tables
from results import target

LIMITS = {
    "measurements": {
        "1 thread": {
            "v2": {"shares": {"float32": 0.1}, "peaks": {}},
            "v4": {"shares": {"float32": 0.4}, "peaks": {"fma": {"float32": 1000.0}}},
            "commit": "zzz",
        }
    }
}


def benchmark(way, *seconds, group="sorting, 1 thread", **info):
    """Entry of a file of results with one time for each pass; None where it was not run."""
    passes = {str(k): value for k, value in enumerate(seconds, 1) if value is not None}
    about = {
        "work": group.rpartition(", ")[0],
        "way": way,
        "is_peer": not way.startswith("kernelcore"),
        "n_threads": 1,
        "shape": "10 rows",
        "passes": passes,
        "commit": "c0ffee",
    }
    ways = {"ways": ["kernelcore", "scipy", "lapjv"]} if way == "kernelcore" else {}
    return {
        "group": group,
        "fullname": f"bench/bench_sorting.py::test_sorting[{way}]",
        "extra_info": {**about, **ways, **info},
    }


def groups(*entries):
    return tables.groups_of({"benchmarks": entries})


def only(*entries):
    (group,) = groups(*entries).values()
    return group


def test_ratio_is_taken_within_a_pass():
    """A machine that gets slower by the pass changes no ratio; the best rounds would be 3 x."""
    group = only(benchmark("kernelcore", 1.0, 2.0, 40.0), benchmark("scipy", 3.0, 10.0, 200.0))
    assert tables.ratio(group["scipy"], group["kernelcore"]) == 5.0


def test_ratio_of_a_way_that_ran_in_one_pass():
    group = only(benchmark("kernelcore", 2.0, 1.0), benchmark("scipy", 6.0, None))
    assert tables.ratio(group["scipy"], group["kernelcore"]) == 3.0
    apart = only(benchmark("kernelcore", None, 1.0), benchmark("scipy", 6.0, None))
    assert tables.ratio(apart["scipy"], apart["kernelcore"]) is None


def test_a_ratio_below_1_is_in_slower_than():
    found = groups(
        benchmark("kernelcore", 1.0),
        benchmark("kernelcore, prepared", 0.1),
        benchmark("scipy", 0.5),
        benchmark("lapjv", 1.0),
        benchmark("kernelcore", 1.0, group="searching, 2 threads"),
        benchmark("scipy", 0.25, group="searching, 2 threads"),
    )
    rows = tables.slower_table(found).rows
    assert [(row[0], row[2], row[-1]) for row in rows] == [
        ("searching, 2 threads", "scipy", "0.25"),
        ("sorting, 1 thread", "scipy", "0.5"),
    ]


def test_no_peer_is_faster():
    found = groups(benchmark("kernelcore", 1.0, 9.0), benchmark("scipy", 1.0, 9.5))
    assert tables.slower_table(found).rows == ()


def judge(text, *others, of="kernelcore", **info):
    """Value and verdict of a target of our way, which takes 0.5 s and 0.25 s."""
    ours = benchmark("kernelcore", 0.5, 0.25, size=100.0, **info)
    group = only(ours, benchmark("scipy", 4.0, 2.0), benchmark("lapjv", 1.0, 0.5), *others)
    return tables.value_of(text, group[of], group, LIMITS)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("speed >= 1 x scipy", 8.0),
        ("speed >= 1 x best peer", 2.0),
        ("time <= 1 x scipy", 0.125),
        ("seconds <= 5", 0.25),
        ("rate >= 1", 400.0),
        ("extra_bytes <= 200e6", 5e6),
    ],
)
def test_numbers_of_targets(text, value):
    assert judge(text, extra_bytes=5e6) == (value, True)


@pytest.mark.parametrize(
    ("limit", "value"), [("float32", 0.4), ("fma float32", 100.0 / 0.25 / 1000.0)]
)
def test_share_is_of_the_newest_instruction_set(limit, value):
    assert judge("share >= 0.3", limit=limit) == (value, True)


@pytest.mark.parametrize(
    ("relation", "bound", "is_met"),
    [
        (">=", 7.9, True),
        (">=", 8.0, True),
        (">=", 8.1, False),
        ("<=", 8.1, True),
        ("<=", 8.0, True),
        ("<=", 7.9, False),
    ],
)
def test_bounds_hold_themselves(relation, bound, is_met):
    assert judge(f"speed {relation} {bound} x scipy") == (8.0, is_met)


@pytest.mark.parametrize(
    "text",
    ["speed >= 1 x torch", "time <= 1 x torch", "share >= 0.1", "exponent <= 2", "bytes <= 1"],
)
def test_numbers_that_were_not_measured(text):
    found = tables.value_of(
        text, *[(g := only(benchmark("kernelcore", 1.0)))["kernelcore"], g], {}
    )
    assert found == (None, False)


def rows_of_targets(*targets):
    found = groups(benchmark("kernelcore", 1.0, targets=targets), benchmark("scipy", 2.0))
    table = tables.target_table(found, {})
    return [row[2:6] for row in table.rows], table.emphasized


def test_what_became_of_targets():
    rows, emphasized = rows_of_targets(
        target("speed >= 2 x scipy", reason="once it was missed"),
        target("speed >= 3 x scipy", reason="the machine is small"),
        target("speed >= 4 x scipy"),
        target("speed >= 1 x lapjv"),
    )
    assert rows == [
        ("speed >= 2 x scipy", "met", "", "2"),
        ("speed >= 3 x scipy", "missed", "the machine is small", "2"),
        ("speed >= 4 x scipy", "missed", "not explained", "2"),
        ("speed >= 1 x lapjv", "not measured here", "", "not measured here"),
    ]
    assert emphasized == {(1, 3), (2, 3)}


@pytest.mark.parametrize(
    "text", ["fast", "speed > 2 x scipy", "speed >= x scipy", "speed >= 2 scipy"]
)
def test_a_target_is_a_number_and_a_bound(text):
    with pytest.raises(ValueError, match="no target"):
        target(text)


def test_peers_stand_in_times_of_ours_and_absent_ones_are_said():
    rows = tables.peer_rows(groups(benchmark("kernelcore", 2.0, 1.0), benchmark("scipy", 8.0)))
    assert [row[2:] for row in rows] == [
        ("kernelcore", "1", "1", "1", "2"),
        ("scipy", "1", "8", "4", "1"),
        ("lapjv", "", "not measured here", "", ""),
    ]


def test_our_own_time_may_be_absent():
    rows = [row[2:5] for row in tables.peer_rows(groups(benchmark("scipy", 8.0)))]
    assert rows == [("kernelcore", "", "not measured here"), ("scipy", "1", "8")]


def test_summary_has_the_groups_of_the_readme(monkeypatch):
    found = groups(
        benchmark("kernelcore", 0.01),
        benchmark("scipy", 0.02),
        benchmark("kernelcore, 2 threads", 0.005),
        benchmark("kernelcore", 1.0, group="searching, 1 thread"),
    )
    front = {"sorting, 1 thread": "ten rows sorted", "merging, 1 thread": "rows merged"}
    monkeypatch.setattr(tables, "FRONT", front)
    assert tables.summary_table(found, "").rows == (
        ("ten rows sorted", "10 ms", "scipy 2, lapjv not measured here"),
        ("rows merged", "not measured here", ""),
    )


def test_groups_of_the_readme_are_stored():
    stored = tables.groups_of(results.load("speed"))
    if not stored:
        pytest.skip("no times are stored here")
    for name in tables.FRONT:
        assert tables.first_of(stored.get(name, {})) is not None, name
        assert tables.peers_of(stored[name]), name


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0005352, "0.535 ms"), (0.728, "728 ms"), (3.349, "3.3 s")]
)
def test_times_have_units(seconds, text):
    assert tables.time_text(seconds) == text


def test_readme_says_what_is_slower():
    entries = [benchmark("kernelcore", 1.0), benchmark("scipy", 0.5)]
    text = report.speed_summary({"benchmarks": entries})
    assert "Comparisons in which a peer is faster: sorting, 1 thread (scipy)." in text


def curve(way, *seconds):
    return benchmark(way, *seconds, group="growth of sorting, rows, 1 thread", exponent=1)


def test_exponent_is_fitted_within_a_pass():
    """Passes of t, t^2 and t^3 on a machine that is 10 and 100 times slower."""
    group = only(curve("8", 8.0, 640.0, 51200.0), curve("16", 16.0, 2560.0, 409600.0))
    assert tables.exponent(group) == pytest.approx(2.0, rel=1e-12)
    (row,) = tables.growth_table({"": group}).rows
    assert row == ("sorting, rows", "10 rows", "8 to 16", "8 to 16", "2.00", "1")


def test_growth_is_drawn_the_same_every_time(tmp_path):
    pytest.importorskip("matplotlib")
    drawn = tables.curves(groups(curve("1", 1.0), curve("2", 2.0)))
    for name in ("one.svg", "two.svg"):
        growth_plot.draw(drawn, tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_ranks_on_paper():
    name = "ranks streamed from embeddings, 2 threads"

    def text(size):
        found = groups(benchmark("kernelcore", 1.0, group=name, size=size))
        return report.on_paper(found)

    # 400,000^2 * 512 multiply-adds at 3.6e12 a second
    assert "0.0 hours" in text(3.6e12)
    assert "2.3 hours" in text(1e10)
    assert "640 GB" in text(1e10)
    assert "not measured here" in report.on_paper({})


def test_page_of_an_empty_machine():
    text = report.page({}, {}, ["bench/bench_sorting.py::test_sorting"])
    assert "Not measured here: `bench/bench_sorting.py::test_sorting`." in text
    assert "Limits: not measured here." in text
    assert "number of threads.\n\nNone.\n" in text


def test_page_has_every_section():
    speed = {"benchmarks": [benchmark("kernelcore", 1.0), benchmark("scipy", 0.5)]}
    text = report.page(speed, {}, ["bench/bench_sorting.py::test_sorting"])
    assert "All benchmarks were run." in text
    slower = text.partition("## Slower than")[2].partition("\n## ")[0]
    assert "| sorting, 1 thread | 10 rows | scipy | 1 | 0.5 | 0.5 |" in slower


@pytest.mark.parametrize(
    ("value", "text"), [(2.134, "2.13"), (1234.0, "1,234"), (1_234_000.0, "1.23 million")]
)
def test_numbers(value, text):
    assert tables.number_text(value) == text
