"""What a generated scene shows, and captions of it in the words of ``captions.toml``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


@dataclass(frozen=True)
class Thing:
    """An animal, a person or an object.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    colour : str
        Colour of the coat, of the shirt or dress, or of the paint.
    size : {"small", "medium", "large"}
        Size for its kind.
    """

    kind: str
    colour: str
    size: str


@dataclass(frozen=True)
class Scene:
    """Content of a picture that its captions may mention.

    Attributes
    ----------
    agent, patient : Thing
        The thing that acts, and the thing that is acted on.
    relation : str
        One of `RELATIONS`, to be read as agent, relation, patient.
    ground : str
        One of `GROUNDS`.
    light : str
        "clear", "cloudy", "sunset" or "night"; "indoors" on the floor.
    scenery : Thing or None
        The thing in the background.
    facing : {"left", "right"}
        Where agent and patient look, and move if they do.
    """

    agent: Thing
    relation: str
    patient: Thing
    ground: str
    light: str
    scenery: Thing | None
    facing: str


class Dice:
    """Random choices from uniform numbers only: NumPy has never changed their bits."""

    def __init__(self, *entropy: int) -> None:
        self.rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy)))

    def pick(self, items: Sequence[T]) -> T:
        """Choose one of the items, all equally likely."""
        return items[int(self.rng.random() * len(items))]

    def chance(self, probability: float) -> bool:
        """Return True with this probability."""
        return self.rng.random() < probability

    def between(self, low: float, high: float) -> float:
        """Choose a number evenly spread over [low, high)."""
        return low + (high - low) * self.rng.random()

    def sample(self, items: Sequence[T], n: int) -> list[T]:
        """Choose `n` different items in random order."""
        left = list(items)
        return [left.pop(int(self.rng.random() * len(left))) for _ in range(n)]


_FUR = ("black", "white", "brown", "grey")
_PAINT = ("red", "blue", "green", "yellow", "orange", "purple", "pink", "white", "black")

KINDS: dict[str, tuple[str, ...]] = {
    "dog": _FUR,
    "cat": ("black", "white", "grey", "orange"),
    "horse": _FUR,
    "cow": ("white", "black", "brown"),
    "elephant": ("grey",),
    "sheep": ("white", "black", "brown"),
    "rabbit": _FUR,
    "duck": ("yellow", "white", "brown"),
    "bird": ("blue", "red", "black", "white", "yellow"),
    **dict.fromkeys(("man", "woman", "boy", "girl"), _PAINT),
    **dict.fromkeys(("ball", "box", "car", "boat", "bicycle"), _PAINT),
    **dict.fromkeys(("balloon", "kite", "umbrella", "plane", "house"), _PAINT),
    **dict.fromkeys(("tree", "fir", "palm", "snowman", "lamp"), ("red", "yellow", "blue")),
    **dict.fromkeys(("fence", "sofa", "window"), ("white", "brown", "blue", "red", "green")),
}
"""Colours that things of each kind come in."""

PEOPLE = ("man", "woman", "boy", "girl")
BEASTS = ("horse", "cow", "elephant")
_ANIMATE = ("dog", "cat", "sheep", "rabbit", "duck", *BEASTS, *PEOPLE)

GROUNDS: dict[str, tuple[str, ...]] = {
    "grass": ("tree", "house", "fence"),
    "sand": ("palm", "umbrella", "house"),
    "snow": ("fir", "snowman", "house"),
    "road": ("house", "lamp", "tree"),
    "water": ("palm", "boat"),
    "floor": ("sofa", "window"),
}
"""Grounds with the scenery that may stand on them."""

_LIGHTS = ("clear", "clear", "cloudy", "sunset", "night")
_SWIM = {"dog", "duck", "boat", "ball", "bird", "plane", "kite", "balloon", *PEOPLE}
_INDOORS = {"dog", "cat", "rabbit", "bird", "ball", "box", "balloon", "sofa", *PEOPLE}
_OUTDOORS = set(KINDS) - {"boat", "sofa", "window"}


@dataclass(frozen=True)
class _Relation:
    """Who may stand in a relation, and how often it is drawn."""

    weight: int
    agents: tuple[str, ...]
    patients: tuple[str, ...]
    grounds: tuple[str, ...] = ("grass", "sand", "snow", "road", "floor")


_ANYWHERE = tuple(GROUNDS)
_OPEN_AIR = ("grass", "sand", "snow", "road", "water")
_VEHICLES = ("car", "boat", "bicycle")

RELATIONS = {
    "chase": _Relation(6, _ANIMATE, _ANIMATE, _ANYWHERE),
    "jump_over": _Relation(3, ("dog", "cat", "horse", "rabbit", "sheep", *PEOPLE),
                           ("dog", "cat", "sheep", "rabbit", "duck", "box", "ball", "fence")),
    "pull": _Relation(3, ("dog", "car", "boat", *BEASTS, *PEOPLE),
                      ("dog", "car", "boat", "box", *BEASTS), _OPEN_AIR),
    "push": _Relation(2, ("dog", "cow", "elephant", *PEOPLE), ("box", "car", "ball", "sofa")),
    "ride": _Relation(3, ("dog", "cat", *PEOPLE), ("bicycle", "boat", *BEASTS), _OPEN_AIR),
    "left_of": _Relation(3, (*_ANIMATE, *_VEHICLES),
                         (*_ANIMATE, *_VEHICLES, "box", "house", "tree", "snowman", "sofa"),
                         _ANYWHERE),
    "above": _Relation(2, ("bird", "balloon", "kite", "plane"),
                       (*_ANIMATE, "car", "boat", "house", "tree"), _OPEN_AIR),
    "kick": _Relation(2, PEOPLE, ("ball",)),
    "hold": _Relation(2, PEOPLE, ("balloon", "umbrella", "kite")),
    "sit_on": _Relation(2, ("cat", "dog", "rabbit", "duck", "boy", "girl"),
                        ("box", "car", "sofa")),
}  # fmt: skip
"""Relations of an agent to a patient."""

_BAG = [name for name, relation in RELATIONS.items() for _ in range(relation.weight)]


def imagine(dice: Dice) -> Scene:
    """Draw the content of one scene."""
    name = dice.pick(_BAG)
    relation = RELATIONS[name]
    ground = dice.pick(relation.grounds)
    allowed = _SWIM if ground == "water" else _INDOORS if ground == "floor" else _OUTDOORS
    agent = _thing(dice, [kind for kind in relation.agents if kind in allowed])
    patients = [kind for kind in relation.patients if kind in allowed]
    if agent.kind not in PEOPLE and "bicycle" in patients and name == "ride":
        patients.remove("bicycle")
    patient = _thing(dice, patients)
    while (patient.kind, patient.colour) == (agent.kind, agent.colour):
        # Two of a kind are told apart by colour, in the picture and in words.
        patient = _thing(dice, patients)
    scenery = _thing(dice, GROUNDS[ground]) if dice.chance(0.7) else None
    if scenery is not None and scenery.kind in {agent.kind, patient.kind}:
        scenery = None
    return Scene(
        agent=agent,
        relation=name,
        patient=patient,
        ground=ground,
        light="indoors" if ground == "floor" else dice.pick(_LIGHTS),
        scenery=scenery,
        facing=dice.pick(("left", "right")),
    )


def _thing(dice: Dice, kinds: Sequence[str]) -> Thing:
    kind = dice.pick(kinds)
    size = dice.pick(("small", "medium", "medium", "medium", "large"))
    return Thing(kind, dice.pick(KINDS[kind]), size)


_UNPAINTED = {"tree", "fir", "palm", "snowman", "lamp"}


@cache
def _words() -> dict[str, Any]:
    import tomllib

    text = resources.files(__package__).joinpath("captions.toml").read_text("utf-8")
    return tomllib.loads(text)


def describe(scene: Scene, n_captions: int, dice: Dice) -> tuple[str, ...]:
    """Caption a scene, each time with another template; at most as many as there are."""
    templates = {**_words()["moving"], **_words()["resting"]}[scene.relation]
    return tuple(
        _caption(scene, template, dice) for template in dice.sample(templates, n_captions)
    )


def _caption(scene: Scene, template: str, dice: Dice) -> str:
    words = _words()
    alike = scene.agent.kind == scene.patient.kind
    for root, swum in (("<runs>", "swims"), ("<running>", "swimming")):
        template = template.replace(root, swum if scene.ground == "water" else root[1:-1])
    where, fronted = "", False
    if dice.chance(0.75):
        fronted = dice.chance(0.2)
        moves = scene.relation in words["moving"] and not fronted
        where = dice.pick(words["through" if moves else "at"][scene.ground])
    sentence = template.format(
        a=_noun_phrase(scene.agent, dice, paint=alike),
        p=_noun_phrase(scene.patient, dice, paint=alike),
        w="" if fronted else where,
    )
    if fronted:
        sentence = f"{where}, {sentence[0].lower()}{sentence[1:]}"
    setting = ""
    if scene.scenery is not None and dice.chance(0.3):
        setting = dice.pick(words["beside"]).format(_noun_phrase(scene.scenery, dice))
    elif dice.chance(0.35):
        setting = dice.pick(words["lights"][scene.light])
    text = " ".join(f"{sentence} {setting}".split())
    return f"{text[0].upper()}{text[1:]}."


def _noun_phrase(thing: Thing, dice: Dice, *, paint: bool = False) -> str:
    """Name a thing, with its size and colour or without; `paint` requires the colour."""
    words, phrase = _words(), []
    if thing.size in words["sizes"] and dice.chance(0.6):
        phrase.append(dice.pick(words["sizes"][thing.size]))
    noun = dice.pick(words["nouns"].get(thing.kind, [thing.kind]))
    colour = dice.pick(words["colours"][thing.colour])
    painted = thing.kind not in _UNPAINTED and (paint or dice.chance(0.7))
    clothes = ""
    if painted and thing.kind in PEOPLE:
        garment = f"{colour} {dice.pick(words['clothes'][thing.kind])}"
        clothes = f" {dice.pick(('in', 'wearing'))} {_article(garment)} {garment}"
    elif painted:
        phrase.append(colour)
    named = " ".join([*phrase, noun])
    article = "the" if dice.chance(0.1) else _article(named)
    return f"{article} {named}{clothes}"


def _article(phrase: str) -> str:
    return "an" if phrase[0] in "aeio" or phrase.startswith("umb") else "a"
