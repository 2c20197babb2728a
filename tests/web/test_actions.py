"""Names of chosen photos, the look for new ones, and the token."""

import time

import pytest
from refusals import refuses_each

pytest.importorskip("httpx2")

from kernelcore.search.update import Changes
from kernelcore.web import make_app
from kernelcore.web.guard import Token

TOKEN = "a long and secret token"


def test_names_of_chosen_photos(client, photos):
    answer = client.post("/names", data={"number": ["16", "10", "16", "11"]})
    assert answer.status_code == 200
    assert answer.text == f"{photos.name(16)}\n{photos.name(10)}\n"
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["content-disposition"] == 'attachment; filename="photos.txt"'
    numbers = [str(number) for number in photos.numbers()] * 500
    answer = client.post("/names", data={"number": numbers})
    assert len(answer.text.splitlines()) == 60
    for odd in ([], ["x"], ["1", "-2"], ["1e3"], [""], ["9" * 5000]):
        assert client.post("/names", data={"number": odd}).status_code == 400, odd


def until(client, condition):
    for _ in range(400):
        state = client.get("/look").json()
        if condition(state):
            return state
        time.sleep(0.01)
    raise AssertionError(state)


def button(page):
    return next(own for own in page.all("button") if "Look for" in own["text"])


def test_a_look_for_new_photos(client, page, photos):
    assert client.get("/look").json() == {"busy": False, "said": "", "photos": "60 photos"}
    assert "disabled" not in button(page("/"))
    photos.may_refresh.clear()
    photos.changes = Changes(2, 1, tuple(f"{photos.folder}/{i}.jpg: empty" for i in range(7)))
    answer = client.post("/look")
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    until(client, lambda state: state["busy"])
    busy = page("/")
    assert "disabled" in button(busy)
    assert "data-busy" in busy.all("p", id="looked")[0]
    page("/?q=dog")  # searches go on
    photos.names[1000] = next(iter(photos.texts))
    photos.may_refresh.set()
    state = until(client, lambda state: not state["busy"])
    said = "2 photos added, 1 removed. 7 files cannot be read."
    assert state == {"busy": False, "said": said, "photos": "61 photos"}
    after = page("/")
    assert after.texts("p", id="n-photos") == ["61 photos"]
    reasons = [text for text in after.texts("li") if "empty" in text]
    assert reasons == [f"{i}.jpg: empty" for i in range(5)]
    assert "disabled" not in button(after)


def test_one_look_at_a_time(client, photos):
    looks = []
    refresh = photos.refresh
    photos.refresh = lambda: looks.append(1) or refresh()
    photos.may_refresh.clear()
    for _ in range(5):
        client.post("/look")
    photos.may_refresh.set()
    until(client, lambda state: not state["busy"])
    assert len(looks) == 1
    client.post("/look")
    until(client, lambda state: not state["busy"] and len(looks) == 2)


def test_a_look_that_fails_says_so(client, photos, caplog):
    photos.changes = ValueError("update must be given")
    client.post("/look")
    state = until(client, lambda state: not state["busy"])
    assert state["said"] == "Looking for new photos failed."
    assert "update must be given" in caplog.text
    photos.changes = Changes(0, 0)
    client.post("/look")
    until(client, lambda state: state["said"] == "No new photos.")


@pytest.fixture
def closed(photos, client_of):
    with client_of(photos, token=TOKEN) as client:
        yield client


def test_nothing_is_shown_without_the_token(closed, jpeg):
    pages = "/", "/?q=dog", "/photo/10", "/photo/10/small.jpg", "/look", "/help", "/nowhere"
    for address in pages:
        answer = closed.get(address)
        assert answer.status_code == 401
        assert "scene" not in answer.text
        assert 'action="/enter"' in answer.text
    for address in ("/names", "/look", "/upload"):
        assert closed.post(address, files={"photo": ("a.jpg", jpeg)}).status_code == 401
    assert closed.get("/static/page.css").status_code == 200


def test_the_token_in_an_address_lets_in_and_leaves_it(closed):
    answer = closed.get("/photo/10", params={"q": "a dog", "token": TOKEN, "start": "0"})
    assert answer.status_code == 303
    assert answer.headers["location"] == "/photo/10?q=a+dog&start=0"
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert not any(own in cookie for own in ("Secure", TOKEN))
    assert closed.get("/photo/10").status_code == 200
    closed.base_url = "https://localhost:8765"
    answer = closed.get("/", params={"token": TOKEN})
    assert answer.headers["location"] == "/"
    assert "Secure" in answer.headers["set-cookie"]  # to itself, over what is encrypted


def test_the_token_in_the_form_lets_in_and_leads_nowhere_else(closed):
    assert 'value="/?q=a+dog"' in closed.get("/?q=a+dog").text
    wrong = closed.post("/enter", data={"token": TOKEN + "x", "to": "/?q=a+dog"})
    assert wrong.status_code == 401
    assert "set-cookie" not in wrong.headers
    for address in ("//evil.example", "https://evil.example", "/\\evil", "", "/\n/evil", "x"):
        answer = closed.post("/enter", data={"token": TOKEN, "to": address})
        assert answer.headers["location"] == "/"
    answer = closed.post("/enter", data={"token": TOKEN, "to": "/?q=a+dog"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/?q=a+dog")
    assert closed.get("/").status_code == 200


@pytest.mark.parametrize("token", ["", "a", TOKEN[:-1], TOKEN.upper(), f" {TOKEN}", "\udc80é"])
def test_other_tokens_do_not(closed, client, token):
    given = {"token": token.encode("utf-8", "replace").decode()}
    assert closed.get("/", params=given).status_code == 401
    for own in (closed, client):  # where there is no token, too
        assert own.post("/enter", data=given).status_code == 401
    gate = Token(TOKEN)
    assert not gate.matches(token)
    assert not gate.admits({gate.cookie: token})


def test_cookies_of_another_token_do_not(closed):
    other, own = Token(TOKEN + "2"), Token(TOKEN)
    assert other.cookie != own.cookie
    assert other.value != own.value
    closed.cookies.set(own.cookie, other.value)
    assert closed.get("/").status_code == 401
    closed.cookies.set(own.cookie, own.value)
    assert closed.get("/").status_code == 200


def test_odd_arguments(photos):
    odd = {"token": ["x" * 15, "", 7, b"x" * 20]}
    odd["allowed_hosts"] = [[], "localhost", [""], [7], None]
    refuses_each(make_app, odd, collection=photos, token="x" * 16)
