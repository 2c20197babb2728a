"""Staging and painting of the picture of a scene."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore.datasets.scenes import animals, objects, people
from kernelcore.datasets.scenes.canvas import Colour, Figure, Floats, Point, Tint
from kernelcore.datasets.scenes.grounds import TINTS, paint_backdrop, paint_ground
from kernelcore.datasets.scenes.world import PEOPLE, Dice, Scene, Thing

_COLOURS: dict[str, Colour] = {
    "red": (212, 40, 44),
    "blue": (44, 92, 210),
    "green": (40, 150, 70),
    "yellow": (248, 208, 56),
    "orange": (240, 136, 40),
    "purple": (134, 62, 168),
    "pink": (244, 140, 180),
    "white": (246, 244, 240),
    "black": (38, 36, 42),
    "brown": (140, 88, 48),
    "grey": (138, 140, 148),
}
_SIZES = {"small": 0.74, "medium": 1.0, "large": 1.3}


class _Body(NamedTuple):
    """Measures of a kind: its unit in picture heights, the others in units."""

    unit: float
    half_width: float
    top: float
    seat: float = 0.0
    draught: float = 0.4


_BODIES = {
    "dog": _Body(0.3, 0.8, 1.0),
    "cat": _Body(0.25, 0.8, 1.1),
    "horse": _Body(0.38, 0.86, 1.25, 0.8),
    "cow": _Body(0.36, 0.88, 1.0, 0.83),
    "elephant": _Body(0.45, 0.85, 1.05, 0.96),
    "sheep": _Body(0.3, 0.6, 0.9),
    "rabbit": _Body(0.22, 0.62, 1.15),
    "duck": _Body(0.24, 0.74, 1.05, draught=0.3),
    "bird": _Body(0.2, 0.8, 1.0),
    "man": _Body(0.5, 0.3, 1.06, draught=0.5),
    "woman": _Body(0.47, 0.3, 1.06, draught=0.5),
    "boy": _Body(0.35, 0.3, 1.08, draught=0.5),
    "girl": _Body(0.34, 0.3, 1.06, draught=0.5),
    "ball": _Body(0.16, 0.5, 1.0),
    "box": _Body(0.24, 0.5, 0.9, 0.9),
    "car": _Body(0.34, 0.88, 0.86, 0.86),
    "boat": _Body(0.34, 0.82, 1.3, 0.44, 0.1),
    "bicycle": _Body(0.3, 0.76, 0.86, 0.8),
    "balloon": _Body(0.3, 0.28, 1.1),
    "kite": _Body(0.3, 0.34, 1.0),
    "umbrella": _Body(0.42, 0.5, 1.0),
    "plane": _Body(0.24, 0.86, 0.9),
    "house": _Body(0.44, 0.7, 1.16),
    "tree": _Body(0.46, 0.5, 1.2),
    "fir": _Body(0.42, 0.42, 1.3),
    "palm": _Body(0.5, 0.5, 1.16),
    "snowman": _Body(0.34, 0.34, 1.12),
    "fence": _Body(0.3, 0.72, 0.54),
    "lamp": _Body(0.46, 0.3, 1.16),
    "sofa": _Body(0.36, 0.76, 0.66, 0.5),
    "window": _Body(0.3, 0.5, 1.46),
}

_HIP = 0.42
_HANGING_LEG = 0.22  # of a person who sits: from the hip to the shoe
_EDGE = 0.02
_ROPE: Colour = (110, 78, 44)
_STRING: Colour = (240, 240, 236)


class Actor:
    """A thing with its place and its pose in the picture."""

    def __init__(self, thing: Thing, height: int) -> None:
        self.kind = thing.kind
        self.paint = _COLOURS[thing.colour]
        self.body = _BODIES[thing.kind]
        self.scale = self.body.unit * _SIZES[thing.size] * height
        self.x = 0.0
        self.y = 0.0
        self.legs = "stand"
        self.arms = "stand"
        self.tilt = 0.0

    @property
    def half_width(self) -> float:
        """Half the width in pixels."""
        return self.scale * self.body.half_width

    @property
    def is_person(self) -> bool:
        """Whether it has hands and sits on its hips."""
        return self.kind in PEOPLE

    def pose(self, name: str) -> None:
        """Take a pose with arms and legs."""
        self.legs = self.arms = name

    def figure(self, size: tuple[int, int], direction: int, looks: people.Looks) -> Figure:
        """Shapes of the actor where it stands."""
        figure = Figure(size, (self.x, self.y), self.scale, direction=direction, tilt=self.tilt)
        if self.is_person:
            people.person(figure, self.kind, self.paint, looks, legs=self.legs, arms=self.arms)
        elif self.kind in animals.DRAW:
            animals.DRAW[self.kind](figure, self.paint, self.legs)
        else:
            objects.DRAW[self.kind](figure, self.paint)
        return figure


class Stage:
    """The space in which a scene is arranged; `foot` is the row that feet stand on."""

    def __init__(self, scene: Scene, size: tuple[int, int], dice: Dice) -> None:
        self.height, self.width = size
        self.direction = 1 if scene.facing == "right" else -1
        self.foot = dice.between(0.84, 0.92) * self.height
        self.agent = Actor(scene.agent, self.height)
        self.patient = Actor(scene.patient, self.height)
        self.line: Figure | None = None
        self._wet = scene.ground == "water"
        self._dice = dice
        _ARRANGE[scene.relation](self)

    def _row(self, rear: Actor, front: Actor, gap: float, direction: int) -> None:
        """Stand the two on the ground, the front one ahead by a gap in pixels."""
        need = 2.0 * (rear.half_width + front.half_width) + gap
        shrink = min(1.0, (1.0 - 2.0 * _EDGE) * self.width / need)
        rear.scale *= shrink
        front.scale *= shrink
        need = 2.0 * (rear.half_width + front.half_width) + gap * shrink
        start = self._dice.between(_EDGE, 1.0 - _EDGE) * (self.width - need)
        ahead = start + need - front.half_width
        for actor, along in ((rear, start + rear.half_width), (front, ahead)):
            actor.x = along if direction == 1 else self.width - along
            actor.y = self._level(actor)

    def _stack(self, lower: Actor, upper: Actor, step: float, sunk: float, gap: float) -> None:
        """Set `upper` on the height `step` of `lower`, sunk into it, or above it by a gap."""
        need = step * lower.scale + gap + (upper.body.top - sunk) * upper.scale
        room = self.foot - _EDGE * self.height
        shrink = min(
            1.0, room / need, 0.48 * self.width / max(lower.half_width, upper.half_width)
        )
        lower.scale *= shrink
        upper.scale *= shrink
        reach = max(lower.half_width, upper.half_width)
        lower.x = upper.x = self._dice.between(reach, self.width - reach)
        lower.y = self._level(lower)
        upper.y = lower.y - step * lower.scale - gap * shrink + sunk * upper.scale

    def _level(self, actor: Actor) -> float:
        """Row of an actor's feet, which are under water where there is any."""
        return self.foot + (actor.body.draught * actor.scale if self._wet else 0.0)

    def _join(self, start: Point, end: Point, sag: float, colour: Colour) -> None:
        """Draw a line from one point of the picture to another."""
        line = Figure((self.height, self.width), (0.0, 0.0), 1.0)
        middle = (0.5 * (start[0] + end[0]), 0.5 * (start[1] + end[1]) + sag)
        line.limb([(u, -v) for u, v in (start, middle, end)], [0.008 * self.height] * 3, colour)
        self.line = line

    def chase(self) -> None:
        """Let both run, the patient ahead."""
        self.agent.pose("run")
        self.patient.pose("run")
        self._row(self.agent, self.patient, 0.06 * self.width, self.direction)

    def left_of(self) -> None:
        """Let both stand, the agent on the left wherever they look."""
        self._row(self.agent, self.patient, 0.07 * self.width, 1)

    def pull(self) -> None:
        """Let the agent run ahead, with a rope from its middle to the patient."""
        self.agent.pose("run")
        self._row(self.patient, self.agent, 0.14 * self.width, self.direction)
        ends = [
            (actor.x + side * self.direction * actor.half_width, actor.y - 0.48 * actor.scale)
            for actor, side in ((self.agent, -0.5), (self.patient, 0.7))
        ]
        self._join(ends[0], ends[1], 0.03 * self.height, _ROPE)

    def push(self) -> None:
        """Let the agent lean on the patient from behind."""
        self.agent.legs = "run"
        self.agent.arms = "reach"
        gap = 0.1 * self.agent.scale if self.agent.is_person else 0.0
        self._row(self.agent, self.patient, gap, self.direction)

    def kick(self) -> None:
        """Let the ball fly ahead of the agent's foot."""
        self.agent.legs = "kick"
        self.agent.arms = "run"
        self._row(self.agent, self.patient, 0.06 * self.width, self.direction)
        self.patient.y -= self._dice.between(0.06, 0.2) * self.height

    def jump_over(self) -> None:
        """Let the agent fly close above the patient."""
        self.agent.pose("leap")
        self.agent.tilt = 0.12
        self._stack(self.patient, self.agent, self.patient.body.top, 0.16, 0.0)

    def above(self) -> None:
        """Let the agent fly well above the patient."""
        gap = 0.08 * self.height
        self._stack(self.patient, self.agent, self.patient.body.top, 0.0, gap)

    def ride(self) -> None:
        """Let the agent sit on the patient, which moves."""
        self.patient.pose("run")
        self.sit_on()
        if self.patient.kind == "bicycle":
            self.agent.x -= 0.2 * self.direction * self.patient.scale

    def sit_on(self) -> None:
        """Let the agent sit on the patient, which rests."""
        sunk = 0.0
        if self.agent.is_person:
            self.agent.pose("sit")
            sunk = _HIP
            # A seat is never so low that the feet drag on the ground.
            lowest = 1.6 * _HANGING_LEG * self.agent.scale / self.patient.body.seat
            self.patient.scale = max(self.patient.scale, lowest)
        self._stack(self.patient, self.agent, self.patient.body.seat, sunk, 0.0)

    def hold(self) -> None:
        """Let the agent hold up the patient by its lower end, a kite by a line."""
        agent, item = self.agent, self.patient
        agent.arms = "raise"
        hand_x, hand_y = people.hand(agent.arms)
        self._stack(agent, item, hand_y, 0.0, 0.0)
        kite_ahead = 0.2 * self.width if item.kind == "kite" else 0.0
        item.x += self.direction * (hand_x * agent.scale + kite_ahead)
        inside = min(max(item.x, item.half_width), self.width - item.half_width)
        agent.x += inside - item.x
        item.x = inside
        if kite_ahead:
            hand = (item.x - self.direction * kite_ahead, agent.y - hand_y * agent.scale)
            knot = (item.x, item.y - 0.3 * item.scale)
            self._join(hand, knot, 0.04 * self.height, _STRING)


_ARRANGE: dict[str, Callable[[Stage], None]] = {
    "chase": Stage.chase,
    "jump_over": Stage.jump_over,
    "pull": Stage.pull,
    "push": Stage.push,
    "ride": Stage.ride,
    "left_of": Stage.left_of,
    "above": Stage.above,
    "kick": Stage.kick,
    "hold": Stage.hold,
    "sit_on": Stage.sit_on,
}


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
