"""Objects and scenery in local units of about 1."""

from __future__ import annotations

from collections.abc import Callable

from kernelcore.datasets.scenes.canvas import Colour, Figure, mix, shade

WHITE: Colour = (248, 248, 246)
_GLASS: Colour = (188, 220, 236)
_TIRE: Colour = (36, 36, 40)
_METAL: Colour = (176, 180, 188)
_WOOD: Colour = (134, 92, 54)
_LEAVES: Colour = (62, 124, 54)
_FIR: Colour = (36, 92, 72)
_LAMP: Colour = (255, 232, 150)


def ball(figure: Figure, paint: Colour) -> None:
    """Draw a ball with a bright band."""
    figure.disc(0.0, 0.5, 0.5, paint)
    figure.limb([(-0.34, 0.6), (0.0, 0.68), (0.34, 0.6)], [0.08] * 3, WHITE, rim=False)
    figure.disc(-0.16, 0.82, 0.08, mix(paint, WHITE, 0.7), rim=False)


def box(figure: Figure, paint: Colour) -> None:
    """Draw a crate with a frame and a diagonal board."""
    figure.polygon([(-0.5, 0.0), (0.5, 0.0), (0.5, 0.9), (-0.5, 0.9)], paint)
    board = shade(paint, 0.68)
    for x0, y0, x1, y1 in (
        (-0.44, 0.08, 0.44, 0.08),
        (-0.44, 0.82, 0.44, 0.82),
        (-0.44, 0.08, -0.44, 0.82),
        (0.44, 0.08, 0.44, 0.82),
        (-0.44, 0.08, 0.44, 0.82),
    ):
        figure.limb([(x0, y0), (x1, y1)], [0.05, 0.05], board, rim=False)


def car(figure: Figure, paint: Colour) -> None:
    """Draw a small car with windows and a headlight."""
    figure.polygon([(-0.62, 0.5), (-0.42, 0.86), (0.22, 0.86), (0.48, 0.52)], shade(paint, 0.9))
    figure.polygon(
        [(-0.46, 0.54), (-0.36, 0.78), (-0.1, 0.78), (-0.1, 0.54)], _GLASS, rim=False
    )
    figure.polygon(
        [(-0.02, 0.54), (-0.02, 0.78), (0.18, 0.78), (0.36, 0.54)], _GLASS, rim=False
    )
    figure.polygon(
        [(-0.82, 0.18), (-0.84, 0.5), (-0.62, 0.56), (0.5, 0.56), (0.84, 0.44), (0.86, 0.18)],
        paint,
    )
    figure.disc(0.8, 0.38, 0.06, _LAMP, rim=False)
    for x in (-0.46, 0.46):
        figure.disc(x, 0.18, 0.18, _TIRE)
        figure.disc(x, 0.18, 0.08, _METAL, rim=False)


def boat(figure: Figure, paint: Colour) -> None:
    """Draw a hull with a mast and two sails."""
    figure.limb([(0.0, 0.3), (0.0, 1.3)], [0.025, 0.025], _WOOD)
    figure.polygon([(0.05, 0.4), (0.05, 1.28), (0.56, 0.4)], WHITE)
    figure.polygon([(-0.05, 0.4), (-0.05, 1.14), (-0.44, 0.4)], mix(WHITE, paint, 0.25))
    figure.polygon([(-0.72, 0.34), (0.86, 0.34), (0.54, 0.0), (-0.54, 0.0)], paint)
    figure.limb([(-0.64, 0.26), (0.74, 0.26)], [0.02, 0.02], WHITE, rim=False)


def bicycle(figure: Figure, paint: Colour) -> None:
    """Draw two wheels, a frame, a saddle and handlebars."""
    for x in (-0.46, 0.46):
        figure.ring(x, 0.3, 0.27, 0.06, _TIRE)
    for points in (
        [(-0.46, 0.3), (-0.2, 0.66), (0.3, 0.68), (0.0, 0.3), (-0.46, 0.3)],
        [(-0.24, 0.76), (0.0, 0.3)],
        [(0.46, 0.3), (0.3, 0.68), (0.28, 0.84)],
    ):
        figure.limb(points, [0.035] * len(points), paint)
    figure.limb([(-0.34, 0.78), (-0.16, 0.77)], [0.04, 0.03], _TIRE)
    figure.limb([(0.28, 0.84), (0.38, 0.86)], [0.025, 0.025], _TIRE)


def balloon(figure: Figure, paint: Colour) -> None:
    """Draw a balloon on a string."""
    figure.limb([(0.0, 0.0), (0.04, 0.2), (0.0, 0.42)], [0.012] * 3, WHITE)
    figure.ellipse(0.0, 0.76, 0.28, 0.34, paint)
    figure.polygon([(0.0, 0.45), (0.06, 0.38), (-0.06, 0.38)], paint)
    figure.ellipse(-0.1, 0.9, 0.06, 0.1, mix(paint, WHITE, 0.6), rim=False)


