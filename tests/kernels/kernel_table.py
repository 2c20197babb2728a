"""Table of all kernels: samples, references, and what each takes and refuses."""

import inspect
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from kernelcore import kernels
from kernelcore.captions import EncodedCaptions
from kernelcore.images import SpatialHistograms
from kernelcore.reference import kernels as reference

try:
    import numba
except ImportError:
    numba = None

N_WORDS, N_BINS = 12, 70
RNG = np.random.default_rng(0)
WEIGHTS = RNG.uniform(0.2, 2.0, N_WORDS)
UNKNOWN = 1.5
WEIGHED = {"word_weights": WEIGHTS, "unknown_weight": UNKNOWN}
HALF = np.triu(RNG.random((N_WORDS, N_WORDS)) * (RNG.random((N_WORDS, N_WORDS)) < 0.3), 1)
KAPPA = (HALF + HALF.T + np.eye(N_WORDS)).astype(np.float32)
FEW = np.eye(N_WORDS, dtype=np.float32)  # so few entries that a sparse one stays sparse
FEW[0, 1] = FEW[1, 0] = -0.25
PARTS = 3
EPS = {kind: float(np.finfo(kind).eps) for kind in (np.float32, np.float64)}

Errors = Mapping[type[Exception], Sequence[Any]]


@dataclass(frozen=True)
class Kernel:
    """A kernel, how to draw its samples, and what it takes and refuses."""

    call: Callable[..., Any]
    draw: Callable[[np.random.Generator, int], Any]
    expected: Callable[[Any, Any], Any]
    rtol: float
    bad: Errors  # samples
    encode: Callable[[Any], Any] | None = None
    dtype: Any = np.float64  # of the result
    unlike: Errors = field(default_factory=dict)  # samples that do not go with the drawn ones
    layouts: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    odd: Mapping[str, Errors] = field(default_factory=dict)  # values of options
    arrays: Mapping[str, Any] = field(default_factory=dict)  # options that `out` may overlap
    parts: tuple[int, ...] = ()
    same_bits: bool = True  # of one input, and of two that are equal

    @property
    def function(self) -> Any:
        return getattr(self.call, "func", self.call)

    @property
    def options(self) -> Any:
        return inspect.signature(self.function).parameters


# Histograms, dense and sparse.


def draw_histograms(dtype: Any, rng: np.random.Generator, n: int) -> Any:
    scale = {np.uint8: 200, np.uint16: 9_000, np.uint32: 10**6}.get(dtype, 1)
    X = rng.gamma(0.3, size=(n, N_BINS)) * scale * (rng.random((n, N_BINS)) < 0.7)
    top = np.iinfo(dtype).max if np.dtype(dtype).kind == "u" else np.inf
    return np.minimum(X, top).astype(dtype)


def draw_few_large(rng: np.random.Generator, n: int) -> Any:
    """Counts of which so few exceed a byte that they are split."""
    X = rng.integers(0, 200, (n, N_BINS)).astype(np.uint16)
    X[::6, 0] = np.resize([60_000, 254, 256, 255], len(X[::6]))
    return X


def intersections(X: Any, Y: Any, similarity: str = "sum") -> Any:
    dense = [A.toarray() if sp.issparse(A) else A for A in (X, Y)]
    wide = (A if A.dtype.kind == "u" else A.astype(np.float64) for A in dense)
    return reference.histogram_intersection(*wide, similarity)


LAYOUTS = {
    "fortran": np.asfortranarray,
    "strided": lambda A: np.repeat(A, 2, axis=-1)[..., ::2],
    "byte-swapped": lambda A: A.astype(A.dtype.newbyteorder()),
}
BAD_MATRICES = {
    ValueError: [
        *([1.0, 2.0], [[1.0], [1.0, 2.0]], [[np.nan]], [[np.inf]], [[-np.inf]]),
        *([[1, -4]], [[2**53 + 1]], np.ones((1, 1, 1)), np.full((2, 2), -0.5, np.float32)),
        np.ma.masked_all((2, 2)),
    ],
    TypeError: [[["a"]], [[1j]], [[None]], {"a": 1}],
}


def damaged(part: str, at: int, value: float) -> Any:
    rows = sp.csr_array(np.eye(N_BINS))
    getattr(rows, part)[at] = value
    return rows


