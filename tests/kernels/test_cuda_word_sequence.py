import re
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcore._extras import MissingExtraError
from kernelcore.captions import EncodedCaptions
from kernelcore.kernels._soft_matches import as_symbols
from kernelcore.kernels.cuda import word_sequence
from kernelcore.kernels.cuda.word_sequence import (
    WORDS_READ,
    Columns,
    Rows,
    column_tiles,
    row_tiles,
    table_lines,
)

FACADE = sys.modules["kernelcore.kernels.cuda.word_sequence"]
TEXTS = ["a b", "b a"]


def test_without_numba(monkeypatch):
    for module in ("numba", "numba.cuda"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"kernelcore\[jit\].*word_sequence does"):
        word_sequence(TEXTS)


def test_without_a_gpu(monkeypatch):
    cuda = pytest.importorskip("numba.cuda", reason="CUDA kernels need Numba: extra jit")
    monkeypatch.setattr(cuda, "is_available", lambda: False)
    monkeypatch.setattr(cuda, "cuda_error", lambda: None)
    elsewhere = "kernelcore.kernels.word_sequence does the same work on the CPU"
    with pytest.raises(RuntimeError, match=f"an NVIDIA GPU.*; {elsewhere}"):
        word_sequence(TEXTS)


LANES = 4
images = st.lists(
    st.lists(st.lists(st.integers(-2, 5), max_size=7), max_size=4), min_size=1, max_size=9
)


def symbols_of(side):
    captions = EncodedCaptions.from_lists(side, n_words=6)
    symbols, _, n_symbols = as_symbols(captions, captions)
    return symbols, n_symbols


def captions_of(symbols):
    words, caption_offsets, image_offsets = symbols
    return [
        [
            words[caption_offsets[c] : caption_offsets[c + 1]].tolist()
            for c in range(image_offsets[image], image_offsets[image + 1])
        ]
        for image in range(len(image_offsets) - 1)
    ]


@given(side=images, data=st.data())
def test_rows_and_columns_hold_the_captions_of_their_images(side, data):
    symbols, n_symbols = symbols_of(side)
    start = data.draw(st.integers(0, len(side) - 1))
    some = slice(start, data.draw(st.integers(start + 1, len(side))))
    expected = captions_of(symbols)[some]

    columns = Columns.of(symbols, some, n_symbols)
    read = captions_of((columns.words, columns.caption_offsets, columns.image_offsets))
    assert [[columns.symbols[c].tolist() for c in image] for image in read] == expected
    assert (columns.numbers[columns.symbols] == np.arange(len(columns.symbols))).all()
    assert (columns.numbers >= 0).sum() == len(columns.symbols)

    rows = Rows.of(symbols, some, LANES)
    flat = [caption for image in expected for caption in image]
    owners = [number for number, image in enumerate(expected) for _ in image]
    assert sorted(rows.lane_of) == list(range(len(flat)))
    heights = np.diff(rows.first_lines)
    assert (heights % WORDS_READ == 0).all()
    assert (np.diff(heights) >= 0).all()
    for caption, place, owner in zip(flat, rows.lane_of, owners, strict=True):
        group = slice(*rows.first_lines[place // LANES : place // LANES + 2])
        lane = rows.symbols[group, place % LANES].tolist()
        assert lane == caption + [-1] * (len(lane) - len(caption))
        assert rows.image_of[place] == owner
    n_filled = sum(map(len, flat))
    assert (rows.symbols >= 0).sum() == n_filled


@given(X=images, Y=images, limits=st.tuples(*[st.integers(1, 200)] * 3))
def test_tiles_cover_the_matrix_within_the_memory(X, Y, limits):
    most_captions, most_sums, most_lines = limits
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FACADE, "_MOST_ROW_CAPTIONS", most_captions)
        patch.setattr(FACADE, "_MOST_SUMS", most_sums)
        patch.setattr(FACADE, "_MOST_LINES", most_lines)
        (rows_of, n_symbols), (columns_of, _) = symbols_of(X), symbols_of(Y)
        n_others = len(np.unique(columns_of[0]))
        seen = np.zeros((len(X), len(Y)), int)
        for some in row_tiles(rows_of, n_others, LANES):
            rows = Rows.of(rows_of, some, LANES)
            assert len(rows.lane_of) <= most_captions or some.stop == some.start + 1
            for others in column_tiles(columns_of, 0, n_others, rows):
                seen[some, others] += 1
                columns = Columns.of(columns_of, others, n_symbols + 9)
                n_rows, n_columns = some.stop - some.start, others.stop - others.start
                if n_columns > 1:
                    assert max(len(rows.lane_of), n_rows) * n_columns <= most_sums
                if n_rows > 1 or n_columns > 1:
                    assert len(rows.symbols) * len(columns.symbols) <= most_lines
                elif len(rows.symbols) * len(columns.symbols) > most_lines:
                    with pytest.raises(ValueError, match="X and Y must hold shorter texts"):
                        table_lines(rows, columns)
        assert (seen == 1).all()


def test_what_a_gpu_runs(compile_for_gpu):
    """Types are as meant: no float64 before captions are added up; sums stay in registers."""
    from numba import boolean, float32, float64, int32, int64, types

    from kernelcore.kernels.cuda import _sequence_device as device

    def struct(kind, *fields):
        return types.NamedTuple(fields, kind)

    words = int64[::1]
    rows = struct(Rows, int32[:, ::1], words, words, words, words)
    columns = struct(Columns, words, words, words, words, words)
    sparse = (words, int32[::1], float32[::1], boolean)
    dense = (int64, float32[:, ::1], boolean)
    similarity = struct(device.Similarity, float32[::1], *dense, *sparse)
    task = struct(device.Task, float32, boolean, int64, float32[:, :, :, :, ::1])
    selves = struct(device.SelfSimilarities, float64[::1], float64[::1], boolean)
    table, sums = float32[::1], float32[:, ::1]
    filling, comparing = (rows, columns, similarity, table), (rows, columns, table, task, sums)
    kernels, no_decay = (device.sequence_kernels(2, decays, 32) for decays in (True, False))
    for kernel, signature in (
        (kernels.lay_out, filling),
        (kernels.add_sparse, filling),
        (kernels.compare, comparing),
        (no_decay.compare, comparing),
    ):
        code = compile_for_gpu(kernel, signature, most_registers=96)
        assert not re.search(r"\.f64\b", code)
    code = compile_for_gpu(kernels.fold, (rows, sums, selves, sums), most_registers=96)
    assert "add.f64" in code