def kite(figure: Figure, paint: Colour) -> None:
    """Draw a diamond with a tail of bows."""
    figure.limb([(0.0, 0.3), (-0.12, 0.16), (0.02, 0.06), (-0.08, -0.06)], [0.014] * 4, WHITE)
    for x, y in ((-0.1, 0.17), (0.0, 0.06)):
        figure.disc(x, y, 0.05, shade(paint, 0.8))
    figure.polygon([(0.0, 1.0), (0.34, 0.68), (0.0, 0.3), (-0.34, 0.68)], paint)
    figure.polygon([(0.0, 1.0), (0.34, 0.68), (0.0, 0.68)], mix(paint, WHITE, 0.5), rim=False)
    figure.polygon([(0.0, 0.68), (-0.34, 0.68), (0.0, 0.3)], mix(paint, WHITE, 0.5), rim=False)


def umbrella(figure: Figure, paint: Colour) -> None:
    """Draw an open umbrella with a crook."""
    figure.limb([(0.0, 0.7), (0.0, 0.06), (0.07, 0.0), (0.13, 0.06)], [0.022] * 4, _WOOD)
    dome = [
        (-0.5, 0.62), (-0.42, 0.82), (-0.22, 0.96), (0.0, 1.0), (0.22, 0.96), (0.42, 0.82),
        (0.5, 0.62), (0.34, 0.68), (0.17, 0.62), (0.0, 0.68), (-0.17, 0.62), (-0.34, 0.68),
    ]  # fmt: skip
    figure.polygon(dome, paint)
    figure.polygon([(0.0, 1.0), (0.17, 0.62), (0.0, 0.68), (-0.17, 0.62)],
                   mix(paint, WHITE, 0.45), rim=False)  # fmt: skip


def plane(figure: Figure, paint: Colour) -> None:
    """Draw an aeroplane seen from its side."""
    figure.polygon([(-0.02, 0.54), (-0.3, 0.86), (0.2, 0.56)], shade(paint, 0.7))
    figure.polygon([(-0.62, 0.52), (-0.84, 0.88), (-0.66, 0.88), (-0.4, 0.56)], paint)
    figure.limb([(-0.6, 0.5), (0.0, 0.48), (0.6, 0.46)], [0.08, 0.15, 0.11], paint)
    figure.polygon([(0.06, 0.44), (-0.36, 0.14), (-0.16, 0.46)], shade(paint, 0.82))
    for x in (-0.24, -0.06, 0.12, 0.3):
        figure.disc(x, 0.54, 0.04, _GLASS, rim=False)


def house(figure: Figure, paint: Colour) -> None:
    """Draw a house whose walls are painted, with a door, windows and a chimney."""
    figure.polygon([(0.26, 0.8), (0.26, 1.16), (0.4, 1.16), (0.4, 0.7)], (150, 84, 70))
    figure.polygon([(-0.56, 0.0), (0.56, 0.0), (0.56, 0.66), (-0.56, 0.66)], paint)
    figure.polygon([(-0.68, 0.64), (0.0, 1.12), (0.68, 0.64)], (126, 66, 54))
    figure.polygon([(-0.1, 0.0), (0.14, 0.0), (0.14, 0.42), (-0.1, 0.42)], _WOOD, rim=False)
    for x in (-0.42, 0.24):
        figure.polygon([(x, 0.26), (x + 0.2, 0.26), (x + 0.2, 0.5), (x, 0.5)], WHITE, rim=False)
        figure.polygon(
            [(x + 0.03, 0.29), (x + 0.17, 0.29), (x + 0.17, 0.47), (x + 0.03, 0.47)],
            _GLASS,
            rim=False,
        )


def tree(figure: Figure, paint: Colour) -> None:
    """Draw a broad tree with apples of the paint's colour."""
    figure.limb([(0.0, 0.0), (0.0, 0.5)], [0.09, 0.07], _WOOD)
    crown = ((-0.24, 0.66, 0.24), (0.24, 0.68, 0.24), (0.0, 0.92, 0.27), (0.0, 0.62, 0.24))
    for x, y, radius in crown:
        figure.disc(x, y, radius, _LEAVES)
    for x, y in ((-0.26, 0.76), (-0.04, 1.0), (0.22, 0.8), (0.06, 0.74)):
        figure.disc(x, y, 0.07, shade(_LEAVES, 1.25), rim=False)
    for x, y in ((-0.3, 0.6), (-0.08, 0.84), (0.14, 0.94), (0.3, 0.62), (0.04, 0.56)):
        figure.disc(x, y, 0.045, paint, rim=False)


def fir(figure: Figure, paint: Colour) -> None:
    """Draw a fir with snow on its branches."""
    del paint
    figure.limb([(0.0, 0.0), (0.0, 0.3)], [0.07, 0.07], _WOOD)
    for y, half in ((0.16, 0.4), (0.46, 0.32), (0.76, 0.22)):
        figure.polygon([(-half, y), (half, y), (0.0, y + 0.52)], _FIR)
        figure.limb([(-half, y), (-0.4 * half, y + 0.28)], [0.03, 0.01], WHITE, rim=False)
        figure.limb([(half, y), (0.4 * half, y + 0.28)], [0.03, 0.01], WHITE, rim=False)