BAD_ROWS = {
    ValueError: [
        *(-sp.eye_array(3), sp.coo_array(np.ones(3)), sp.csr_array((2, 2**31))),
        *(damaged("data", 1, np.nan), damaged("indices", 0, N_BINS), damaged("indptr", 1, 9)),
    ],
    TypeError: [sp.eye_array(3) * 1j],
}
THREADS = {"n_threads": {ValueError: [0, -1], TypeError: [1.5, "2"]}}
KINDS = {"dtype": {TypeError: [int, np.float16, "U3", object]}}


def histograms(dtype: Any, draw: Any = None) -> Kernel:
    is_float = np.dtype(dtype).kind == "f"
    return Kernel(
        kernels.histogram_intersection, draw or partial(draw_histograms, dtype), intersections,
        rtol=70 * EPS[dtype] if is_float else 0.0, bad=BAD_MATRICES,
        dtype=dtype if is_float else np.uint64,
        unlike={
            ValueError: [np.ones((2, N_BINS + 1), dtype)], TypeError: [sp.eye_array(N_BINS)],
        },
        layouts=LAYOUTS | ({"list": np.ndarray.tolist} if dtype is np.float64 else {}),
        odd=THREADS | {"similarity": {ValueError: ["dice", None, 1]}},
        arrays={"X": np.ones((2, 4), dtype)} if is_float else {},
    )  # fmt: skip


def sparse_histograms(dtype: Any) -> Kernel:
    dense = histograms(dtype)
    formats = ("csc", "coo", "lil", "dok", "bsr", "dia")
    return Kernel(
        kernels.histogram_intersection,
        lambda rng, n: sp.csr_array(draw_histograms(dtype, rng, n)),
        intersections,
        rtol=N_BINS * EPS[np.float64] + EPS.get(dtype, 0.0),
        bad=BAD_ROWS,
        dtype=dense.dtype,
        unlike={
            ValueError: [sp.csr_array((2, N_BINS + 1), dtype=dtype)],
            TypeError: [np.eye(N_BINS)],
        },
        layouts={name: (lambda A, to=name: A.asformat(to)) for name in formats}
        | {"matrix": sp.csr_matrix},
        odd=THREADS,
    )


def ratios(of: Kernel, similarity: str) -> Kernel:
    return replace(
        of,
        call=partial(kernels.histogram_intersection, similarity=similarity),
        expected=partial(intersections, similarity=similarity),
        rtol=4 * of.rtol + 4 * EPS[np.float64],
        dtype=np.float64 if of.dtype is np.uint64 else of.dtype,
    )


# Pyramids.


def draw_pyramids(rng: np.random.Generator, n: int) -> Any:
    counts = rng.integers(0, 9, (n, 4, 5)).astype(np.uint16)
    counts[:, 0, 0] += 1
    return SpatialHistograms.from_finest(counts, 2)


def pyramids(X: Any, Y: Any) -> Any:
    return reference.spatial_pyramid(X.counts, Y.counts, X.totals, Y.totals, X.n_levels)


def both_views(X: Any, Y: Any) -> Any:
    return (pyramids(X, Y) + pyramids(X, Y.mirrored())) / 2


def spatial_pyramid(expected: Callable[..., Any], **options: Any) -> Kernel:
    return Kernel(
        partial(kernels.spatial_pyramid, **options), draw_pyramids, expected, rtol=1e-13,
        bad={TypeError: [np.ones((2, 5, 5)), [["a"]], None]},
        unlike={ValueError: [SpatialHistograms.from_finest(np.ones((2, 4, 6), np.uint16), 2)]},
        odd=THREADS | KINDS | {
            "mirror": {TypeError: ["yes", 1]},
            "level_weights": {
                ValueError: [[1, 1, 1], [-1, 1], [np.nan, 1], [1e308] * 2],
                TypeError: [["a", "b"]],
            }
        },
        arrays={"level_weights": np.ones(2)}, same_bits=not options,
    )  # fmt: skip


# Captions.


def draw_captions(
    rng: np.random.Generator, n: int, n_words: int = N_WORDS, n_unknown: int = 3
) -> Any:
    """Images of 0 to 3 captions of 0 to 7 words, some outside the vocabulary."""
    sizes = [rng.integers(0, 8, n_captions) for n_captions in rng.integers(0, 4, n)]
    return [[rng.integers(-n_unknown, n_words, k).tolist() for k in own] for own in sizes]


