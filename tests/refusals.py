"""Bad arguments are refused with an error that names them, in whatever words."""

import re
from collections.abc import Callable
from typing import Any

import pytest

Refusal = type[Exception] | tuple[type[Exception], ...]


def refuses(
    error: Refusal, named: str, call: Callable[..., Any], *args: Any, **options: Any
) -> str:
    """Make a call that must raise `error` with `named` in its message; return the message.

    `named` is the argument, the file or the value that came; not the rest of the sentence.
    """
    with pytest.raises(error, match=rf"(?<!\w){re.escape(named)}(?!\w)") as caught:
        call(*args, **options)
    return str(caught.value)
