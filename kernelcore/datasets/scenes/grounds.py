"""Skies, walls and textured grounds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernelcore.datasets.scenes.canvas import Colour, Figure, Floats, Tint, mix
from kernelcore.datasets.scenes.world import Dice

# Colours of the sky at its top and at the horizon.
_SKIES: dict[str, tuple[Colour, Colour]] = {
    "clear": ((92, 160, 232), (196, 226, 246)),
    "cloudy": ((142, 150, 160), (206, 210, 214)),
    "sunset": ((118, 74, 142), (252, 164, 90)),
    "night": ((10, 14, 44), (44, 54, 104)),
}
TINTS: dict[str, Tint] = {
    "clear": ((255, 255, 255), 0.0),
    "cloudy": ((120, 126, 134), 0.16),
    "sunset": ((240, 120, 60), 0.2),
    "night": ((24, 32, 92), 0.4),
    "indoors": ((255, 240, 200), 0.06),
}
"""What each light does to everything but the sky."""

_WALLS: tuple[Colour, ...] = (
    (236, 220, 180),
    (190, 214, 196),
    (224, 190, 190),
    (190, 200, 226),
)


def paint_backdrop(pixels: Floats, light: str, horizon: int, dice: Dice) -> None:
    """Fill the rows above the horizon."""
    if light == "indoors":
        _wall(pixels[:horizon], dice)
        return
    top, bottom = _SKIES[light]
    share = (np.arange(horizon) / horizon)[:, None, None]
    pixels[:horizon] = np.array(top) + share * (np.array(bottom) - np.array(top))
    height, width = pixels.shape[:2]
    sky = Figure((horizon, width), (0.0, 0.0), float(height))
    if light == "night":
        for _ in range(14):
            spot = dice.between(0.0, width / height), dice.between(-0.4, 0.0)
            sky.disc(*spot, 0.006, (255, 255, 230), rim=False)
        x = dice.between(0.15, 1.1)
        sky.disc(x, -0.12, 0.065, (246, 242, 214), rim=False)
        sky.disc(x + 0.03, -0.105, 0.055, mix(top, bottom, 0.25), rim=False)
    elif light == "sunset":
        sky.disc(
            dice.between(0.2, 1.1), -horizon / height + 0.03, 0.1, (255, 226, 130), rim=False
        )
    else:
        if light == "clear":
            sky.disc(dice.between(0.1, 1.2), -0.1, 0.06, (255, 240, 150), rim=False)
        cloud = (252, 252, 252) if light == "clear" else (176, 182, 190)
        for _ in range(2 if light == "clear" else 5):
            x, y = dice.between(0.0, width / height), dice.between(-0.3, -0.06)
            sky.limb([(x, y), (x + 0.16, y)], [0.03, 0.03], cloud, rim=False)
            sky.disc(x + 0.06, y + 0.03, 0.045, cloud, rim=False)
    sky.draw(pixels[:horizon])


def paint_ground(pixels: Floats, ground: str, light: str, horizon: int, dice: Dice) -> None:
    """Fill the rows from the horizon down with the texture of a ground."""
    part = pixels[horizon:]
    _GROUNDS[ground](part, dice)
    colour, share = TINTS[light]
    part += share * (np.array(colour) - part)


def _noise(dice: Dice, shape: tuple[int, ...], *, along_x: int = 1, along_y: int = 1) -> Floats:
    """Noise around 0, averaged over some neighbours along each axis."""
    height, width = shape[:2]
    noise = dice.rng.random((height + along_y - 1, width + along_x - 1)) - 0.5
    rows = noise[:height].copy()
    for shift in range(1, along_y):
        rows += noise[shift : shift + height]
    result: Floats = rows[:, :width].copy()
    for shift in range(1, along_x):
        result += rows[:, shift : shift + width]
    result /= along_x * along_y
    return result


def _shaded(part: Floats, near: Colour, far: Colour, texture: Floats) -> None:
    """Fill with a colour that goes from far to near, lighter and darker by the texture."""
    height = part.shape[0]
    share = (np.arange(height) / height)[:, None, None]
    part[:] = np.array(far) + share * (np.array(near) - np.array(far))
    part += texture[:, :, None]


def _triangle(values: Floats, period: float) -> Floats:
    """Make a wave between -1 and 1 without sines."""
    phase = values / period
    wave: Floats = 4.0 * np.abs(phase - np.floor(phase + 0.5)) - 1.0
    return wave


def _scatter(part: Floats, dice: Dice, n: int, radius: float, colours: list[Colour]) -> None:
    height, width = part.shape[:2]
    spots = Figure((height, width), (0.0, 0.0), float(width))
    for _ in range(n):
        x, y = dice.between(0.0, 1.0), -dice.between(0.05, height / width)
        spots.disc(x, y, radius, dice.pick(colours), rim=False)
    spots.draw(part)


def _grass(part: Floats, dice: Dice) -> None:
    blades = 110 * _noise(dice, part.shape, along_y=5) + 40 * _noise(dice, part.shape)
    _shaded(part, (74, 146, 52), (120, 182, 84), blades)
    _scatter(part, dice, 7, 0.009, [(250, 246, 240), (250, 220, 90), (232, 120, 160)])


def _sand(part: Floats, dice: Dice) -> None:
    height, width = part.shape[:2]
    bent = np.arange(height, dtype=np.float64)[:, None] + 2.0 * _triangle(
        np.arange(width, dtype=np.float64), width / 2.5
    )
    ripples = 9.0 * _triangle(bent, height / 7.0)
    _shaded(part, (226, 190, 122), (240, 216, 164), ripples + 44 * _noise(dice, part.shape))
    _scatter(part, dice, 4, 0.012, [(250, 240, 230), (236, 170, 140)])


def _snow(part: Floats, dice: Dice) -> None:
    drifts = 60 * _noise(dice, part.shape, along_x=15, along_y=5)
    _shaded(part, (236, 240, 250), (214, 224, 242), drifts)
    part += np.array((-14.0, -8.0, 0.0)) * (_noise(dice, part.shape) > 0.42)[:, :, None]


def _road(part: Floats, dice: Dice) -> None:
    height, width = part.shape[:2]
    _shaded(part, (104, 104, 110), (128, 128, 132), 62 * _noise(dice, part.shape))
    kerb = max(2, height // 10)
    part[:kerb] = np.array((190, 186, 178)) + 20 * _noise(dice, part[:kerb].shape)[:, :, None]
    lines = Figure((height, width), (dice.between(-0.3, 0.0) * width, 0.0), float(width))
    for i in range(5):
        x, y = 0.3 * i, -0.36 * height / width
        lines.limb([(x, y), (x + 0.14, y)], [0.012, 0.012], (240, 236, 220), rim=False)
    lines.draw(part)


def _water(part: Floats, dice: Dice) -> None:
    height, width = part.shape[:2]
    waves = 150 * _noise(dice, part.shape, along_x=9) + 20 * _noise(dice, part.shape)
    _shaded(part, (34, 96, 168), (92, 160, 206), waves)
    crests = Figure((height, width), (0.0, 0.0), float(width))
    for _ in range(9):
        x, y = dice.between(-0.05, 0.95), -dice.between(0.03, height / width)
        crests.limb(
            [(x, y), (x + 0.04, y + 0.012), (x + 0.08, y)],
            [0.006] * 3,
            (206, 230, 244),
            rim=False,
        )
    crests.draw(part)


def _floor(part: Floats, dice: Dice) -> None:
    height, width = part.shape[:2]
    grain = 70 * _noise(dice, part.shape, along_x=13) + 14 * _noise(dice, part.shape)
    _shaded(part, (176, 116, 66), (150, 96, 54), grain)
    n_boards = 5
    for board in range(n_boards):
        row = board * height // n_boards
        part[row : row + 1] *= 0.62
        joint = int(dice.between(0.1, 0.9) * width)
        part[row : (board + 1) * height // n_boards, joint : joint + 1] *= 0.62


def _wall(part: Floats, dice: Dice) -> None:
    height, width = part.shape[:2]
    stripe = np.where(np.arange(width) // max(4, width // 16) % 2 == 0, 8.0, -8.0)
    part[:] = np.array(dice.pick(_WALLS)) + stripe[None, :, None]
    part[height - max(2, height // 14) :] = np.array((236, 232, 224))


_GROUNDS: dict[str, Callable[[Floats, Dice], None]] = {
    "grass": _grass,
    "sand": _sand,
    "snow": _snow,
    "road": _road,
    "water": _water,
    "floor": _floor,
}
