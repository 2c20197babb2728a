"""Time of each step from a fresh environment to a page that searches one's own photos.

    python bench/studies/newcomer.py PHOTOS CAPTIONS OTHERS SCRATCH

The steps are those of README.md and of docs/serving.md, in an environment with nothing in it.
PHOTOS and CAPTIONS are what is trained on, OTHERS photos without captions. The page is opened
by Chromium: the time is until it is drawn.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SENTENCE = "a dog runs on the beach"
_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


@contextmanager
def step(name: str) -> Iterator[None]:
    """Print the time of a step."""
    begin = time.perf_counter()
    yield
    seconds = round(time.perf_counter() - begin, 3)
    print(json.dumps({"step": name, "seconds": seconds}), flush=True)


def look(address: str) -> None:
    """Open the page as a browser does, ask a sentence, and wait until photos are drawn."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        view = browser.new_page()
        view.goto(address)
        paint = round(view.evaluate(_PAINT) / 1000, 3)
        print(json.dumps({"step": "first paint of the page", "seconds": paint}), flush=True)
        view.fill("input[name=q]", SENTENCE)
        with step("a sentence, until photos are there"):
            view.press("input[name=q]", "Enter")
            view.wait_for_url("**q=*")
            view.wait_for_selector("#main img")
        browser.close()


def main() -> None:
    """Walk the path."""
    photos, captions, others, folder = (Path(word).resolve() for word in sys.argv[1:])
    folder.mkdir(parents=True)
    command, model = str(folder / "env/bin/kernelcore"), ["--model", "model"]

    def run(*words: object, cwd: Path = folder) -> None:
        subprocess.run(list(map(str, words)), cwd=cwd, check=True)

    run("git", "clone", "--quiet", ROOT, folder / "clone")
    with step("python -m venv env"):
        run(sys.executable, "-m", "venv", "env")
    with step('pip install ".[app]"'):
        run(folder / "env/bin/pip", "install", "--quiet", ".[app]", cwd=folder / "clone")
    with step("kernelcore demo"):
        run(command, "demo")
    with step("kernelcore train"):
        run(command, "train", photos, captions, *model)
    with step("kernelcore index"):
        run(command, "index", others, *model, "--index", "index")
    with step("kernelcore search"):
        run(command, "search", *model, "--index", "index", "-k", "3", SENTENCE)
    serve = [command, "serve", *model, "--photos", str(others), "--index", "index"]
    with step("kernelcore serve, until it answers"):
        page = subprocess.Popen(
            serve, cwd=folder, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True
        )
        found = (re.search(r"http://[\w.:\[\]]+", line) for line in page.stdout)
        address = next(filter(None, found))[0]
    try:
        look(address)
    finally:
        page.terminate()
        page.wait()


if __name__ == "__main__":
    main()
