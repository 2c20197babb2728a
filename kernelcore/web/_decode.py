"""A program that decodes one photo: its file comes on stdin, its pixels go to stdout.

Uploaded files are decoded in a process of its own, whose memory and time are limited. So
a file that harms a decoder harms nothing else. The answer is a line of JSON, then the pixels.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from typing import Any

from kernelcore import _extras
from kernelcore.images.read import (
    DEFAULT_MAX_PIXELS,
    WEB_FORMATS,
    DecodeError,
    decode,
    limit_side,
)
from kernelcore.web.uploads import LONGEST_SIDE, MOST_SECONDS

_MOST_MEMORY = 3 * 2**30
_LIMITS = {
    "RLIMIT_AS": _MOST_MEMORY,
    "RLIMIT_CPU": MOST_SECONDS,
    "RLIMIT_CORE": 0,
    "RLIMIT_FSIZE": 0,
    "RLIMIT_NOFILE": 3,  # those that are open: no file can be opened any more
}

_UNSAFE = {"status": 501, "reason": "this system cannot limit the process that would decode it"}


def answer(content: bytes) -> tuple[dict[str, Any], bytes]:
    """Decode a file.

    Returns
    -------
    about : dict
        Height and width of the pixels; for a file that cannot be used the reason, and the
        status of HTTP that fits it.
    pixels : bytes
        RGB, row by row.
    """
    try:
        pixels = limit_side(decode(content, DEFAULT_MAX_PIXELS, WEB_FORMATS), LONGEST_SIDE)
    except DecodeError as error:
        reason = str(error)
        if error.status == 413:
            reason = f"it has more than {DEFAULT_MAX_PIXELS // 2**20} megapixels"
        return {"status": error.status, "reason": reason}, b""
    except MemoryError:
        return {"status": 422, "reason": "to decode it takes too much memory"}, b""
    return {"height": pixels.shape[0], "width": pixels.shape[1]}, pixels.tobytes()


def limit_this_process() -> bool:
    """Limit memory, time and files of this process for good; False where nothing can."""
    try:
        import resource
    except ImportError:  # Windows
        return False
    for name, most in _LIMITS.items():
        kind = getattr(resource, name)
        _, hard = resource.getrlimit(kind)
        allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
        with suppress(OSError, ValueError):  # some systems do not know every limit
            resource.setrlimit(kind, (allowed, allowed))
    return True


def main() -> None:
    """Answer what comes on stdin."""
    for module in ("cv2", "PIL.ImageOps", "PIL.WebPImagePlugin"):  # while files can be opened
        _extras.require(module)
    _extras.require("PIL.Image").preinit()
    about, pixels = _UNSAFE, b""
    if limit_this_process():
        about, pixels = answer(sys.stdin.buffer.read())
    sys.stdout.buffer.write(json.dumps(about).encode() + b"\n" + pixels)


if __name__ == "__main__":
    main()
