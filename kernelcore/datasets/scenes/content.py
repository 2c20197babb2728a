"""What a generated scene shows, and captions of it: varied words, voices and word orders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

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


def _table(text: str) -> dict[str, tuple[str, ...]]:
    """Read ``name: choice | choice; name: ...``; a choice given twice is twice as likely."""
    entries = (entry.partition(":") for entry in text.split(";"))
    return {
        name.strip(): tuple(" ".join(choice.split()) for choice in choices.split("|"))
        for name, _, choices in entries
    }


_NOUNS = _table("""
    dog: dog | dog | puppy | hound; cat: cat | cat | kitten | kitty;
    horse: horse | horse | pony | stallion; cow: cow | cow | heifer | calf;
    sheep: sheep | sheep | lamb | ewe; rabbit: rabbit | rabbit | bunny | hare;
    duck: duck | duck | duckling | mallard; bird: bird | bird | pigeon | crow;
    man: man | man | guy | gentleman; woman: woman | woman | lady; boy: boy | boy | kid | lad;
    girl: girl | girl | kid | lass; box: box | crate | chest;
    car: car | car | automobile | vehicle; boat: boat | boat | sailboat | ship;
    bicycle: bicycle | bike; umbrella: umbrella | parasol; plane: plane | airplane | aircraft;
    house: house | cottage | building; fir: fir tree | pine tree | Christmas tree;
    palm: palm tree | palm; lamp: street lamp | lamp post; sofa: sofa | couch
""")
_COLOURS = _table("""
    red: red | red | crimson | scarlet; blue: blue | blue | azure;
    green: green | green | emerald; yellow: yellow | yellow | golden;
    orange: orange | orange | ginger; purple: purple | purple | violet;
    pink: pink | pink | rosy; white: white | white | snowy; black: black | black | dark;
    brown: brown | brown | chestnut; grey: grey | gray | silver
""")
_SIZES = {"small": ("small", "little", "tiny"), "large": ("large", "big", "huge")}
_CLOTHES = _table("""
    man: shirt | jacket | sweater; woman: dress | gown; boy: shirt | jersey | top;
    girl: dress | frock
""")
_UNPAINTED = {"tree", "fir", "palm", "snowman", "lamp"}

# Phrases for a place where something is, and for one that something moves through.
_AT = _table("""
    grass: on the grass | on a lawn | in a green meadow | in a field;
    sand: on the sand | on the beach | at the seaside;
    snow: in the snow | on the snowy ground | in a wintry landscape;
    road: on the road | in the street | on the asphalt;
    water: in the water | on the lake | at sea;
    floor: on the wooden floor | in a room | on the floorboards
""")
_THROUGH = _table("""
    grass: across the grass | over the lawn | through a meadow | across a field;
    sand: across the sand | along the beach | over the sandy ground;
    snow: through the snow | across the snowy field | over the snow;
    road: along the road | down the street | over the asphalt;
    water: through the water | across the lake | over the sea;
    floor: across the wooden floor | through the room | over the floorboards
""")
_LIGHT_PHRASES = _table("""
    clear: under a blue sky | on a sunny day | in the sunshine;
    cloudy: under a grey sky | on a cloudy day | beneath the clouds;
    sunset: at sunset | in the evening | at dusk;
    night: at night | under the moon | after dark;
    indoors: inside a house | indoors | at home
""")
_BACKGROUNDS = ("near {}", "in front of {}", "with {} in the background", "not far from {}")

# {a} is the agent, {p} the patient, {w} the place; a verb in <> becomes one of swimming where
# there is water.
_MOVING = _table("""
    chase: {a} chases {p} {w} | {a} is chasing {p} {w} | {a} <runs> after {p} {w} |
        {a} <running> {w} after {p} | {a} pursues {p} {w} | {p} is chased {w} by {a} |
        {p} is being followed by {a} {w} | {p} <runs> away from {a} {w} |
        {p} flees {w} from {a} | {p} tries to escape from {a} {w} | Behind {p} {a} <runs> {w};
    pull: {a} pulls {p} {w} | {a} is pulling {p} {w} | {a} drags {p} {w} on a rope |
        {a} towing {p} {w} | {p} is pulled {w} by {a} | {p} is being towed by {a} {w} |
        {p} tied with a rope to {a} ahead {w} | With a rope {a} hauls {p} {w};
    push: {a} pushes {p} {w} | {a} is pushing {p} {w} | {a} shoves {p} {w} |
        {a} pushing {p} forward {w} | {p} is pushed {w} by {a} |
        {p} is being moved by {a} {w} | {p} and behind it {a} that pushes {w};
    ride: {a} rides {p} {w} | {a} is riding on {p} {w} | {a} riding {p} {w} |
        {a} travels {w} on {p} | {p} carries {a} {w} | {p} is ridden {w} by {a} |
        {p} with {a} on top {w}
