"""Pictures of the search page for the documentation.

    python docs/screenshots.py

It draws scenes, trains a model on some of them, serves the others, and photographs the pages
with Chromium. It needs the extra ``web``, playwright and a chromium.
"""

from __future__ import annotations

import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import uvicorn
from playwright.sync_api import Browser, sync_playwright

from kernelcore.datasets import make_scenes
from kernelcore.images import VisualWords
from kernelcore.models import PhotoRanker
from kernelcore.search import Collection, update_index
from kernelcore.web import make_app

PICTURES = Path(__file__).parent / "images"
SENTENCE = "A red dog chases a cat on the grass."
N_TRAINING, N_SHOWN = 600, 200
# name, sentence, width and height of the window, theme
SHOTS = [
    ("search_page", SENTENCE, (1280, 800), "light"),
    ("search_page_dark", SENTENCE, (1280, 800), "dark"),
    ("search_page_phone", SENTENCE, (360, 740), "light"),
]


def collection_in(folder: Path) -> Collection:
    """Train on some scenes, and write the others into a folder."""
    scenes = make_scenes(N_TRAINING, size=(180, 240))
    words = VisualWords(n_words={"colour": 64, "sift": 64}, n_sample_images=100)
    ranker = PhotoRanker(words).fit(scenes.images, scenes.dataset.captions)
    make_scenes(N_SHOWN, rng=1, size=(300, 400)).write(folder)
    photos = folder / "images"
    names = sorted(path.name for path in photos.iterdir())
    index, _ = update_index(None, ranker, photos, names)
    return Collection(ranker, photos, index)


@contextmanager
def served(collection: Collection) -> Iterator[str]:
    """Serve the pages; yield their address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(make_app(collection), log_level="error"))
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


def shoot(browser: Browser, address: str) -> None:
    """Write a picture of each page, and one of a photo."""
    for name, sentence, (width, height), theme in SHOTS:
        size = {"width": width, "height": height}
        with browser.new_context(viewport=size, color_scheme=theme) as context:
            page = context.new_page()
            page.goto(f"{address}/?{urlencode({'q': sentence})}")
            page.wait_for_load_state("networkidle")
            page.screenshot(path=PICTURES / f"{name}.jpg", type="jpeg", quality=85)
            if name == SHOTS[0][0]:
                page.locator(".open").first.click()
                page.get_by_role("heading", name="Why it was found").wait_for()
                page.wait_for_load_state("networkidle")
                page.screenshot(
                    path=PICTURES / "search_page_photo.jpg", type="jpeg", quality=85
                )


def main() -> None:
    """Write all pictures."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        served(collection_in(Path(folder))) as address,
        sync_playwright() as playwright,
    ):
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        shoot(chromium, address)
        chromium.close()


if __name__ == "__main__":
    main()
