"""Histogram intersections and spatial pyramids against their definitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from fuzz.agree import close, finite, same
from fuzz.draw import (
    Array,
    Rng,
    chance,
    instruction_set,
    laid_out,
    non_negative,
    output,
    pick,
    size,
    threads,
)
from fuzz.target import Target
from kernelcore.images.pyramid import SpatialHistograms, n_cells
from kernelcore.kcca.gram_schmidt import KernelColumns
from kernelcore.kernels import gram_blocks, histogram_intersection, spatial_pyramid
from kernelcore.reference import kernels as by_definition
from kernelcore.reference import kernels as pyramid_by_definition

_ROUNDINGS = 70  # of a block's bins, as the header says
_AGAINST = "against the definition"
_TYPES = (np.float32, np.float64, np.uint8, np.uint16, np.uint32)


def _check_intersection(K: Array, left: Array, right: Array, n_roundings: int) -> None:
    """Compare with the definition, summed exactly for counts and in float64 else."""
    if left.dtype.kind == right.dtype.kind == "u":
        common = np.result_type(left, right)
        expected = by_definition.histogram_intersection(
            left.astype(common), right.astype(common)
        )
        same(K, expected.astype(np.uint64), _AGAINST)
        return
    wide = [side.astype(np.longdouble) for side in (left, right)]
    expected = by_definition.histogram_intersection(*wide)
    info = np.finfo(K.dtype)
    tiny = float(info.smallest_subnormal) * (left.shape[1] + 1)
    close(K, expected, _AGAINST, relative=n_roundings * float(info.eps), absolute=tiny)


def _dense(dtype: Any) -> Target:
    def run(rng: Rng, folder: Path) -> None:
        d = size(rng, 5000)
        most = 20 if d > 300 or chance(rng, 0.9) else 140
        m, n = size(rng, most), size(rng, most)
        left = non_negative(rng, (m, d), dtype)
        right = non_negative(rng, (n, d), dtype)
        if chance(rng, 0.1):
            right = non_negative(
                rng, (n, d), pick(rng, (np.float32, np.float64, np.uint8, np.uint32, np.int16))
            )
        symmetric = chance(rng, 0.4)
        if symmetric:
            right = left
        odd = laid_out(rng, left, folder), laid_out(rng, right, folder)
        with instruction_set(rng) as isa:
            plain = histogram_intersection(
                left, None if symmetric else right.copy(), n_threads=1
            )
        out = output(rng, plain.shape, plain.dtype)
        with instruction_set(rng) as other:
            n_threads = threads(rng)
            K = histogram_intersection(
                odd[0], None if symmetric else odd[1], out=out, n_threads=n_threads
            )
        same(K, plain, f"{other}, {n_threads} threads, against {isa}, 1 thread")
        if out is not None and K is not out:
            raise AssertionError("out is not what is returned")
        _check_intersection(K, left, right, _ROUNDINGS)

    return Target(f"kernels.histogram_intersection.{np.dtype(dtype).name}", "compiled", run)


def _as_sparse(rng: Rng, dense: Array) -> Any:
    """Return a sparse matrix that sums to `dense`: any format, unsorted, with duplicates."""
    stored = dense != 0 if chance(rng, 0.5) else np.ones(dense.shape, bool)
    rows, cols = np.nonzero(stored)
    values = dense[rows, cols]
    order = rng.permutation(len(rows))
    if values.dtype.kind == "u" and chance(rng, 0.5):  # halves of counts, twice
        half = values // 2
        rows, cols = np.tile(rows, 2), np.tile(cols, 2)
        values = np.concatenate([half, values - half]).astype(dense.dtype)
        order = rng.permutation(len(rows))
    coo = sp.coo_array((values[order], (rows[order], cols[order])), shape=dense.shape)
    form = pick(rng, ("csr", "csc", "coo", "lil", "csr_matrix", "wide indices"))
    if form == "csr_matrix":
        return sp.csr_matrix(coo)
    if form == "wide indices":
        csr = coo.tocsr()
        csr.indices, csr.indptr = csr.indices.astype(np.int64), csr.indptr.astype(np.int64)
        return csr
    return getattr(coo, f"to{form}")()


def _sparse(dtype: Any) -> Target:
    def run(rng: Rng, folder: Path) -> None:
        d = size(rng, 2000)
        m, n = size(rng, 40), size(rng, 40)
        density = pick(rng, (0.0, 0.01, 0.1, 0.5, 1.0))
        left, right = (
            np.where(rng.random((k, d)) < density, non_negative(rng, (k, d), dtype), 0).astype(
                dtype
            )
            for k in (m, n)
        )
        symmetric = chance(rng, 0.4)
        if symmetric:
            right = left
        first = _as_sparse(rng, left)
        second = None if symmetric else _as_sparse(rng, right)
        with instruction_set(rng):
            plain = histogram_intersection(first, second, n_threads=1)
        out = output(rng, plain.shape, plain.dtype)
        with instruction_set(rng):
            K = histogram_intersection(first, second, out=out, n_threads=threads(rng))
        same(K, plain, "two instruction sets, some threads and 1")
        _check_intersection(K, left, right, d + 5)  # added one by one

    name = f"kernels.histogram_intersection.sparse_{np.dtype(dtype).name}"
    return Target(name, "compiled", run)


def _pyramids(rng: Rng, n: int, n_levels: int, n_words: int, folder: Path) -> SpatialHistograms:
    finest = rng.integers(0, pick(rng, (2, 5, 300)), (n, 4 ** (n_levels - 1), n_words))
    if chance(rng, 0.2):
        finest[:] = finest[:1]
    if chance(rng, 0.1):
        finest *= 2000  # totals beyond 16 bits
    finest[:, 0, 0] += finest.sum(axis=(1, 2)) == 0  # no image without points
    if chance(rng, 0.5) and n:  # one size of image
        totals = finest.sum(axis=(1, 2))
        finest[:, -1, -1] += totals.max() - totals
    made = SpatialHistograms.from_finest(finest, n_levels)
    counts, totals = (laid_out(rng, array, folder) for array in (made.counts, made.totals))
    return SpatialHistograms(counts, totals, n_levels)


def _spatial_pyramid(rng: Rng, folder: Path) -> None:
    n_levels = int(rng.integers(1, 4))
    n_words = size(rng, 300 // 4 ** (n_levels - 1), 1)
    X = _pyramids(rng, size(rng, 12), n_levels, n_words, folder)
    symmetric = chance(rng, 0.5)
    Y = X if symmetric else _pyramids(rng, size(rng, 12), n_levels, n_words, folder)
    dtype = pick(rng, (np.float32, np.float64))
    mirror = chance(rng, 0.3)
    weights = None if chance(rng, 0.6) else rng.random(n_levels) * 10.0 ** rng.integers(-3, 3)
    options: dict[str, Any] = {"level_weights": weights, "mirror": mirror, "dtype": dtype}
    given = None if symmetric else Y
    with instruction_set(rng):
        plain = spatial_pyramid(X, given, n_threads=1, **options)
    out = output(rng, plain.shape, dtype)
    with instruction_set(rng):
        K = spatial_pyramid(X, given, n_threads=threads(rng), out=out, **options)
    same(K, plain, "two instruction sets, some threads and 1")

    def definition(other: SpatialHistograms) -> Array:
        if weights is None:
            return pyramid_by_definition.spatial_pyramid(
                X.counts, other.counts, X.totals, other.totals, n_levels
            )
        total = np.zeros(plain.shape)
        for level, weight in enumerate(weights):
            cells = slice(n_cells(level), n_cells(level + 1))
            sides = [
                (side.counts[:, cells] / side.totals[:, None, None]).reshape(
                    len(side), 4**level * n_words
                )
                for side in (X, other)
            ]
            total += weight * by_definition.histogram_intersection(*sides)
        return total

    expected = definition(Y)
    if mirror:
        expected = (expected + definition(Y.mirrored())) / 2
    # A fraction is rounded once, sums of blocks and segments as in the header; the
    # definition's differences of levels may cancel.
    info = np.finfo(dtype)
    bound = (_ROUNDINGS + 2 + 2 * n_levels) * float(info.eps)
    largest = 1.0 if weights is None else float(weights.sum())
    close(K, expected, _AGAINST, relative=bound, absolute=1e-14 * largest)


def _columns(rng: Rng, folder: Path) -> None:
    """Compare columns on demand and tiles with the whole matrix, bit for bit."""
    n, d = size(rng, 90, 1), size(rng, 300, 1)
    dtype = pick(rng, (np.float32, np.float64, np.uint8, np.uint16))
    X = laid_out(rng, non_negative(rng, (n, d), dtype), folder)
    whole = histogram_intersection(X)
    columns = KernelColumns.of(histogram_intersection, X)
    where = rng.integers(0, n, size(rng, 70))
    same(columns.columns(where), whole[:, where].astype(columns.diagonal.dtype), "columns")
    same(columns.diagonal, whole.diagonal().astype(columns.diagonal.dtype), "diagonal")
    tiled = np.zeros_like(whole)
    for block in gram_blocks(histogram_intersection, X, block_size=size(rng, 100, 1)):
        tiled[block.rows, block.columns] = block.values
        tiled[block.columns, block.rows] = np.asarray(block.values).T
    same(tiled, whole, "tiles")


def _large_values(rng: Rng, folder: Path) -> None:
    """Values so large that a sum may overflow: a refusal or a finite answer."""
    dtype = pick(rng, (np.float32, np.float64))
    shape = size(rng, 5, 1), size(rng, 40, 1)
    X = np.full(shape, np.finfo(dtype).max, dtype) * dtype(pick(rng, (1, 0.5, 1e-3)))
    try:
        K = histogram_intersection(laid_out(rng, X, folder))
    except ValueError:
        return
    finite(K, "histogram_intersection")


TARGETS = (
    *(_dense(dtype) for dtype in _TYPES),
    *(_sparse(dtype) for dtype in _TYPES),
    Target("kernels.histogram_intersection.large_values", "compiled", _large_values),
    Target("kernels.spatial_pyramid", "compiled", _spatial_pyramid),
    Target("kernels.columns", "compiled", _columns),
)