def palm(figure: Figure, paint: Colour) -> None:
    """Draw a palm with drooping fronds."""
    del paint
    figure.limb([(-0.1, 0.0), (-0.04, 0.4), (0.06, 0.86)], [0.08, 0.055, 0.045], (150, 112, 66))
    for x, y in ((-0.36, 0.98), (-0.3, 0.72), (0.46, 0.98), (0.42, 0.7), (0.06, 1.12)):
        middle = (0.06 + 0.55 * (x - 0.06), 0.98 + 0.5 * abs(y - 0.9) * (y > 0.9))
        figure.limb([(0.06, 0.88), middle, (x, y)], [0.05, 0.06, 0.015], (56, 140, 66))
    for x in (0.0, 0.12):
        figure.disc(x, 0.84, 0.05, (110, 70, 36), rim=False)


def snowman(figure: Figure, paint: Colour) -> None:
    """Draw two balls of snow, a scarf of the paint's colour, a hat and a carrot."""
    snow = (236, 240, 248)
    figure.disc(0.0, 0.3, 0.3, snow)
    figure.disc(0.0, 0.72, 0.2, snow)
    figure.limb([(-0.16, 0.56), (0.16, 0.56)], [0.05, 0.05], paint)
    figure.limb([(0.12, 0.54), (0.16, 0.34)], [0.045, 0.04], paint)
    figure.polygon([(-0.14, 0.88), (0.14, 0.88), (0.12, 1.12), (-0.12, 1.12)], _TIRE)
    figure.limb([(-0.22, 0.88), (0.22, 0.88)], [0.03, 0.03], _TIRE)
    figure.polygon([(0.06, 0.75), (0.34, 0.7), (0.06, 0.68)], (240, 130, 40), rim=False)
    for x, y in ((0.04, 0.8), (0.14, 0.8), (0.02, 0.4), (0.02, 0.26)):
        figure.disc(x, y, 0.03, _TIRE, rim=False)


def fence(figure: Figure, paint: Colour) -> None:
    """Draw a garden fence of pointed boards."""
    for y in (0.16, 0.36):
        figure.limb([(-0.7, y), (0.7, y)], [0.04, 0.04], shade(paint, 0.8))
    for i in range(6):
        x = -0.66 + 0.24 * i
        figure.polygon(
            [(x, 0.0), (x + 0.12, 0.0), (x + 0.12, 0.44), (x + 0.06, 0.54), (x, 0.44)], paint
        )


def lamp(figure: Figure, paint: Colour) -> None:
    """Draw a street lamp."""
    figure.limb([(0.0, 0.0), (0.0, 1.1)], [0.05, 0.03], mix(_TIRE, paint, 0.3))
    figure.limb([(0.0, 1.1), (0.2, 1.16)], [0.03, 0.03], mix(_TIRE, paint, 0.3))
    figure.ellipse(0.22, 1.1, 0.13, 0.07, _LAMP)


def sofa(figure: Figure, paint: Colour) -> None:
    """Draw a sofa with two cushions."""
    figure.limb([(-0.5, 0.5), (0.5, 0.5)], [0.17, 0.17], paint)
    figure.polygon(
        [(-0.62, 0.08), (0.62, 0.08), (0.62, 0.36), (-0.62, 0.36)], shade(paint, 0.85)
    )
    for x in (-0.28, 0.28):
        figure.limb([(x - 0.18, 0.38), (x + 0.18, 0.38)], [0.09, 0.09], shade(paint, 1.12))
    for x in (-0.66, 0.66):
        figure.limb([(x, 0.14), (x, 0.42)], [0.11, 0.12], paint)


def window(figure: Figure, paint: Colour) -> None:
    """Draw a window with curtains of the paint's colour, high on a wall."""
    figure.polygon([(-0.42, 0.7), (0.42, 0.7), (0.42, 1.4), (-0.42, 1.4)], WHITE)
    for x in (-0.36, 0.03):
        for y in (0.76, 1.07):
            figure.polygon(
                [(x, y), (x + 0.33, y), (x + 0.33, y + 0.27), (x, y + 0.27)], _GLASS, rim=False
            )
    for side in (-1, 1):
        figure.polygon(
            [(side * 0.5, 0.62), (side * 0.24, 0.66), (side * 0.12, 1.46), (side * 0.5, 1.46)],
            paint,
        )


DRAW: dict[str, Callable[[Figure, Colour], None]] = {
    "ball": ball,
    "box": box,
    "car": car,
    "boat": boat,
    "bicycle": bicycle,
    "balloon": balloon,
    "kite": kite,
    "umbrella": umbrella,
    "plane": plane,
    "house": house,
    "tree": tree,
    "fir": fir,
    "palm": palm,
    "snowman": snowman,
    "fence": fence,
    "lamp": lamp,
    "sofa": sofa,
    "window": window,
}
