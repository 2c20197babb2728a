"""People in local units: an adult has height 1, facing along x."""

from __future__ import annotations

from dataclasses import dataclass

from kernelcore.datasets.scenes.animals import eye
from kernelcore.datasets.scenes.canvas import Colour, Figure, Point, mix, shade

_SHOE: Colour = (50, 44, 44)
_TROUSERS: Colour = (58, 66, 96)

# Knee and foot of the rear and the front leg, from the hip at (0, 0.46).
_LEGS: dict[str, tuple[tuple[Point, Point], tuple[Point, Point]]] = {
    "stand": (((-0.05, 0.24), (-0.06, 0.03)), ((0.05, 0.24), (0.06, 0.03))),
    "run": (((-0.08, 0.24), (-0.3, 0.12)), ((0.16, 0.3), (0.2, 0.06))),
    "leap": (((-0.1, 0.34), (-0.34, 0.28)), ((0.2, 0.44), (0.36, 0.32))),
    "kick": (((-0.05, 0.24), (-0.12, 0.03)), ((0.18, 0.34), (0.36, 0.2))),
    "sit": (((0.18, 0.46), (0.2, 0.22)), ((0.22, 0.48), (0.24, 0.24))),
}
# Elbow and hand of the rear and the front arm, from the shoulder at (0, 0.74).
_ARMS: dict[str, tuple[tuple[Point, Point], tuple[Point, Point]]] = {
    "stand": (((-0.12, 0.6), (-0.1, 0.45)), ((0.12, 0.6), (0.12, 0.45))),
    "run": (((-0.18, 0.64), (-0.1, 0.5)), ((0.14, 0.6), (0.3, 0.7))),
    "leap": (((-0.16, 0.76), (-0.26, 0.88)), ((0.16, 0.78), (0.3, 0.92))),
    "sit": (((0.12, 0.6), (0.28, 0.56)), ((0.14, 0.62), (0.3, 0.6))),
    "reach": (((0.14, 0.64), (0.36, 0.62)), ((0.16, 0.68), (0.38, 0.68))),
    "raise": (((-0.12, 0.6), (-0.1, 0.45)), ((0.14, 0.84), (0.26, 1.0))),
}


@dataclass(frozen=True)
class Looks:
    """What a person is born with and does not mention."""

    skin: Colour
    hair: Colour


SKINS: tuple[Colour, ...] = ((250, 212, 178), (228, 178, 138), (168, 112, 76), (112, 72, 52))
HAIRS: tuple[Colour, ...] = ((48, 34, 28), (104, 62, 32), (206, 160, 76), (150, 60, 30))


def person(
    figure: Figure, kind: str, shirt: Colour, looks: Looks, *, legs: str, arms: str
) -> None:
    """Man, woman, boy or girl; grown-ups and children differ in size alone outside here."""
    skirted = kind in {"woman", "girl"}
    rear, front = _LEGS[legs]
    for (knee, foot), near in ((rear, False), (front, True)):
        cloth = looks.skin if skirted else _TROUSERS
        if not near:
            cloth = shade(cloth, 0.75)
        figure.limb([(0.0, 0.46), knee, foot], [0.075, 0.06, 0.045], cloth)
        if kind == "boy":
            figure.limb([knee, foot], [0.05, 0.042], shade(looks.skin, 0.75 + 0.25 * near))
        figure.limb([foot, (foot[0] + 0.07, foot[1])], [0.04, 0.035], _SHOE)
    _arm(figure, _ARMS[arms][0], shade(shirt, 0.72), shade(looks.skin, 0.75))
    if skirted:
        _hair_behind(figure, kind, looks.hair)
        hem = 0.1 if legs == "sit" else 0.0
        figure.polygon(
            [(-0.08, 0.78), (0.08, 0.78), (0.2 + hem, 0.28 + hem), (-0.2, 0.28 + hem)], shirt
        )
    figure.limb([(0.0, 0.5), (0.0, 0.72)], [0.1, 0.11], shirt)
    figure.limb([(0.0, 0.78), (0.01, 0.86)], [0.045, 0.045], looks.skin)
    _head(figure, kind, shirt, looks)
    _arm(figure, _ARMS[arms][1], shade(shirt, 0.88), looks.skin)


def hand(arms: str) -> Point:
    """Where the front hand is."""
    return _ARMS[arms][1][1]


def _arm(figure: Figure, joints: tuple[Point, Point], sleeve: Colour, skin: Colour) -> None:
    elbow, end = joints
    figure.limb([(0.0, 0.74), elbow], [0.055, 0.045], sleeve)
    figure.limb([elbow, end], [0.038, 0.035], skin)


def _head(figure: Figure, kind: str, shirt: Colour, looks: Looks) -> None:
    figure.disc(0.02, 0.94, 0.115, looks.skin)
    figure.disc(0.13, 0.92, 0.022, looks.skin, rim=False)
    eye(figure, 0.075, 0.955, 0.02)
    figure.limb([(-0.07, 0.92), (-0.06, 1.01), (0.06, 1.04)], [0.05, 0.055, 0.04], looks.hair)
    if kind == "boy":
        cap = mix(shirt, (20, 20, 30), 0.3)
        figure.limb([(-0.05, 1.03), (0.06, 1.03)], [0.065, 0.06], cap)
        figure.limb([(0.06, 1.0), (0.2, 0.99)], [0.022, 0.018], cap)


def _hair_behind(figure: Figure, kind: str, hair: Colour) -> None:
    if kind == "woman":
        figure.limb([(-0.04, 0.98), (-0.11, 0.84), (-0.13, 0.66)], [0.08, 0.075, 0.05], hair)
    else:
        figure.limb([(-0.08, 0.96), (-0.2, 0.94), (-0.24, 0.8)], [0.05, 0.05, 0.03], hair)
