import shutil
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcore._extras import MissingExtraError
from kernelcore.evaluation.caption_metrics import (
    DocumentFrequencies,
    bleu,
    cider,
    cider_d,
    coco_tokenize,
    java,
    meteor,
    rouge_l,
    spice,
)
from kernelcore.reference import evaluation as reference

METRICS = [bleu, rouge_l, cider, cider_d]
WORDS = ["a", "b", "c", "día", "\N{DOG FACE}"]
CAPTIONS = st.lists(st.sampled_from(WORDS), max_size=8)
CORPORA = st.lists(st.tuples(CAPTIONS, st.lists(CAPTIONS, min_size=1, max_size=4)), min_size=1)


def unzip(corpus):
    candidates, references = zip(*corpus, strict=True)
    return list(candidates), list(references)


def random_corpus(seed, n_images=200, n_references=5):
    """Sentences of a small vocabulary with repeated words; some candidates are references."""
    rng = np.random.default_rng(seed)

    def sentence():
        ranks = np.minimum(rng.zipf(1.4, rng.integers(1, 15)), 60)
        return " ".join(f"w{rank}" for rank in ranks)

    counts = rng.integers(1, n_references + 1, n_images)
    references = [[sentence() for _ in range(n)] for n in counts]
    candidates = [sets[0] if rng.random() < 0.2 else sentence() for sets in references]
    return candidates, references


def as_peer_input(candidates, references):
    return dict(enumerate(references)), {i: [text] for i, text in enumerate(candidates)}


