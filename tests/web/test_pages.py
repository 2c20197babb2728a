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


def said(page):
    return [" ".join(own["text"].split()) for own in page.elements if "data-said" in own]


def query(address):
    return {key: values[0] for key, values in parse_qs(urlsplit(address).query).items()}


def test_the_first_page_shows_all_photos(page, photos):
    home = page("/")
    assert said(home) == ["Search 60 photos"]
    assert addresses(home) == [f"/photo/{n}" for n in photos.numbers()[:PER_PAGE]]
    assert home.texts("h2", id="above-title") == ["All photos"]
    assert not home.all("section", id="below")
    assert "photos <of> scenes" in home.texts("title")[0]
    [box] = home.all("input", id="q")
    assert (box["name"], box["value"], box["type"]) == ("q", "", "search")


def test_a_sentence_finds_photos_above_and_below_the_line(page, photos):
    sentence = photos.captions[0]
    found = page(f"/?q={sentence}")
    ranking = photos.search(sentence)
    assert 0 < ranking.n_fitting < PER_PAGE
    assert said(found) == [f"{ranking.n_fitting} of 60 photos fit better than chance."]
    assert [int(re.match(r"/photo/(\d+)\?q=", a)[1]) for a in addresses(found)] == (
        ranking.numbers[:PER_PAGE].tolist()
    )
    articles = found.all("article")
    assert [own["aria-posinset"] for own in articles] == [str(i + 1) for i in range(PER_PAGE)]
    assert {own["aria-setsize"] for own in articles} == {"60"}
    assert found.texts("h2", id="above-title") == ["Better than chance"]
    assert found.texts("h2", id="below-title") == ["From here on by chance"]
    assert [own["aria-labelledby"] for own in found.all("div", role="feed")] == [
        "above-title",
        "below-title",
    ]
    [line] = found.texts("div", **{"class": "line"})
    assert "5 % stand above this line" in line
    [box] = found.all("input", id="q")
    assert box["value"] == sentence
    assert [query(a)["q"] for a in addresses(found)] == [sentence] * PER_PAGE


def test_the_next_page_goes_on_and_searches_no_second_time(page, photos):
    sentence = photos.captions[0]
    first = page("/", params={"q": sentence})
    [more] = first.all("a", rel="next")
    assert query(more["href"]) == {"q": sentence, "start": "48"}
    second = page(more["href"])
    assert photos.queries == [sentence]
    assert len(addresses(second)) == 12
    assert not set(addresses(first)) & set(addresses(second))
    assert second.all("article")[0]["aria-posinset"] == "49"
    assert not second.all("a", rel="next")
    assert second.texts("p", id="more") == [
        "These were all 60 photos. Back to the first photos"
    ]
    photos.version = "second"
    page("/", params={"q": sentence})
    assert photos.queries == [sentence] * 2


def test_another_process_may_have_changed_the_index(page, photos):
    for address in ("/", "/?q=dog", "/photo/10"):
        before = photos.n_reloads
        page(address)
        assert photos.n_reloads == before + 1
    photos.reload = lambda: (_ for _ in ()).throw(OSError("it is being written"))
    page("/?q=dog")


@pytest.mark.parametrize(
    ("n_fitting", "told", "n_above"),
    [
        (0, "No photo fits this sentence better than chance. The nearest ones follow", 0),
        (1, "1 of 60 photos fits better than chance.", 1),
        (None, "60 photos, the best first.", PER_PAGE),
    ],
)
def test_the_line_and_what_is_said_of_it(page, photos, n_fitting, told, n_above):
    ranking = photos.search("dog")._replace(n_fitting=n_fitting)
    photos.search = lambda sentence: ranking
    found = page("/?q=dog")
    assert said(found)[0].startswith(told)
    assert len(addresses(found)) == PER_PAGE
    assert len(found.all("section", id="below")) == (n_above < PER_PAGE)
    headings = {0: [], 1: ["Better than chance"], PER_PAGE: ["Photos"]}
    assert found.texts("h2", id="above-title") == headings[n_above]


