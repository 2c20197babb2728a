"""The search page: photos found by sentences and by photos, in a browser (extra ``web``).

`serve` answers browsers until Ctrl-C. `make_app` returns the same pages as an application for
any ASGI server. The pages need no JavaScript, ask no other host for anything, and name photos
by numbers, never by paths.
"""

from kernelcore import _extras

for _package in ("uvicorn", "starlette", "jinja2", "python_multipart"):
    _extras.require(_package)

from kernelcore.web.app import make_app  # noqa: E402
from kernelcore.web.serving import serve  # noqa: E402

__all__ = ["make_app", "serve"]
