"""Painting of the picture of a scene: sky or wall, ground, scenery and actors."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from kernelcore.datasets.scenes.content import PEOPLE, Dice, Scene, Thing
from kernelcore.datasets.scenes.figures import Light, Pen, drawing

Box: TypeAlias = tuple[int, int, int, int]

_HORIZON = 0.44
_RIM = 0.7  # pixels
_PAINTS = {
    "red": "#d4282c", "blue": "#2c5cd2", "green": "#289646", "yellow": "#f8d038",
    "orange": "#f08828", "purple": "#863ea8", "pink": "#f48cb4", "white": "#f6f4f0",
    "black": "#26242a", "brown": "#8c5830", "grey": "#8a8c94",
}  # fmt: skip
_SKINS = ("#fad4b2", "#e4b28a", "#a8704c", "#704834")
_HAIRS = ("#30221c", "#683e20", "#cea04c", "#963c1e")
_TROUSERS = "#3a4260"

_SIZES = {"small": 0.74, "medium": 1.0, "large": 1.3, "woman": 0.94, "boy": 0.7, "girl": 0.68}
# In heights of a thing: where others sit, how deep it is in water, and a person's hanging legs.
_SEATS = {"horse": 0.6, "cow": 0.74, "elephant": 0.86, "bicycle": 0.88, "boat": 0.24, "box": 1,
          "car": 1, "sofa": 0.74}  # fmt: skip
_DRAUGHTS = {"boat": 0.08, "duck": 0.27}
_LEGS = 0.24

# Poses of agent and patient.
_POSES = {
    "chase": ("run", "run"), "pull": ("run", "stand"), "push": ("push", "stand"),
    "kick": ("kick", "stand"), "jump_over": ("leap", "stand"), "ride": ("sit", "run"),
    "sit_on": ("sit", "stand"), "hold": ("hold", "stand"), "left_of": ("stand", "stand"),
    "above": ("stand", "stand"),
}  # fmt: skip
# Between two that are side by side, in widths of the picture.
_GAPS = {"chase": 0.06, "left_of": 0.07, "pull": 0.14, "push": 0.0, "kick": 0.06}

# Of sky, wall and ground: colours at the top and at the bottom, how strong the grain is, and
# over how many pixels down and to the right it is averaged.
_TEXTURES = {
    "clear": ((92, 160, 232), (196, 226, 246), 0, 1, 1),
    "cloudy": ((142, 150, 160), (206, 210, 214), 0, 1, 1),
    "sunset": ((118, 74, 142), (252, 164, 90), 0, 1, 1),
    "night": ((10, 14, 44), (44, 54, 104), 0, 1, 1),
    "indoors": ((236, 222, 196), (236, 222, 196), 0, 1, 1),
    "grass": ((120, 182, 84), (74, 146, 52), 110, 5, 1),
    "sand": ((240, 216, 164), (226, 190, 122), 90, 2, 3),
    "snow": ((214, 224, 242), (236, 240, 250), 50, 3, 8),
    "road": ((128, 128, 132), (104, 104, 110), 62, 1, 1),
    "water": ((92, 160, 206), (34, 96, 168), 150, 1, 9),
    "floor": ((150, 96, 54), (176, 116, 66), 70, 1, 13),
}
# Colour of the light and its share in the colours of all but the sky.
_LIGHTS = {
    "clear": ((255, 255, 255), 0.0), "cloudy": ((120, 126, 134), 0.16),
    "sunset": ((240, 120, 60), 0.2), "night": ((24, 32, 92), 0.4),
    "indoors": ((255, 240, 200), 0.06),
}  # fmt: skip
_STRIPES = ("#4c8cc850", "#c0506850", "#4c985050", "#b8822c50")
_SPOTS = {"grass": ("#faf6f0", "#fadc5a", "#e878a0"), "sand": ("#faf0e6", "#ecaa8c")}


class _Actor:
    """A thing in its pose; the middle of its lower edge is at pixel `x`, `y`."""

    def __init__(self, thing: Thing, pose: str, facing: str, height: int, dice: Dice) -> None:
        self.kind = thing.kind
        self.unit = _SIZES[thing.size] * _SIZES.get(thing.kind, 1.0) * height / 1000
        self.x = self.y = 0.0
        self._ahead = 1 if facing == "right" else -1
        self._shapes, self._box = drawing(thing.kind, pose)
        skin = dice.pick(_SKINS)
        self._colours = {
            "currentColor": _PAINTS[thing.colour],
            "var(--skin)": skin,
            "var(--hair)": dice.pick(_HAIRS),
            "var(--cloth)": skin if thing.kind in ("woman", "girl") else _TROUSERS,
            "var(--patch)": _PAINTS["black" if thing.colour == "white" else "white"],
        }

    @property
    def width(self) -> float:
        """Width in pixels."""
        return (self._box[2] - self._box[0]) * self.unit

    @property
    def height(self) -> float:
        """Height in pixels."""
        return (self._box[3] - self._box[1]) * self.unit

    def paint(self, pen: Pen, rim: float) -> None:
        """Paint it with a dark rim of some pixels."""
        left, bottom, right, _ = self._box
        x = self.x - self._ahead * self.unit * (left + right) / 2
        y = self.y + self.unit * bottom
        pen = replace(pen, x=x, y=y, unit=self.unit, ahead=self._ahead)
        pen.sketch(self._shapes, self._colours, rim / self.unit)

    def box(self, finer: int, size: tuple[int, int]) -> Box:
        """Left, top, right and bottom, in pixels of the reduced picture and within it."""
        half = self.width / 2
        left, top = int((self.x - half) / finer), int((self.y - self.height) / finer)
        right, bottom = ceil((self.x + half) / finer), ceil(self.y / finer)
        return max(0, left), max(0, top), min(size[1], right), min(size[0], bottom)


def draw(
    scene: Scene, size: tuple[int, int], dice: Dice
) -> tuple[npt.NDArray[np.uint8], list[Box]]:
    """Paint a scene; return its pixels and the boxes of agent and patient.

    `dice` decides the details that no caption mentions.
    """
    # Painted larger and then reduced, so that edges are smooth.
    finer = max(1, min(4, 4096 // max(size)))
    height, width = finer * size[0], finer * size[1]
    horizon = finer * int(_HORIZON * size[0])
    foot = finer * round(dice.between(0.84, 0.92) * size[0])
    actors = _cast(scene, (height, width), foot, dice)
    canvas = Image.new("RGB", (width, height))

    pen = Pen(ImageDraw.Draw(canvas, "RGBA"), 0.0, horizon, height)
    canvas.paste(_textured(scene.light, (horizon, width), finer, pen.light, dice))
    _add_sky(pen, scene.light, width / height, dice)
    pen = replace(pen, light=_LIGHTS[scene.light])
    below = height - horizon, width
    canvas.paste(_textured(scene.ground, below, finer, pen.light, dice), (0, horizon))
    _add_ground(pen, scene.ground, width / height, dice)
    if scene.scenery is not None:
        scenery = _Actor(scene.scenery, "stand", dice.pick(("left", "right")), height, dice)
        scenery.x = (dice.pick((0.1, 0.7)) + dice.between(0.0, 0.2)) * width
        scenery.y = horizon + (-0.1 if scenery.kind == "window" else 0.06) * height
        if scene.ground == "water" and scenery.kind != "boat":
            pen.ellipse("#e8cc90", scenery.x / height, -0.06, 0.25, 0.045)
        scenery.paint(pen, finer * _RIM)
    underwater = (0, foot, width, height)
    surface = canvas.crop(underwater)
    pen = replace(pen, y=0.0, unit=1.0)
    if scene.ground != "water":
        for actor in actors:
            pen.ellipse("#141c1e50", actor.x, -foot, 0.45 * actor.width, 0.015 * height)
    if scene.relation == "pull":
        ends = [(actor.x, actor.height / 2 - actor.y) for actor in actors]
        pen.line("#6e4e2c", 0.02 * height, *ends[0], *ends[1])
    for actor in reversed(actors):
        actor.paint(pen, finer * _RIM)
    if scene.ground == "water":
        canvas.paste(Image.blend(surface, canvas.crop(underwater), 0.3), underwater)
    return np.asarray(canvas.reduce(finer)), [actor.box(finer, size) for actor in actors]


def _cast(scene: Scene, size: tuple[int, int], foot: int, dice: Dice) -> tuple[_Actor, _Actor]:
    """Place agent and patient in a picture where feet stand in some row."""
    (height, width), name = size, scene.relation
    ahead = 1 if scene.facing == "right" else -1
    agent, patient = (
        _Actor(thing, pose, scene.facing, height, dice)
        for thing, pose in zip((scene.agent, scene.patient), _POSES[name], strict=True)
    )
    first, second = (agent, patient) if name in {*_GAPS, "hold"} else (patient, agent)
    # The second one's middle is so far to the right of the first one's, and so far above its
    # lower edge.
    across = up = 0.0
    if name in _GAPS:
        across = (first.width + second.width) / 2 + _GAPS[name] * width
        across *= 1 if name == "left_of" else -ahead if name == "pull" else ahead
        up = dice.between(0.06, 0.2) * height if name == "kick" else 0.0
    elif name == "hold":
        across = ahead * (first.width / 2 - 20 * first.unit)
        up = first.height - 20 * first.unit
    elif name == "jump_over":
        up = 0.95 * first.height
    elif name == "above":
        up = first.height + 0.08 * height
    else:
        legs = _LEGS * second.height if second.kind in PEOPLE else 0.0
        # No seat is so low that feet drag on the ground.
        first.unit *= max(1.0, 1.7 * legs / (_SEATS[first.kind] * first.height))
        across = -0.12 * ahead * first.width if first.kind == "bicycle" else 0.0
        up = _SEATS[first.kind] * first.height - legs
    left = min(-first.width / 2, across - second.width / 2)
    right = max(first.width / 2, across + second.width / 2)
    top = max(first.height, up + second.height)
    factor = min(1.0, 0.96 * width / (right - left), (foot - 0.02 * height) / top)
    for actor in (first, second):
        actor.unit *= factor
        actor.y = foot
        if scene.ground == "water":
            actor.y += _DRAUGHTS.get(actor.kind, 0.45) * actor.height
    first.x = dice.between(0.02, 0.98) * (width - factor * (right - left)) - factor * left
    second.x = first.x + factor * across
    if up:
        second.y = first.y - factor * up
    return agent, patient


def _textured(
    name: str, size: tuple[int, int], finer: int, light: Light, dice: Dice
) -> Image.Image:
    """Fill a part of the picture with colours and grain."""
    height, width = size[0] // finer, size[1] // finer
    first, last, strength, *spread = _TEXTURES[name]
    share = np.arange(height)[:, None, None] / height
    grain = dice.rng.random((height, width)) - 0.5
    for axis, n in enumerate(spread):
        grain = np.add.reduce([np.roll(grain, i, axis) for i in range(n)]) / n
    pixels = first + share * np.subtract(last, first) + strength * grain[:, :, None]
    pixels += light[1] * (np.array(light[0]) - pixels)
    image = Image.fromarray(pixels.clip(0, 255).astype(np.uint8))
    return image.resize(size[::-1], Image.Resampling.NEAREST)


def _add_sky(pen: Pen, light: str, wide: float, dice: Dice) -> None:
    """Add sun, moon, stars and clouds, or stripes and skirting, in heights of the picture."""
    x, cloud = dice.between(0.15, 0.85) * wide, "#fcfcfc"
    if light == "night":
        for _ in range(14):
            pen.ellipse(
                "#ffffe6", dice.between(0, wide), dice.between(0.04, 0.43), 0.006, 0.006
            )
        pen.ellipse("#f6f2d6", x, 0.32, 0.065, 0.065)
        pen.ellipse("#141c3c", x + 0.03, 0.335, 0.055, 0.055)
    elif light == "sunset":
        pen.ellipse("#ffe282", x, 0.03, 0.1, 0.1)
    elif light == "clear":
        pen.ellipse("#fff096", x, 0.34, 0.06, 0.06)
    elif light == "cloudy":
        cloud = "#b0b6be"
    else:
        stripe = dice.pick(_STRIPES)
        for left in np.arange(0.0, wide, 0.24):
            pen.polygon(stripe, left, 0, left + 0.12, 0, left + 0.12, 1, left, 1)
        pen.polygon("#ece8e0", 0, 0, wide, 0, wide, 0.03, 0, 0.03)
    for _ in range({"clear": 2, "cloudy": 5}.get(light, 0)):
        x, y = dice.between(-0.1, wide), dice.between(0.12, 0.36)
        pen.line(cloud, 0.06, x, y, x + 0.16, y)
        pen.ellipse(cloud, x + 0.06, y + 0.03, 0.045, 0.045)


def _add_ground(pen: Pen, kind: str, wide: float, dice: Dice) -> None:
    """Add flowers, shells, crests of waves, kerb and lane, or boards, in heights."""
    if kind == "road":
        pen.polygon("#beb9b2", 0, 0, wide, 0, wide, -0.05, 0, -0.05)
        for x in np.arange(dice.between(-0.4, 0.0), wide, 0.4):
            pen.line("#f0ecdc", 0.03, x, -0.2, x + 0.18, -0.2)
    elif kind == "floor":
        for y in np.arange(0.0, -0.6, -0.112):
            x = dice.between(0.1, 0.9) * wide
            pen.line("#5e3a2490", 0.01, 0, y, wide, y)
            pen.line("#5e3a2490", 0.01, x, y, x, y - 0.112)
    for _ in range({"grass": 8, "sand": 5, "water": 9}.get(kind, 0)):
        x, y = dice.between(0, wide), -dice.between(0.03, 0.56)
        if kind == "water":
            pen.line("#cee6f4", 0.012, x, y, x + 0.05, y + 0.015, x + 0.1, y)
        else:
            pen.ellipse(dice.pick(_SPOTS[kind]), x, y, 0.013, 0.013)
