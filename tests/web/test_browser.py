"""The pages in a browser: without a violation, without a mouse, without JavaScript.

One way through the pages belongs to the usual suite where there is a browser, the rest is slow.
"""

import re
import shutil
import threading
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from urllib.parse import urlsplit

import cv2
import numpy as np
import pytest

pytest.importorskip("httpx2")

from kernelcore.search.update import Changes
from kernelcore.web import make_app

api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("uvicorn")
expect = api.expect

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
OPTIONS = ["--no-sandbox", "--disable-background-networking", "--disable-component-update",
           "--no-first-run"]  # fmt: skip
AXE = Path(__file__).with_name("axe.min.js")
TOKEN = "a long and secret token"

missing = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium")
pytestmark = [pytest.mark.tools, missing]


@pytest.fixture(scope="module")
def browser():
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield browser
        browser.close()


@pytest.fixture
def serve_pages(photos, served):
    """Serve the pages from a thread; return their address."""
    with ExitStack() as servers:

        def serve_pages(**options):
            port = servers.enter_context(served(make_app(photos, **options)))
            return f"http://127.0.0.1:{port}"

        yield serve_pages
        photos.may_refresh.set()


@pytest.fixture
def site(serve_pages):
    return serve_pages()


@pytest.fixture
def open_page(browser, serve_pages):
    """Open an address; fail if anything beyond this machine is asked for, or in the console."""
    contexts, faults = [], []

    def foreign(route):
        faults.append(route.request.url)
        route.abort()

    def open_page(address, *, width=1280, allowed=(), **options):
        size = {"width": width, "height": 800}
        context = browser.new_context(viewport=size, reduced_motion="reduce", **options)
        contexts.append(context)
        context.route(re.compile(r"^(?!http://127\.0\.0\.1:)"), foreign)
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))

        def listen(message):
            if message.type == "error" and not any(text in message.text for text in allowed):
                faults.append(message.text)

        page.on("console", listen)
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert faults == []


def shown(page):
    """Return the numbers of the photos on a page."""
    links = page.locator(".photo .open").evaluate_all("all => all.map(a => a.pathname)")
    return [int(link.removeprefix("/photo/")) for link in links]


def focused(page):
    """Return the position of the photo that has the focus."""
    return page.evaluate("Number(document.activeElement.getAttribute('aria-posinset'))")


def drop(page, kind, content, name="photo.jpg"):
    page.evaluate(
        """([kind, content, name]) => {
            const files = new DataTransfer();
            files.items.add(new File([new Uint8Array(content)], name, { type: "image/jpeg" }));
            const Event = kind === "paste" ? ClipboardEvent : DragEvent;
            const data = kind === "paste" ? { clipboardData: files } : { dataTransfer: files };
            const own = { bubbles: true, cancelable: true };
            document.body.dispatchEvent(new Event(kind, { ...own, ...data }));
        }""",
        [kind, list(content), name],
    )


# States of the pages


def send(page, content):
    photo = {"name": "a.jpg", "mimeType": "image/jpeg", "buffer": content}
    page.locator("#photo").set_input_files(photo)


def all_results(page, site):
    """Some are chosen, and there is a note."""
    page.goto(f"{site}/?q=dog")
    page.mouse.wheel(0, 100_000)
    expect(page.locator(".photo")).to_have_count(60)
    page.locator(".photo .choose").nth(1).check()
    expect(page.locator("#chosen")).to_be_visible()
    page.evaluate("document.querySelector('#note').textContent = 'Names copied.'")


def uploaded(page, site):
    page.goto(site)
    send(page, cv2.imencode(".png", np.full((30, 40, 3), 90, np.uint8))[1].tobytes())
    expect(page.locator("h1")).to_have_text("Your photo")


def no_photo(page, site):
    page.goto(site)
    send(page, b"text")
    expect(page.locator("h1")).to_have_text("This is no photo")


def keys(page, site):
    page.goto(f"{site}/?q=dog")
    page.locator("#ask").click()
    expect(page.locator("#help")).to_be_visible()


