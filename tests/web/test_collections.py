"""The pages of collections as they are, with a model that was trained and with encoders."""

import re
import shutil

import cv2
import pytest

pytest.importorskip("httpx2")

from kernelcore.images import VisualWords
from kernelcore.models import Encoders, PhotoRanker
from kernelcore.search import Collection, update_index

N_TRAINING = 40


@pytest.fixture(scope="module")
def ranker(scenes):
    words = VisualWords(n_words={"colour": 16, "sift": 16}, n_sample_images=10)
    ranker = PhotoRanker(words, caption_kernel="bag_of_words", n_components_grid=(8,))
    return ranker.fit(scenes.images[:N_TRAINING], scenes.dataset.captions[:N_TRAINING])


@pytest.fixture
def folder(scenes, tmp_path):
    place = tmp_path / "photos"
    place.mkdir()
    for i, pixels in enumerate(scenes.images[N_TRAINING : N_TRAINING + 12]):
        assert cv2.imwrite(str(place / f"{i:02d}.png"), pixels[:, :, ::-1])
    return place


def names(folder):
    return sorted(path.name for path in folder.glob("*.png"))


@pytest.fixture
def collection(ranker, folder):
    index, _ = update_index(None, ranker, folder, names(folder))

    def update(index):
        return update_index(index, ranker, folder, names(folder), on_error="skip")

    return Collection(ranker, folder, index, update=update)


def shown(text):
    return [int(number) for number in re.findall(r'class="open" href="/photo/(\d+)', text)]


def test_all_pages_of_a_trained_model(collection, client_of, jpeg):
    with client_of(collection) as client:
        sentence = collection.captions[0]
        found = client.get("/", params={"q": sentence})
        assert shown(found.text) == collection.search(sentence).numbers.tolist()
        assert "<mark" in found.text
        assert "does not know the word" in client.get("/?q=a xylophone").text
        number = shown(found.text)[0]
        page = client.get(f"/photo/{number}", params={"q": sentence})
        assert shown(page.text) == collection.similar(number).numbers.tolist()
        assert "Why it was found" in page.text
        assert "Sentences that fit best" in page.text
        assert client.get(f"/photo/{number}/small.jpg").status_code == 200
        sent = client.post("/upload", files={"photo": ("a.jpg", jpeg)})
        assert len(shown(client.get(sent.headers["location"]).text)) >= 10


def test_the_same_photo_is_the_most_similar_one(collection, client_of, folder):
    with client_of(collection) as client:
        content = (folder / "03.png").read_bytes()
        sent = client.post("/upload", files={"photo": ("a.png", content)})
        first = shown(client.get(sent.headers["location"]).text)[0]
        assert collection.name(first) == "03.png"


def test_photos_are_added_while_pages_are_served(collection, client_of, folder):
    with client_of(collection) as client:
        shutil.copy(folder / "00.png", folder / "copy.png")
        (folder / "01.png").unlink()
        (folder / "broken.png").write_bytes(b"no photo")
        client.post("/look")
        while (state := client.get("/look").json())["busy"]:
            pass
        assert state["said"] == "1 photo added, 1 removed. 1 file cannot be read."
        assert state["photos"] == "12 photos"
        text = client.get("/").text
        assert "copy.png" in text
        assert "broken.png: " in text
        assert str(folder) not in text


def test_encoders_without_photos_that_can_be_read(client_of):
    def letters(texts):
        return [[str(text).count(letter) for letter in "abcdeghot"] for text in texts]

    encoders = Encoders(letters, letters, name="letters")
    index = encoders.index(["dog.jpg", "cat.jpg"])
    with client_of(Collection(encoders, "nowhere", index)) as client:
        found = client.get("/?q=a cat")
        assert shown(found.text) == [1, 0]
        assert client.get("/photo/1").status_code == 404
        assert client.get("/photo/1/small.jpg").status_code == 404
