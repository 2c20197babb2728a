"""One contract of all deep rankers: learning, files, checkpoints, refusals."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from drawn import ALL, SYSTEMS, fitted, items, photos, queries, ranker, sentences  # noqa: E402
from refusals import refuses  # noqa: E402

from kernelcore import deep  # noqa: E402
from kernelcore.datasets import Document  # noqa: E402
from kernelcore.evaluation import evaluate  # noqa: E402
from kernelcore.lexical import WordVectors  # noqa: E402

EPOCHS = {kind: {"n_epochs": 60} for kind in (deep.OrderRanker, deep.Captioner)}
EPOCHS[deep.FragmentRanker] = {"n_epochs": 150}


ITEMS = photos(), sentences()
DOCUMENTS = [Document(str(i), ("a dog", "a cat"), ("a", "b")) for i in range(3)]
VECTORS = {"a": [1.0, 0.0], "b": [0.0, 1.0]}


def fit(system, *, folder=None, progress=False, **options):
    """Fit a small model with some parameters."""
    if system != "linker":
        return fitted(system, folder=folder, progress=progress, **options)
    own = {"n_components": 8, "n_embedding": 6, "min_count": 1, "learning_rate": 0.02}
    own |= {"dropout": 0.0, "n_epochs": 3, "n_negatives": 1, "rng": 0, **options}
    run = {"folder": folder, "progress": progress, "n_threads": 1}
    return deep.DocumentLinker(**own).fit(DOCUMENTS, VECTORS, dev=DOCUMENTS, **run)


def scores(system, model):
    if system == "linker":
        return np.concatenate(model.link_scores(DOCUMENTS, VECTORS, n_threads=1))
    return model.scores(items(system)[0], queries(system), n_threads=1)


FEW = {"ConvNet+BoW", "SCAN i2t", "full"}  # the others are slow


@pytest.mark.parametrize(
    "system", [pytest.param(s, marks=[] if s in FEW else pytest.mark.slow) for s in SYSTEMS]
)
def test_every_system_overfits_twenty_pairs(system):
    options = EPOCHS.get(SYSTEMS[system].kind, {"n_epochs": 60, "n_warm_up": 10})
    model = fitted(system, **options)
    result = evaluate(scores(system, model))
    assert result.mean["annotation"]["R@1"] == result.mean["search"]["R@1"] == 1.0
    if SYSTEMS[system].kind not in {deep.FragmentRanker, deep.Captioner}:
        assert model.history_.dev_losses[model.history_.best_epoch] == 0.0


def test_the_development_loss_is_of_the_mean_recall():
    model = fitted("ConvNet+BoW", n_epochs=1)
    recalls = evaluate(scores("ConvNet+BoW", model)).rsum
    assert model.history_.dev_losses == [pytest.approx(1 - recalls / 600)]


class StoppedError(Exception):
    pass


def stop(done, total):
    if done > total // 2:
        raise StoppedError


DRAWING = {
    "Obj+Bi-GRU": {"n_epochs": 3}, "SCAN t2i": {"n_epochs": 4},
    "variance": {"variance_weight": 0.1, "min_learning_rate": 0.005, "batch_size": 6},
    "captioner": {"learning_rate": 0.5, "batch_size": 6, "n_epochs": 8},
    "linker": {"n_epochs": 4, "similarity": "NoStruct"}, "full": {}, "tree": {},
}  # fmt: skip


def same_weights(one, other):
    weights = other.space_.state_dict()
    return all(torch.equal(w, weights[name]) for name, w in one.space_.state_dict().items())


@pytest.mark.parametrize("system", DRAWING)
def test_the_same_seed_gives_the_same_bits_also_when_resumed(system, tmp_path):
    options = {"dropout": 0.2, **DRAWING[system]}
    whole = fit(system, **options)
    with pytest.raises(StoppedError):
        fit(system, folder=tmp_path, progress=stop, **options)
    resumed = fit(system, folder=tmp_path, **options)
    other = fit(system, **{**options, "rng": 1})
    assert same_weights(whole, resumed)
    assert not np.array_equal(scores(system, whole), scores(system, other))
    changed = {**options, "learning_rate": 0.4}
    refuses(ValueError, "settings", fit, system, folder=tmp_path, **changed)


@pytest.mark.parametrize("system", ["ConvNet+BoW", "SCAN i2t", "texts below", "captioner"])
def test_more_epochs_go_on_from_the_checkpoint_of_fewer(system, tmp_path):
    options = {"dropout": 0.2, "rng": 3}
    fitted(system, folder=tmp_path, n_epochs=2, **options)
    calls = []
    more = {"folder": tmp_path, "progress": lambda *n: calls.append(n)}
    longer = fitted(system, n_epochs=4, **more, **options)
    whole = fitted(system, n_epochs=4, **options)
    assert same_weights(longer, whole)
    assert longer.history_.dev_losses == whole.history_.dev_losses
    assert calls[0][0] > calls[0][1] / 2  # the first epochs were not repeated
    refuses(ValueError, "another run", fitted, system, folder=tmp_path, n_epochs=2, **options)


@pytest.mark.parametrize("system", ["ConvNet+BoW", "full"])
def test_a_checkpoint_whose_last_epochs_had_a_reduced_rate_is_refused(system, tmp_path):
    fitted(system, folder=tmp_path, n_epochs=4)
    refuses(ValueError, "learning rates", fitted, system, folder=tmp_path, n_epochs=8)


@pytest.mark.parametrize(
    "system", ["ConvNet+BoW", "Obj+Bi-GRU", "SCAN t2i", "SCAN i2t", "texts below"]
)
def test_blocks_and_company_do_not_matter(system):
    model, captions = fitted(system), queries(system)
    whole = model.scores(photos(), [*captions, "red " * 30], n_threads=1)
    model.space_.block = (3, 2)
    found = model.scores(photos(), [*captions, "red " * 30], n_threads=1)
    np.testing.assert_allclose(found, whole, atol=1e-6)
    alone = model.scores(photos(ALL[4:5]), captions[7:8], n_threads=1)
    np.testing.assert_allclose(alone, whole[4:5, 7:8], atol=1e-6)


WAYS = [("ConvNet+Bi-GRU", "image")]
WAYS += [(name, "regions") for name in ("texts below", "captioner", "full")]


@pytest.mark.parametrize("regions", ["first", "mean"])
@pytest.mark.parametrize(("system", "parameter"), WAYS)
def test_an_image_is_its_first_region_or_the_mean_of_all(system, parameter, regions):
    model = fitted(system, **{parameter: regions})
    rows = photos(noise=0.02).features.reshape(20, 3, -1)
    alone = rows[:, 0] if regions == "first" else rows.mean(axis=1)
    both = photos(noise=0.02), alone
    found, expected = (model.scores(own, queries(system), n_threads=1) for own in both)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("system", ["ConvNet+Bi-GRU", "texts below", "captioner"])
def test_word_vectors_are_where_words_start(system):
    rows = np.eye(3, 5, dtype=np.float32)[[0, 0, 1]]
    given = WordVectors(["dog", "dogs", "red"], rows)  # the stem of dogs is dog
    rates = {"learning_rate": 1e-12}
    if system == "texts below":
        rates["min_learning_rate"] = 1e-12
    model = fitted(system, word_vectors=given, n_epochs=1, **rates)
    tables = [w for name, w in model.space_.state_dict().items() if "embedding" in name]
    table = tables[0] if tables else model.space_.words.weight.detach()
    for word in ("dog", "red"):
        row = table[model.vocabulary_.index[word] + 1]
        np.testing.assert_allclose(row, given[word], atol=1e-6)


COUNTS = ("n_components", "n_hidden", "n_states", "n_embedding", "n_epochs", "n_drawn")
COUNTS += ("n_negatives", "min_count", "max_tokens", "patience", "n_prior")
CHOICES = ("sentence", "image", "regions", "attention", "similarity", "objective")
CHOICES += ("optimizer", "fragments", "negatives", "unit_length", "score")
ODD = {
    **{name: [0] for name in COUNTS},
    **{name: ["all of it"] for name in CHOICES},
    **{name: [-1] for name in ("n_warm_up", "n_dense", "rng")},
    **{name: ["yes"] for name in ("joined", "balanced", "square_root", "whole_image")},
    **{name: [-1.0] for name in ("smoothing", "ranking_weight", "weight_decay")},
    **{name: [0.0] for name in ("learning_rate", "min_learning_rate")},
    **{name: [-1.0, float("nan")] for name in ("margin", "variance_weight")},
}
ODD |= {"multiple_instance": [1], "batch_size": [1], "dropout": [1.0, -0.1]}
ODD |= {"k": ["third", 0], "network": ["resnet"]}
KINDS = {SYSTEMS[system].kind for system in SYSTEMS} | {deep.DocumentLinker}


def fit_kind(kind, **options):
    items = (DOCUMENTS, VECTORS) if kind is deep.DocumentLinker else ITEMS
    dev = DOCUMENTS if kind is deep.DocumentLinker else ITEMS
    kind(**options).fit(*items, dev=dev, n_threads=1)


@pytest.mark.parametrize("kind", sorted(KINDS, key=str))
def test_parameters_out_of_range_are_named(kind):
    for name in kind().get_params().keys() - {"device"}:
        for odd in ODD[name]:
            refuses((TypeError, ValueError), name, fit_kind, kind, **{name: odd})


def test_parameters_that_do_not_fit_together_are_named():
    refuses(ValueError, "min_learning_rate", fit_kind, deep.OrderRanker, min_learning_rate=0.1)
    refuses(ValueError, "min_count", fit_kind, deep.Captioner, min_count=100)
    for similarity, k in (("DC", 2), ("NoStruct", "half")):
        refuses(ValueError, "k", fit_kind, deep.DocumentLinker, similarity=similarity, k=k)


IMAGES, CAPTIONS = ITEMS
BROKEN = IMAGES.features.copy()
BROKEN[3, 2] = np.nan
INFINITE = IMAGES._replaced(features=np.full_like(IMAGES.features, np.inf))
MISFITS = [
    ("captions", {"captions": "a dog"}), ("captions", {"captions": [3] * 20}),
    ("captions", {"captions": []}), ("captions", {"captions": CAPTIONS[:3]}),
    ("caption_image", {"caption_image": [20] * 20}),
    ("caption_image", {"caption_image": [0, 1]}), ("at least two", {"caption_image": [4] * 20}),
    ("images", {"images": np.ones((20, 3, 4, 4))}), ("images", {"images": np.arange(20)}),
    ("images", {"images": np.zeros((0, 3)), "captions": []}),
    ("finite", {"images": BROKEN[::3]}), ("finite", {"images": INFINITE}),
    ("dev", {"dev": IMAGES}), ("dev", {"dev": (np.ones((20, 4)), CAPTIONS)}),
    ("word_vectors", {"word_vectors": np.eye(9)}),
]  # fmt: skip


@pytest.mark.parametrize("system", ["ConvNet+Bi-GRU", "SCAN t2i", "texts below", "full"])
def test_items_that_do_not_fit_are_named(system):
    given = {"images": IMAGES, "captions": CAPTIONS, "dev": ITEMS, "n_threads": 1}
    for named, changes in MISFITS:
        model = ranker(system, **({"fragments": "bigrams"} if system == "full" else {}))
        refuses((TypeError, ValueError), named, model.fit, **{**given, **changes})
    refuses(ValueError, "images", fitted(system).scores, np.ones((2, 4)), queries(system))


FOUR = ["a red dog", "a blue cat", "a green boat", "a white rose"]
EYE = np.eye(4)


def fit_four(folder, *, photos=EYE, captions=FOUR, dev_photos=EYE, dev_captions=FOUR):
    sizes = {"n_components": 4, "n_hidden": 4, "n_epochs": 2, "batch_size": 4}
    ranker = deep.EmbeddingRanker(min_count=1, rng=0, **sizes)
    dev = dev_photos, dev_captions
    return ranker.fit(photos, captions, dev=dev, folder=folder, n_threads=1)


def test_a_checkpoint_of_other_items_is_refused(tmp_path):
    first = fit_four(tmp_path)
    again = fit_four(tmp_path, photos=EYE.astype(np.float32), dev_photos=np.asfortranarray(EYE))
    assert again.history_ == first.history_
    for change in (
        {"photos": 2 * EYE},
        {"captions": [*FOUR[:3], "a white dog"]},
        {"dev_photos": EYE[::-1] + 0.5},
        {"dev_captions": [*FOUR[:3], "a white rose zzz"]},  # as padded ids the same
    ):
        refuses(ValueError, "data", fit_four, tmp_path, **change)


SIZES = ("n_components", "n_hidden", "n_states", "n_embedding", "n_prior")


@pytest.mark.parametrize("system", [*SYSTEMS, "linker"])
def test_a_file_holds_all_that_is_needed_and_no_parameter_that_changed(system, tmp_path):
    model = fit(system, n_epochs=1)
    expected, params = scores(system, model), model.get_params()
    sizes = {size: 2 * (params[size] or 1) + 1 for size in SIZES if size in params}
    model.set_params(**sizes, learning_rate=0.5, patience=1, n_epochs=2)
    model.save(tmp_path / "kept")
    read = type(model).load(tmp_path / "kept")
    assert (read.get_params(), read.history_) == (params, model.history_)
    assert expected.dtype == np.float32
    np.testing.assert_array_equal(scores(system, read), expected)
    other = deep.OrderRanker if isinstance(model, deep.FragmentRanker) else deep.FragmentRanker
    refuses(ValueError, "kept", other.load, tmp_path / "kept")
    read.set_params(**sizes).save(tmp_path / "again")
    assert type(model).load(tmp_path / "again").get_params() == params
