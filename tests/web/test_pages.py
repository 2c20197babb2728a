"""What a browser without JavaScript sees."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest

pytest.importorskip("httpx2")

from kernelcore.search.collection import Ranking
from kernelcore.search.update import Changes
from kernelcore.web.pages import PER_PAGE

HOSTILE = "<script>alert(1)</script> \"'&amp; {{ 7 * 7 }}"


def addresses(page):
    return [own["href"] for own in page.all("a", **{"class": "open"})]


def numbers(page):
    return [int(re.match(r"/photo/(\d+)", address)[1]) for address in addresses(page)]


def said(page):
    return [" ".join(own["text"].split()) for own in page.elements if "data-said" in own]


def query(address):
    return {key: values[0] for key, values in parse_qs(urlsplit(address).query).items()}


def test_the_first_page_shows_all_photos(page, photos):
    home = page("/")
    assert addresses(home) == [f"/photo/{n}" for n in photos.numbers()[:PER_PAGE]]
    assert not home.all("section", id="below")
    assert "photos <of> scenes" in home.texts("title")[0]
    [box] = home.all("input", id="q")
    assert (box["name"], box["value"], box["type"]) == ("q", "", "search")


def test_a_sentence_finds_photos_above_and_below_the_line(page, photos):
    sentence = photos.captions[0]
    found = page("/", params={"q": sentence})
    ranking = photos.search(sentence)
    assert 0 < ranking.n_fitting < PER_PAGE
    assert said(found)[0].startswith(f"{ranking.n_fitting} of 60 photos")
    assert numbers(found) == ranking.numbers[:PER_PAGE].tolist()
    assert all(query(address) == {"q": sentence} for address in addresses(found))
    articles = found.all("article")
    assert [own["aria-posinset"] for own in articles] == [str(i + 1) for i in range(PER_PAGE)]
    assert {own["aria-setsize"] for own in articles} == {"60"}
    feeds = found.all("div", role="feed")
    assert [own["aria-labelledby"] for own in feeds] == ["above-title", "below-title"]
    assert "5 % stand above" in found.texts("div", **{"class": "line"})[0]
    assert found.all("input", id="q")[0]["value"] == sentence


@pytest.mark.parametrize(("path", "searched"), [("/", ["a dog"]), ("/photo/10", [10, "a dog"])])
def test_the_next_page_goes_on_and_searches_no_second_time(page, photos, path, searched):
    first = page(path, params={"q": "a dog"})
    [more] = first.all("a", rel="next")
    assert urlsplit(more["href"]).path == path
    assert query(more["href"]) == {"q": "a dog", "start": "48"}
    second = page(more["href"])
    assert photos.queries == searched
    left_out = {10} if path != "/" else set()
    assert {*numbers(first), *numbers(second)} == {*photos.numbers().tolist()} - left_out
    assert not set(numbers(first)) & set(numbers(second))
    assert second.all("article")[0]["aria-posinset"] == "49"
    assert not second.all("a", rel="next")
    photos.version = "second"
    page(path, params={"q": "a dog"})
    assert photos.queries == searched * 2


def test_another_process_may_have_changed_the_index(page, photos):
    for address in ("/", "/?q=dog", "/photo/10"):
        before = photos.n_reloads
        page(address)
        assert photos.n_reloads == before + 1
    photos.reload = lambda: (_ for _ in ()).throw(OSError("it is being written"))
    page("/?q=dog")


@pytest.mark.parametrize(
    ("n_fitting", "told", "has_line"),
    [(0, "No photo", True), (1, "1 of 60 photos fits ", True), (None, "60 photos", False)],
)
def test_the_line_and_what_is_said_of_it(page, photos, n_fitting, told, has_line):
    ranking = photos.search("dog")._replace(n_fitting=n_fitting)
    photos.search = lambda sentence: ranking
    found = page("/?q=dog")
    assert said(found)[0].startswith(told)
    assert "unknown" not in said(found)[0]
    assert ("unknown words" in said(page("/?q=dog xyzzy"))[0]) == bool(n_fitting)
    assert len(addresses(found)) == PER_PAGE
    assert len(found.all("section", id="below")) == has_line
    assert len(found.all("section", id="above")) == (n_fitting != 0)


def test_an_empty_collection(page, photos):
    photos.names.clear()
    photos._ranking = lambda scores, left_out=None: Ranking(photos.numbers())
    assert "no photos yet" in said(page("/"))[0]
    assert "no photos to search" in said(page("/?q=dog"))[0]


def test_words_that_contributed_to_the_first_photo_are_marked(page, photos):
    asked = []
    shares = photos.contributions
    photos.contributions = lambda s, n: asked.append((s, n)) or shares(s, n)
    found = page("/", params={"q": "Dog, xyzzy &lt;b&gt;"})
    assert found.texts("h1") == ["Dog, xyzzy &lt;b&gt;"]
    assert found.texts("mark") == ["Dog"]
    assert asked == [("Dog, xyzzy &lt;b&gt;", numbers(found)[0])]
    page("/?q=dog&start=48")
    assert len(asked) == 1


def test_unknown_words_are_named_with_links_to_known_ones(page):
    found = page("/?q=a dogg sees xyzzy")
    [notice] = found.texts("div", **{"class": "notice"})
    assert "does not know the word dogg." in notice
    assert "does not know the word xyzzy." in notice
    links = [own["href"] for own in found.all("a") if own["text"] in ("dog", "cat")]
    offered = ["a dog sees xyzzy", "a cat sees xyzzy"]
    assert [query(address)["q"] for address in links] == offered


def test_a_photo_has_a_page_with_captions_and_similar_photos(page, photos):
    found = page("/photo/16")
    name = photos.name(16)
    assert said(found) == [name]
    [picture] = (own for own in found.all("img") if "/large.jpg" in own["src"])
    assert (picture["alt"], picture["width"], picture["height"]) == (name, "64", "48")
    assert numbers(found) == photos.similar(16).numbers[:PER_PAGE].tolist()
    captions = [own for own in found.all("a") if own["href"].startswith("/?q=")]
    matches = photos.annotate_photo(16, k=6)
    assert [query(own["href"])["q"] for own in captions] == [own.name for own in matches]
    # rates are 0, 2.5, 5, 7.5 ... percent, and the line is drawn at 5
    assert found.texts("li").index("From here on by chance") == 3
    assert found.texts("a", **{"class": "back"}) == ["All photos"]
    assert [own["href"] for own in found.all("a", id="next")] == ["/photo/19"]
    assert [own["href"] for own in page("/photo/10").all("a", id="previous")] == []
    assert not found.all("mark")
    photos.captions, photos.annotate_photo = (), lambda number, k: []
    assert not page("/photo/16").all("ol")


def test_the_page_of_a_photo_knows_the_sentence(page, photos):
    sentence = "dog & xyzzy"
    with_dog = int(photos.search("dog").numbers[0])
    found = page(f"/photo/{with_dog}", params={"q": sentence})
    back = found.all("a", **{"class": "back"})
    assert [query(own["href"]) for own in back] == [{"q": sentence}]
    assert all(query(address) == {"q": sentence} for address in addresses(found))
    order = photos.search(sentence).numbers.tolist()
    assert order[0] == with_dog
    [link] = found.all("a", id="next")
    assert link["href"].startswith(f"/photo/{order[1]}?q=dog")
    assert found.texts("mark") == ["dog"]
    assert found.texts("ul", **{"class": "shares"}) == ["dog 100 %"]
    assert found.all("input", id="q")[0]["value"] == sentence


def test_a_photo_and_a_sentence_are_one_query(page, photos):
    found = page("/photo/16", params={"q": "a dog", "and": "in the  snow"})
    assert (16, "in the snow") in photos.queries
    assert numbers(found) == photos.similar(16, "in the snow").numbers[:PER_PAGE].tolist()
    assert [own["value"] for own in found.all("input", name="and")] == ["in the snow"]
    [more] = found.all("a", rel="next")
    assert query(more["href"]) == {"q": "a dog", "and": "in the snow", "start": "48"}
    page("/photo/16?and=" + "a" * 1001, 400)


def test_the_original_of_a_photo_is_sent_as_it_is(client, page, photos, tmp_path):
    path = photos.path(10)
    [link] = (own for own in page("/photo/10").all("a") if "/original" in own["href"])
    answer = client.get(link["href"])
    assert answer.content == path.read_bytes()
    assert answer.headers["content-type"] == "image/jpeg"
    assert "immutable" in answer.headers["cache-control"]
    secret = tmp_path / "secret.jpg"
    secret.write_text("no photo")
    photos.path = lambda number: secret
    assert client.get("/photo/10/original").status_code == 404
    assert client.get("/photo/11/original").status_code == 404


@pytest.mark.parametrize(
    ("address", "status"),
    [
        *((address, 404) for address in ("/nowhere", "/photo/10/", "/photo/ten", "/photo/11")),
        *((address, 404) for address in (f"/photo/{2**63}?q=a", "/upload/unknown")),
        *((f"/?start={text}", 400) for text in ("-1", "x", "9" * 30)),
        ("/?q=" + "a" * 1001, 400),
        ("/names", 405),
        ("/upload", 405),
    ],
)
def test_errors_have_pages(page, address, status):
    found = page(address, status)
    assert said(found) == found.texts("h1")
    assert found.all("form", id="search")


def test_a_photo_that_has_gone(page, photos):
    photos.names[10] = "gone.jpg"
    photos.texts["gone.jpg"] = ["a dog"]
    assert "not any more" in page("/photo/10", 404).texts("main")[0]
    page("/photo/13")


def test_spaces_are_no_sentence(page, photos):
    assert said(page("/?q=%20%0A%09")) == said(page("/"))
    page("/?q=%20a%20%20dog%0A")
    page("/?q=" + "a" * 1000)
    assert photos.queries == ["a dog", "a" * 1000]


def test_hostile_texts_stay_texts(page, photos):
    name = f"{HOSTILE}.jpg"
    photos.names[10] = name
    photos.texts[name] = [HOSTILE]
    photos.captions = (HOSTILE, *photos.captions[1:])
    file = next(photos.folder.rglob("*.jpg"))
    photos.path = lambda number: file
    photos.changes = Changes(0, 0, (f"{photos.folder}/{HOSTILE}",))
    for address in ("/", f"/?q={HOSTILE}", "/photo/10", f"/photo/10?q={HOSTILE}"):
        found = page(address.replace("&", "%26"))
        assert len(found.all("script")) == 1
        assert not any("alert" in own["text"] for own in found.all("script"))
        assert "49" not in found.texts("h1")[0]
    assert HOSTILE in page("/photo/10").texts("h1")[0]


def test_pages_have_no_inline_script_or_style(client):
    script = r'<script type="module" src="/static/page\.js\?v=\w+">'
    for address in ("/", "/?q=dog", "/photo/10", "/help", "/nowhere"):
        answer = client.get(address)
        assert answer.headers["cache-control"] == "private, no-cache"
        assert answer.headers["vary"] == "Cookie"
        text = answer.text
        assert not re.search(r"<style|style=|\son\w+=|javascript:", text)
        [found] = re.findall(r"<script[^>]*>", text)
        assert re.fullmatch(script, found)
        links = re.findall(r'(?:src|href|action)="([^"]*)"', text)
        assert all(re.match(r"#|/(?!/)", link) for link in links)


def test_a_failure_has_a_page_that_tells_nothing(photos, client_of):
    photos.search = lambda sentence: 1 / 0
    client = client_of(photos)
    client._transport.raise_server_exceptions = False
    answer = client.get("/?q=dog")
    assert answer.status_code == 500
    assert "<h1" in answer.text
    assert "ZeroDivisionError" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
