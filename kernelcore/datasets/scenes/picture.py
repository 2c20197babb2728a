"""Painting the picture of a scene."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore.datasets.scenes import people
from kernelcore.datasets.scenes.canvas import Colour, Figure, Floats, Tint
from kernelcore.datasets.scenes.grounds import TINTS, paint_backdrop, paint_ground
from kernelcore.datasets.scenes.staging import Actor, Stage
from kernelcore.datasets.scenes.world import Dice, Scene, Thing

_HORIZON = 0.44
_SCENERY_SCALE = 0.9
_SHADOW: Tint = ((20.0, 24.0, 30.0), 0.3)
_ISLAND: Colour = (232, 204, 144)
_FOAM: Colour = (226, 240, 248)
_CLEARNESS = 0.3


class Picture(NamedTuple):
    """Pixels of a scene and where its agent and its patient are."""

    pixels: npt.NDArray[np.uint8]
    agent_box: tuple[int, int, int, int]
    patient_box: tuple[int, int, int, int]


def draw(scene: Scene, size: tuple[int, int], dice: Dice) -> Picture:
    """Paint a scene; `dice` decides what its captions never mention."""
    height, width = size
    horizon = int(_HORIZON * height)
    light = TINTS[scene.light]
    pixels: Floats = np.empty((height, width, 3))
    paint_backdrop(pixels, scene.light, horizon, dice)
    paint_ground(pixels, scene.ground, scene.light, horizon, dice)
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


def _looks(dice: Dice) -> people.Looks:
    return people.Looks(dice.pick(people.SKINS), dice.pick(people.HAIRS))


def _paint_scenery(
    pixels: Floats, scene: Scene, thing: Thing, horizon: int, dice: Dice
) -> None:
    light = TINTS[scene.light]
    height, width = pixels.shape[:2]
    actor = Actor(thing, height)
    actor.scale *= _SCENERY_SCALE
    actor.x = dice.pick((dice.between(0.1, 0.3), dice.between(0.7, 0.9))) * width
    actor.y = horizon + (0.0 if thing.kind == "window" else 0.06 * height)
    if scene.ground == "water" and thing.kind != "boat":
        island = Figure((height, width), (actor.x, actor.y), actor.scale)
        island.ellipse(0.0, 0.0, 0.5, 0.09, _ISLAND)
        island.draw(pixels, light)
    actor.figure((height, width), dice.pick((1, -1)), _looks(dice)).draw(pixels, light)


def _paint_shadow(pixels: Floats, actor: Actor, foot: float) -> None:
    """Darken the ground below an actor, less and less the higher it is."""
    height, width = pixels.shape[:2]
    shadow = Figure((height, width), (actor.x, foot), 1.0)
    shadow.ellipse(0.0, 0.0, 0.9 * actor.half_width, 0.05 * actor.scale, _SHADOW[0])
    (shape,) = shadow.shapes
    part = pixels[shape.rows, shape.columns]
    share = _SHADOW[1] * np.clip(0.5 - shape.distance, 0.0, 1.0)
    part += share[:, :, None] * (np.array(_SHADOW[0]) - part)


def _submerge(pixels: Floats, surface: Floats, level: int) -> None:
    """Let the water cover what is below its level, with foam where a body breaks it."""
    wet = (pixels[level] != surface[level]).any(axis=1)
    pixels[level:] = surface[level:] + _CLEARNESS * (pixels[level:] - surface[level:])
    pixels[level, wet] += 0.7 * (np.array(_FOAM) - pixels[level, wet])
