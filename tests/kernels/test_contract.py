"""The contract of all kernels: tests that every row of the table passes."""

import inspect
import math
from typing import Any

import numpy as np
import pytest
from kernel_table import EPS, KERNELS, LAYOUTS, Kernel, draw_pyramids, encode
from refusals import refuses

from kernelcore import kernels
from kernelcore.captions import EncodedCaptions
from kernelcore.kernels import gram_blocks, prepare


def take(samples: Any, where: Any) -> Any:
    if isinstance(samples, list):
        return [samples[i] for i in where]
    return samples.select(where) if hasattr(samples, "select") else samples[where]


@pytest.fixture(params=KERNELS)
def kernel(request: pytest.FixtureRequest) -> Kernel:
    return KERNELS[request.param]


def drawn(kernel: Kernel, n: int, seed: int = 1) -> tuple[Any, Any]:
    """Samples as the reference takes them, and as the kernel does."""
    samples = kernel.draw(np.random.default_rng(seed), n)
    return samples, kernel.encode(samples) if kernel.encode else samples


def twin(kernel: Kernel, n: int) -> Any:
    """Equal samples in other memory."""
    return drawn(kernel, n)[1]


def test_every_function_that_writes_into_out_has_a_row() -> None:
    exported = {name: getattr(kernels, name) for name in kernels.__all__}
    functions = {name: own for name, own in exported.items() if inspect.isfunction(own)}
    parameters = {name: inspect.signature(own).parameters for name, own in functions.items()}
    writers = {name for name, own in parameters.items() if "out" in own}
    assert writers == {name.partition("-")[0] for name in KERNELS} - {"custom"}


@pytest.mark.parametrize(("m", "n"), [(1, 1), (3, 5), (17, 6), (0, 3), (3, 0), (0, 0)])
def test_equals_the_reference(kernel: Kernel, isa: str, m: int, n: int) -> None:
    (left, X), (right, Y) = drawn(kernel, m, 2), drawn(kernel, n, 3)
    K = kernel.call(X, Y)
    assert K.shape == (m, n, *kernel.parts)
    assert K.dtype == kernel.dtype
    expected = np.reshape(kernel.expected(left, right), K.shape)
    np.testing.assert_allclose(K, expected, rtol=kernel.rtol, atol=kernel.rtol / 100)
    if "dtype" in kernel.options:
        single = kernel.call(X, Y, dtype=np.float32)
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, K, rtol=EPS[np.float32], atol=1e-40)


@pytest.mark.parametrize("n", [0, 1, 5, 66, 131])
def test_one_input_is_compared_with_itself(kernel: Kernel, isa: str, n: int) -> None:
    _, X = drawn(kernel, n)
    K = kernel.call(X)
    np.testing.assert_array_equal(K, np.swapaxes(K, 0, 1))
    np.testing.assert_array_equal(K, kernel.call(X, X))
    whole = kernel.call(X, twin(kernel, n))
    if not kernel.same_bits:
        np.testing.assert_allclose(K, whole, rtol=kernel.rtol, atol=kernel.rtol)
    else:
        assert K.tobytes() == whole.tobytes()


def test_threads_change_no_bit(kernel: Kernel, isa: str) -> None:
    (_, X), (_, Y) = drawn(kernel, 300), drawn(kernel, 70, 2)
    for second in (None, Y):
        found = {kernel.call(X, second, n_threads=n).tobytes() for n in (1, 2, 5)}
        assert len(found) == 1


def test_values_depend_on_their_pair_alone(kernel: Kernel) -> None:
    """Samples on either side of the borders of tiles, and tiles of `gram_blocks`."""
    _, X = drawn(kernel, 300)
    K = kernel.call(X)
    some = [0, 31, 32, 63, 64, 65, 127, 128, 255, 256, 299]
    near = {"rtol": 4 * max(kernel.rtol, EPS[np.float64]), "atol": kernel.rtol / 100}
    np.testing.assert_allclose(kernel.call(take(X, some), X), K[some], **near)
    if not kernel.parts:
        for rows, columns, values in gram_blocks(kernel.call, X, block_size=170):
            np.testing.assert_allclose(values, K[rows, columns], **near)
            assert values.dtype == K.dtype


def test_prepared_samples_give_the_same_bits(kernel: Kernel) -> None:
    (_, X), (_, Y) = drawn(kernel, 20), drawn(kernel, 7, 2)
    held_X, held_Y = prepare(X), prepare(Y)
    for second, held in ((None, None), (Y, held_Y), (X, held_X)):
        expected = kernel.call(X, second)
        for left, right in ((held_X, held), (held_X, second), (X, held)):
            found = kernel.call(left, right)
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)
    part = held_X.select([5, 2, 2])
    same = take(X, [5, 2, 2])
    np.testing.assert_array_equal(kernel.call(part), kernel.call(same))
    np.testing.assert_array_equal(kernel.call(part, held_Y), kernel.call(same, Y))