def test_an_empty_collection(page, photos):
    photos.names.clear()
    photos._ranking = lambda scores, left_out=None: Ranking(photos.numbers())
    home = page("/")
    assert said(home) == ["There are no photos yet"]
    assert "Copy photos into the folder" in home.texts("main")[0]
    assert said(page("/?q=dog")) == ["There are no photos to search."]


def test_words_that_contributed_are_marked(page):
    found = page("/", params={"q": "Dog, xyzzy &lt;b&gt;"})
    [heading] = found.texts("h1")
    assert heading == "Dog, xyzzy &lt;b&gt;"
    marks = found.all("mark")
    assert all(own["class"].startswith("strength-") for own in marks)
    assert {own["text"] for own in marks} <= {"Dog", "b", "lt", "gt"}


def test_contributions_are_those_to_the_first_photo(page, photos):
    word = "dog"
    best = int(photos.search(word).numbers[0])
    asked = []
    shares = photos.contributions
    photos.contributions = lambda s, n: asked.append((s, n)) or shares(s, n)
    found = page(f"/?q={word}")
    assert asked == [(word, best)]
    assert found.texts("mark") == ["dog"]
    assert "contributed to the first photo" in found.texts("main")[0]
    page(f"/?q={word}&start=48")
    assert len(asked) == 1


def test_unknown_words_are_named_with_links_to_known_ones(page):
    found = page("/?q=a dogg sees xyzzy")
    [notice] = found.texts("div", **{"class": "notice"})
    dogg, *_, xyzzy = (text for text in found.texts("p") if text in notice and "model" in text)
    assert dogg == (
        "The model does not know the word dogg. Nearest words that it knows: dog, cat."
    )
    assert xyzzy == "The model does not know the word xyzzy. Nothing that it knows is like it."
    links = [own["href"] for own in found.all("a") if own["text"] in ("dog", "cat")]
    assert [query(address)["q"] for address in links] == [
        "a dog sees xyzzy",
        "a cat sees xyzzy",
    ]


def test_a_photo_has_a_page_with_captions_and_similar_photos(page, photos):
    number = 16
    found = page(f"/photo/{number}")
    assert said(found) == [photos.name(number)]
    [picture] = (own for own in found.all("img") if "/large.jpg" in own["src"])
    assert (picture["alt"], picture["width"], picture["height"]) == (
        photos.name(number),
        "64",
        "48",
    )
    similar = photos.similar(number).numbers[:PER_PAGE].tolist()
    assert addresses(found) == [f"/photo/{n}" for n in similar]
    captions = [own for own in found.all("a") if own["href"].startswith("/?q=")]
    assert [query(own["href"])["q"] for own in captions] == [
        match.name for match in photos.annotate_photo(number, k=6)
    ]
    # rates are 0, 2.5, 5, 7.5 ... percent, and the line is drawn at 5
    assert found.texts("li").index("From here on by chance") == 3
    assert not found.texts("a", **{"class": "back"})
    assert not found.all("mark")


def test_the_page_of_a_photo_knows_the_sentence(page, photos):
    sentence = "dog & xyzzy"
    with_dog = int(photos.search("dog").numbers[0])
    found = page(f"/photo/{with_dog}", params={"q": sentence})
    assert [query(own["href"]) for own in found.all("a", **{"class": "back"})] == [
        {"q": sentence}
    ]
    assert all(query(address) == {"q": sentence} for address in addresses(found))
    assert found.texts("mark") == ["dog"]
    assert found.texts("ul", **{"class": "shares"}) == ["dog 100 %"]
    assert found.all("input", id="q")[0]["value"] == sentence


def test_similar_photos_go_on(page, photos):
    first = page("/photo/10?q=dog")
    [more] = first.all("a", rel="next")
    assert urlsplit(more["href"]).path == "/photo/10"
    assert query(more["href"]) == {"q": "dog", "start": "48"}
    second = page(more["href"])
    assert len(addresses(second)) == 59 - PER_PAGE
    assert photos.queries == [10]


