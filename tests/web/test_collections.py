"""The pages of collections as they are, with a model that was trained and with encoders."""

import re
import shutil

import pytest

pytest.importorskip("httpx2")

from kernelcore.images import VisualWords
from kernelcore.models import Encoders, PhotoRanker
from kernelcore.search import Collection, update_index


@pytest.fixture
def folder(photo_folder, tmp_path):
    return shutil.copytree(photo_folder / "day", tmp_path / "photos")


@pytest.fixture
def collection(scenes, folder):
    words = VisualWords(n_words={"colour": 16, "sift": 16}, n_sample_images=10)
    ranker = PhotoRanker(words, caption_kernel="bag_of_words", n_components_grid=(8,))
    ranker.fit(scenes.images[:40], scenes.dataset.captions[:40])

    def update(index):
        names = sorted(path.name for path in folder.glob("*.jpg"))
        return update_index(index, ranker, folder, names, on_error="skip")

    return Collection(ranker, folder, update(None)[0], update=update)


def shown(answer):
    found = re.findall(r'class="open" href="/photo/(\d+)', answer.text)
    return [int(number) for number in found]


def test_all_pages_of_a_trained_model(collection, client_of, folder):
    with client_of(collection) as client:
        sentence = collection.captions[0]
        found = client.get("/", params={"q": sentence})
        assert shown(found) == collection.search(sentence).numbers.tolist()
        assert "<mark" in found.text
        assert "does not know the word" in client.get("/?q=a xylophone").text
        number = shown(found)[0]
        page = client.get(f"/photo/{number}", params={"q": sentence})
        assert shown(page) == collection.similar(number).numbers.tolist()
        assert client.get(f"/photo/{number}/small.jpg").status_code == 200
        content = (folder / "scene 03.jpg").read_bytes()
        sent = client.post("/upload", files={"photo": ("a.jpg", content)})
        first = shown(client.get(sent.headers["location"]))[0]
        assert collection.name(first) == "scene 03.jpg"

        shutil.copy(folder / "scene 05.jpg", folder / "copy.jpg")
        (folder / "scene 01.jpg").unlink()
        (folder / "broken.jpg").write_bytes(b"no photo")
        client.post("/look")
        while (state := client.get("/look").json())["busy"]:
            pass
        assert state["said"] == "1 photo added, 1 removed. 1 file cannot be read."
        assert state["photos"] == "30 photos"
        text = client.get("/").text
        assert "copy.jpg" in text
        assert "broken.jpg: " in text
        assert str(folder) not in text


def test_encoders_without_photos_that_can_be_read(client_of):
    def letters(texts):
        return [[str(text).count(letter) for letter in "abcdeghot"] for text in texts]

    encoders = Encoders(letters, letters, name="letters")
    index = encoders.index(["dog.jpg", "cat.jpg"])
    with client_of(Collection(encoders, "nowhere", index)) as client:
        assert shown(client.get("/?q=a cat")) == [1, 0]
        assert client.get("/photo/1").status_code == 404
        assert client.get("/photo/1/small.jpg").status_code == 404
