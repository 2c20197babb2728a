"""The GPU against every core of this machine, and against PyTorch on the same GPU.

All of them read NumPy arrays and write NumPy arrays, so the way over the bus counts. Without
a GPU that Numba can use there is nothing to measure, and the reason is told.
"""

import bench_histogram_intersection as intersection
import bench_word_sequence as sequence
import data
import numpy as np
import peers
import pytest

from kernelcore import kernels
from kernelcore._extras import MissingExtraError
from kernelcore._parallel import available_cores
from kernelcore.kernels import cuda
from kernelcore.kernels.cuda._device import usable_cuda

CORES = available_cores()


@pytest.fixture(scope="module", autouse=True)
def gpu():
    """Name the GPU, or tell why there is none."""
    try:
        device = usable_cuda("histogram_intersection").get_current_device()
    except (RuntimeError, MissingExtraError) as error:
        pytest.skip(str(error))
    if not hasattr(device, "name"):
        pytest.skip("Numba's simulator measures nothing")
    return device.name.decode() if isinstance(device.name, bytes) else str(device.name)


def on_torch(call):
    """PyTorch's way, if it sees the GPU too."""
    if peers.is_here("torch"):
        import torch

        if torch.cuda.is_available():
            return call
    return None


def torch_city_block(X, Y):
    import torch

    there = [torch.from_numpy(Z).cuda() for Z in (X, Y)]
    return torch.cdist(*there, p=1.0).cpu()


@pytest.mark.ways("kernelcore, GPU", "kernelcore, GPU, one input", "kernelcore", "torch, GPU")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_histogram_intersection(measure, gpu, dtype):
    X = intersection.histograms(data.size(4000, 60)).astype(dtype)
    Y = X[::-1].copy()
    measure(
        f"histogram intersection on a GPU, {dtype}",
        {
            "kernelcore, GPU": lambda: cuda.histogram_intersection(X, Y),
            "kernelcore, GPU, one input": lambda: cuda.histogram_intersection(X),
            "kernelcore": lambda: kernels.histogram_intersection(X, Y),
            "torch, GPU": on_torch(lambda: torch_city_block(X, Y)),
        },
        read={
            "kernelcore, GPU, one input": lambda gram: gram[:, ::-1],
            "torch, GPU": intersection.from_distances(X, Y),
        },
        check=intersection.checker(X, Y),
        n_threads=CORES,
        device=gpu,
        **intersection.scale(X, Y),
    )


@pytest.mark.ways("kernelcore, GPU", "kernelcore")
def test_counts(measure, gpu):
    X = intersection.counts("uint8", data.size(4000, 60))
    measure(
        "histogram intersection on a GPU, uint8",
        {
            "kernelcore, GPU": lambda: cuda.histogram_intersection(X),
            "kernelcore": lambda: kernels.histogram_intersection(X),
        },
        check=intersection.checker(X, X),
        n_threads=CORES,
        device=gpu,
        **intersection.scale(X, X),
    )


@pytest.mark.ways("kernelcore, GPU", "kernelcore")
@pytest.mark.parametrize("gap_decay", [1.0, 0.5])
def test_word_sequence(measure, captions, gpu, gap_decay):
    kernel = data.soft_word_kernel(captions.n_words)
    options = {"word_kernel": kernel, "gap_decay": gap_decay}
    options["out"] = np.empty((len(captions), len(captions)))
    measure(
        f"word sequences on a GPU, gap decay {gap_decay}",
        {
            "kernelcore, GPU": lambda: cuda.word_sequence(captions, **options),
            "kernelcore": lambda: kernels.word_sequence(captions, **options),
        },
        check=sequence.checker(captions, kernel, gap_decay=gap_decay),
        n_threads=CORES,
        device=gpu,
        **sequence.scale(captions),
    )


@pytest.mark.ways("kernelcore, GPU", "torch, GPU")
def test_word_sequence_beside_torch(measure, captions, gpu):
    """All pairs of captions that are images of their own, without decay."""
    some = captions.select(range(data.size(1200, 60))).caption_as_image()
    kernel = data.soft_word_kernel(captions.n_words)
    options = {"word_kernel": kernel, "normalize": False, "dtype": np.float32}
    other = some.select(range(len(some)))
    measure(
        "word sequences on a GPU, beside torch",
        {
            "kernelcore, GPU": lambda: cuda.word_sequence(some, other, **options),
            "torch, GPU": on_torch(lambda: torch_sequences(some, kernel)),
        },
        check=sequence.checker(some, kernel, n=8, normalize=False),
        n_threads=CORES,
        device=gpu,
        **sequence.scale(some, other),
    )


def torch_sequences(captions, kernel, rows_at_once=32):
    """Sums over rectangles of matches, for some captions against all at a time.

    Words outside the vocabulary get rows of their own; captions are filled up with a word
    that is similar to none.
    """
    import torch

    ids, words = np.unique(captions.word_ids, return_inverse=True)
    kappa = np.zeros((len(ids) + 1, len(ids) + 1), np.float32)
    known = np.flatnonzero(ids >= 0)
    kappa[: len(ids), : len(ids)] = np.eye(len(ids))
    kappa[np.ix_(known, known)] = kernel[ids[known]][:, ids[known]].toarray()
    lengths = np.diff(captions.caption_offsets)
    padded = np.full((len(lengths), max(int(lengths.max()), 1)), len(ids))
    padded[np.arange(padded.shape[1]) < lengths[:, None]] = words
    weights = torch.from_numpy(0.25 * kappa).cuda()
    texts = torch.from_numpy(padded).cuda()
    gram = torch.empty((len(texts), len(texts)), device="cuda")
    for start in range(0, len(texts), rows_at_once):
        some = texts[start : start + rows_at_once]
        match = weights[some[:, None, :, None], texts[None, :, None, :]]
        ended, total = match, match.sum((2, 3))
        for _ in range(2):
            before = torch.zeros_like(ended)
            before[:, :, 1:, 1:] = ended.cumsum(2).cumsum(3)[:, :, :-1, :-1]
            ended = match * before
            total += ended.sum((2, 3))
        gram[start : start + rows_at_once] = total
    return gram.cpu().numpy()