""")
_RESTING = _table("""
    jump_over: {a} jumps over {p} {w} | {a} is jumping over {p} {w} |
        {a} leaps across {p} {w} | {a} leaping over {p} {w} | {a} in the air over {p} {w} |
        {p} is cleared by {a} in one leap {w} | Over {p} {w} jumps {a} |
        {p} {w} and {a} jumping over it;
    left_of: {a} is to the left of {p} {w} | {a} on the left and {p} on the right {w} |
        {a} stands left of {p} {w} | {p} is to the right of {a} {w} |
        {p} on the right side of {a} {w} | {p} stands {w} with {a} on its left |
        To the left of {p} there is {a} {w} | On the right is {p} and on the left is {a} {w};
    above: {a} flies above {p} {w} | {a} is in the air over {p} {w} |
        {a} hovers above {p} {w} | {a} flying over {p} {w} | {p} is below {a} {w} |
        {p} {w} underneath {a} | High above {p} {w} flies {a} | {p} {w} with {a} overhead;
    kick: {a} kicks {p} {w} | {a} is kicking {p} {w} | {a} kicking {p} {w} |
        {a} plays with {p} {w} | {p} is kicked by {a} {w} |
        {p} flies from the foot of {a} {w} | {a} shoots {p} {w};
    hold: {a} holds {p} {w} | {a} is holding up {p} {w} | {a} stands {w} with {p} |
        {a} with {p} in one hand {w} | {p} is held by {a} {w} | {p} in the hand of {a} {w} |
        {a} carrying {p} {w};
    sit_on: {a} sits on {p} {w} | {a} is on top of {p} {w} | {a} sitting on {p} {w} |
        {a} rests upon {p} {w} | {p} {w} with {a} on it | On {p} {w} sits {a} |
        {p} is under {a} {w}
""")


def describe(scene: Scene, n_captions: int, dice: Dice) -> tuple[str, ...]:
    """Caption a scene, each time with another template; at most as many as there are."""
    templates = {**_MOVING, **_RESTING}[scene.relation]
    return tuple(
        _caption(scene, template, dice) for template in dice.sample(templates, n_captions)
    )


def _caption(scene: Scene, template: str, dice: Dice) -> str:
    alike = scene.agent.kind == scene.patient.kind
    for root, swum in (("<runs>", "swims"), ("<running>", "swimming")):
        template = template.replace(root, swum if scene.ground == "water" else root[1:-1])
    where, fronted = "", False
    if dice.chance(0.75):
        fronted = dice.chance(0.2)
        phrases = _THROUGH if scene.relation in _MOVING and not fronted else _AT
        where = dice.pick(phrases[scene.ground])
    sentence = template.format(
        a=_noun_phrase(scene.agent, dice, paint=alike),
        p=_noun_phrase(scene.patient, dice, paint=alike),
        w="" if fronted else where,
    )
    if fronted:
        sentence = f"{where}, {sentence[0].lower()}{sentence[1:]}"
    setting = ""
    if scene.scenery is not None and dice.chance(0.3):
        setting = dice.pick(_BACKGROUNDS).format(_noun_phrase(scene.scenery, dice))
    elif dice.chance(0.35):
        setting = dice.pick(_LIGHT_PHRASES[scene.light])
    text = " ".join(f"{sentence} {setting}".split())
    return f"{text[0].upper()}{text[1:]}."


def _noun_phrase(thing: Thing, dice: Dice, *, paint: bool = False) -> str:
    """Name a thing, with its size and colour or without; `paint` requires the colour."""
    words = []
    if thing.size in _SIZES and dice.chance(0.6):
        words.append(dice.pick(_SIZES[thing.size]))
    noun = dice.pick(_NOUNS.get(thing.kind, (thing.kind,)))
    colour = dice.pick(_COLOURS[thing.colour])
    painted = thing.kind not in _UNPAINTED and (paint or dice.chance(0.7))
    clothes = ""
    if painted and thing.kind in _CLOTHES:
        garment = f"{colour} {dice.pick(_CLOTHES[thing.kind])}"
        clothes = f" {dice.pick(('in', 'wearing'))} {_article(garment)} {garment}"
    elif painted:
        words.append(colour)
    phrase = " ".join([*words, noun])
    article = "the" if dice.chance(0.1) else _article(phrase)
    return f"{article} {phrase}{clothes}"


def _article(phrase: str) -> str:
    return "an" if phrase[0] in "aeio" or phrase.startswith("umb") else "a"