def dropping(page, site):
    page.goto(f"{site}/?q=dog")
    drop(page, "dragover", b"x")
    expect(page.locator("#drop")).to_be_visible()


def busy(page, site):
    page.goto(site)
    page.locator("#look button").click()
    expect(page.locator("#looked")).to_have_text("Looking for new photos …")


def wrong_token(page, site):
    page.goto(f"{site}/?q=dog")
    page.get_by_label("Token").fill("not this one, at all")
    page.keyboard.press("Enter")
    expect(page.get_by_text("This is not the token.")).to_be_visible()


ADDRESSES = [
    *("/", "/?q=dog", "/?q=xyzzy", "/?q=a dogg or a dog", "/?q=dog&start=48", "/help"),
    *("/photo/10?q=a dog and a cat", "/photo/11", "/?start=x"),
]
STATES = [all_results, uploaded, no_photo, keys, dropping, busy, wrong_token]
WIDER = "document.documentElement.scrollWidth > innerWidth"
MOVING = """
    [...document.querySelectorAll("*")].map((e) => getComputedStyle(e))
        .filter((s) => s.transitionDuration !== "0s" || s.animationName !== "none").length
"""


@pytest.mark.slow
@pytest.mark.parametrize("state", [*ADDRESSES, *STATES])
def test_no_state_violates_a_rule_of_accessibility(open_page, serve_pages, photos, state):
    photos.may_refresh.clear()
    site = serve_pages(token=TOKEN if state is wrong_token else None)
    page = open_page(f"{site}/help", allowed=["status of 4"])
    if isinstance(state, str):
        page.goto(f"{site}{state}")
    else:
        state(page, site)
    page.evaluate(AXE.read_text("utf-8"))
    for theme, width in product(("light", "dark"), (360, 1920)):
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        page.set_viewport_size({"width": width, "height": 800})
        found = page.evaluate("axe.run({ resultTypes: ['violations'] })")["violations"]
        assert found == [], (theme, width)
        assert not page.evaluate(WIDER), (theme, width)
    assert page.evaluate(MOVING) == 0


def test_search_with_keys_open_and_back(open_page, site, photos):
    page = open_page(site)
    press = page.keyboard.press
    press("/")
    page.keyboard.type("dog")
    press("Enter")
    expect(page).to_have_url(f"{site}/?q=dog")
    ranking = photos.search("dog").numbers.tolist()
    assert shown(page)[:48] == ranking[:48]
    press("ArrowDown")
    assert focused(page) == 1
    press("ArrowRight")
    press("Enter")
    expect(page).to_have_url(f"{site}/photo/{ranking[1]}?q=dog")
    expect(page.locator("h1")).to_have_text(photos.name(ranking[1]))
    page.go_back()
    expect(page).to_have_url(f"{site}/?q=dog")
    assert focused(page) == 2


@pytest.mark.slow
def test_keys_on_the_page_of_a_photo(open_page, site, photos):
    ranking = photos.search("dog").numbers.tolist()
    page = open_page(f"{site}/photo/{ranking[0]}?q=dog")
    press = page.keyboard.press
    press("ArrowRight")
    expect(page).to_have_url(f"{site}/photo/{ranking[1]}?q=dog")
    press("ArrowLeft")
    expect(page).to_have_url(f"{site}/photo/{ranking[0]}?q=dog")
    page.locator("input[name=and]").fill("in the snow")
    press("ArrowRight")  # in a text it moves the cursor
    press("Enter")
    expect(page).to_have_url(f"{site}/photo/{ranking[0]}?q=dog&and=in+the+snow#similar")
    page.locator(".photo .choose").first.focus()
    press("Enter")
    expect(page.locator("#n-chosen")).to_have_text("1 photo chosen")
    press("Escape")
    expect(page).to_have_url(f"{site}/?q=dog")


