"""Binary caption selection, on a corpus small enough to answer by hand."""

import numpy as np
import pytest

pytest.importorskip("cv2")

from small_corpus import COLUMNS, CROWD, EXPERT, NO, ROWS, YES, scores, write

from kernelcore.experiments.corpus import Corpus
from kernelcore.experiments.judged import NEIGHBOURS, Questions
from kernelcore.experiments.judged_captions import (
    caption_selection_section,
    caption_selections,
)


def triples(selections):
    return {
        (ROWS[p], COLUMNS[r], COLUMNS[w])
        for p, r, w in zip(selections.photos, selections.right, selections.wrong, strict=True)
    }


def questions_of(corpus, vectors, split="test"):
    questions = Questions.of(corpus, vectors, split)
    return questions, caption_selections(questions, vectors)


def test_the_crowd_asks_with_the_most_similar_wrong_caption(folder, six, vectors):
    rows = [("dog", "boat#0", NO), ("dog", "puppy#1", NO), ("dog", "car#0", YES)]
    write(folder, CROWD, rows)
    _, found = questions_of(six, vectors)
    # its own two captions and one more are right; the puppy is most like a dog, and the boat
    # most like the car
    assert triples(found[CROWD]) == {
        ("dog", "dog#0", "puppy#1"),
        ("dog", "dog#1", "puppy#1"),
        ("dog", "car#0", "boat#0"),
    }


def test_experts_ask_with_what_is_not_in_doubt(folder, six, vectors):
    rows = [
        ("dog", "puppy#0", "3\t3\t3"),
        ("dog", "boat#0", "2\t2\t2"),
        ("dog", "car#0", "2\t2\t3"),
    ]
    write(folder, EXPERT, rows)
    _, found = questions_of(six, vectors)
    right = {caption for _, caption, _ in triples(found[EXPERT])}
    assert right == {"dog#0", "dog#1", "puppy#0"}
    assert {wrong for *_, wrong in triples(found[EXPERT])} == {"boat#0"}


def test_without_people_the_other_caption_is_of_the_nearest_photo(six, vectors):
    questions, found = questions_of(six, vectors)
    assert list(found) == [NEIGHBOURS]
    photos = questions.photos
    words = dict(zip(photos.photos.image_ids, photos.words, strict=True))
    by_caption = {
        (triple.true_image_id, triple.caption_id): triple.other_image_id
        for triple in questions.selections[NEIGHBOURS]
    }
    assert triples(found[NEIGHBOURS])
    for photo, right, wrong in triples(found[NEIGHBOURS]):
        own = f"{photo}.jpg"
        other = by_caption[own, right.replace("#", ".jpg#")]
        assert wrong.split("#")[0] == other.removesuffix(".jpg")
        text = words[other][int(wrong[-1])]
        known = set().union(*words[own])
        assert len(known & set(text)) <= len(set(text)) / 4


def test_the_right_caption_must_have_the_higher_score(folder, six, vectors):
    write(folder, CROWD, [("dog", "puppy#1", NO)])
    _, found = questions_of(six, vectors)
    measured = {
        "right": scores({("dog", "dog#0"): 1, ("dog", "dog#1"): 1}),
        "half": scores({("dog", "dog#0"): 1, ("dog", "dog#1"): -1}),
        "nothing": scores({}),
        "wrong": scores({("dog", "puppy#1"): 1}),
    }
    results = [found[CROWD].evaluate(own, system=name) for name, own in measured.items()]
    assert [result.accuracy for result in results] == [1, 0.5, 0.5, 0]
    assert [result.n_tied for result in results] == [0, 0, 2, 0]
    section = caption_selection_section({CROWD: results})
    assert [row[1] for row in section.tables[0].rows] == ["100.0", "50.0", "50.0", "0.0"]


def test_a_split_without_neighbours_has_no_triples(six, vectors):
    _, found = questions_of(six, vectors, "dev")
    assert found == {}


def test_other_photos_stay_out_of_it(folder, six, vectors):
    write(folder, CROWD, [("dog", "boat#0", NO), ("boat", "car#0", YES)])
    _, found = questions_of(six, vectors)
    assert {photo for photo, _, _ in triples(found[CROWD])} == {"dog"}
    assert np.issubdtype(found[CROWD].photos.dtype, np.integer)


@pytest.mark.realdata
@pytest.mark.filterwarnings("ignore::kernelcore.datasets.DatasetWarning")
def test_triples_of_flickr8k(data_root):
    corpus = Corpus.read(data_root / "flickr8k")
    _, found = questions_of(corpus, corpus.word_vectors(None))
    counts = {source: len(own.triple_ids) for source, own in found.items()}
    assert counts == {CROWD: 6949, EXPERT: 5435, NEIGHBOURS: 453}
    owners = np.unique(corpus.pools["test"].photos, return_inverse=True)[1]
    own = (np.arange(1000)[:, np.newaxis] == owners).astype(np.float32)
    # a caption of another photo that is right ties with a wrong one
    shares = [found[source].evaluate(own).accuracy for source in (CROWD, EXPERT, NEIGHBOURS)]
    assert shares[0] < shares[1] < shares[2] == 1
