"""Which rankers a file can hold, and what is refused."""

import numpy as np
import pytest

from kernelcore._store import load_tensors, save_tensors
from kernelcore.captions import EncodedCaptions
from kernelcore.images import SpatialHistograms
from kernelcore.models import KCCARanker, NearestNeighbourRanker

RNG = np.random.default_rng(0)
FEATURES = RNG.random((12, 5))
CAPTIONS = EncodedCaptions.from_lists([[[i % 3, i % 4]] for i in range(12)], n_words=4)
HISTOGRAMS = SpatialHistograms(RNG.multinomial(9, [0.2] * 5, 12)[:, None], [9] * 12, 1)


def linear(X, Y=None):
    return X @ (X if Y is None else Y).T


def test_pairs_of_repeated_images_are_those_of_the_repeated_rows():
    owners = np.repeat(np.arange(4), 3)
    new = FEATURES[:3], FEATURES[3:6]
    for precomputed in (False, True):
        kernels = ["precomputed"] * 2 if precomputed else [linear] * 2
        images, rows = FEATURES[:4], new
        captions, repeated = FEATURES, FEATURES[owners]
        if precomputed:
            rows = linear(new[0], images), linear(new[1], captions)
            expected = linear(new[0], repeated), rows[1]
            items = linear(images), linear(captions)
            whole = linear(repeated), items[1]
        else:
            expected, items, whole = new, (images, captions), (repeated, captions)
        for make in (
            lambda own: NearestNeighbourRanker(*own),
            lambda own: KCCARanker(2, image_kernel=own[0], text_kernel=own[1]),
        ):
            short = make(kernels).fit(*items, caption_image=owners)
            long = make(kernels).fit(*whole)
            np.testing.assert_allclose(short.scores(*rows), long.scores(*expected), atol=1e-8)
            if precomputed:
                with pytest.raises(ValueError, match=r"per training image \(4\)"):
                    short.scores(expected[0], rows[1])


def test_of_precomputed_kernels_no_items_are_kept(tmp_path):
    gram = linear(FEATURES)
    ranker = KCCARanker(2).fit(gram, gram)
    ranker.save(tmp_path / "ranker")
    again = KCCARanker.load(tmp_path / "ranker")
    np.testing.assert_array_equal(again.scores(gram, gram), ranker.scores(gram, gram))
    with pytest.raises(ValueError, match=r"\(12\), got shape \(12, 3\)"):
        again.scores(gram[:, :3], gram)


def damages(arrays, about):
    """A file without one of its parts, with one too many, of another kind, and so on."""
    for name, array in arrays.items():
        yield {n: a for n, a in arrays.items() if n != name}, about
        yield arrays | {name: array[..., np.newaxis]}, about
        yield arrays | {name: np.zeros(array.shape, bool)}, about
        if array.dtype.kind == "f":
            yield arrays | {name: np.full_like(array, np.nan)}, about
    yield arrays | {"another": np.zeros(3)}, about
    for key in about:
        yield arrays, {k: value for k, value in about.items() if k != key}
        yield arrays, about | {key: {"x": [None]}}


@pytest.mark.parametrize("owners", [None, np.arange(12)[::-1]])
def test_a_damaged_file_is_named(owners, tmp_path):
    kind = "kernel CCA ranker"
    gram = linear(FEATURES)
    ranker = KCCARanker(2).fit(gram, gram, caption_image=owners)
    ranker.save(tmp_path / "whole")
    whole = [dict(part) for part in load_tensors(tmp_path / "whole", kind)]
    for arrays, about in damages(*whole):
        save_tensors(tmp_path / "broken", kind, arrays, about)
        with pytest.raises(ValueError, match="broken"):
            KCCARanker.load(tmp_path / "broken")
