"""Time of each step from a fresh environment to a page that searches one's own photos.

    python bench/newcomer.py --photos FOLDER --captions FILE --others FOLDER --scratch FOLDER

The steps are those of README.md and of docs/serving.md, in an environment with nothing in it.
`--photos` and `--captions` are what is trained on, `--others` photos without captions. The page
is opened by Chromium, if playwright and a browser are there: the time is until it is drawn.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SENTENCE = "a dog runs on the beach"
_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


def run(words: list[str], folder: Path) -> None:
    """Run a command and show what it prints."""
    print("$", " ".join(words), flush=True)
    subprocess.run(words, cwd=folder, check=True)


def timed(name: str, found: list[dict[str, Any]], work: Callable[[], Any]) -> Any:
    """Do a step and note its time."""
    begin = time.perf_counter()
    result = work()
    found.append({"step": name, "seconds": round(time.perf_counter() - begin, 1)})
    print(json.dumps(found[-1]), flush=True)
    return result


def serve(words: list[str], folder: Path) -> tuple[subprocess.Popen[str], str]:
    """Start the page, and return its process and its address when it is ready."""
    print("$", " ".join(words), flush=True)
    page = subprocess.Popen(
        words, cwd=folder, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True
    )
    assert page.stdout is not None
    for line in page.stdout:
        print(line, end="", flush=True)
        address = re.search(r"http://[\w.:\[\]]+", line)
        if address:
            return page, address[0]
    raise SystemExit(f"the page ended with status {page.wait()}")


def look(address: str, found: list[dict[str, Any]]) -> None:
    """Open the page as a browser does, ask a sentence, and note when something is drawn."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        view = browser.new_page()
        view.goto(address)
        paint = view.evaluate(_PAINT)
        found.append({"step": "first paint of the page", "seconds": round(paint / 1000, 3)})
        view.fill("input[name=q]", SENTENCE)
        begin = time.perf_counter()
        view.press("input[name=q]", "Enter")
        view.wait_for_url("**q=*")
        view.wait_for_selector("#main img")
        seconds = round(time.perf_counter() - begin, 3)
        found.append({"step": "a sentence, until photos are there", "seconds": seconds})
        browser.close()


def main() -> None:
    """Walk the path."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("photos", "captions", "others", "scratch"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--write", type=Path, help="file for the result as JSON")
    args = parser.parse_args()
    photos, captions, others, folder = (
        path.resolve() for path in (args.photos, args.captions, args.others, args.scratch)
    )
    folder.mkdir(parents=True)
    found: list[dict[str, Any]] = []
    command = str(folder / "env/bin/kernelcore")
    run(["git", "clone", "--quiet", str(ROOT), str(folder / "clone")], folder)
    timed(
        "python -m venv env", found, lambda: run([sys.executable, "-m", "venv", "env"], folder)
    )
    install = [str(folder / "env/bin/pip"), "install", "--quiet", ".[app]"]
    timed('pip install ".[app]"', found, lambda: run(install, folder / "clone"))
    timed("kernelcore demo", found, lambda: run([command, "demo"], folder))
    train = [command, "train", str(photos), str(captions), "--model", "model"]
    timed("kernelcore train", found, lambda: run(train, folder))
    index = [command, "index", str(others), "--model", "model", "--index", "index"]
    timed("kernelcore index", found, lambda: run(index, folder))
    search = [command, "search", "--model", "model", "--index", "index", "-k", "3", SENTENCE]
    timed("kernelcore search", found, lambda: run(search, folder))
    words = [command, "serve", "--model", "model", "--photos", str(others), "--index", "index"]
    page, address = timed(
        "kernelcore serve, until it answers", found, lambda: serve(words, folder)
    )
    try:
        look(address, found)
    finally:
        page.terminate()
        page.wait()
    for step in found:
        print(f"{step['seconds']:8.1f} s  {step['step']}")
    if args.write is not None:
        args.write.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
