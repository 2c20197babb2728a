"""Fragment embeddings: what is learned, kept, aligned and refused."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import drawn_photos  # noqa: E402
from drawn_photos import ALL, WORDS  # noqa: E402
from sklearn.base import clone  # noqa: E402

from kernelcore._files import load_tensors, save_tensors  # noqa: E402
from kernelcore.captions import FragmentExtractor, SentenceTrees  # noqa: E402
from kernelcore.deep import FragmentRanker, seeded_generator  # noqa: E402
from kernelcore.deep.fragment_losses import FragmentObjective  # noqa: E402
from kernelcore.deep.items import RegionTable  # noqa: E402
from kernelcore.evaluation import evaluate  # noqa: E402
from kernelcore.lexical import WordVectors  # noqa: E402
from kernelcore.models import Ranker  # noqa: E402
from kernelcore.models.base import Pairs  # noqa: E402

N_REGIONS = 3

SYSTEMS = {
    "full": {},
    "unbalanced": {"balanced": False, "ranking_weight": 30.0},
    "dense": {"multiple_instance": False},
    "drawn regions": {"n_drawn": 2},
    "alignment": {"objective": "alignment"},
    "ranking": {"objective": "ranking"},
    "whole image": {"regions": "first"},
    "words": {"kind": "words"},
    "sgd": {"optimizer": "sgd", "learning_rate": 0.02},
    "mean": {"kind": "words", "sentence": "mean", "regions": "mean", "objective": "ranking"},
    "tree": {"kind": "tree", "sentence": "tree", "regions": "mean", "objective": "ranking"},
}


def photos(things, seed=0):
    return drawn_photos.photos(things, noise=0.02, seed=seed)


def sentences(things, kind="bigrams"):
    if kind == "tree":
        ids = [(WORDS.index(a), WORDS.index(b)) for a, b in things]
        n = len(things)
        return SentenceTrees(
            np.ravel(ids), np.tile([0, 1], n), np.tile([1, -1], n), np.arange(n + 1) * 2, 2, 9
        )
    extractor = FragmentExtractor(kind).fit([" ".join(WORDS)])
    return extractor.transform([f"{colour} {thing}" for colour, thing in things])


def vectors(kind="bigrams"):
    order = WORDS
    if kind != "tree":
        order = FragmentExtractor(kind).fit([" ".join(WORDS)]).vocabulary_.words
    return WordVectors(order, [np.eye(len(WORDS))[WORDS.index(word)] for word in order])


def ranker(**options):
    settings = {
        "n_components": 24,
        "dropout": 0.0,
        "n_epochs": 6,
        "learning_rate": 0.02,
        "batch_size": 20,
        "rng": 0,
    }
    return FragmentRanker(**{**settings, **options})


def fitted(kind="bigrams", things=ALL, **options):
    items = photos(things), sentences(things, kind)
    return ranker(**options).fit(*items, word_vectors=vectors(kind), dev=items, n_threads=1)


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_overfits_twenty_pairs(system):
    options = dict(SYSTEMS[system])
    kind = options.pop("kind", "bigrams")
    model = fitted(kind, **{"n_epochs": 150, **options})
    result = evaluate(model.scores(photos(ALL), sentences(ALL, kind), n_threads=1))
    assert result.annotation.recall[1] == result.search.recall[1] == 1.0


def test_it_is_a_ranker_and_an_estimator():
    model = clone(ranker(margin=0.3))
    assert isinstance(model, Ranker)
    assert model.get_params()["margin"] == 0.3


def test_pairs_never_seen_are_told_apart():
    held = [("red", "cat"), ("blue", "dog"), ("white", "boat"), ("black", "rose")]
    seen = [pair for pair in ALL if pair not in held]
    model = fitted("words", seen, n_epochs=60)
    scores = model.scores(photos(held, 1), sentences(held, "words"))
    np.testing.assert_array_equal(scores.argmax(axis=1), np.arange(4))


@pytest.mark.parametrize("system", ["full", "tree"])
def test_equal_seeds_give_equal_bits(system):
    options = dict(SYSTEMS[system])
    kind = options.pop("kind", "bigrams")
    items = photos(ALL), sentences(ALL, kind)
    first, again, other = (
        fitted(kind, **options, rng=seed, dropout=0.3).scores(*items) for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_scores_do_not_depend_on_what_else_is_scored():
    model = fitted()
    images, captions = photos(ALL * 3), sentences(ALL * 40)
    everything = model.scores(images, captions, n_threads=1)
    assert everything.shape == (60, 800)
    assert everything.dtype == np.float32
    part = model.scores(images.select([1, 59]), captions.select([799, 3]), n_threads=1)
    np.testing.assert_allclose(
        part, everything[np.ix_([1, 59], [799, 3])], rtol=1e-5, atol=1e-6
    )


def test_scores_do_not_depend_on_the_size_of_blocks(monkeypatch):
    model = fitted()
    images, captions = photos(ALL), sentences(ALL * 3)
    expected = model.scores(images, captions, n_threads=1)
    for name in ("_IMAGES_AT_ONCE", "_CAPTIONS_AT_ONCE", "_FRAGMENTS_AT_ONCE"):
        monkeypatch.setattr(f"kernelcore.deep.fragment_encoders.{name}", 7)
    found = model.scores(images, captions, n_threads=1)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    wordless = FragmentExtractor("bigrams").fit([" ".join(WORDS)]).transform(["", "dog"])
    assert (model.scores(images, wordless) == 0).all()


def test_scores_are_those_of_the_alignment():
    model = fitted()
    images, captions = photos(ALL), sentences(ALL)
    scores = model.scores(images, captions)
    for i, products in enumerate(model.alignments(images, captions)):
        assert products.shape == (N_REGIONS, 1)
        expected = np.maximum(products, 0).sum() / (N_REGIONS * (1 + model.smoothing))
        np.testing.assert_allclose(scores[i, i], expected, rtol=1e-4, atol=1e-6)


def test_words_are_found_in_their_regions():
    model = fitted("words", n_epochs=60)
    images = photos(ALL)
    hits = 0
    for products in model.alignments(images, sentences(ALL, "words")):
        assert products.shape == (N_REGIONS, 2)
        hits += (products[1:].argmax(axis=0) == [0, 1]).sum()
    assert hits >= 36
    extractor = FragmentExtractor("words").fit([" ".join(WORDS)])
    found = model.search_regions(images, extractor.transform(["dog"]), k=5)
    assert [match.score for match in found] == sorted((m.score for m in found), reverse=True)
    assert all(ALL[match.image][1] == "dog" for match in found)
    products = model.alignments(images.select([found[0].image]), extractor.transform(["dog"]))
    assert products[0][found[0].region, 0] == pytest.approx(found[0].score, rel=1e-5)


def test_several_captions_of_an_image_and_images_without(tmp_path):
    images = photos([*ALL, ("red", "red")])
    captions = sentences([*ALL, *ALL])
    owners = np.r_[np.arange(20), np.arange(20)]
    options = {"word_vectors": vectors(), "n_threads": 1, "caption_image": owners}
    dev = images, captions, owners
    model = ranker().fit(images, captions, dev=dev, **options)
    assert len(model.history_.epochs) == 6
    changed = photos([*ALL, ("red", "red")])
    changed.features[-3:] = 1e6  # an image that no caption belongs to
    again = ranker().fit(changed, captions, dev=dev, **options)
    assert np.array_equal(again.scores(images, captions), model.scores(images, captions))


def test_no_image_is_twice_in_a_batch_and_every_caption_comes_once():
    owners = np.random.default_rng(0).integers(0, 7, 40)
    table = RegionTable.of("images", np.eye(7), "all")
    pairs = Pairs(table, sentences(ALL * 2), owners)
    space = fitted().space_
    objective = FragmentObjective(
        space, pairs, pairs, alignment=1.0, ranking=1.0, margin=1.0, balanced=True, n_dense=1
    )
    batches = objective.batches(4, seeded_generator(0))
    assert all(len(set(owners[batch])) == len(batch) <= 4 for batch in batches)
    used = [caption for batch in batches for caption in batch]
    assert len(used) == len(set(used)) >= 33  # what is left alone has no negatives


def test_regions_of_all_or_of_one_or_their_mean():
    images, captions = photos(ALL), sentences(ALL)
    first = images.features[::N_REGIONS]
    mean = images.features.reshape(20, N_REGIONS, -1).mean(axis=1)
    for regions, rows in (("first", first), ("mean", mean)):
        model = fitted(regions=regions)
        plain = ranker().fit(
            rows, captions, word_vectors=vectors(), dev=(rows, captions), n_threads=1
        )
        np.testing.assert_allclose(
            model.scores(images, captions), plain.scores(rows, captions), rtol=1e-3, atol=1e-5
        )


@pytest.mark.parametrize("system", ["full", "mean", "tree"])
def test_what_is_saved_comes_back(tmp_path, system):
    options = dict(SYSTEMS[system])
    kind = options.pop("kind", "bigrams")
    model, items = fitted(kind, **options), (photos(ALL), sentences(ALL, kind))
    model.save(tmp_path / "model")
    again = FragmentRanker.load(tmp_path / "model")
    assert np.array_equal(again.scores(*items), model.scores(*items))
    assert again.get_params() == model.get_params()
    assert again.history_ == model.history_
    content = (tmp_path / "model").read_bytes()
    (tmp_path / "model").write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match="damaged or truncated"):
        FragmentRanker.load(tmp_path / "model")


def test_training_goes_on_from_its_folder(tmp_path):
    items = photos(ALL), sentences(ALL)
    options = {"word_vectors": vectors(), "dev": items, "n_threads": 1}
    whole = fitted(dropout=0.2).scores(*items)
    kept = {**options, "folder": tmp_path}
    ranker(dropout=0.2, n_epochs=6).fit(*items, **kept)
    resumed = ranker(dropout=0.2).fit(*items, **kept)
    assert np.array_equal(resumed.scores(*items), whole)
    with pytest.raises(ValueError, match="same data and settings"):
        ranker(dropout=0.3).fit(*items, **kept)
    with pytest.raises(ValueError, match="same data and settings"):
        ranker(dropout=0.2).fit(photos(ALL), sentences(ALL[::-1]), **kept)


class Tiny(torch.nn.Module):
    def __init__(self):
        super().__init__()
        with torch.no_grad():
            self.conv = torch.nn.Conv2d(3, 4, 2)
            for value, parameter in enumerate(self.conv.parameters()):
                drawn = np.random.default_rng(value).normal(size=parameter.shape)
                parameter.copy_(torch.from_numpy(drawn))

    def forward(self, pixels):
        return self.conv(pixels / 255).flatten(1)


def test_a_network_is_trained_along_after_the_dense_epochs(tmp_path):
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (20, 3, 4, 4), np.uint8)
    captions = sentences(ALL)
    start = [p.detach().clone() for p in Tiny().parameters()]
    for n_dense, is_trained in ((6, False), (3, True)):
        network = Tiny()
        model = ranker(network=network, n_dense=n_dense).fit(
            pixels, captions, word_vectors=vectors(), dev=(pixels, captions), n_threads=1
        )
        same = [torch.equal(a, b) for a, b in zip(start, network.parameters(), strict=True)]
        assert not any(same) if is_trained else all(same)
    model.save(tmp_path / "model")
    again = FragmentRanker.load(tmp_path / "model", network=Tiny())
    assert np.array_equal(again.scores(pixels, captions), model.scores(pixels, captions))
    with pytest.raises(ValueError, match="network"):
        FragmentRanker.load(tmp_path / "model").scores(pixels, captions)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sentence": "bag"}, "sentence must be one of"),
        ({"regions": "none"}, "regions must be one of"),
        ({"objective": "loss"}, "objective must be one of"),
        ({"optimizer": "lbfgs"}, "optimizer must be one of"),
        ({"multiple_instance": 1}, "multiple_instance must be True or False"),
        ({"balanced": "yes"}, "balanced must be True or False"),
        ({"n_components": 0}, "n_components must be an integer >= 1"),
        ({"batch_size": 1}, "batch_size must be an integer >= 2"),
        ({"n_epochs": 0}, "n_epochs must be an integer >= 1"),
        ({"n_dense": -1}, "n_dense must be an integer >= 0"),
        ({"n_drawn": 0}, "n_drawn must be an integer >= 1"),
        ({"smoothing": -1.0}, "smoothing must be a number >= 0"),
        ({"margin": float("nan")}, "margin must be finite"),
        ({"learning_rate": 0.0}, "learning_rate must be a number > 0"),
        ({"dropout": 1.0}, "dropout must be a number < 1"),
        ({"network": "resnet"}, "network must be a torch module"),
    ],
)
def test_parameters_out_of_range(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        fitted(**options)


def test_items_that_do_not_fit():
    images, captions, words = photos(ALL), sentences(ALL), vectors()
    options = {"word_vectors": words, "dev": (images, captions)}

    def refused(message, *items, **changes):
        with pytest.raises((TypeError, ValueError), match=message):
            ranker().fit(*(items or (images, captions)), **{**options, **changes})

    refused("captions must be one per image", images, captions.select([0]))
    refused("caption_image must lie in", caption_image=np.arange(20) + 1)
    refused("caption_image must have one entry", caption_image=[0])
    refused("at least two", caption_image=np.zeros(20, int))
    fewer = words.restrict(words.words[1:])
    refused("word_vectors must have one row per word", word_vectors=fewer)
    refused("word_vectors must be WordVectors or None", word_vectors=words.vectors)
    refused("captions must be SentenceFragments", images, sentences(ALL, "tree"))
    refused("images must be RegionFeatures", np.arange(20), captions)
    refused("pixels need a network", np.zeros((20, 2, 2)), captions)
    refused("images must be finite", np.full((20, 3), np.nan), captions)
    refused("at least one image", np.zeros((0, 3)), captions.select([]))
    refused("dev must be", dev=images)
    refused("dev must have 9 features", dev=(np.zeros((20, 3)), captions))
    infinite = photos(ALL)
    infinite.features[5] = np.inf
    refused("must be finite", infinite, captions)
    with pytest.raises(ValueError, match="fitted first"):
        ranker().scores(images, captions)
    model = fitted(n_epochs=1)
    with pytest.raises(ValueError, match="images must have 9 features"):
        model.scores(np.zeros((2, 3)), captions)
    other = FragmentExtractor("bigrams").fit_transform(["a dog"])
    with pytest.raises(ValueError, match="captions must have 1 relations and 9 words"):
        model.scores(images, other)
    with pytest.raises(ValueError, match="captions must be one per image"):
        model.alignments(images, captions.select([0]))
    with pytest.raises(ValueError, match="fragment must hold one fragment"):
        model.search_regions(images, captions)
    with pytest.raises(ValueError, match="task must be one of"):
        model.scores(images, captions, task="both")


def test_fragments_of_unknown_words_are_left_out():
    extractor = FragmentExtractor("bigrams").fit([" ".join(WORDS)])
    odd = extractor.transform(["red dog", "a red dog barks", "barks"])
    model = fitted()
    scores = model.scores(photos(ALL), odd)
    np.testing.assert_array_equal(scores[:, 0], scores[:, 1])
    assert (scores[:, 2] == 0).all()


RAW = [f"{colour} {thing}" for colour, thing in ALL]


@pytest.mark.parametrize("system", ["full", "words", "mean"])
def test_raw_captions_are_cut_as_a_caller_would_cut_them(tmp_path, system):
    options = dict(SYSTEMS[system])
    kind = options.pop("kind", "bigrams")
    model = ranker(fragments=kind, **options).fit(
        photos(ALL), RAW, word_vectors=vectors(kind), dev=(photos(ALL), RAW), n_threads=1
    )
    expected = fitted(kind, **options).scores(photos(ALL), sentences(ALL, kind))
    np.testing.assert_array_equal(model.scores(photos(ALL), RAW), expected)
    np.testing.assert_array_equal(model.scores(photos(ALL), sentences(ALL, kind)), expected)
    model.save(tmp_path / "model")
    again = FragmentRanker.load(tmp_path / "model")
    odd = ["a red dog barks", "zzz"]
    np.testing.assert_array_equal(
        again.scores(photos(ALL), odd), model.scores(photos(ALL), odd)
    )
    assert len(again.alignments(photos(ALL), RAW)) == 20


def test_what_stands_for_a_caption_must_be_what_was_learned():
    model = fitted(n_epochs=1)
    with pytest.raises(TypeError, match="captions must be cut into fragments or parsed"):
        model.scores(photos(ALL), RAW)
    for method in (model.embed_images, model.embed_captions):
        with pytest.raises(ValueError, match="must have one vector each to be embedded"):
            method(photos(ALL) if method == model.embed_images else sentences(ALL))
    with pytest.raises(ValueError, match="fragments must be one of"):
        ranker(fragments="letters").fit(photos(ALL), RAW)


def test_vectors_of_both_sides_give_the_scores():
    model = fitted("words", sentence="mean", regions="first", n_epochs=2)
    products = model.embed_images(photos(ALL)) @ model.embed_captions(sentences(ALL, "words")).T
    scores = model.scores(photos(ALL), sentences(ALL, "words"))
    np.testing.assert_allclose(np.maximum(products, 0), scores, atol=1e-5)


def test_a_file_of_an_earlier_version_is_read(tmp_path):
    model, items = fitted(n_epochs=1), (photos(ALL), sentences(ALL))
    model.save(tmp_path / "model")
    arrays, metadata = load_tensors(tmp_path / "model", "fragment ranker")
    assert set(metadata) == {"params", "epochs", "n_relations"}
    del metadata["params"]["fragments"]
    save_tensors(tmp_path / "earlier", "fragment ranker", arrays, metadata)
    again = FragmentRanker.load(tmp_path / "earlier")
    np.testing.assert_array_equal(again.scores(*items), model.scores(*items))
