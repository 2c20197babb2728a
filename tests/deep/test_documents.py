"""Linking inside documents: what is learned, kept, resumed and refused."""

from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from refusals import refuses  # noqa: E402

from kernelcore.datasets import Document  # noqa: E402
from kernelcore.deep import DocumentLinker, hinge_loss, set_similarities  # noqa: E402
from kernelcore.evaluation import evaluate_links  # noqa: E402

SYSTEMS = [("AP", None), ("AP", "half"), ("TK", None), ("TK", "half")]
SYSTEMS += [("DC", None), ("NoStruct", None)]
WORDS = ("big", "small"), ("red", "blue", "green"), ("dog", "cat", "boat", "rose")
THINGS = [" ".join(words) for words in product(*WORDS)]


def world(n_documents, seed=0, n=4, n_linked=3):
    """Documents about things, of whose pictures a feature tells what they show."""
    rng = np.random.default_rng(seed)
    features = {f"{t}.jpg": np.eye(len(THINGS))[i] for i, t in enumerate(THINGS)}
    documents = []
    for d in range(n_documents):
        things = rng.permutation(len(THINGS))
        shown, told = things[:n], np.r_[things[:n_linked], things[n : 2 * n - n_linked]]
        told = rng.permutation(told)
        links = {(a, b) for a, i in enumerate(told) for b, j in enumerate(shown) if i == j}
        members = [f"a {THINGS[i]}" for i in told], [f"{THINGS[i]}.jpg" for i in shown]
        documents.append(Document(str(d), *map(tuple, members), links))
    return documents, features


def linker(**options):
    settings = {"n_components": 16, "n_embedding": 12, "min_count": 1, "dropout": 0.0}
    settings |= {"n_epochs": 3, "n_negatives": 4, "n_warm_up": 1, "learning_rate": 0.01}
    settings["rng"] = 0
    return DocumentLinker(**{**settings, **options})


def quality(model, documents, features):
    scores = model.link_scores(documents, features)
    return evaluate_links(scores, [d.links for d in documents]).mean["links"]


@pytest.mark.parametrize(("similarity", "k"), SYSTEMS)
def test_every_model_overfits_twenty_pairs(similarity, k):
    _, features = world(1)
    pairs = [Document(t, (f"a {t}",), (f"{t}.jpg",)) for t in THINGS[:20]]
    options = {"n_negatives": 19, "n_epochs": 50, "learning_rate": 0.02}
    model = linker(similarity=similarity, k=k, **options)
    model.fit(pairs, features, dev=pairs, n_threads=1)
    members = ([d.sentences[0] for d in pairs], [d.images[0] for d in pairs])
    (scores,) = model.link_scores([Document("all", *map(tuple, members))], features)
    np.testing.assert_array_equal(scores.argmax(axis=1), np.arange(20))
    np.testing.assert_array_equal(scores.argmax(axis=0), np.arange(20))


def test_the_history_tells_how_well_links_are_found():
    documents, features = world(8)
    model = linker(n_epochs=1).fit(documents, features, dev=documents, n_threads=1)
    assert model.history_.epochs[0]["dev_auc"] == quality(model, documents, features)["AUC"]
    half = [*documents[:4], *(replace(d, links=None) for d in documents[4:])]
    model = linker(n_epochs=1).fit(documents, features, dev=half, n_threads=1)
    assert "dev_auc" not in model.history_.epochs[0]


def test_a_checkpoint_of_other_development_documents_is_refused(tmp_path):
    documents, features = world(4)
    train = [replace(d, links=None) for d in documents]  # links are not looked at
    fit = partial(linker(n_epochs=1).fit, train, features, n_threads=1, folder=tmp_path)
    fit(dev=documents[:2])
    refuses(ValueError, "folder", fit, dev=documents[:3])


def test_scores_are_cosines_of_each_document():
    documents, features = world(6)
    images = documents[1].images
    ragged = [documents[0], Document("x", ("a red dog",), images[:3])]
    ragged.append(Document("y", ("words nobody knows", "a red dog", ""), images[:1]))
    model = linker().fit(documents, features, dev=documents, n_threads=1)
    together = model.link_scores(ragged, features)
    assert [scores.shape for scores in together] == [(4, 4), (1, 3), (3, 1)]
    assert all(np.abs(scores).max() <= 1 + 1e-6 for scores in together)
    for document, scores in zip(ragged, together, strict=True):
        (alone,) = model.link_scores([document], features)
        np.testing.assert_allclose(alone, scores, atol=1e-6)


def test_the_loss_is_the_formula_over_the_documents():
    """One compiled call over distinct sentences equals a loop over pairs of documents."""
    documents, features = world(7)
    documents[3] = Document("same", documents[2].sentences, documents[1].images[:2])
    model = linker(k="half", n_warm_up=2).fit(documents, features, dev=documents, n_threads=1)
    table = model._tabulate(documents, features)
    batch = [5, 3, 2, 1]
    for epoch, negatives in ((1, "mean"), (2, "hardest")):
        loss = model._loss(table, batch, epoch, None)
        texts, images = model.space_.encode_all(table)
        pairs = torch.zeros(4, 4)
        for (i, a), (j, b) in product(enumerate(batch), repeat=2):
            S = texts[table.sentence_rows[a]] @ images[table.image_rows[b]].T
            offsets = [0, S.shape[0]], [0, S.shape[1]]
            pairs[i, j] = set_similarities(S, *offsets, method="AP", k="half").item()
        expected = hinge_loss(pairs, negatives=negatives)
        assert loss.item() == pytest.approx(expected.item(), abs=1e-6)
    batches = model._batches(table, 3, torch.Generator().manual_seed(0))
    assert [len(batch) for batch in batches] == [3, 4]
    assert sorted(i for batch in batches for i in batch) == list(range(7))


def test_bad_input_is_refused():
    documents, features = world(3)
    for ask in (linker().link_scores, lambda *_: linker().save("nowhere")):
        refuses(ValueError, "fitted", ask, documents, features)
    name = documents[1].images[0]
    given = {"documents": documents, "features": features, "dev": documents}
    for named, changes in (
        ("documents", {"documents": documents[:1]}),
        ("dev", {"dev": []}),
        ("documents", {"documents": ["x", "y"]}),
        ("1 images", {"features": {k: v for k, v in features.items() if k != name}}),
        ("length", {"features": {**features, name: [1.0]}}),
        ("features", {"features": {**features, name: features[name] * np.nan}}),
    ):
        refuses((TypeError, ValueError), named, linker().fit, **{**given, **changes})
    model = linker().fit(**given, n_threads=1)
    others = {key: [1.0, 2.0] for key in features}
    refuses(ValueError, "features", model.link_scores, documents, others)
