"""Bad arguments are refused with an error that names them, in whatever words."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

UNKNOWN = "unexpected keyword argument"


def refuses(
    error: type[Exception] | tuple[type[Exception], ...],
    named: str,
    call: Callable[..., Any],
    /,
    *args: Any,
    **options: Any,
) -> str:
    """Make a call that must raise `error`, and return what the error says.

    `named` is a regular expression for the argument, the file or the value that came. The
    rest of the sentence is free. That there is no such argument refuses nothing, unless
    `named` asks for these words.
    """
    with pytest.raises(error, match=rf"(?<!\w)(?:{named})(?!\w)") as caught:
        call(*args, **options)
    said = str(caught.value)
    if UNKNOWN in said and UNKNOWN not in named:
        pytest.fail(f"the call has no argument {named}: {said}")
    return said


def refuses_each(
    call: Callable[..., Any], odd: Mapping[str, Sequence[Any]], /, **usual: Any
) -> None:
    """Make a call that works, and again with one odd argument at a time, which is named."""
    call(**usual)
    for name, values in odd.items():
        for value in values:
            refuses((TypeError, ValueError), name, call, **{**usual, name: value})
