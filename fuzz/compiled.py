"""Every compiled function against its definition, with hostile input: see `TARGETS`."""

from __future__ import annotations

from fuzz import compiled_cython, compiled_gram, compiled_matching, compiled_text
from fuzz.target import Target

TARGETS: tuple[Target, ...] = (
    *compiled_gram.TARGETS,
    *compiled_text.TARGETS,
    *compiled_matching.TARGETS,
    *compiled_cython.TARGETS,
)
