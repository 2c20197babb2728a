"""Which rankers a file can hold, and what is refused."""

import json

import numpy as np
import pytest

from kernelcore._files import load_tensors, save_tensors
from kernelcore.captions import EncodedCaptions
from kernelcore.images import SpatialHistograms
from kernelcore.kernels import bag_of_words, histogram_intersection, spatial_pyramid
from kernelcore.models import (
    BordaEnsemble,
    ChanceRanker,
    GridSearch,
    KCCARanker,
    NearestNeighbourRanker,
)

RNG = np.random.default_rng(0)
FEATURES = RNG.random((12, 5))
CAPTIONS = EncodedCaptions.from_lists([[[i % 3, i % 4]] for i in range(12)], n_words=4)
HISTOGRAMS = SpatialHistograms(RNG.multinomial(9, [0.2] * 5, 12)[:, None], [9] * 12, 1)


def linear(X, Y=None):
    return X @ (X if Y is None else Y).T


class Foreign:
    """A ranker of another package."""

    def fit(self, images, captions):
        return self

    def scores(self, images, captions, *, task="annotation"):
        return np.zeros((len(images), len(captions)))


@pytest.mark.parametrize(
    ("images", "kernel"),
    [(FEATURES, histogram_intersection), (HISTOGRAMS, spatial_pyramid)],
)
@pytest.mark.parametrize("owners", [None, np.arange(12)[::-1]])
def test_kernels_of_this_package_are_kept_by_name(images, kernel, owners, tmp_path):
    for ranker in (
        NearestNeighbourRanker(bag_of_words, kernel),
        KCCARanker(2, image_kernel=kernel, text_kernel=bag_of_words),
    ):
        ranker.fit(images, CAPTIONS, caption_image=owners).save(tmp_path / "ranker")
        again = type(ranker).load(tmp_path / "ranker")
        assert again.get_params() == ranker.get_params()
        for task in ("annotation", "search"):
            np.testing.assert_array_equal(
                again.scores(images, CAPTIONS, task=task),
                ranker.scores(images, CAPTIONS, task=task),
            )


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
    ranker = NearestNeighbourRanker("precomputed", "precomputed").fit(gram, gram)
    ranker.save(tmp_path / "ranker")
    again = NearestNeighbourRanker.load(tmp_path / "ranker")
    assert again.images_ is None
    np.testing.assert_array_equal(again.scores(gram, gram), ranker.scores(gram, gram))
    with pytest.raises(ValueError, match=r"training item \(12\), got shape \(12, 3\)"):
        again.scores(gram[:, :3], gram)


@pytest.mark.parametrize(
    ("ranker", "message"),
    [
        (NearestNeighbourRanker(linear, linear), "a file cannot hold a function, got <func"),
        (KCCARanker(image_kernel=linear, text_kernel=linear), 'image_kernel must be "preco'),
        (BordaEnsemble([ChanceRanker(), Foreign()]), "only rankers of kernelcore can be saved"),
        (
            GridSearch(KCCARanker(image_kernel=linear, text_kernel=linear), {"ridge": [1.0]}),
            "a file cannot hold a function",
        ),
        (
            GridSearch(NearestNeighbourRanker(linear, linear), {"text_similarity": [linear]}),
            "param_grid",
        ),
    ],
)
def test_what_a_file_cannot_hold_is_refused_by_name(ranker, message, tmp_path):
    ranker.fit(FEATURES, FEATURES, dev=(FEATURES, FEATURES))
    with pytest.raises(ValueError, match=message):
        ranker.save(tmp_path / "ranker")
    assert list(tmp_path.iterdir()) == []


def test_items_of_other_kinds_are_refused(tmp_path):
    def first(X, Y=None):
        return histogram_intersection(X, Y)

    ranker = KCCARanker(2, text_kernel=histogram_intersection)
    ranker.fit(linear(FEATURES), [row.tolist() for row in FEATURES])
    with pytest.raises(ValueError, match="captions must be an array of numbers, strings"):
        ranker.save(tmp_path / "ranker")


def test_a_search_is_what_it_was(tmp_path):
    grid = {"n_components": [2, 3], "regularization": [0.1, (0.5, 1.0)]}
    search = GridSearch(
        KCCARanker(image_kernel=histogram_intersection, text_kernel=bag_of_words),
        grid,
        n_best=2,
    )
    search.fit(FEATURES, CAPTIONS, dev=(FEATURES, CAPTIONS)).save(tmp_path / "search")
    again = GridSearch.load(tmp_path / "search")
    assert again.settings_ == search.settings_
    assert again.best_params_ == search.best_params_
    assert again.ranker.get_params() == search.ranker.get_params()
    assert again.to_table() == search.to_table()
    for task in ("annotation", "search"):
        assert again.winners(task) == search.winners(task)
    with pytest.raises(FileExistsError, match="holds a model already"):
        search.save(tmp_path / "search")
    search.save(tmp_path / "search", overwrite=True)
    with pytest.raises(ValueError, match="must describe a Borda ensemble"):
        BordaEnsemble.load(tmp_path / "search")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rankers": {"0": "models.VisualWords"}}, "classes of kernelcore, got 'models.Vis"),
        ({"rankers": {"0": "os.system"}}, "classes of kernelcore, got 'os.system'"),
        ({"rankers": {"../0": "models.ChanceRanker"}}, "numbers as names"),
        ({"order": []}, "at least one ranker"),
        ({"order": [3]}, "it does not hold '3'"),
        ({"order": None}, "damaged or truncated"),
    ],
)
def test_a_damaged_description_is_named(change, message, tmp_path):
    BordaEnsemble([ChanceRanker(rng=0)]).save(tmp_path / "model")
    path = tmp_path / "model" / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match=message) as error:
        BordaEnsemble.load(tmp_path / "model")
    assert "model.json" in str(error.value)


def test_precomputed_kernels_cannot_be_held_out():
    gram = linear(FEATURES)
    with pytest.raises(ValueError, match="dev must be given where a kernel is precomputed"):
        GridSearch(KCCARanker(), {"n_components": [2]}).fit(gram, gram)
    with pytest.raises(TypeError, match=r"Foreign\.fit does not take it"):
        BordaEnsemble([Foreign()]).fit("ab", "ab", caption_image=[1, 0])


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


@pytest.mark.parametrize(
    ("ranker", "kind"),
    [
        (ChanceRanker(rng=0), "chance ranker"),
        (
            NearestNeighbourRanker(bag_of_words, histogram_intersection),
            "nearest neighbour ranker",
        ),
        (
            KCCARanker(2, image_kernel=histogram_intersection, text_kernel=bag_of_words),
            "kernel CCA ranker",
        ),
    ],
)
@pytest.mark.parametrize("owners", [None, np.arange(12)[::-1]])
def test_a_damaged_file_is_named(ranker, kind, owners, tmp_path):
    ranker.fit(FEATURES, CAPTIONS, caption_image=owners)
    ranker.save(tmp_path / "whole")
    whole = [dict(part) for part in load_tensors(tmp_path / "whole", kind)]
    for arrays, about in damages(*whole):
        save_tensors(tmp_path / "broken", kind, arrays, about)
        with pytest.raises(ValueError, match="broken"):
            type(ranker).load(tmp_path / "broken")
