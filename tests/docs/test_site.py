"""The site is built without a warning and without a network, and no link of it is broken."""

import html.parser
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest
from pages import ROOT

pytestmark = pytest.mark.slow

# Sphinx, where no address beyond this machine can be reached.
BUILD = """
import socket, sys

connect = socket.socket.connect

def connect_here(own, address):
    if own.family != socket.AF_UNIX and address[0] not in {"127.0.0.1", "localhost", "::1"}:
        raise OSError(f"the site asked for {address}")
    return connect(own, address)

socket.socket.connect = connect_here
from sphinx.cmd.build import main
sys.exit(main(sys.argv[1:]))
"""
# Templates that the theme leaves among its styles: no pages.
NOT_PAGES = {"_static/webpack-macros.html"}
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}


class Page(html.parser.HTMLParser):
    """Links, anchors and resources of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors, self.loaded = [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.anchors |= {given[key] for key in ("id", "name") if given.get(key)}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        is_part = given.get("rel") not in {"next", "prev", "search"}
        if given.get(LOADED.get(tag, "")) and is_part:
            self.loaded.append(given[LOADED[tag]])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Pages of the site by their paths, and the seconds of processors that its build took."""
    pytest.importorskip("sphinx_gallery")
    folder = tmp_path_factory.mktemp("site")
    for name in ("docs", "examples", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"):
        source, copy = ROOT / name, folder / name
        if source.is_dir():
            made = shutil.ignore_patterns("generated", "gallery")
            shutil.copytree(source, copy, ignore=made)
        else:
            shutil.copy(source, copy)
    built = folder / "html"
    options = ["-n", "-W", "--keep-going", "-q", "-j", "2"]
    before = used_by_children()
    command = [sys.executable, "-c", BUILD, *options, folder / "docs", built]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr.lower(), done.stderr
    files = set(built.rglob("*.html")) - {built / name for name in NOT_PAGES}
    pages = {path: Page(path.read_text("utf-8")) for path in files}
    return pages, used_by_children() - before


def used_by_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_two_processors_build_it_in_three_minutes(site):
    assert site[1] < 2 * 180


def test_no_link_is_broken(site):
    pages, broken = site[0], []
    for path, page in pages.items():
        for link in page.links:
            address, anchor = urldefrag(link)
            if urlsplit(link).scheme:
                continue
            target = (path.parent / unquote(address)).resolve() if address else path
            if target.is_dir():
                target /= "index.html"
            known = pages.get(target)
            if not target.exists() or (anchor and known and anchor not in known.anchors):
                broken.append(f"{path.name}: {link}")
    assert not broken


def test_nothing_comes_from_elsewhere(site):
    for path, page in site[0].items():
        for address in page.loaded:
            parts = urlsplit(address)
            assert parts.scheme in {"", "data"}, f"{path.name} loads {address}"
            assert not parts.netloc, f"{path.name} loads {address}"
            if not parts.scheme:
                assert (path.parent / unquote(parts.path)).exists(), f"{path.name}: {address}"
        text = path.read_text("utf-8")
        assert "@import" not in text


def test_styles_load_nothing_from_elsewhere(site):
    (root,) = {path.parent for path in site[0] if path.name == "genindex.html"}
    for path in Path(root).rglob("*.css"):
        assert "url(http" not in path.read_text("utf-8").replace('"', "").replace("'", "")
