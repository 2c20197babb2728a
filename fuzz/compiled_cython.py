"""The Cython modules against their definitions."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.agree import close, finite, same
from fuzz.draw import Array, Rng, captions, chance, encoded, laid_out, pick, real, size
from fuzz.target import Target
from kernelcore.evaluation import _median_differences
from kernelcore.evaluation.caption_metrics import (
    DocumentFrequencies,
    bleu,
    cider,
    cider_d,
    rouge_l,
)
from kernelcore.evaluation.significance import _sorted_pairs
from kernelcore.kcca import partial_gram_schmidt
from kernelcore.kcca.decompositions import eigh, leading_svd, thin_svd
from kernelcore.kcca.gram_schmidt import KernelColumns
from kernelcore.lexical import ibm1, ibm2
from kernelcore.reference import evaluation as medians_by_definition
from kernelcore.reference import evaluation as metrics_by_definition
from kernelcore.reference import language as ibm_by_definition
from kernelcore.reference.matching import partial_gram_schmidt as by_definition


def _gram(rng: Rng, dtype: Any) -> Array:
    """Draw a kernel matrix: of low or full rank, of any magnitude, often with equal rows."""
    n, rank = size(rng, 140, 1), size(rng, 140, 1)
    features = rng.normal(size=(n, rank))
    if chance(rng, 0.3):
        features = rng.integers(-2, 3, (n, rank)).astype(float)
    if chance(rng, 0.3):
        features *= 10.0 ** -np.arange(rank).clip(0, 6)
    if chance(rng, 0.3):
        features = features[rng.integers(0, n, n)]
    K = (features @ features.T) * 10.0 ** pick(rng, (0, 0, 0, -12, 12))
    K = K.astype(dtype)
    gram: Array = np.tril(K) + np.tril(K, -1).T
    return gram


def _partial_gram_schmidt(rng: Rng, folder: Path) -> None:
    dtype = pick(rng, (np.float32, np.float64))
    K = _gram(rng, dtype)
    n = len(K)
    max_rank = size(rng, n, 1)
    tolerance = pick(rng, (0.0, 1e-6, 0.01, 0.5))
    options: dict[str, Any] = {"tolerance": tolerance, "max_rank": max_rank}
    found = partial_gram_schmidt(laid_out(rng, K, folder), **options)
    columns = KernelColumns(lambda where: K[:, where], K.diagonal())
    again = partial_gram_schmidt(columns, **options)
    same(again.pivots, found.pivots, "pivots of columns on demand")
    same(again.features, found.features, "features of columns on demand")
    R, pivots = found.features, found.pivots
    if R.dtype != dtype or R.shape != (n, len(found.pivots)) or len(found.pivots) > max_rank:
        raise AssertionError(f"features of {R.dtype}{R.shape} for {n} rows, {max_rank=}")
    if len(set(pivots.tolist())) != len(pivots):
        raise AssertionError(f"a pivot comes twice: {pivots}")
    finite(R, "features")
    finite(found.residual, "residual")
    # What is left of the matrix is what the residual says, up to rounding of each product.
    wide = R.astype(np.float64)
    left = K.astype(np.float64) - wide @ wide.T
    largest = float(K.diagonal().max())
    slack = 8 * (len(found.pivots) + 4) * float(np.finfo(dtype).eps) * largest
    close(left.diagonal(), found.residual, "residual", absolute=slack)
    bound = np.sqrt(np.outer(found.residual, found.residual))
    # Rounding grows by the inverse of the smallest pivot's length.
    least = float(R[pivots, np.arange(len(found.pivots))].min(initial=np.sqrt(largest)))
    slack *= 1 + np.sqrt(largest) / max(least, 1e-300)
    if not (abs(left) <= bound + slack).all():
        worst = float((abs(left) - bound).max())
        raise AssertionError(f"K - RR' exceeds its residual by {worst}, {slack} is allowed")
    _, expected, residual = by_definition(K, tolerance=tolerance, max_rank=max_rank)
    if residual.max(initial=0.0) > 1e-3 * largest and dtype is np.float64:
        gaps = _gap_of_pivots(K, expected)
        if gaps > 1e-9:  # no two candidates are as good
            same(pivots[: len(expected)], expected, "pivots")


def _gap_of_pivots(K: Array, pivots: Array) -> float:
    """Return by how much, relatively, each pivot beats the second candidate at the least."""
    residual = K.diagonal().astype(np.float64)
    left = K.astype(np.float64)
    least = 1.0
    for pivot in pivots:
        others = np.delete(residual, pivot)
        if others.size:
            least = min(least, float(1 - others.max() / residual[pivot]))
        column = left[:, pivot] / np.sqrt(residual[pivot])
        left = left - np.outer(column, column)
        residual = left.diagonal().copy()
    return least


def _eigh(rng: Rng, folder: Path) -> None:
    dtype = pick(rng, (np.float32, np.float64))
    A = _gram(rng, dtype)
    values, vectors = eigh(laid_out(rng, A, folder).astype(dtype))
    _check_eigen(A, values, vectors, dtype)


def _check_eigen(A: Array, values: Array, vectors: Array, dtype: Any) -> None:
    n = len(A)
    scale = float(abs(A).max()) * n
    slack = 30 * n * float(np.finfo(dtype).eps)
    wide, of = vectors.astype(np.float64), values.astype(np.float64)
    if (np.diff(values) > 0).any():
        raise AssertionError("eigenvalues do not descend")
    close(wide.T @ wide, np.eye(len(values)), "orthogonality", absolute=slack)
    close(A.astype(np.float64) @ wide, wide * of, "eigenvectors", absolute=slack * scale)
    expected = np.linalg.eigvalsh(A.astype(np.float64))[::-1][: len(values)]
    close(of, expected, "eigenvalues", absolute=slack * scale)


def _svd(rng: Rng, folder: Path) -> None:
    dtype = pick(rng, (np.float32, np.float64))
    largest_rank = 230 if chance(rng, 0.3) else 40  # beyond 200 it takes another way
    shape = size(rng, largest_rank + 30, 1), size(rng, largest_rank + 30, 1)
    if largest_rank == 230:
        shape = 210 + shape[0] % 40, 210 + shape[1] % 40
    A = np.clip(real(rng, shape, dtype), -1e12, 1e12)
    if chance(rng, 0.3):
        A *= 10.0 ** -np.arange(shape[1]).clip(0, 12).astype(dtype)
    k = size(rng, min(shape), 1)
    if largest_rank == 230:
        k = size(rng, min(shape) // 5, 1)
    for U, s, Vt in (thin_svd(laid_out(rng, A, folder).astype(dtype)), leading_svd(A, k)):
        slack = 60 * max(shape) * float(np.finfo(dtype).eps)
        if (np.diff(s) > 0).any() or (s < 0).any():
            raise AssertionError("singular values do not descend")
        expected = np.linalg.svd(A.astype(np.float64), compute_uv=False)
        scale = float(expected.max()) + float(np.finfo(dtype).tiny)
        close(s, expected[: len(s)], "singular values", absolute=slack * scale)
        left, right = U.astype(np.float64), Vt.astype(np.float64)
        rest = expected[len(s)] if len(s) < len(expected) else 0.0
        gap = np.linalg.norm(A - (left * s.astype(np.float64)) @ right, 2)
        close(gap, rest, "what is left", absolute=20 * slack * scale)


def _texts(rng: Rng, n: int, n_words: int, longest: int) -> list[list[int]]:
    return [rng.integers(0, n_words, size(rng, longest)).tolist() for _ in range(n)]


def _ibm(rng: Rng, folder: Path) -> None:
    n_pairs, n_words = size(rng, 30, 1), size(rng, 15, 1)
    longest = pick(rng, (3, 8, 20))
    source, target = (_texts(rng, n_pairs, n_words, longest) for _ in range(2))
    source[0], target[0] = [0, *source[0]], [0, *target[0]]  # one pair has two sides
    n_iterations = int(rng.integers(1, 5))
    n_first = int(rng.integers(0, 3))
    sides = [
        encoded(rng, [[text] for text in side], n_words, folder) for side in (source, target)
    ]
    models = {
        "IBM 1": (
            ibm1(*sides, n_iterations=n_iterations),
            ibm_by_definition.ibm1(list(zip(source, target, strict=True)), n_iterations),
        ),
        "IBM 2": (
            ibm2(*sides, n_iterations=n_iterations, n_model1_iterations=n_first),
            ibm_by_definition.ibm2(
                list(zip(source, target, strict=True)), n_iterations, n_first
            ),
        ),
    }
    for name, (model, (table, history)) in models.items():
        close(model.log_likelihood, history, f"{name} likelihood", relative=1e-9, absolute=1e-9)
        dense = model.probabilities.toarray()
        expected = np.zeros(dense.shape)
        for link, p in table.items():
            f, e = np.array([n_words if word is None else word for word in link], int)
            expected[f, e] = p
        close(dense, expected, f"{name} translations", absolute=1e-9)


def _medians(rng: Rng, folder: Path) -> None:
    n = size(rng, pick(rng, (9, 130, 2049)), 1)
    pool = rng.integers(1, 9, (2, n)) if chance(rng, 0.5) else rng.normal(size=(2, n))
    first, second = pool.astype(float)
    swaps = rng.random((int(rng.integers(1, 9)), n)) < rng.random()
    padded = np.ones((len(swaps), (n + 63) // 64 * 64), bool)
    padded[:, :n] = swaps
    words = np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64)
    out = np.full(len(swaps), np.nan)
    _median_differences.median_differences(words, *_sorted_pairs(first, second), out)
    expected = medians_by_definition.median_differences(
        first.tolist(), second.tolist(), swaps.tolist()
    )
    same(out, np.array(expected), "medians after swaps")


def _caption_metrics(rng: Rng, folder: Path) -> None:
    n_words = size(rng, 12, 1)
    images = captions(rng, n_words, longest=pick(rng, (4, 12, 40)), most_images=12)
    references = [image for image in images if image] or [[[0]]]
    names = [[[f"w{word}" for word in text] for text in image] for image in references]
    candidates = [
        list(pick(rng, image)) if chance(rng, 0.5) else [f"w{word}" for word in text]
        for image, text in zip(names, _texts(rng, len(names), n_words, 12), strict=True)
    ]
    max_n = int(rng.integers(1, 6))
    scores = bleu(candidates, names, max_n=max_n)
    whole, each = metrics_by_definition.bleu(candidates, names, max_n)
    close(scores.corpus, whole, "BLEU of the corpus", relative=1e-11, absolute=1e-300)
    close(scores.captions, each, "BLEU of captions", relative=1e-11, absolute=1e-300)
    rouge = [
        metrics_by_definition.rouge_l(candidate, image)
        for candidate, image in zip(candidates, names, strict=True)
    ]
    close(rouge_l(candidates, names).captions, rouge, "ROUGE-L", relative=1e-13)
    plain = metrics_by_definition.cider(candidates, names)
    ours = cider(candidates, names).captions
    close(ours, plain, "CIDEr", relative=1e-11, absolute=1e-12)
    clipped = metrics_by_definition.cider(candidates, names, sigma=6.0)
    ours = cider_d(candidates, names).captions
    close(ours, clipped, "CIDEr-D", relative=1e-11, absolute=1e-12)
    others = names[1:] or names
    counted = metrics_by_definition.document_frequencies(others) or Counter({("none",): 1})
    frequencies = DocumentFrequencies.from_references(others)
    given: dict[str, Any] = {"frequencies": counted, "n_documents": len(others)}
    plain = metrics_by_definition.cider(candidates, names, **given)
    ours = cider(candidates, names, document_frequencies=frequencies).captions
    close(ours, plain, "CIDEr by another corpus", relative=1e-11, absolute=1e-12)


TARGETS = (
    Target("kcca.partial_gram_schmidt", "compiled", _partial_gram_schmidt),
    Target("kcca.eigh", "compiled", _eigh),
    Target("kcca.svd", "compiled", _svd),
    Target("lexical.ibm", "compiled", _ibm),
    Target("evaluation.median_differences", "compiled", _medians),
    Target("evaluation.caption_metrics", "compiled", _caption_metrics),
)
