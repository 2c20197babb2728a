"""Record of an image header, and the error of damaged ones."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

Size: TypeAlias = tuple[int, int]
"""Width and height in pixels."""


class Header(NamedTuple):
    """Format and size in pixels that an image file declares."""

    format: str
    width: int
    height: int


class HeaderError(ValueError):
    """The bytes are no image of a supported format, they end too early, or cost too much."""


def damaged(kind: str, detail: str) -> HeaderError:
    """Error of a file whose parts do not fit together; `detail` says which."""
    return HeaderError(
        f"its {kind} data are damaged, truncated or of an unsupported kind: {detail}"
    )
