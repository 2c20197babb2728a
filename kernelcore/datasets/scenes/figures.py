"""Shapes on a picture, and the drawings of ``things.svg``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, NamedTuple, TypeAlias
from xml.etree import ElementTree

from PIL import ImageColor

from kernelcore.datasets.scenes.content import PEOPLE

Colour: TypeAlias = str | tuple[int, ...]
Light: TypeAlias = tuple[tuple[int, int, int], float]
"""A colour and its share in the colours of what is lit."""

_BLACK = (0, 0, 0)
_RIM_DARKNESS = 0.6


@cache
def mix(colour: Colour, other: tuple[int, ...], share: float) -> tuple[int, ...]:
    """Go from one colour towards another by a share; opacity stays."""
    rgb = ImageColor.getrgb(colour) if isinstance(colour, str) else colour
    mixed = (round(a + share * (b - a)) for a, b in zip(rgb[:3], other, strict=True))
    return *mixed, *rgb[3:]


@dataclass(frozen=True)
class Pen:
    """Draws shapes whose y points up.

    Attributes
    ----------
    draw : ImageDraw
        Of Pillow, for the picture.
    x, y : float
        Pixel where the point (0, 0) lies.
    unit : float
        Pixels per unit of length.
    ahead : {1, -1}
        1 where x points to the right, -1 where it points to the left.
    light : Light
    """

    draw: Any
    x: float
    y: float
    unit: float
    ahead: int = 1
    light: Light = (_BLACK, 0.0)

    def polygon(self, colour: Colour, *corners: float) -> None:
        """Fill a polygon of corners x, y, x, y, ..."""
        self.draw.polygon(self._points(corners), mix(colour, *self.light))

    def line(self, colour: Colour, width: float, *points: float) -> None:
        """Draw a line with round ends through points x, y, x, y, ..."""
        pixels = max(1, round(self.unit * width))
        self.draw.line(self._points(points), mix(colour, *self.light), pixels, "curve")
        for x, y in (points[:2], points[-2:]):
            self.ellipse(colour, x, y, width / 2, width / 2)

    def ellipse(self, colour: Colour, x: float, y: float, a: float, b: float) -> None:
        """Fill an ellipse with half axes `a` and `b`."""
        ((u, v),) = self._points((x, y))
        a, b = round(self.unit * a), round(self.unit * b)
        self.draw.ellipse((u - a, v - b, u + a, v + b), mix(colour, *self.light))

    def sketch(self, shapes: Sequence[Shape], colours: Mapping[str, str], rim: float) -> None:
        """Draw shapes, some of whose colours have names, and around all a dark rim."""
        for edge in (rim, 0.0):
            for form, name, darkness, width, numbers in shapes:
                colour = mix(colours.get(name, name), _BLACK, darkness)
                if edge:
                    colour = mix(colour, _BLACK, _RIM_DARKNESS)
                if form == "ellipse":
                    x, y, a, b = numbers
                    self.ellipse(colour, x, y, a + edge, b + edge)
                elif form == "polyline":
                    self.line(colour, width + 2 * edge, *numbers)
                elif edge:
                    self.line(colour, 2 * edge, *numbers, *numbers[:2])
                else:
                    self.polygon(colour, *numbers)

    def _points(self, numbers: Sequence[float]) -> list[tuple[int, int]]:
        across = self.ahead * self.unit
        return [
            (round(self.x + across * x), round(self.y - self.unit * y))
            for x, y in zip(numbers[::2], numbers[1::2], strict=True)
        ]


class Shape(NamedTuple):
    """A shape of a drawing; an ellipse has the numbers x, y and both half axes."""

    form: str
    colour: str
    darkness: float
    width: float
    numbers: tuple[float, ...]

    @classmethod
    def of(cls, node: ElementTree.Element) -> Shape:
        """Read an element of SVG."""
        get = node.get
        numbers = get("points") or f"{get('cx')} {get('cy')} {get('rx')} {get('ry')}"
        return cls(
            form=node.tag.rpartition("}")[2],
            colour=get("fill", get("stroke", "")),
            darkness=1.0 - float(get("filter", "brightness(1)")[11:-1]),
            width=float(get("stroke-width", 0)),
            numbers=tuple(map(float, numbers.split())),
        )

    def box(self) -> tuple[float, float, float, float]:
        """Return least x, least y, greatest x and greatest y."""
        if self.form == "ellipse":
            x, y, a, b = self.numbers
            return x - a, y - b, x + a, y + b
        xs, ys, half = self.numbers[::2], self.numbers[1::2], self.width / 2
        return min(xs) - half, min(ys) - half, max(xs) + half, max(ys) + half


@cache
def drawing(kind: str, pose: str) -> tuple[list[Shape], tuple[float, float, float, float]]:
    """Return the shapes of a thing that faces right, from back to front, and their box."""
    parts = [f"behind-{pose}", kind, f"before-{pose}"]
    if kind not in PEOPLE:
        parts = [f"{kind}-{'stand' if pose in ('stand', 'sit') else 'run'}", kind]
    shapes = [shape for part in parts for shape in _drawings().get(part, ())]
    left, bottom, right, top = zip(*(shape.box() for shape in shapes), strict=True)
    return shapes, (min(left), min(bottom), max(right), max(top))


@cache
def _drawings() -> dict[str, list[Shape]]:
    text = resources.files(__package__).joinpath("things.svg").read_text("utf-8")
    groups = ElementTree.fromstring(text)[0]
    return {group.attrib["id"]: [Shape.of(node) for node in group] for group in groups}
