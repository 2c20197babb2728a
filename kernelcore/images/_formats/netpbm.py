"""Netpbm files: sizes in decimal digits, then the values of the pixels."""

from __future__ import annotations

import re

from kernelcore.images._formats.header import HeaderError, Size, damaged

_MAX_HEADER = 2**12
_GAP = rb"(?:\s|#[^\n]*\n)+"  # a comment runs to the end of its line
_SIZES = re.compile(rb"P([1-6])" + _GAP + rb"(\d{1,10})" + _GAP + rb"(\d{1,10})\s")
_LARGEST = re.compile(rb"(?:\s|#[^\n]*\n)*(\d{1,5})\s")

_WITHOUT_LARGEST = frozenset({1, 4})
_IN_COLOUR = frozenset({3, 6})
_AS_TEXT = frozenset({2, 3})


def read_size(data: bytes) -> Size:
    """Width and height; a header of thousands of bytes is none."""
    _, width, height, _ = _header(data)
    return width, height


def for_decoder(data: bytes, size: Size) -> bytes:
    """Return the file if it can hold all values."""
    width, height = size
    kind, _, _, at = _header(data)
    bits = 1
    if kind not in _WITHOUT_LARGEST:
        found = _LARGEST.match(data[at : at + _MAX_HEADER])
        if found is None or not 0 < int(found[1]) < 2**16:
            raise damaged("Netpbm", "no largest value from 1 to 65535")
        at += found.end()
        bits = 8 if int(found[1]) < 2**8 else 16
    n_values = width * (3 if kind in _IN_COLOUR else 1)
    if kind == 1:  # white space between bits may be left out
        n_bytes = n_values * height
    elif kind in _AS_TEXT:
        n_bytes = 2 * n_values * height - 1
    else:
        n_bytes = (n_values * bits + 7) // 8 * height
    if at + n_bytes > len(data):
        raise damaged("Netpbm", "values are missing")
    return data


def _header(data: bytes) -> tuple[int, int, int, int]:
    """Kind, width, height, and the place behind them."""
    found = _SIZES.match(data[:_MAX_HEADER])
    if found is None:
        raise HeaderError("no size")
    return int(found[1]), int(found[2]), int(found[3]), found.end()
