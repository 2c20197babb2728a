"""Animals in local units: height 1 at the back or head, facing along x."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kernelcore.datasets.scenes.canvas import Colour, Figure, Point, mix, shade

BLACK: Colour = (28, 26, 30)
WHITE: Colour = (246, 244, 240)
PINK: Colour = (232, 160, 165)
HORN: Colour = (232, 222, 190)
ORANGE: Colour = (238, 140, 30)

# Feet of the four legs ahead of their joints: rear far, rear near, front far, front near.
_STRIDES = {
    "stand": (0.02, -0.02, 0.02, -0.02),
    "run": (-0.34, -0.2, 0.34, 0.2),
    "leap": (-0.3, -0.38, 0.4, 0.3),
}
_LIFTS = {"stand": 0.0, "run": 0.06, "leap": 0.24}


@dataclass(frozen=True)
class Build:
    """Proportions of a four-legged animal."""

    rear: Point
    front: Point
    girth: tuple[float, float]
    leg: tuple[float, float]
    neck: float
    head: Point
    skull: float
    muzzle: Point
    snout: tuple[float, float]


BUILDS = {
    "dog": Build(
        (-0.36, 0.52), (0.3, 0.56), (0.15, 0.19), (0.08, 0.05), 0.12, (0.54, 0.86), 0.16,
        (0.82, 0.78), (0.1, 0.065),
    ),
    "cat": Build(
        (-0.34, 0.46), (0.3, 0.5), (0.16, 0.16), (0.06, 0.045), 0.11, (0.5, 0.78), 0.19,
        (0.62, 0.72), (0.1, 0.06),
    ),
    "horse": Build(
        (-0.36, 0.64), (0.3, 0.62), (0.17, 0.17), (0.065, 0.04), 0.12, (0.6, 1.06), 0.1,
        (0.84, 0.86), (0.09, 0.065),
    ),
    "cow": Build(
        (-0.42, 0.6), (0.36, 0.6), (0.23, 0.24), (0.075, 0.055), 0.17, (0.66, 0.76), 0.15,
        (0.84, 0.64), (0.12, 0.1),
    ),
    "elephant": Build(
        (-0.3, 0.66), (0.26, 0.68), (0.27, 0.29), (0.12, 0.11), 0.2, (0.58, 0.82), 0.21,
        (0.7, 0.72), (0.15, 0.1),
    ),
    "sheep": Build(
        (-0.26, 0.52), (0.2, 0.54), (0.2, 0.2), (0.05, 0.035), 0.1, (0.5, 0.74), 0.1,
        (0.62, 0.64), (0.1, 0.07),
    ),
}  # fmt: skip


def _quadruped(figure: Figure, build: Build, coat: Colour, pose: str, legs: Colour) -> None:
    """Draw legs, body, neck and head; what makes the kind is drawn around it."""
    lift = _LIFTS[pose]
    joints = (build.rear, build.rear, build.front, build.front)
    for i in (0, 2, 1, 3):  # the far legs first
        x, y = joints[i]
        x += (0.04, -0.07, 0.04, -0.07)[i] if i < 2 else (0, 0, -0.04, 0.06)[i]
        foot = (x + _STRIDES[pose][i], build.leg[1] + lift)
        knee = (
            x + 0.55 * _STRIDES[pose][i] + (0.02 if i < 2 else 0.03),
            0.52 * (y - build.girth[0]) + lift,
        )
        near = i % 2
        figure.limb(
            [(x, y - 0.3 * build.girth[0]), knee, foot],
            [1.35 * build.leg[0], build.leg[0], build.leg[1]],
            legs if near else shade(legs, 0.72),
        )
    figure.limb([build.rear, build.front], build.girth, coat)
    figure.limb(
        [(build.front[0] + 0.04, build.front[1] + 0.04), build.head],
        [1.25 * build.neck, build.neck],
        coat,
    )


def _head(figure: Figure, build: Build, face: Colour, nose: Colour = BLACK) -> None:
    x, y = build.head
    figure.disc(x, y, build.skull, face)
    figure.limb([build.head, build.muzzle], [build.snout[0], build.snout[1]], face)
    figure.disc(
        build.muzzle[0] + 0.6 * build.snout[1], build.muzzle[1] + 0.2 * build.snout[1],
        0.5 * build.snout[1], nose, rim=False,
    )  # fmt: skip
    eye(figure, x + 0.35 * build.skull, y + 0.25 * build.skull, 0.2 * build.skull + 0.012)


def eye(figure: Figure, x: float, y: float, radius: float) -> None:
    """Draw a dark eye with a glint."""
    figure.disc(x, y, 1.5 * radius, WHITE, rim=False)
    figure.disc(x + 0.2 * radius, y, radius, BLACK, rim=False)


def dog(figure: Figure, coat: Colour, pose: str) -> None:
    """Draw floppy ears, a long snout and a raised tail."""
    build = BUILDS["dog"]
    figure.limb([(-0.46, 0.58), (-0.62, 0.74), (-0.66, 0.92)], [0.06, 0.05, 0.03], coat)
    _quadruped(figure, build, coat, pose, coat)
    _head(figure, build, coat)
    ear = mix(coat, BLACK, 0.45)
    figure.limb([(0.46, 0.95), (0.38, 0.74)], [0.065, 0.085], ear)
    figure.limb([(0.4, 0.66), (0.5, 0.62)], [0.035, 0.035], (196, 40, 44), rim=False)


def cat(figure: Figure, coat: Colour, pose: str) -> None:
    """Draw a round head with pointed ears and a long curled tail."""
    build = BUILDS["cat"]
    figure.limb(
        [(-0.46, 0.5), (-0.68, 0.52), (-0.8, 0.72), (-0.74, 0.92), (-0.64, 0.94)],
        [0.06, 0.055, 0.05, 0.045, 0.04],
        coat,
    )
    _quadruped(figure, build, coat, pose, coat)
    for x in (0.36, 0.54):
        figure.polygon([(x, 0.88), (x + 0.03, 1.12), (x + 0.16, 0.92)], coat)
        figure.polygon([(x + 0.04, 0.92), (x + 0.05, 1.04), (x + 0.11, 0.93)], PINK, rim=False)
    _head(figure, build, coat, PINK)
    stripe = mix(coat, BLACK, 0.35)
    for x in (-0.3, -0.12, 0.06):
        figure.limb([(x, 0.63), (x + 0.03, 0.48)], [0.03, 0.015], stripe, rim=False)


def horse(figure: Figure, coat: Colour, pose: str) -> None:
    """Draw long legs, an arched neck, a mane and a flowing tail."""
    build = BUILDS["horse"]
    hair = mix(coat, BLACK, 0.75) if coat[0] > 60 else (92, 84, 80)
    figure.limb(
        [(-0.48, 0.74), (-0.66, 0.7), (-0.76, 0.5), (-0.8, 0.3)], [0.06, 0.08, 0.08, 0.03], hair
    )
    _quadruped(figure, build, coat, pose, coat)
    figure.polygon([(0.52, 1.12), (0.54, 1.28), (0.62, 1.14)], coat)
    _head(figure, build, coat)
    figure.limb(
        [(0.58, 1.18), (0.46, 1.04), (0.32, 0.82), (0.22, 0.74)],
        [0.05, 0.07, 0.07, 0.03],
        hair,
        rim=False,
    )


def cow(figure: Figure, coat: Colour, pose: str) -> None:
    """Draw a heavy body with patches, horns, an udder and a tufted tail."""
    build = BUILDS["cow"]
    patch = BLACK if coat[0] + coat[1] + coat[2] > 500 else WHITE
    figure.limb([(-0.62, 0.74), (-0.74, 0.56), (-0.74, 0.34)], [0.03, 0.025, 0.025], coat)
    figure.disc(-0.74, 0.28, 0.06, patch)
    figure.ellipse(-0.3, 0.36, 0.12, 0.09, PINK)
    _quadruped(figure, build, coat, pose, coat)
    for x, y, a, b in (
        (-0.36, 0.68, 0.17, 0.11),
        (0.02, 0.58, 0.13, 0.16),
        (0.3, 0.72, 0.1, 0.08),
    ):
        figure.ellipse(x, y, a, b, patch, rim=False)
    for x in (0.56, 0.72):
        figure.limb([(x, 0.88), (x + 0.04, 1.02)], [0.04, 0.02], HORN)
    figure.ellipse(0.5, 0.82, 0.1, 0.05, shade(coat, 0.8))
    _head(figure, build, coat, BLACK)
    figure.disc(*build.muzzle, 0.09, PINK, rim=False)
    figure.disc(0.88, 0.66, 0.02, BLACK, rim=False)


def elephant(figure: Figure, coat: Colour, pose: str) -> None:
    """Draw pillar legs, a great ear, a trunk and tusks."""
    build = BUILDS["elephant"]
    figure.limb([(-0.54, 0.72), (-0.64, 0.5), (-0.62, 0.36)], [0.03, 0.025, 0.035], coat)
    _quadruped(figure, build, coat, pose, coat)
    figure.limb(
        [(0.7, 0.78), (0.84, 0.54), (0.86, 0.3), (0.98, 0.22)], [0.15, 0.1, 0.075, 0.05], coat
    )
    figure.limb([(0.74, 0.62), (0.9, 0.56), (1.0, 0.6)], [0.04, 0.035, 0.015], WHITE)
    figure.disc(*build.head, build.skull, coat)
    figure.ellipse(0.44, 0.8, 0.17, 0.24, shade(coat, 0.82))
    eye(figure, 0.68, 0.9, 0.035)


def sheep(figure: Figure, coat: Colour, pose: str) -> None:
    """Draw a woolly body on thin dark legs with a dark face."""
    build = BUILDS["sheep"]
    face = (52, 46, 48) if coat[0] > 90 else (120, 110, 108)
    _quadruped(figure, build, coat, pose, face)
    curls = (
        (-0.44, 0.56), (-0.36, 0.7), (-0.2, 0.76), (-0.02, 0.78), (0.16, 0.76), (0.32, 0.68),
        (0.38, 0.54), (-0.38, 0.42), (-0.22, 0.36), (-0.02, 0.35), (0.18, 0.37), (0.34, 0.44),
    )  # fmt: skip
    for x, y in curls:
        figure.disc(x, y, 0.11, coat)
    figure.ellipse(0.0, 0.56, 0.4, 0.22, coat, rim=False)
    for x, y in ((-0.26, 0.56), (-0.06, 0.64), (0.14, 0.58), (-0.1, 0.46), (0.26, 0.5)):
        figure.ring(x, y, 0.06, 0.025, shade(coat, 0.8))
    _head(figure, build, face, BLACK)
    figure.ellipse(0.42, 0.78, 0.08, 0.04, face)
    figure.disc(0.5, 0.84, 0.09, coat, rim=False)


def rabbit(figure: Figure, coat: Colour, pose: str) -> None:
    """Draw a round back, tall ears and a white tail."""
    reach = {"stand": 0.0, "run": 0.14, "leap": 0.26}[pose]
    lift = _LIFTS[pose]
    figure.disc(-0.52, 0.4, 0.12, WHITE)
    dark = shade(coat, 0.75)
    figure.limb([(0.26, 0.34), (0.34 + reach, 0.06 + lift)], [0.09, 0.06], dark)
    figure.limb(
        [(-0.2, 0.28), (-0.22 - reach, 0.06 + lift), (-0.02 - reach, 0.05 + lift)],
        [0.16, 0.07, 0.05],
        dark,
    )
    figure.ellipse(-0.1, 0.4, 0.42, 0.31, coat)
    figure.ellipse(-0.24, 0.32, 0.2, 0.2, shade(coat, 0.92), rim=False)
    figure.limb([(0.22, 0.34), (0.28 + reach, 0.06 + lift)], [0.09, 0.06], coat)
    for x, color in ((0.24, dark), (0.36, coat)):
        figure.limb([(x, 0.78), (x - 0.1, 1.14)], [0.06, 0.08], color)
    figure.limb([(0.36, 0.84), (0.28, 1.1)], [0.02, 0.035], PINK, rim=False)
    figure.disc(0.36, 0.64, 0.2, coat)
    figure.ellipse(0.48, 0.58, 0.12, 0.1, mix(coat, WHITE, 0.35), rim=False)
    figure.disc(0.58, 0.62, 0.035, PINK, rim=False)
    eye(figure, 0.42, 0.7, 0.045)


def duck(figure: Figure, coat: Colour, pose: str) -> None:
    """Draw a boat-shaped body, an upright neck, a wing and an orange beak."""
    stretch = {"stand": 0.0, "run": 0.12, "leap": 0.14}[pose]
    for x in (-0.06, 0.1):
        figure.limb([(x, 0.3), (x - 0.02, 0.05), (x + 0.1, 0.03)], [0.035, 0.03, 0.03], ORANGE)
    figure.polygon([(-0.44, 0.4), (-0.72, 0.66), (-0.3, 0.62)], coat)
    figure.ellipse(-0.04, 0.42, 0.46, 0.25, coat)
    figure.limb(
        [(0.28, 0.48), (0.34 + stretch, 0.72), (0.38 + stretch, 0.88)], [0.15, 0.1, 0.1], coat
    )
    figure.polygon(
        [(0.46 + stretch, 0.98), (0.78 + stretch, 0.86), (0.46 + stretch, 0.8)], ORANGE
    )
    figure.disc(0.4 + stretch, 0.9, 0.17, coat)
    figure.ellipse(-0.1, 0.44, 0.26, 0.14, shade(coat, 0.8))
    eye(figure, 0.46 + stretch, 0.94, 0.04)


def bird(figure: Figure, coat: Colour, pose: str) -> None:
    """Draw spread wings, seen in flight whatever the pose."""
    del pose
    figure.polygon([(-0.02, 0.52), (-0.34, 1.08), (0.26, 0.56)], shade(coat, 0.75))
    figure.polygon([(-0.36, 0.5), (-0.8, 0.62), (-0.74, 0.4)], coat)
    figure.ellipse(0.0, 0.48, 0.42, 0.17, coat)
    figure.polygon([(0.54, 0.62), (0.76, 0.54), (0.54, 0.48)], ORANGE)
    figure.disc(0.44, 0.56, 0.16, coat)
    figure.polygon([(-0.18, 0.5), (-0.5, 1.0), (0.2, 0.54)], shade(coat, 0.9))
    eye(figure, 0.5, 0.6, 0.04)


DRAW: dict[str, Callable[[Figure, Colour, str], None]] = {
    "dog": dog,
    "cat": cat,
    "horse": horse,
    "cow": cow,
    "elephant": elephant,
    "sheep": sheep,
    "rabbit": rabbit,
    "duck": duck,
    "bird": bird,
}
