"""Staging of a scene: where agent and patient stand, and in which pose."""

from __future__ import annotations

from kernelcore.datasets.scenes.canvas import Colour, Figure, Point
from kernelcore.datasets.scenes.things import BODIES, PAINTS, Looks, draw_thing, hand
from kernelcore.datasets.scenes.world import PEOPLE, Dice, Scene, Thing

_SIZES = {"small": 0.74, "medium": 1.0, "large": 1.3}
_HIP = 0.42
_HANGING_LEG = 0.22  # of a person who sits: from the hip to the shoe
_EDGE = 0.02
_ROPE: Colour = (110, 78, 44)
_STRING: Colour = (240, 240, 236)


class Actor:
    """A thing with its place and its pose in the picture."""

    def __init__(self, thing: Thing, height: int) -> None:
        self.kind = thing.kind
        self.paint = PAINTS[thing.colour]
        self.body = BODIES[thing.kind]
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

    def figure(self, size: tuple[int, int], direction: int, looks: Looks) -> Figure:
        """Shapes of the actor where it stands."""
        figure = Figure(size, (self.x, self.y), self.scale, direction=direction, tilt=self.tilt)
        draw_thing(figure, self.kind, self.paint, looks, legs=self.legs, arms=self.arms)
        return figure


class Stage:
    """Agent and patient of a scene, arranged by its relation.

    Each relation has a method of its name. `foot` is the row of the picture that feet stand
    on, `line` a rope or a string between the two.
    """

    def __init__(self, scene: Scene, size: tuple[int, int], dice: Dice) -> None:
        self.height, self.width = size
        self.direction = 1 if scene.facing == "right" else -1
        self.foot = dice.between(0.84, 0.92) * self.height
        self.agent = Actor(scene.agent, self.height)
        self.patient = Actor(scene.patient, self.height)
        self.line: Figure | None = None
        self._wet = scene.ground == "water"
        self._dice = dice
        getattr(self, scene.relation)()

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
        self.agent.legs, self.agent.arms = "run", "reach"
        gap = 0.1 * self.agent.scale if self.agent.is_person else 0.0
        self._row(self.agent, self.patient, gap, self.direction)

    def kick(self) -> None:
        """Let the ball fly ahead of the agent's foot."""
        self.agent.legs, self.agent.arms = "kick", "run"
        self._row(self.agent, self.patient, 0.06 * self.width, self.direction)
        self.patient.y -= self._dice.between(0.06, 0.2) * self.height

    def jump_over(self) -> None:
        """Let the agent fly close above the patient."""
        self.agent.pose("leap")
        self.agent.tilt = 0.12
        self._stack(self.patient, self.agent, self.patient.body.top, sunk=0.16)

    def above(self) -> None:
        """Let the agent fly well above the patient."""
        gap = 0.08 * self.height
        self._stack(self.patient, self.agent, self.patient.body.top, gap=gap)

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
        self._stack(self.patient, self.agent, self.patient.body.seat, sunk=sunk)

    def hold(self) -> None:
        """Let the agent hold up the patient by its lower end, a kite by a line."""
        agent, item = self.agent, self.patient
        agent.arms = "raise"
        hand_x, hand_y = hand(agent.arms)
        self._stack(agent, item, hand_y)
        kite_ahead = 0.2 * self.width if item.kind == "kite" else 0.0
        item.x += self.direction * (hand_x * agent.scale + kite_ahead)
        inside = min(max(item.x, item.half_width), self.width - item.half_width)
        agent.x += inside - item.x
        item.x = inside
        if kite_ahead:
            start = (item.x - self.direction * kite_ahead, agent.y - hand_y * agent.scale)
            knot = (item.x, item.y - 0.3 * item.scale)
            self._join(start, knot, 0.04 * self.height, _STRING)

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

    def _stack(
        self, lower: Actor, upper: Actor, step: float, *, sunk: float = 0.0, gap: float = 0.0
    ) -> None:
        """Set `upper` on the height `step` of `lower`, sunk into it, or above it by a gap."""
        need = step * lower.scale + gap + (upper.body.top - sunk) * upper.scale
        room = self.foot - _EDGE * self.height
        widest = max(lower.half_width, upper.half_width)
        shrink = min(1.0, room / need, 0.48 * self.width / widest)
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
        self.line = Figure((self.height, self.width), (0.0, 0.0), 1.0)
        middle = (0.5 * (start[0] + end[0]), 0.5 * (start[1] + end[1]) + sag)
        joints = [(u, -v, 0.008 * self.height) for u, v in (start, middle, end)]
        self.line.add("limb", colour, [number for joint in joints for number in joint])