@pytest.mark.slow
def test_keys(open_page, site, photos):
    page = open_page(f"{site}/?q=dog")
    press = page.keyboard.press
    ranking = photos.search("dog").numbers.tolist()
    press("Tab")
    expect(page.locator(".skip")).to_be_in_viewport()
    press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.locator(".photo").first.focus()
    press("PageDown")
    assert focused(page) == 2
    press("ArrowDown")
    assert focused(page) > 3
    press("ArrowUp")
    press("PageUp")
    assert focused(page) == 1
    press(" ")
    press("ArrowRight")
    press(" ")
    expect(page.locator("#n-chosen")).to_have_text("2 photos chosen")
    press(" ")
    expect(page.locator("#n-chosen")).to_have_text("1 photo chosen")
    press("s")
    expect(page).to_have_url(f"{site}/photo/{ranking[1]}?q=dog#similar")
    assert page.evaluate("document.activeElement.id") == "similar"
    page.locator(".photo").first.focus()
    press("Control+Home")
    assert page.evaluate("document.activeElement.id") == "q"
    page.locator("#q").fill("")
    page.locator("#q").press_sequentially("s/? ")  # in a text they are letters
    expect(page.locator("#q")).to_have_value("s/? ")
    press("Escape")
    press("?")
    expect(page.locator("#help")).to_be_visible()
    page.get_by_label("Use the keys").uncheck()
    press("Escape")
    expect(page.locator("#help")).to_be_hidden()
    page.reload()
    press("?")
    expect(page.locator("#help")).to_be_hidden()
    page.locator(".photo").first.focus()
    for _ in range(3):
        press("Tab")
        style = page.evaluate(
            "(({ outlineStyle, outlineWidth }) => [outlineStyle, parseFloat(outlineWidth)])"
            "(getComputedStyle(document.activeElement))"
        )
        assert style[0] == "solid"
        assert style[1] >= 2


@pytest.mark.slow
def test_without_javascript_everything_has_a_link_or_a_button(open_page, site, photos, jpeg):
    page = open_page(site, java_script_enabled=False, width=360)
    assert not page.evaluate(WIDER)
    page.locator("#q").fill(photos.captions[0])
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text(photos.captions[0])
    ranking = photos.search(photos.captions[0])
    assert shown(page) == ranking.numbers[:48].tolist()
    expect(page.get_by_text("From here on by chance")).to_be_visible()
    page.locator(".photo .choose").nth(0).check()
    page.locator(".photo .choose").nth(2).check()
    with page.expect_download() as download:
        page.get_by_role("button", name="Export names").click()
    names = Path(download.value.path()).read_text("utf-8").splitlines()
    assert names == [photos.name(int(n)) for n in ranking.numbers[[0, 2]]]
    page.get_by_role("link", name="More photos").click()
    expect(page.locator(".photo")).to_have_count(12)
    assert shown(page) == ranking.numbers[48:].tolist()
    page.locator(".photo .open").first.click()
    expect(page.locator("h1")).to_have_text(photos.name(int(ranking.numbers[48])))
    send(page, jpeg)
    page.get_by_role("button", name="Search with it").click()
    expect(page.locator("h1")).to_have_text("Your photo")
    page.get_by_role("button", name="Look for new photos").click()
    expect(page.locator("h1")).to_have_text("Search 60 photos")


@pytest.mark.slow
def test_results_go_on_and_are_found_again(open_page, site, photos):
    sentence = photos.captions[0]
    ranking = photos.search(sentence)
    page = open_page(f"{site}/?q={sentence}", width=800)
    page.mouse.wheel(0, 100_000)
    expect(page.locator(".photo")).to_have_count(60)
    assert shown(page) == ranking.numbers.tolist()
    expect(page.locator("#above .photo")).to_have_count(ranking.n_fitting)
    expect(page.locator("#below .photo")).to_have_count(60 - ranking.n_fitting)
    expect(page.locator("[role=feed]")).to_have_count(2)
    expect(page.locator("#more")).to_contain_text("These were all 60 photos.")
    assert page.locator("[aria-busy]").count() == 0
    positions = page.locator(".photo").evaluate_all("all => all.map(a => a.ariaPosInSet)")
    assert positions == [str(i + 1) for i in range(60)]
    page.locator(".photo").nth(50).scroll_into_view_if_needed()
    before = page.evaluate("scrollY")
    page.locator(".photo .open").nth(50).click()
    expect(page.locator("#similar")).to_be_visible()
    assert page.evaluate("scrollY") == 0
    page.go_back()
    expect(page.locator(".photo")).to_have_count(60)
    assert page.evaluate("scrollY") == pytest.approx(before, abs=2)
    expect(page.locator("#q")).to_have_value(sentence)
    page.go_forward()
    page.reload()
    expect(page.locator("#similar")).to_be_visible()
    page.go_back()
    expect(page.locator("#q")).to_have_value(sentence)