def encode(images: Any, n_words: int = N_WORDS) -> Any:
    return EncodedCaptions.from_lists(images, n_words=n_words)


def bags(similarity: Callable[..., Any], X: Any, Y: Any) -> Any:
    weights = dict(enumerate(WEIGHTS)) | dict.fromkeys((-1, -2, -3), UNKNOWN)
    sides = [[Counter(w for caption in image for w in caption) for image in A] for A in (X, Y)]
    return similarity(*sides, weights)


def kappa_of(matrix: Any) -> Callable[[int, int], float]:
    def kappa(a: int, b: int) -> float:
        if a < 0 or b < 0:
            return UNKNOWN * (a == b)
        return float(matrix[a, b]) * math.sqrt(WEIGHTS[a] * WEIGHTS[b])

    return kappa


def sequences(matrix: Any, X: Any, Y: Any) -> Any:
    return reference.word_sequence(X, Y, kappa_of(matrix), normalize=True)


def components(matrix: Any, X: Any, Y: Any) -> Any:
    of_length = partial(reference.word_sequence, X, Y, kappa_of(matrix), match_decay=1.0)
    up_to = [of_length(max_length=k) for k in range(1, PARTS + 1)]
    return np.diff(np.stack(up_to, axis=-1), axis=-1, prepend=0.0)


def assignments(matrix: Any, X: Any, Y: Any, normalize: bool = True) -> Any:
    return reference.word_assignment(X, Y, kappa=kappa_of(matrix), normalize=normalize)


WORD_WEIGHTS: dict[str, Errors] = {
    "word_weights": {
        ValueError: [np.ones(3), -WEIGHTS, np.full(N_WORDS, np.nan), np.ones((N_WORDS, 1))],
        TypeError: [["a"] * N_WORDS, 1j * WEIGHTS],
    },
    "unknown_weight": {ValueError: [-1.0, np.nan, np.inf], TypeError: ["1", None]},
}
WORD_KERNEL: dict[str, Errors] = {
    "word_kernel": {
        ValueError: [
            *(np.eye(3), sp.eye_array(3), KAPPA[:3], KAPPA + np.triu(KAPPA, 1)),
            *(np.full_like(KAPPA, np.nan), FEW * 1e-30, FEW.astype(float) * 1e300),
            *(sp.csr_array(np.triu(FEW)), sp.csr_array(np.diag([np.inf] * N_WORDS))),
        ],
        TypeError: ["lin", [["a"] * N_WORDS] * N_WORDS, np.eye(N_WORDS) * 1j],
    }
}
SEQUENCE: dict[str, Errors] = {
    "max_length": {ValueError: [0, -1], TypeError: [1.5, "3"]},
    "gap_decay": {ValueError: [1.1, -0.1, np.nan], TypeError: ["no"]},
}
NORMALIZE: dict[str, Errors] = {"normalize": {TypeError: [1, "cosine", None]}}
DECAY: dict[str, Errors] = {"match_decay": {ValueError: [0, -1, np.inf], TypeError: ["a"]}}
WIDTH: Errors = {ValueError: [0, -1, np.nan], TypeError: ["a"]}
TRAINING = [[[w for w in c if w >= 0] for c in image] for image in draw_captions(RNG, 15)]


def captions(
    function: Callable[..., Any],
    expected: Callable[..., Any],
    rtol: float,
    *odd: Any,
    options: Mapping[str, Any] = WEIGHED,
    **more: Any,
) -> Kernel:
    arrays = {name: value for name, value in options.items() if isinstance(value, np.ndarray)}
    refused: dict[str, Errors] = THREADS | KINDS
    for each in odd:
        refused = refused | each
    return Kernel(
        partial(function, **options), draw_captions, expected, rtol,
        bad={TypeError: [[3], "a b", [["a"], [1]], [[0]], object(), np.ones((2, 2)), None]},
        encode=encode, unlike={ValueError: [encode([[[0]]], N_WORDS + 1)], TypeError: [["a"]]},
        odd=refused, arrays=arrays, **more,
    )  # fmt: skip


