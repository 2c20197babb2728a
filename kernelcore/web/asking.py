"""What addresses ask for: a sentence, a photo, a place in the results."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request

LONGEST_SENTENCE = 1000
_MOST_DIGITS = 18  # of a number of 64 bits


def sentence_of(request: Request) -> str:
    """Return the sentence of an address, empty without one."""
    sentence = " ".join(request.query_params.get("q", "").split())
    if len(sentence) > LONGEST_SENTENCE:
        raise HTTPException(
            400, f"A sentence may have {LONGEST_SENTENCE:,} characters, not {len(sentence):,}."
        )
    return sentence


def start_of(request: Request) -> int:
    """Return how many results come before this page."""
    text = request.query_params.get("start", "0")
    if not is_number(text):
        raise HTTPException(400, "The results start at a whole number.")
    return int(text)


def number_of(request: Request) -> int:
    """Return the number of the photo in a path."""
    return int(request.path_params["number"])


def is_number(text: str) -> bool:
    """Whether a text is a number of a photo or a place.

    Examples
    --------
    >>> from kernelcore.web.asking import is_number
    >>> is_number("48"), is_number("-1"), is_number("٣"), is_number("9" * 40)
    (True, False, False, False)
    """
    return text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS


def gone() -> HTTPException:
    """Return the error of a photo that is not in the collection."""
    return HTTPException(404, "This photo is not in the folder, or not any more.")