def test_layouts_and_formats_give_the_same_bits(kernel: Kernel) -> None:
    (_, X), (_, Y) = drawn(kernel, 9), drawn(kernel, 4, 2)
    expected = kernel.call(X, Y)
    for change in kernel.layouts.values():
        changed = change(X)
        if isinstance(changed, np.ndarray):
            changed.flags.writeable = False
        np.testing.assert_array_equal(kernel.call(changed, Y), expected)
        np.testing.assert_array_equal(kernel.call(Y, changed), expected.T)
    fixed = getattr(kernel.call, "keywords", {})
    for name, value in kernel.arrays.items():
        if name in fixed:
            for change in (*LAYOUTS.values(), np.ndarray.tolist):
                found = kernel.call(X, Y, **{name: change(value)})
                np.testing.assert_array_equal(found, expected)


def test_out_is_filled_or_refused(kernel: Kernel, tmp_path: Any) -> None:
    (_, X), (_, Y) = drawn(kernel, 6), drawn(kernel, 4, 2)
    for second in (Y, None):
        expected = kernel.call(X, second)
        out = np.memmap(tmp_path / "K.bin", expected.dtype, "w+", shape=expected.shape)
        out[...] = 9
        assert kernel.call(X, second, out=out) is out
        np.testing.assert_array_equal(out, expected)
    other = np.float32 if kernel.dtype == np.float64 else np.float64
    shape = expected.shape
    read_only = np.empty(shape, kernel.dtype)
    read_only.flags.writeable = False
    for error, outs in {
        TypeError: [np.empty(shape, other), [0], np.ma.masked_all(shape, kernel.dtype)],
        ValueError: [
            np.empty((6, 5, *kernel.parts), kernel.dtype),
            np.empty((36,), kernel.dtype),
            np.empty(shape, kernel.dtype, order="F"),
            np.empty((*shape[:-1], 2 * shape[-1]), kernel.dtype)[..., ::2],
            read_only,
        ],
    }.items():
        for out in outs:
            refuses(error, "out", kernel.call, X, out=out)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_out_overlaps_no_input(kernel: Kernel, kind: Any) -> None:
    _, X = drawn(kernel, 4)
    for name, value in kernel.arrays.items():
        given = value if name == "X" else value.astype(kind)
        rows = len(given) if name == "X" else 4
        shape = (rows, rows, *kernel.parts)
        memory = np.zeros(max(given.size, math.prod(shape)) + 1, given.dtype)
        for start in (0, 1):
            array = memory[start : start + given.size].reshape(given.shape)
            array[...] = given
            out = memory[: math.prod(shape)].reshape(shape)
            options = {name: array} | ({} if name == "X" else {"X": X, "dtype": kind})
            if name == "X" and out.dtype != kernel.dtype:
                continue
            refuses(ValueError, "out", kernel.call, **options, out=out)


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_progress_counts_to_the_end_and_stops_the_call(kernel: Kernel, n_threads: int) -> None:
    _, X = drawn(kernel, 300)
    seen: list[tuple[int, int]] = []
    kernel.call(X, n_threads=n_threads, progress=lambda *step: seen.append(step))
    (total,) = {total for _, total in seen}
    assert seen == sorted(seen)
    assert seen[-1][0] == total > 1
    assert [done for done, _ in seen].count(total) == 1

    for share in (0, 1):  # at the first step, and at the last

        def interrupt(done: int, total: int, share: int = share) -> None:
            if done >= share * total:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            kernel.call(X, n_threads=n_threads, progress=interrupt)


def test_bad_samples_are_named(kernel: Kernel) -> None:
    _, X = drawn(kernel, 3)
    for error, values in kernel.bad.items():
        for value in values:
            refuses(error, "X", kernel.call, value)
            if value is not None:
                refuses((TypeError, ValueError), "Y", kernel.call, X, value)
    for error, values in kernel.unlike.items():
        for other in values:
            refuses(error, "X|Y", kernel.call, X, other)
            refuses(error, "X|Y", kernel.call, other, X)


def test_odd_options_are_named(kernel: Kernel) -> None:
    _, X = drawn(kernel, 3)
    for name, errors in kernel.odd.items():
        if name not in kernel.options:
            continue
        for error, values in errors.items():
            for value in values:
                refuses(error, name, kernel.call, X, **{name: value})


def test_prepared_samples_of_another_kind_are_refused(kernel: Kernel) -> None:
    _, X = drawn(kernel, 2)
    own = type(X) if hasattr(X, "select") else np.ndarray
    for other in (np.ones((2, 3)), encode([[[0]]]), draw_pyramids(np.random.default_rng(4), 2)):
        is_custom = isinstance(kernel.function, kernels.CustomKernel)
        if type(other) is not own and not (is_custom and isinstance(other, EncodedCaptions)):
            refuses(TypeError, "X", kernel.call, prepare(other))