@given(corpus=CORPORA, max_n=st.integers(1, 5))
@settings(max_examples=100, deadline=None)
def test_bleu_equals_the_reference(corpus, max_n):
    candidates, references = unzip(corpus)
    scores = bleu(candidates, references, max_n=max_n)
    whole, each = reference.bleu(candidates, references, max_n)
    assert scores.corpus.shape == (max_n,)
    np.testing.assert_allclose(scores.corpus, whole, rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(scores.captions, each, rtol=1e-12, atol=1e-300)


@given(corpus=CORPORA)
@settings(max_examples=100, deadline=None)
def test_rouge_l_equals_the_reference(corpus):
    candidates, references = unzip(corpus)
    scores = rouge_l(candidates, references)
    expected = [reference.rouge_l(c, r) for c, r in corpus]
    np.testing.assert_allclose(scores.captions, expected, rtol=1e-14)
    assert scores.corpus == pytest.approx(np.mean(expected))


@given(corpus=CORPORA, others=st.lists(st.lists(CAPTIONS, min_size=1), min_size=1))
@settings(max_examples=100, deadline=None)
def test_cider_equals_the_reference_with_frequencies_of_any_corpus(corpus, others):
    candidates, references = unzip(corpus)
    counts = reference.document_frequencies(others) or Counter({("none",): 1})
    of_others = {"frequencies": counts, "n_documents": len(others)}
    counted = DocumentFrequencies.from_references(others)
    for metric, sigma in ((cider, None), (cider_d, 6.0)):
        for options, given_counts in (({}, {}), ({"document_frequencies": counted}, of_others)):
            scores = metric(candidates, references, **options)
            expected = reference.cider(candidates, references, sigma=sigma, **given_counts)
            np.testing.assert_allclose(scores.captions, expected, rtol=1e-12, atol=1e-14)
            assert scores.corpus == pytest.approx(np.mean(expected))


@pytest.mark.parametrize("seed", [0, 1])
def test_equal_to_pycocoevalcap(seed):
    corpus = random_corpus(seed)
    for ours, theirs in peer_scores(*corpus):
        assert_same(ours, theirs)


def peer_scores(candidates, references):
    """Pairs of our scores and those of pycocoevalcap."""
    pytest.importorskip("pycocoevalcap")
    from pycocoevalcap.bleu.bleu import Bleu
    from pycocoevalcap.cider.cider import Cider
    from pycocoevalcap.rouge.rouge import Rouge

    inputs = as_peer_input(candidates, references)
    yield cider_d(candidates, references), Cider().compute_score(*inputs)
    yield rouge_l(candidates, references), Rouge().compute_score(*inputs)
    yield bleu(candidates, references), Bleu().compute_score(*inputs, verbose=0)


def assert_same(ours, theirs):
    np.testing.assert_allclose(ours.corpus, theirs[0], rtol=0, atol=1e-9)
    np.testing.assert_allclose(ours.captions.T, np.array(theirs[1]), rtol=0, atol=1e-9)


def test_cider_is_cider_d_of_pycocoevalcap_where_nothing_is_clipped_or_penalised():
    pytest.importorskip("pycocoevalcap")
    from pycocoevalcap.cider.cider import Cider

    candidates, references = random_corpus(2)
    candidates = [" ".join(dict.fromkeys(text.split())) for text in candidates]
    scores = Cider(sigma=1e9).compute_score(*as_peer_input(candidates, references))
    assert_same(cider(candidates, references), scores)


@pytest.mark.parametrize("metric", METRICS)
def test_texts_and_tokens_give_the_same(metric):
    texts, references = random_corpus(4, 20)
    tokens = [tuple(text.split()) for text in texts]
    spaced = [f"  {text} \n".replace(" ", "\t ") for text in texts]
    expected = metric(texts, references).captions
    sets = tuple([text.split() for text in texts] for texts in references)
    assert (metric(tokens, sets).captions == expected).all()
    assert (metric(spaced, references).captions == expected).all()


@pytest.mark.parametrize("metric", METRICS)
def test_more_candidates_than_a_block(metric):
    """Scores do not depend on what else is scored, once the frequencies are given."""
    candidates, references = random_corpus(5, 2500, 2)
    options = {}
    if metric in (cider, cider_d):
        frequencies = DocumentFrequencies.from_references(references)
        options["document_frequencies"] = frequencies
    scores = metric(candidates, references, **options).captions
    for part in (slice(0, 7), slice(1020, 1030), slice(2490, 2500)):
        few = metric(candidates[part], references[part], **options).captions
        np.testing.assert_allclose(few, scores[part], rtol=1e-14)


def needs_java(module):
    pytest.importorskip(module)
    if shutil.which("java") is None:
        pytest.skip("METEOR and SPICE are Java programs, and there is no Java here")


@pytest.mark.tools
def test_meteor():
    needs_java("pycocoevalcap.meteor.meteor")
    candidates = ["a dog runs", "a cat ||| is\tsleeping", "nothing", ""]
    references = [["a dog runs"], ["the cat sleeps", "a cat is sleeping"], ["a bird"], ["a"]]
    scores = meteor(candidates, references)
    assert scores.captions[:2] == pytest.approx([1, 1], abs=0.02)
    assert scores.captions[2:].tolist() == [0, 0]
    assert 0 < scores.corpus < 1


@pytest.mark.parametrize("metric", [meteor, spice])
def test_error_names_what_is_missing(monkeypatch, metric):
    def missing(name):
        raise MissingExtraError('this needs pycocoevalcap: pip install "kernelcore[captions]"')

    monkeypatch.setattr(java, "require", missing)
    for found, message in ((None, "needs Java.*no command java"), ("java", r"\[captions\]")):
        monkeypatch.setattr(java.shutil, "which", lambda _, found=found: found)
        with pytest.raises(MissingExtraError, match=message):
            metric(["a"], [["a"]])


@pytest.mark.realdata
def test_equal_to_pycocoevalcap_on_flickr8k(data_root):
    """The third caption of an image, or of the next one, against the other four."""
    images: dict[str, list[str]] = {}
    path = data_root / "flickr8k" / "Flickr8k.token.txt"
    for line in path.read_text(encoding="utf-8").splitlines()[:5000]:
        name, text = line.split("\t")
        images.setdefault(name.partition("#")[0], []).append(" ".join(coco_tokenize(text)))
    captions = list(images.values())
    candidates = [captions[i + i % 2][2] for i in range(len(captions) - 1)]
    references = [[*own[:2], *own[3:]] for own in captions[:-1]]
    for ours, theirs in peer_scores(candidates, references):
        assert_same(ours, theirs)