@pytest.mark.slow
def test_a_newer_search_ends_the_last(open_page, site, photos):
    page = open_page(site)
    waits = threading.Event()
    search = photos.search
    photos.search = lambda sentence: (sentence == "cat" and waits.wait(10), search(sentence))[1]
    page.locator("#q").fill("cat")
    page.keyboard.press("Enter")
    page.locator("#q").fill("dog")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{site}/?q=dog")
    waits.set()
    page.wait_for_timeout(300)
    expect(page).to_have_url(f"{site}/?q=dog")
    expect(page.locator("h1")).to_have_text("dog")
    expect(page.locator("#note")).to_have_text("")
    assert not page.evaluate("document.documentElement.classList.contains('loading')")


@pytest.mark.slow
def test_chosen_photos_stay_chosen_and_are_copied(open_page, site, photos):
    page = open_page(f"{site}/?q=dog", permissions=["clipboard-read", "clipboard-write"])
    expect(page.locator("#chosen")).to_be_hidden()
    numbers = shown(page)
    page.locator(".photo .choose").nth(0).check()
    page.locator("#q").fill("cat")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("cat")
    others = [n for n in shown(page) if n != numbers[0]]
    page.locator(f".choose[value='{others[0]}']").check()
    expect(page.locator("#n-chosen")).to_have_text("2 photos chosen")
    page.get_by_role("button", name="Copy names").click()
    expect(page.locator("#note")).to_have_text("Names copied.")
    expected = "".join(f"{photos.name(n)}\n" for n in (numbers[0], others[0]))
    assert page.evaluate("navigator.clipboard.readText()") == expected
    page.reload()
    expect(page.locator(f".choose[value='{others[0]}']")).to_be_checked()
    page.get_by_role("button", name="Clear").click()
    expect(page.locator("#chosen")).to_be_hidden()
    expect(page.locator(f".choose[value='{others[0]}']")).not_to_be_checked()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["drop", "paste"])
def test_photos_are_dropped_and_pasted(open_page, site, jpeg, kind):
    page = open_page(f"{site}/?q=dog")
    drop(page, kind, jpeg)
    expect(page.locator("h1")).to_have_text("Your photo")
    expect(page.locator(".single img")).to_be_visible()
    assert urlsplit(page.url).path.startswith("/upload/")
    page.evaluate("document.querySelector('#photo').dataset.mostBytes = 500")
    drop(page, kind, b"x" * 501)
    expect(page.locator("#note")).to_have_text("A photo may have 0.0005 MB.")


@pytest.mark.slow
def test_new_photos_are_looked_for(open_page, site, photos):
    page = open_page(site)
    photos.may_refresh.clear()
    photos.changes = Changes(1, 0)
    button = page.get_by_role("button", name="Look for new photos")
    button.click()
    expect(page.locator("#looked")).to_have_text("Looking for new photos …")
    expect(button).to_be_disabled()
    page.reload()
    expect(button).to_be_disabled()
    photos.names[1000] = next(iter(photos.texts))
    photos.may_refresh.set()
    expect(page.locator("#looked")).to_have_text("1 photo added.")
    expect(page.locator("#n-photos")).to_have_text("61 photos")
    expect(button).to_be_enabled()


@pytest.mark.slow
def test_a_server_that_has_gone_is_told(open_page, site):
    page = open_page(site, allowed=["ERR_"])
    page.route("**/?q=*", lambda route: route.abort())
    page.locator("#q").fill("dog")
    page.keyboard.press("Enter")
    expect(page.locator("#note")).to_have_text("The server does not answer.")
    assert page.url == f"{site}/"
