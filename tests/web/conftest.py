"""A folder of drawn scenes, a collection that finds them by their words, and its pages."""

import hashlib
import re
import socket
import threading
from contextlib import contextmanager

import numpy as np
import pytest
from html_page import Page

from kernelcore.datasets import make_scenes
from kernelcore.models import Match
from kernelcore.search.collection import Ranking
from kernelcore.search.update import Changes

N_PHOTOS = 60
HOST = "http://localhost:8765"


def words_of(text):
    return re.findall(r"\w+", text.lower())


class ScenePhotos:
    """A collection: a score is the share of the words that are found."""

    def __init__(self, folder, texts):
        self.folder, self.texts = folder, texts
        self.names = dict(zip(range(10, 10 + 3 * len(texts), 3), texts, strict=True))
        self.captions = tuple(dict.fromkeys(own[0] for own in texts.values()))
        self.false_rate, self.n_training = 0.05, 40
        self.version = "first"
        self.has_line = True
        self.queries = []
        self.n_reloads = 0
        self.changes = Changes(0, 0)
        self.may_refresh = threading.Event()
        self.may_refresh.set()

    def __len__(self):
        return len(self.names)

    def numbers(self):
        return np.array(list(self.names), np.int64)

    def name(self, number):
        return self.names[number]

    def path(self, number):
        return self.folder / self.names[number]

    def digest(self, number):
        return hashlib.sha256(self.names[number].encode(errors="replace")).hexdigest()

    def search(self, sentence):
        self.queries.append(sentence)
        asked = set(words_of(sentence))
        found = [len(asked & self._vocabulary(number)) for number in self.names]
        return self._ranking(np.array(found, np.float32) / max(1, len(asked)))

    def similar(self, number, sentence=""):
        self.queries.append((number, sentence) if sentence else number)
        own = self._vocabulary(number) | set(words_of(sentence))
        scores = [len(own & self._vocabulary(other)) for other in self.names]
        return self._ranking(np.array(scores, np.float32), left_out=number)

    def similar_to(self, pixels, sentence=""):
        self.queries.append((pixels.shape, sentence) if sentence else pixels.shape)
        return self._ranking(np.arange(len(self), dtype=np.float32))

    def annotate(self, pixels, *, k=10):
        return self.annotate_photo(next(iter(self.names)), k=k)

    def annotate_photo(self, number, *, k=10):
        own = self._vocabulary(number)
        scores = [len(own & set(words_of(caption))) for caption in self.captions]
        order = np.argsort(-np.array(scores), kind="stable")[:k].tolist()
        found = enumerate(order)
        return [Match(i, float(scores[i]), self.captions[i], 0.025 * n) for n, i in found]

    def unknown_words(self, sentence):
        known = set().union(*map(self._vocabulary, self.names))
        unknown = (word for word in words_of(sentence) if word not in known)
        return {word: ("dog", "cat") if word == "dogg" else () for word in unknown}

    def contributions(self, sentence, number):
        own = self._vocabulary(number)
        return [(w, 0.25 if w in own else -0.1) for w in words_of(sentence)]

    def refresh(self):
        assert self.may_refresh.wait(20)
        if isinstance(self.changes, Exception):
            raise self.changes
        return self.changes

    def reload(self):
        self.n_reloads += 1
        return False

    def _vocabulary(self, number):
        return set(words_of(" ".join(self.texts[self.names[number]])))

    def _ranking(self, scores, left_out=None):
        numbers = self.numbers()
        order = np.argsort(-scores, kind="stable")
        order = order[numbers[order] != left_out]
        n_fitting = int((scores[order] > 0.5).sum()) if self.has_line else None
        return Ranking(numbers[order], n_fitting)


@pytest.fixture(scope="session")
def scenes():
    return make_scenes(N_PHOTOS, size=(48, 64))


@pytest.fixture(scope="session")
def photo_folder(scenes, tmp_path_factory):
    cv2 = pytest.importorskip("cv2")
    folder = tmp_path_factory.mktemp("web") / "photos <of> scenes"
    for part in ("day", "night"):
        (folder / part).mkdir(parents=True)
    for i, pixels in enumerate(scenes.images):
        assert cv2.imwrite(str(folder / photo_name(i)), pixels[:, :, ::-1])
    return folder


def photo_name(i):
    return f"{'day' if i % 2 else 'night'}/scene {i:02d}.jpg"


@pytest.fixture
def photos(scenes, photo_folder):
    texts = {photo_name(i): own for i, own in enumerate(scenes.dataset.captions)}
    return ScenePhotos(photo_folder, texts)


@pytest.fixture
def client(photos):
    with make_client(photos) as client:
        yield client


def make_client(photos, **options):
    from kernelcore.web import make_app

    client = pytest.importorskip("starlette.testclient")
    app = make_app(photos, **options)
    options = {"base_url": HOST, "headers": {"Origin": HOST}, "follow_redirects": False}
    return client.TestClient(app, **options)


@pytest.fixture
def client_of():
    """Make the pages of a collection with other options."""
    return make_client


@pytest.fixture
def served():
    """Serve an application from a thread; the context is its port."""

    @contextmanager
    def served(app):
        uvicorn = pytest.importorskip("uvicorn")
        options = {"http": "h11", "ws": "none", "lifespan": "off", "log_level": "critical"}
        server = uvicorn.Server(uvicorn.Config(app, **options))
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            thread = threading.Thread(target=server.run, args=([listener],))
            thread.start()
            try:
                yield listener.getsockname()[1]
            finally:
                server.should_exit = True
                thread.join(20)

    return served


@pytest.fixture(scope="session")
def jpeg(scenes):
    """Return the file of a photo that no collection has."""
    cv2 = pytest.importorskip("cv2")
    _, content = cv2.imencode(".jpg", scenes.images[0, :, ::-1, ::-1])
    return content.tobytes()


@pytest.fixture
def page(client):
    """Get an address and return its page."""

    def page(address, status=200, **options):
        answer = client.get(address, **options)
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        return Page(answer.text)

    return page
