"""Anti-aliased drawing with the same bits on every machine.

Shapes are signed distances to their outline in pixels, so edges are smooth at any size. Only
sums, products, quotients and square roots are used, which IEEE 754 rounds in one way;
sines, exponentials and sums over axes may differ in the last bit between processors.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Colour: TypeAlias = tuple[float, float, float]
"""Red, green and blue in [0, 255]."""
Point: TypeAlias = tuple[float, float]
Tint: TypeAlias = tuple[Colour, float]
"""The colour of a light and its share in the colour of things."""

_MARGIN = 2
_RIM_WIDTH = 0.8
_RIM_SHADE = 0.4
_NUMBERS_PER_POINT = {"limb": 3, "polygon": 2}


def shade(colour: Colour, factor: float) -> Colour:
    """Make a colour darker (below 1) or lighter (above 1)."""
    red, green, blue = (min(255.0, channel * factor) for channel in colour)
    return red, green, blue


def mix(first: Colour, second: Colour, share: float) -> Colour:
    """Go from one colour towards another by a share."""
    red, green, blue = (a + share * (b - a) for a, b in zip(first, second, strict=True))
    return red, green, blue


class Shape(NamedTuple):
    """A filled outline: distances over a part of the picture, negative inside."""

    rows: slice
    columns: slice
    distance: Floats
    colour: Colour
    rim: bool

    def paint(self, pixels: Floats, colour: Colour, *, grow: float = 0.0) -> None:
        """Blend a colour into the pixels that the shape, grown by some pixels, covers."""
        coverage = (0.5 + grow - self.distance).clip(0.0, 1.0)
        part = pixels[self.rows, self.columns]
        part += coverage[:, :, None] * (np.array(colour) - part)


class Figure:
    """Shapes in the coordinates of one thing, with a dark rim around the whole of it.

    Local x points where the thing faces and y up; (0, 0) is the spot on the ground below
    its middle.

    Parameters
    ----------
    size : (int, int)
        Height and width of the picture in pixels.
    foot : (float, float)
        Where local (0, 0) lies in the picture: pixels from its left and top.
    scale : float
        Pixels per local unit.
    direction : {1, -1}
        1 for a thing that faces right, -1 for left.
    tilt : float
        Turns the front up, as the tangent of half the angle.
    """

    def __init__(
        self,
        size: tuple[int, int],
        foot: Point,
        scale: float,
        *,
        direction: int = 1,
        tilt: float = 0.0,
    ) -> None:
        self._size = size
        self._foot = foot
        self._scale = scale
        # A rotation by a rational parameter needs no sine.
        cosine = (1.0 - tilt * tilt) / (1.0 + tilt * tilt)
        sine = 2.0 * tilt / (1.0 + tilt * tilt)
        self._forward = (direction * cosine, -sine)
        self._up = (-direction * sine, -cosine)
        self.shapes: list[Shape] = []

    def place(self, x: float, y: float) -> Point:
        """Pixel coordinates of a local point."""
        return (
            self._foot[0] + self._scale * (x * self._forward[0] + y * self._up[0]),
            self._foot[1] + self._scale * (x * self._forward[1] + y * self._up[1]),
        )

    def add(
        self, form: str, colour: Colour, numbers: Sequence[float], *, rim: bool = True
    ) -> None:
        """Add a shape.

        Parameters
        ----------
        form : {"disc", "ring", "ellipse", "limb", "polygon"}
        colour : (float, float, float)
        numbers : sequence of float
            Local coordinates and lengths: (x, y, radius) of a disc; (x, y, radius, width of
            the line) of a ring; (x, y, half the length, half the height) of an ellipse, whose
            axes turn with the thing; (x, y, radius) of each joint of a limb, a chain of
            rounded segments; (x, y) of each corner of a polygon, convex or not.
        rim : bool, default True
            Whether the dark rim of the thing goes around the shape.
        """
        step = _NUMBERS_PER_POINT.get(form, len(numbers))
        parts = [numbers[i : i + step] for i in range(0, len(numbers), step)]
        points = [self.place(x, y) for x, y, *_ in parts]
        lengths = [[self._scale * length for length in part[2:]] for part in parts]
        reach = max((max(own, default=0.0) for own in lengths), default=0.0)
        rows, columns, u, v = self._around(points, reach)
        if form == "limb":
            distance = _to_limb(u, v, points, [radius for (radius,) in lengths])
        elif form == "polygon":
            distance = _to_polygon(u, v, points)
        else:
            u, v = u - points[0][0], v - points[0][1]
            if form == "ellipse":
                along = u * self._forward[0] + v * self._forward[1]
                distance = _to_ellipse(along, u * self._up[0] + v * self._up[1], *lengths[0])
            else:
                distance = _length(u, v) - lengths[0][0]
                if form == "ring":
                    distance = np.abs(distance) - 0.5 * lengths[0][1]
        self.shapes.append(Shape(rows, columns, distance, colour, rim))

    def draw(self, pixels: Floats, tint: Tint = ((0.0, 0.0, 0.0), 0.0)) -> None:
        """Paint the thing, in a light, into a picture of shape (height, width, 3)."""
        for shape in self.shapes:
            if shape.rim:
                rim = shade(shape.colour, _RIM_SHADE)
                shape.paint(pixels, mix(rim, *tint), grow=_RIM_WIDTH)
        for shape in self.shapes:
            shape.paint(pixels, mix(shape.colour, *tint))

    def box(self) -> tuple[int, int, int, int]:
        """Left, top, right and bottom of the thing in pixels, within the picture."""
        seen = [shape for shape in self.shapes if shape.distance.size]
        return (
            min(shape.columns.start for shape in seen) + _MARGIN,
            min(shape.rows.start for shape in seen) + _MARGIN,
            max(shape.columns.stop for shape in seen) - _MARGIN,
            max(shape.rows.stop for shape in seen) - _MARGIN,
        )

    def _around(
        self, points: Sequence[Point], reach: float
    ) -> tuple[slice, slice, Floats, Floats]:
        """Part of the picture within reach of the points, and the centres of its pixels."""
        height, width = self._size
        us, vs = zip(*points, strict=True)
        columns = _span(min(us) - reach, max(us) + reach, width)
        rows = _span(min(vs) - reach, max(vs) + reach, height)
        u = np.arange(columns.start, columns.stop) + 0.5
        v = np.arange(rows.start, rows.stop) + 0.5
        return rows, columns, u[None, :], v[:, None]


def _span(first: float, last: float, limit: int) -> slice:
    start = min(max(int(np.floor(first)) - _MARGIN, 0), limit)
    return slice(start, max(min(int(np.ceil(last)) + _MARGIN, limit), start))


def _length(u: Floats, v: Floats) -> Floats:
    length: Floats = np.sqrt(u * u + v * v)
    return length


def _to_ellipse(along: Floats, up: Floats, a: float, b: float) -> Floats:
    """Distance from an ellipse, in coordinates along its axes.

    To first order it is (level - 1) over the slope of the level. The slope is never above
    1 / min(a, b); the lower bound stands in for it at the centre.
    """
    along, up = along / a, up / b
    level = _length(along, up)
    slope = _length(along / a, up / b) / np.maximum(level, 1e-9)
    distance: Floats = (level - 1.0) / np.maximum(slope, 1.0 / max(a, b))
    return distance


def _to_limb(u: Floats, v: Floats, points: Sequence[Point], radii: Sequence[float]) -> Floats:
    """Distance from a chain of segments; the radius goes evenly from joint to joint."""
    parts = []
    for ((u1, v1), r1), ((u2, v2), r2) in pairwise(zip(points, radii, strict=True)):
        t, distance = _to_segment(u - u1, v - v1, u2 - u1, v2 - v1)
        parts.append(distance - (r1 + t * (r2 - r1)))
    result: Floats = np.minimum.reduce(parts)
    return result


def _to_polygon(u: Floats, v: Floats, corners: Sequence[Point]) -> Floats:
    """Distance from a polygon."""
    parts, inside = [], np.zeros((v.shape[0], u.shape[1]), dtype=bool)
    for (u1, v1), (u2, v2) in pairwise([*corners, corners[0]]):
        _, distance = _to_segment(u - u1, v - v1, u2 - u1, v2 - v1)
        parts.append(distance)
        # A ray to the right leaves or enters the polygon at each edge it crosses.
        beyond = (u - u1) * (v2 - v1) < (v - v1) * (u2 - u1)
        inside ^= ((v >= v1) != (v >= v2)) & (beyond == (v2 > v1))
    result: Floats = np.where(inside, -1.0, 1.0) * np.minimum.reduce(parts)
    return result


def _to_segment(u: Floats, v: Floats, run: float, rise: float) -> tuple[Floats, Floats]:
    """Nearest point of a segment from the origin, as a share of it, and its distance."""
    t = ((u * run + v * rise) / max(run * run + rise * rise, 1e-9)).clip(0.0, 1.0)
    return t, _length(u - t * run, v - t * rise)