def softly(
    function: Any, expected: Any, rtol: float, *odd: Any, **more: Any
) -> dict[str, Kernel]:
    """Rows of a kernel with exact matches, a dense and a sparse word kernel."""
    rows = {}
    for kind, matrix, given in (
        ("exact", np.eye(N_WORDS), {}),
        ("dense", KAPPA, {"word_kernel": KAPPA}),
        ("sparse", FEW, {"word_kernel": sp.csr_array(FEW)}),
    ):
        rows[f"{function.__name__}-{kind}"] = captions(
            function, partial(expected, matrix), rtol, *(WORD_WEIGHTS, WORD_KERNEL, *odd),
            options={**WEIGHED, **given}, same_bits=kind == "exact", **more,
        )  # fmt: skip
    return rows


def compile_minima() -> Any:
    @numba.njit
    def minima(x: Any, y: Any) -> float:
        total = 0.0
        for k in range(len(x)):
            total += min(x[k], y[k])
        return total

    return kernels.custom(minima)


SOFT_RTOL = 2 * PARTS * 24 * EPS[np.float32]
KERNELS: dict[str, Kernel] = {
    **{
        f"histogram_intersection-{np.dtype(kind)}": histograms(kind)
        for kind in (np.float32, np.float64, np.uint8, np.uint16, np.uint32)
    },
    **{
        f"histogram_intersection-sparse-{np.dtype(kind)}": sparse_histograms(kind)
        for kind in (np.float32, np.float64, np.uint8, np.uint32)
    },
    "histogram_intersection-few-large": histograms(np.uint16, draw_few_large),
    **{
        f"histogram_intersection-{similarity}-{name}": ratios(of, similarity)
        for similarity in ("jaccard", "bray_curtis")
        for name, of in {
            **{str(np.dtype(kind)): histograms(kind) for kind in (np.float32, np.float64)},
            **{
                f"sparse-{kind.__name__}": sparse_histograms(kind)
                for kind in (np.float32, np.uint8)
            },
            "few-large": histograms(np.uint16, draw_few_large),
        }.items()
    },
    "spatial_pyramid": spatial_pyramid(pyramids),
    "spatial_pyramid-mirror": spatial_pyramid(both_views, mirror=True),
    "bag_of_words": captions(
        kernels.bag_of_words, partial(bags, reference.bag_of_words), 1e-13, WORD_WEIGHTS,
    ),
    "bag_of_words_f1": captions(
        kernels.bag_of_words_f1, partial(bags, reference.bag_of_words_f1), 1e-13, WORD_WEIGHTS,
    ),
    **softly(kernels.word_sequence, sequences, SOFT_RTOL, SEQUENCE, NORMALIZE, DECAY),
    **softly(kernels.word_sequence_components, components, SOFT_RTOL, SEQUENCE, parts=(PARTS,)),
    **softly(kernels.word_assignment, assignments, 1e-5, NORMALIZE),
    "word_assignment-raw": captions(
        kernels.word_assignment, partial(assignments, KAPPA, normalize=False), 1e-5,
        options={**WEIGHED, "word_kernel": KAPPA, "normalize": False}, same_bits=False,
    ),
    "tag_rank": captions(
        kernels.tag_rank, lambda X, Y: reference.tag_rank(X, Y, TRAINING), 1e-5,
        {
            **dict.fromkeys(("absolute_width", "relative_width", "width_factor"), WIDTH),
            "training": {TypeError: [[3], "a"], ValueError: [encode([[[0], [1, 0]]], 5)]},
        },
        options={"training": kernels.prepare(encode(TRAINING))}, same_bits=False,
    )
}  # fmt: skip
if numba is not None:
    KERNELS["custom"] = Kernel(
        compile_minima(), partial(draw_histograms, np.float64), intersections, rtol=1e-13,
        bad={
            ValueError: [np.ones(3), np.ones((1, 1, 1)), [[1], [[2]]]],
            TypeError: [["word"], np.ones((2, 2), complex)],
        },
        unlike={ValueError: [np.ones((2, N_BINS + 1))], TypeError: [encode([[[0]]])]},
        layouts=LAYOUTS | {"list": np.ndarray.tolist}, odd=THREADS | KINDS,
        arrays={"X": np.ones((2, 4))},
    )  # fmt: skip
