"""Captions of scenes: varied words, voices and word orders for one content."""

from __future__ import annotations

from kernelcore.datasets.scenes.world import Dice, Scene, Thing


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
_LIGHTS = _table("""
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
    where, opening = "", ""
    if dice.chance(0.75):
        fronted = dice.chance(0.2)
        phrases = _THROUGH if scene.relation in _MOVING and not fronted else _AT
        place = dice.pick(phrases[scene.ground])
        where, opening = ("", f"{place}, ") if fronted else (place, "")
    sentence = template.format(
        a=_noun_phrase(scene.agent, dice, paint=alike),
        p=_noun_phrase(scene.patient, dice, paint=alike),
        w=where,
    )
    if opening:
        sentence = opening + sentence[0].lower() + sentence[1:]
    words = f"{sentence} {_setting(scene, dice)}".split()
    return _capitalized(f"{' '.join(words)}.")


def _setting(scene: Scene, dice: Dice) -> str:
    """Light or scenery, if the caption mentions either."""
    if scene.scenery is not None and dice.chance(0.3):
        return dice.pick(_BACKGROUNDS).format(_noun_phrase(scene.scenery, dice))
    return dice.pick(_LIGHTS[scene.light]) if dice.chance(0.35) else ""


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


def _capitalized(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]
