"""Large problems stay where they are, and sides that 32 bits cannot number are refused."""

import json
import os
import sys

import numpy as np
import pytest
from programs import output_of
from refusals import refuses

from kernelcore import _core
from kernelcore.matching import (
    assignment,
    k_cardinality_assignments,
    linear_assignment,
    linear_assignments,
    set_similarity,
)

N = 2500  # 25 MB of float32
PROBLEMS = {
    "plain": ("C", "{}"),
    "one forbidden pair": ("forbid(C)", "{}"),
    "one forbidden pair, the greatest sum": ("forbid(C, -np.inf)", "{'maximize': True}"),
    "a threshold": ("C", "{'threshold': 0.9}"),
    "costs that have to be scaled": ("enlarge(C)", "{}"),
}


@pytest.fixture(scope="module")
def growth():
    """Bytes that a child's memory grows by, as a part of the costs, and the links."""
    script = f"""
        import json, os, resource
        import numpy as np
        from kernelcore.matching import linear_assignment

        def forbid(C, infinity=np.inf):
            C[3, 5] = infinity
            return C

        def enlarge(C):
            C *= np.finfo(np.float32).max / 2
            return C

        def peak():
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

        def measured(cost, options):
            # In a process of its own: what another problem took would hide this one's.
            read, write = os.pipe()
            if not os.fork():
                before = peak()
                rows, cols = linear_assignment(cost, **options)
                found = (peak() - before) / cost.nbytes, cols.tolist()
                with os.fdopen(write, "w") as pipe:
                    json.dump(found, pipe)
                os._exit(0)
            os.close(write)
            with os.fdopen(read) as pipe:
                found = json.load(pipe)
            os.wait()
            return found

        seen = {{}}
        C = np.empty(({N}, {N}), np.float32)
        linear_assignment(np.ones((600, 600), np.float32), threshold=2.0)
        for name, (change, options) in {PROBLEMS!r}.items():
            # Rows want different columns: the links are found at once.
            np.random.default_rng(0).random(out=C, dtype=np.float32)
            C[np.arange({N}), np.arange({N})[::-1]] -= 1
            if "maximize" in options:
                C *= -1
            seen[name] = measured(eval(change), eval(options))
        seen["tall"] = measured(np.ones((2 * {N}, {N} // 2), np.float32), {{}})
        print(json.dumps(seen))
    """
    return json.loads(output_of(script, timeout=300))


@pytest.mark.skipif(sys.platform != "linux", reason="the unit of ru_maxrss")
@pytest.mark.parametrize("name", PROBLEMS)
def test_no_large_problem_is_copied(name, growth):
    part, cols = growth[name]
    assert part < 0.3
    assert cols == list(range(N))[::-1]


@pytest.mark.skipif(sys.platform != "linux", reason="the unit of ru_maxrss")
@pytest.mark.skipif(
    "asan" in os.environ.get("LD_PRELOAD", ""), reason="the sanitizer takes memory of its own"
)
def test_a_tall_problem_is_copied_once(growth):
    part, _ = growth["tall"]
    assert part < 1.3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tall_problems_are_wide_ones_turned(dtype):
    rng = np.random.default_rng(3)
    for shape in [(300, 33), (257, 256), (65, 31), (1000, 1), (900, 300)]:
        cost = rng.random(shape).astype(dtype)
        rows, cols = linear_assignment(cost)
        turned_rows, turned_cols = linear_assignment(cost.T)
        order = np.argsort(turned_cols)
        np.testing.assert_array_equal(rows, turned_cols[order])
        np.testing.assert_array_equal(cols, turned_rows[order])


@pytest.mark.parametrize("scale", [1.0, 1e300])
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("shape", [(300, 450), (450, 300), (20, 30)])
def test_a_threshold_forbids_what_is_beyond_it(shape, maximize, scale):
    factor = -scale if maximize else scale
    options = {"threshold": -0.5 * factor, "maximize": maximize}
    cost = np.random.default_rng(4).normal(size=shape)
    rows, cols = linear_assignment(factor * cost, **options)
    assert len(rows)
    assert (cost[rows, cols] <= -0.5).all()
    forbidden = np.where(cost > -0.5, np.inf, cost)
    again = linear_assignment(factor * forbidden, **options)
    np.testing.assert_array_equal(again, (rows, cols))


REFUSED = {
    "linear_assignment": (linear_assignment, "cost"),
    "k_cardinality_assignments": (k_cardinality_assignments, "cost"),
    "linear_assignments of an array": (lambda M: linear_assignments(M[np.newaxis]), "costs"),
    "linear_assignments of a list": (lambda M: linear_assignments([[[1.0]], M]), r"costs\[1\]"),
    "set_similarity": (lambda M: set_similarity(M, [0, len(M)], [0, M.shape[1]]), "S"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_sides_beyond_the_limit_are_refused_by_name(name, monkeypatch):
    call, argument = REFUSED[name]
    monkeypatch.setattr(assignment, "_LONGEST_SIDE", 6)
    call(np.ones((6, 6)))
    for shape in [(7, 2), (2, 7)]:
        refuses(ValueError, f"^{argument} .* 6", call, np.ones(shape))


def test_the_limit_is_what_32_bits_can_number(tmp_path):
    assert np.iinfo(np.int32).max == assignment._LONGEST_SIDE
    # A file of one hole: nothing of it is read.
    wide = np.memmap(tmp_path / "costs", np.float32, "w+", shape=(1, 2**31 + 1))
    refuses(ValueError, "^cost .* 2147483647", linear_assignment, wide)
    for costs in (np.asarray(wide), np.asarray(wide.T)):
        compiled = _core.k_cardinality_assignments
        refuses(ValueError, "costs, got 2147483649", compiled, costs, False, 1, None)
