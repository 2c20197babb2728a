"""Painting of the picture of a scene: sky or wall, ground, scenery and actors."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore.datasets.scenes.canvas import Colour, Figure, Floats, Tint, mix
from kernelcore.datasets.scenes.stage import Actor, Stage
from kernelcore.datasets.scenes.things import HAIRS, SKINS, Looks
from kernelcore.datasets.scenes.world import Dice, Scene, Thing

_HORIZON = 0.44
_SCENERY_SCALE = 0.9
_SHADOW: Tint = ((20.0, 24.0, 30.0), 0.3)
_ISLAND: Colour = (232, 204, 144)
_FOAM: Colour = (226, 240, 248)
_CLEARNESS = 0.3

# Colours of the sky at its top and at the horizon.
_SKIES: dict[str, tuple[Colour, Colour]] = {
    "clear": ((92, 160, 232), (196, 226, 246)),
    "cloudy": ((142, 150, 160), (206, 210, 214)),
    "sunset": ((118, 74, 142), (252, 164, 90)),
    "night": ((10, 14, 44), (44, 54, 104)),
}
# The effect of each light on everything but the sky.
_TINTS: dict[str, Tint] = {
    "clear": ((255, 255, 255), 0.0),
    "cloudy": ((120, 126, 134), 0.16),
    "sunset": ((240, 120, 60), 0.2),
    "night": ((24, 32, 92), 0.4),
    "indoors": ((255, 240, 200), 0.06),
}
_WALLS: tuple[Colour, ...] = (
    (236, 220, 180),
    (190, 214, 196),
    (224, 190, 190),
    (190, 200, 226),
)
_FLOWERS: tuple[Colour, ...] = ((250, 246, 240), (250, 220, 90), (232, 120, 160))
_SHELLS: tuple[Colour, ...] = ((250, 240, 230), (236, 170, 140))


class Picture(NamedTuple):
    """Pixels of a scene and where its agent and its patient are."""

    pixels: npt.NDArray[np.uint8]
    agent_box: tuple[int, int, int, int]
    patient_box: tuple[int, int, int, int]


def draw(scene: Scene, size: tuple[int, int], dice: Dice) -> Picture:
    """Paint a scene; `dice` decides the details that no caption mentions."""
    horizon = int(_HORIZON * size[0])
    light = _TINTS[scene.light]
    pixels: Floats = np.empty((*size, 3))
    above, below = pixels[:horizon], pixels[horizon:]
    if scene.light == "indoors":
        _paint_wall(above, dice)
    else:
        _paint_sky(above, scene.light, size[0], dice)
    _GROUNDS[scene.ground](below, dice)
    below += light[1] * (np.array(light[0]) - below)
    if scene.scenery is not None:
        _paint_scenery(pixels, scene, scene.scenery, horizon, dice)
    stage = Stage(scene, size, dice)
    patient, agent = (
        actor.figure(size, stage.direction, _looks(dice))
        for actor in (stage.patient, stage.agent)
    )
    surface = pixels.copy()
    if scene.ground != "water":
        for actor in (stage.patient, stage.agent):
            _paint_shadow(pixels, actor, stage.foot)
    for figure in (stage.line, patient, agent):
        if figure is not None:
            figure.draw(pixels, light)
    if scene.ground == "water":
        _submerge(pixels, surface, int(stage.foot))
    return Picture(
        np.clip(np.rint(pixels), 0, 255).astype(np.uint8), agent.box(), patient.box()
    )


def _looks(dice: Dice) -> Looks:
    return Looks(dice.pick(SKINS), dice.pick(HAIRS))


def _paint_scenery(
    pixels: Floats, scene: Scene, thing: Thing, horizon: int, dice: Dice
) -> None:
    light = _TINTS[scene.light]
    height, width = pixels.shape[:2]
    actor = Actor(thing, height)
    actor.scale *= _SCENERY_SCALE
    actor.x = dice.pick((dice.between(0.1, 0.3), dice.between(0.7, 0.9))) * width
    actor.y = horizon + (0.0 if thing.kind == "window" else 0.06 * height)
    if scene.ground == "water" and thing.kind != "boat":
        island = Figure((height, width), (actor.x, actor.y), actor.scale)
        island.add("ellipse", _ISLAND, (0.0, 0.0, 0.5, 0.09))
        island.draw(pixels, light)
    actor.figure((height, width), dice.pick((1, -1)), _looks(dice)).draw(pixels, light)


def _paint_shadow(pixels: Floats, actor: Actor, foot: float) -> None:
    """Darken the ground below an actor, less and less the higher it is."""
    height, width = pixels.shape[:2]
    shadow = Figure((height, width), (actor.x, foot), 1.0)
    shadow.add("ellipse", _SHADOW[0], (0.0, 0.0, 0.9 * actor.half_width, 0.05 * actor.scale))
    (shape,) = shadow.shapes
    part = pixels[shape.rows, shape.columns]
    share = _SHADOW[1] * np.clip(0.5 - shape.distance, 0.0, 1.0)
    part += share[:, :, None] * (np.array(_SHADOW[0]) - part)


def _submerge(pixels: Floats, surface: Floats, level: int) -> None:
    """Let the water cover everything below its level, with foam where a body breaks it."""
    wet = (pixels[level] != surface[level]).any(axis=1)
    pixels[level:] = surface[level:] + _CLEARNESS * (pixels[level:] - surface[level:])
    pixels[level, wet] += 0.7 * (np.array(_FOAM) - pixels[level, wet])


def _paint_wall(part: Floats, dice: Dice) -> None:
    height, width = part.shape[:2]
    stripe = np.where(np.arange(width) // max(4, width // 16) % 2 == 0, 8.0, -8.0)
    part[:] = np.array(dice.pick(_WALLS)) + stripe[None, :, None]
    part[height - max(2, height // 14) :] = np.array((236, 232, 224))


def _paint_sky(part: Floats, light: str, height: int, dice: Dice) -> None:
    """Fill the rows above the horizon of a picture of some height."""
    (horizon, width), (top, bottom) = part.shape[:2], _SKIES[light]
    _fill(part, top, bottom)
    sky = Figure((horizon, width), (0.0, 0.0), float(height))

    def disc(colour: Colour, *numbers: float) -> None:
        sky.add("disc", colour, numbers, rim=False)

    if light == "night":
        for _ in range(14):
            disc(
                (255, 255, 230),
                dice.between(0.0, width / height),
                dice.between(-0.4, 0.0),
                0.006,
            )
        x = dice.between(0.15, 1.1)
        disc((246, 242, 214), x, -0.12, 0.065)
        disc(mix(top, bottom, 0.25), x + 0.03, -0.105, 0.055)
    elif light == "sunset":
        disc((255, 226, 130), dice.between(0.2, 1.1), -horizon / height + 0.03, 0.1)
    else:
        if light == "clear":
            disc((255, 240, 150), dice.between(0.1, 1.2), -0.1, 0.06)
        cloud = (252, 252, 252) if light == "clear" else (176, 182, 190)
        for _ in range(2 if light == "clear" else 5):
            x, y = dice.between(0.0, width / height), dice.between(-0.3, -0.06)
            sky.add("limb", cloud, (x, y, 0.03, x + 0.16, y, 0.03), rim=False)
            disc(cloud, x + 0.06, y + 0.03, 0.045)
    sky.draw(part)


def _fill(part: Floats, first: Colour, last: Colour) -> None:
    """Fill with a colour that goes from the first row's towards the last row's."""
    share = (np.arange(len(part)) / len(part))[:, None, None]
    part[:] = np.array(first) + share * (np.array(last) - np.array(first))


def _noise(dice: Dice, part: Floats, *, along_x: int = 1, along_y: int = 1) -> Floats:
    """Noise around 0, averaged over some neighbours along each axis."""
    height, width = part.shape[:2]
    noise = dice.rng.random((height + along_y - 1, width + along_x - 1)) - 0.5
    rows = noise[:height].copy()
    for shift in range(1, along_y):
        rows += noise[shift : shift + height]
    result: Floats = rows[:, :width].copy()
    for shift in range(1, along_x):
        result += rows[:, shift : shift + width]
    result /= along_x * along_y
    return result


def _triangle(values: Floats, period: float) -> Floats:
    """Make a wave between -1 and 1 without sines."""
    phase = values / period
    wave: Floats = 4.0 * np.abs(phase - np.floor(phase + 0.5)) - 1.0
    return wave


def _scatter(
    part: Floats, dice: Dice, n: int, radius: float, colours: tuple[Colour, ...]
) -> None:
    height, width = part.shape[:2]
    spots = Figure((height, width), (0.0, 0.0), float(width))
    for _ in range(n):
        x, y = dice.between(0.0, 1.0), -dice.between(0.05, height / width)
        spots.add("disc", dice.pick(colours), (x, y, radius), rim=False)
    spots.draw(part)


def _grass(part: Floats, dice: Dice) -> None:
    blades = 110 * _noise(dice, part, along_y=5) + 40 * _noise(dice, part)
    _fill(part, (120, 182, 84), (74, 146, 52))
    part += blades[:, :, None]
    _scatter(part, dice, 7, 0.009, _FLOWERS)


def _sand(part: Floats, dice: Dice) -> None:
    height, width = part.shape[:2]
    bent = np.arange(height, dtype=np.float64)[:, None] + 2.0 * _triangle(
        np.arange(width, dtype=np.float64), width / 2.5
    )
    ripples = 9.0 * _triangle(bent, height / 7.0)
    _fill(part, (240, 216, 164), (226, 190, 122))
    part += (ripples + 44 * _noise(dice, part))[:, :, None]
    _scatter(part, dice, 4, 0.012, _SHELLS)


def _snow(part: Floats, dice: Dice) -> None:
    _fill(part, (214, 224, 242), (236, 240, 250))
    part += 60 * _noise(dice, part, along_x=15, along_y=5)[:, :, None]
    part += np.array((-14.0, -8.0, 0.0)) * (_noise(dice, part) > 0.42)[:, :, None]


def _road(part: Floats, dice: Dice) -> None:
    height, width = part.shape[:2]
    _fill(part, (128, 128, 132), (104, 104, 110))
    part += 62 * _noise(dice, part)[:, :, None]
    kerb = part[: max(2, height // 10)]
    kerb[:] = np.array((190, 186, 178)) + 20 * _noise(dice, kerb)[:, :, None]
    lines = Figure((height, width), (dice.between(-0.3, 0.0) * width, 0.0), float(width))
    for i in range(5):
        x, y = 0.3 * i, -0.36 * height / width
        lines.add("limb", (240, 236, 220), (x, y, 0.012, x + 0.14, y, 0.012), rim=False)
    lines.draw(part)


def _water(part: Floats, dice: Dice) -> None:
    height, width = part.shape[:2]
    waves = 150 * _noise(dice, part, along_x=9) + 20 * _noise(dice, part)
    _fill(part, (92, 160, 206), (34, 96, 168))
    part += waves[:, :, None]
    crests = Figure((height, width), (0.0, 0.0), float(width))
    for _ in range(9):
        x, y = dice.between(-0.05, 0.95), -dice.between(0.03, height / width)
        joints = (x, y, 0.006, x + 0.04, y + 0.012, 0.006, x + 0.08, y, 0.006)
        crests.add("limb", (206, 230, 244), joints, rim=False)
    crests.draw(part)


def _floor(part: Floats, dice: Dice) -> None:
    height, width = part.shape[:2]
    grain = 70 * _noise(dice, part, along_x=13) + 14 * _noise(dice, part)
    _fill(part, (150, 96, 54), (176, 116, 66))
    part += grain[:, :, None]
    n_boards = 5
    for board in range(n_boards):
        row = board * height // n_boards
        part[row : row + 1] *= 0.62
        joint = int(dice.between(0.1, 0.9) * width)
        part[row : (board + 1) * height // n_boards, joint : joint + 1] *= 0.62


_GROUNDS: dict[str, Callable[[Floats, Dice], None]] = {
    "grass": _grass,
    "sand": _sand,
    "snow": _snow,
    "road": _road,
    "water": _water,
    "floor": _floor,
}