def test_without_captions_there_is_no_list_of_them(page, photos):
    photos.captions = ()
    photos.annotate_photo = lambda number, k: []
    assert not page("/photo/10").all("ol")


def test_a_photo_that_has_gone(page, photos):
    photos.names[10] = "gone.jpg"
    photos.texts["gone.jpg"] = ["a dog"]
    assert "not any more" in page("/photo/10", 404).texts("main")[0]
    page("/photo/13")


@pytest.mark.parametrize(
    ("address", "status", "title"),
    [
        ("/nowhere", 404, "There is nothing here"),
        ("/photo/10/", 404, "There is nothing here"),
        ("/photo/ten", 404, "There is nothing here"),
        ("/photo/11", 404, "There is nothing here"),
        (f"/photo/{2**63}?q=a", 404, "There is nothing here"),
        ("/?start=-1", 400, "This request makes no sense"),
        ("/?start=x", 400, "This request makes no sense"),
        ("/?start=" + "9" * 30, 400, "This request makes no sense"),
        ("/?q=" + "a" * 1001, 400, "This request makes no sense"),
        ("/names", 405, "This is not allowed"),
        ("/upload", 405, "This is not allowed"),
        ("/upload/unknown", 404, "There is nothing here"),
    ],
)
def test_errors_have_pages(page, address, status, title):
    found = page(address, status)
    assert said(found) == [title]
    assert found.all("form", id="search")


def test_spaces_are_no_sentence(page, photos):
    assert said(page("/?q=%20%0A%09")) == ["Search 60 photos"]
    page("/?q=%20a%20%20dog%0A")
    page("/?q=" + "a" * 1000)
    assert photos.queries == ["a dog", "a" * 1000]


def test_hostile_texts_stay_texts(page, photos):
    name = f"{HOSTILE}.jpg"
    photos.names[10] = name
    photos.texts[name] = [HOSTILE]
    photos.captions = (HOSTILE, *photos.captions[1:])
    photos.path = lambda number: photos.folder / photo_file()
    photo_file = lambda: next(p for p in photos.folder.rglob("*.jpg"))  # noqa: E731
    photos.changes = Changes(0, 0, (f"{photos.folder}/{HOSTILE}",))
    for address in ("/", f"/?q={HOSTILE}", "/photo/10", f"/photo/10?q={HOSTILE}"):
        found = page(address.replace("&", "%26"))
        assert len(found.all("script")) == 1
        assert not any("alert" in own["text"] for own in found.all("script"))
        assert "49" not in found.texts("h1")[0]
    assert HOSTILE in page("/photo/10").texts("h1")[0]


def test_pages_have_no_inline_script_or_style(client, photos):
    photos.false_rate = 0.025
    assert "2.5 % stand above the line" in client.get("/help").text
    assert client.get("/").headers["cache-control"] == "private, no-cache"
    assert client.get("/").headers["vary"] == "Cookie"
    for address in ("/", "/?q=dog", "/photo/10", "/help", "/nowhere"):
        text = client.get(address).text
        assert not re.search(r"<style|style=|\son\w+=|javascript:", text)
        assert re.findall(r"<script[^>]*>", text) == [
            next(iter(re.findall(r'<script type="module" src="/static/page.js\?v=\w+">', text)))
        ]
        links = re.findall(r'(?:src|href|action)="([^"]*)"', text)
        assert all(link.startswith(("/", "#")) for link in links)
        assert not any(link.startswith("//") for link in links)


def test_a_failure_has_a_page_that_tells_nothing(photos, client_of, page):
    photos.search = lambda sentence: 1 / 0
    client = client_of(photos)
    client._transport.raise_server_exceptions = False
    answer = client.get("/?q=dog")
    assert answer.status_code == 500
    assert "Something went wrong" in answer.text
    assert "ZeroDivisionError" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
