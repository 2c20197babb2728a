"""Drawings of animals, people and objects, as tables of shapes.

A thing has local units: x points ahead and y up, an animal is about 1 high at its back or
head, an adult 1, an object about 1. One line of a drawing is one or more shapes: a form of
`Figure.add`, a colour and numbers. ``~`` before the form leaves out the rim.

A colour is a name, darker or lighter by a factor (``paint*.8``), or mixed with another one
(``paint>white*.3``); ``paint`` is the colour of the thing. A number is a sum of products
(``.2+reach``, ``.24*i-.66``) of literals and of names that the pose or a loop gives a value:
``for x y in 0 .1, .2 .3: ...`` draws the rest of its line for both pairs.

Three forms draw parts of animals: ``body`` the legs, in the given colour, trunk and neck;
``head`` a face with a nose; ``eye`` an eye.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import reduce
from operator import add, mul
from typing import NamedTuple

from kernelcore.datasets.scenes.canvas import Colour, Figure, Point, mix, shade
from kernelcore.datasets.scenes.world import PEOPLE


class Body(NamedTuple):
    """Measures of a kind: its unit in picture heights, the others in units."""

    unit: float
    half_width: float
    top: float
    seat: float = 0.0
    draught: float = 0.4


def _rows(text: str) -> dict[str, list[float]]:
    """Numbers of each name, in a table whose rows end with semicolons."""
    rows = (row.split() for row in text.split(";"))
    return {name: [float(number) for number in numbers] for name, *numbers in rows}


BODIES = {
    name: Body(*row)
    for name, row in _rows("""
    dog .3 .8 1; cat .25 .8 1.1; horse .38 .86 1.25 .8; cow .36 .88 1 .83;
    elephant .45 .85 1.05 .96; sheep .3 .6 .9; rabbit .22 .62 1.15; duck .24 .74 1.05 0 .3;
    bird .2 .8 1; man .5 .3 1.06 0 .5; woman .47 .3 1.06 0 .5; boy .35 .3 1.08 0 .5;
    girl .34 .3 1.06 0 .5; ball .16 .5 1; box .24 .5 .9 .9; car .34 .88 .86 .86;
    boat .34 .82 1.3 .44 .1; bicycle .3 .76 .86 .8; balloon .3 .28 1.1; kite .3 .34 1;
    umbrella .42 .5 1; plane .24 .86 .9; house .44 .7 1.16; tree .46 .5 1.2; fir .42 .42 1.3;
    palm .5 .5 1.16; snowman .34 .34 1.12; fence .3 .72 .54; lamp .46 .3 1.16;
    sofa .36 .76 .66 .5; window .3 .5 1.46
    """).items()
}

PAINTS: dict[str, Colour] = {
    "red": (212, 40, 44), "blue": (44, 92, 210), "green": (40, 150, 70),
    "yellow": (248, 208, 56), "orange": (240, 136, 40), "purple": (134, 62, 168),
    "pink": (244, 140, 180), "white": (246, 244, 240), "black": (38, 36, 42),
    "brown": (140, 88, 48), "grey": (138, 140, 148),
}  # fmt: skip
"""Colours that captions name."""

_BLACK: Colour = (28, 26, 30)
_IVORY: Colour = (246, 244, 240)
_COLOURS: dict[str, Colour] = {
    "black": _BLACK, "ivory": _IVORY, "white": (248, 248, 246), "rose": (232, 160, 165),
    "horn": (232, 222, 190), "beak": (238, 140, 30), "collar": (196, 40, 44),
    "glass": (188, 220, 236), "tyre": (36, 36, 40), "metal": (176, 180, 188),
    "wood": (134, 92, 54), "bark": (150, 112, 66), "leaves": (62, 124, 54),
    "needles": (36, 92, 72), "frond": (56, 140, 66), "nut": (110, 70, 36),
    "light": (255, 232, 150), "brick": (150, 84, 70), "tile": (126, 66, 54),
    "snow": (236, 240, 248), "carrot": (240, 130, 40), "shoe": (50, 44, 44),
    "trousers": (58, 66, 96), "dusk": (20, 20, 30),
}  # fmt: skip

SKINS: tuple[Colour, ...] = ((250, 212, 178), (228, 178, 138), (168, 112, 76), (112, 72, 52))
HAIRS: tuple[Colour, ...] = ((48, 34, 28), (104, 62, 32), (206, 160, 76), (150, 60, 30))

_DRAWINGS: dict[str, str] = {
    "dog": """limb paint -.46 .58 .06 -.62 .74 .05 -.66 .92 .03
body paint; head paint black; limb paint>black*.45 .46 .95 .065 .38 .74 .085
~limb collar .4 .66 .035 .5 .62 .035""",
    "cat": """limb paint -.46 .5 .06 -.68 .52 .055 -.8 .72 .05 -.74 .92 .045 -.64 .94 .04
body paint
for x in .36, .54: polygon paint x .88 x+.03 1.12 x+.16 .92; \
    ~polygon rose x+.04 .92 x+.05 1.04 x+.11 .93
head paint rose
for x in -.3, -.12, .06: ~limb paint>black*.35 x .63 .03 x+.03 .48 .015""",
    "horse": """limb mane -.48 .74 .06 -.66 .7 .08 -.76 .5 .08 -.8 .3 .03
body paint; polygon paint .52 1.12 .54 1.28 .62 1.14; head paint black
~limb mane .58 1.18 .05 .46 1.04 .07 .32 .82 .07 .22 .74 .03""",
    "cow": """limb paint -.62 .74 .03 -.74 .56 .025 -.74 .34 .025; disc patch -.74 .28 .06
ellipse rose -.3 .36 .12 .09; body paint
for x y a b in -.36 .68 .17 .11, .02 .58 .13 .16, .3 .72 .1 .08: ~ellipse patch x y a b
for x in .56, .72: limb horn x .88 .04 x+.04 1.02 .02
ellipse paint*.8 .5 .82 .1 .05; head paint black
~disc rose .84 .64 .09; ~disc black .88 .66 .02""",
    "elephant": """limb paint -.54 .72 .03 -.64 .5 .025 -.62 .36 .035; body paint
limb paint .7 .78 .15 .84 .54 .1 .86 .3 .075 .98 .22 .05
limb ivory .74 .62 .04 .9 .56 .035 1 .6 .015
disc paint .58 .82 .21; ellipse paint*.82 .44 .8 .17 .24; eye ivory .68 .9 .035""",
    "sheep": """body face
for x y in -.44 .56, -.36 .7, -.2 .76, -.02 .78, .16 .76, .32 .68, .38 .54, -.38 .42, \
    -.22 .36, -.02 .35, .18 .37, .34 .44: disc paint x y .11
~ellipse paint 0 .56 .4 .22
for x y in -.26 .56, -.06 .64, .14 .58, -.1 .46, .26 .5: ring paint*.8 x y .06 .025
head face black; ellipse face .42 .78 .08 .04; ~disc paint .5 .84 .09""",
    "rabbit": """disc ivory -.52 .4 .12; limb paint*.75 .26 .34 .09 .34+reach .06+lift .06
limb paint*.75 -.2 .28 .16 -.22-reach .06+lift .07 -.02-reach .05+lift .05
ellipse paint -.1 .4 .42 .31; ~ellipse paint*.92 -.24 .32 .2 .2
limb paint .22 .34 .09 .28+reach .06+lift .06
limb paint*.75 .24 .78 .06 .24-.1 1.14 .08; limb paint .36 .78 .06 .36-.1 1.14 .08
~limb rose .36 .84 .02 .28 1.1 .035; disc paint .36 .64 .2
~ellipse paint>ivory*.35 .48 .58 .12 .1; ~disc rose .58 .62 .035; eye ivory .42 .7 .045""",
    "duck": """for x in -.06, .1: limb beak x .3 .035 x-.02 .05 .03 x+.1 .03 .03
polygon paint -.44 .4 -.72 .66 -.3 .62; ellipse paint -.04 .42 .46 .25
limb paint .28 .48 .15 .34+stretch .72 .1 .38+stretch .88 .1
polygon beak .46+stretch .98 .78+stretch .86 .46+stretch .8; disc paint .4+stretch .9 .17
ellipse paint*.8 -.1 .44 .26 .14; eye ivory .46+stretch .94 .04""",
    "bird": """polygon paint*.75 -.02 .52 -.34 1.08 .26 .56
polygon paint -.36 .5 -.8 .62 -.74 .4
ellipse paint 0 .48 .42 .17; polygon beak .54 .62 .76 .54 .54 .48; disc paint .44 .56 .16
polygon paint*.9 -.18 .5 -.5 1 .2 .54; eye ivory .5 .6 .04""",
    "ball": """disc paint 0 .5 .5; ~limb white -.34 .6 .08 0 .68 .08 .34 .6 .08
~disc paint>white*.7 -.16 .82 .08""",
    "box": """polygon paint -.5 0 .5 0 .5 .9 -.5 .9
for a b c d in -.44 .08 .44 .08, -.44 .82 .44 .82, -.44 .08 -.44 .82, .44 .08 .44 .82, \
    -.44 .08 .44 .82: ~limb paint*.68 a b .05 c d .05""",
    "car": """polygon paint*.9 -.62 .5 -.42 .86 .22 .86 .48 .52
~polygon glass -.46 .54 -.36 .78 -.1 .78 -.1 .54
~polygon glass -.02 .54 -.02 .78 .18 .78 .36 .54
polygon paint -.82 .18 -.84 .5 -.62 .56 .5 .56 .84 .44 .86 .18; ~disc light .8 .38 .06
for x in -.46, .46: disc tyre x .18 .18; ~disc metal x .18 .08""",
    "boat": """limb wood 0 .3 .025 0 1.3 .025; polygon white .05 .4 .05 1.28 .56 .4
polygon white>paint*.25 -.05 .4 -.05 1.14 -.44 .4
polygon paint -.72 .34 .86 .34 .54 0 -.54 0; ~limb white -.64 .26 .02 .74 .26 .02""",
    "bicycle": """for x in -.46, .46: ring tyre x .3 .27 .06
limb paint -.46 .3 .035 -.2 .66 .035 .3 .68 .035 0 .3 .035 -.46 .3 .035
limb paint -.24 .76 .035 0 .3 .035; limb paint .46 .3 .035 .3 .68 .035 .28 .84 .035
limb tyre -.34 .78 .04 -.16 .77 .03; limb tyre .28 .84 .025 .38 .86 .025""",
    "balloon": """limb white 0 0 .012 .04 .2 .012 0 .42 .012; ellipse paint 0 .76 .28 .34
polygon paint 0 .45 .06 .38 -.06 .38; ~ellipse paint>white*.6 -.1 .9 .06 .1""",
    "kite": """limb white 0 .3 .014 -.12 .16 .014 .02 .06 .014 -.08 -.06 .014
for x y in -.1 .17, 0 .06: disc paint*.8 x y .05
polygon paint 0 1 .34 .68 0 .3 -.34 .68
~polygon paint>white*.5 0 1 .34 .68 0 .68; ~polygon paint>white*.5 0 .68 -.34 .68 0 .3""",
    "umbrella": """limb wood 0 .7 .022 0 .06 .022 .07 0 .022 .13 .06 .022
polygon paint -.5 .62 -.42 .82 -.22 .96 0 1 .22 .96 .42 .82 .5 .62 .34 .68 .17 .62 0 .68 \
    -.17 .62 -.34 .68
~polygon paint>white*.45 0 1 .17 .62 0 .68 -.17 .62""",
    "plane": """polygon paint*.7 -.02 .54 -.3 .86 .2 .56
polygon paint -.62 .52 -.84 .88 -.66 .88 -.4 .56
limb paint -.6 .5 .08 0 .48 .15 .6 .46 .11; polygon paint*.82 .06 .44 -.36 .14 -.16 .46
for x in -.24, -.06, .12, .3: ~disc glass x .54 .04""",
    "house": """polygon brick .26 .8 .26 1.16 .4 1.16 .4 .7
polygon paint -.56 0 .56 0 .56 .66 -.56 .66
polygon tile -.68 .64 0 1.12 .68 .64; ~polygon wood -.1 0 .14 0 .14 .42 -.1 .42
for x in -.42, .24: ~polygon white x .26 x+.2 .26 x+.2 .5 x .5; \
    ~polygon glass x+.03 .29 x+.17 .29 x+.17 .47 x+.03 .47""",
    "tree": """limb wood 0 0 .09 0 .5 .07
for x y r in -.24 .66 .24, .24 .68 .24, 0 .92 .27, 0 .62 .24: disc leaves x y r
for x y in -.26 .76, -.04 1, .22 .8, .06 .74: ~disc leaves*1.25 x y .07
for x y in -.3 .6, -.08 .84, .14 .94, .3 .62, .04 .56: ~disc paint x y .045""",
    "fir": """limb wood 0 0 .07 0 .3 .07
for y h in .16 .4, .46 .32, .76 .22: polygon needles -h y h y 0 y+.52; \
    ~limb white -h y .03 -.4*h y+.28 .01; ~limb white h y .03 .4*h y+.28 .01""",
    "palm": """limb bark -.1 0 .08 -.04 .4 .055 .06 .86 .045
for a b x y in -.171 1.02 -.36 .98, -.138 .98 -.3 .72, .28 1.02 .46 .98, .258 .98 .42 .7, \
    .06 1.09 .06 1.12: limb frond .06 .88 .05 a b .06 x y .015
~disc nut 0 .84 .05; ~disc nut .12 .84 .05""",
    "snowman": """disc snow 0 .3 .3; disc snow 0 .72 .2
limb paint -.16 .56 .05 .16 .56 .05; limb paint .12 .54 .045 .16 .34 .04
polygon tyre -.14 .88 .14 .88 .12 1.12 -.12 1.12; limb tyre -.22 .88 .03 .22 .88 .03
~polygon carrot .06 .75 .34 .7 .06 .68
for x y in .04 .8, .14 .8, .02 .4, .02 .26: ~disc tyre x y .03""",
    "fence": """for y in .16, .36: limb paint*.8 -.7 y .04 .7 y .04
for i in 0, 1, 2, 3, 4, 5: polygon paint -.66+.24*i 0 -.66+.24*i+.12 0 \
    -.66+.24*i+.12 .44 -.66+.24*i+.06 .54 -.66+.24*i .44""",
    "lamp": """limb tyre>paint*.3 0 0 .05 0 1.1 .03; limb tyre>paint*.3 0 1.1 .03 .2 1.16 .03
ellipse light .22 1.1 .13 .07""",
    "sofa": """limb paint -.5 .5 .17 .5 .5 .17
polygon paint*.85 -.62 .08 .62 .08 .62 .36 -.62 .36
for x in -.28, .28: limb paint*1.12 x-.18 .38 .09 x+.18 .38 .09
for x in -.66, .66: limb paint x .14 .11 x .42 .12""",
    "window": """polygon white -.42 .7 .42 .7 .42 1.4 -.42 1.4
for x y in -.36 .76, -.36 1.07, .03 .76, .03 1.07: \
    ~polygon glass x y x+.33 y x+.33 y+.27 x y+.27
for s in -1, 1: polygon paint .5*s .62 .24*s .66 .12*s 1.46 .5*s 1.46""",
}  # fmt: skip

# Of an animal on four legs: x and y of rear and front of the trunk and its two radii, radii of
# a leg and of the neck, x, y and radius of the skull, x and y of the muzzle and its two radii.
_BUILDS = _rows("""
    dog -.36 .52 .3 .56 .15 .19 .08 .05 .12 .54 .86 .16 .82 .78 .1 .065;
    cat -.34 .46 .3 .5 .16 .16 .06 .045 .11 .5 .78 .19 .62 .72 .1 .06;
    horse -.36 .64 .3 .62 .17 .17 .065 .04 .12 .6 1.06 .1 .84 .86 .09 .065;
    cow -.42 .6 .36 .6 .23 .24 .075 .055 .17 .66 .76 .15 .84 .64 .12 .1;
    elephant -.3 .66 .26 .68 .27 .29 .12 .11 .2 .58 .82 .21 .7 .72 .15 .1;
    sheep -.26 .52 .2 .54 .2 .2 .05 .035 .1 .5 .74 .1 .62 .64 .1 .07
""")
# Of the legs in the order rear far, front far, rear near, front near: distance of the joint
# from the end of the trunk; then, by pose, of the foot from the joint.
_JOINTS = (0.04, -0.04, -0.07, 0.06)
_STRIDES = _rows("stand .02 .02 -.02 -.02; run -.34 .34 -.2 .2; leap -.3 .4 -.38 .3")
_POSES = {
    "stand": {"lift": 0.0, "reach": 0.0, "stretch": 0.0},
    "run": {"lift": 0.06, "reach": 0.14, "stretch": 0.12},
    "leap": {"lift": 0.24, "reach": 0.26, "stretch": 0.14},
}

# Knee and foot of the rear and the front leg, from the hip at (0, 0.46).
_LEGS = _rows("""
    stand -.05 .24 -.06 .03 .05 .24 .06 .03; run -.08 .24 -.3 .12 .16 .3 .2 .06;
    leap -.1 .34 -.34 .28 .2 .44 .36 .32; kick -.05 .24 -.12 .03 .18 .34 .36 .2;
    sit .18 .46 .2 .22 .22 .48 .24 .24
""")
# Elbow and hand of the rear and the front arm, from the shoulder at (0, 0.74).
_ARMS = _rows("""
    stand -.12 .6 -.1 .45 .12 .6 .12 .45; run -.18 .64 -.1 .5 .14 .6 .3 .7;
    leap -.16 .76 -.26 .88 .16 .78 .3 .92; sit .12 .6 .28 .56 .14 .62 .3 .6;
    reach .14 .64 .36 .62 .16 .68 .38 .68; raise -.12 .6 -.1 .45 .14 .84 .26 1
""")
_ARM = "limb sleeve 0 .74 .055 x1 y1 .045; limb hand x1 y1 .038 x2 y2 .035"
_TRUNK = """
limb paint 0 .5 .1 0 .72 .11; limb skin 0 .78 .045 .01 .86 .045
disc skin .02 .94 .115; ~disc skin .13 .92 .022; eye ivory .075 .955 .02
limb hair -.07 .92 .05 -.06 1.01 .055 .06 1.04 .04"""
_CAP = """
limb paint>dusk*.3 -.05 1.03 .065 .06 1.03 .06
limb paint>dusk*.3 .06 1 .022 .2 .99 .018"""
_LONG_HAIR = {
    "woman": "limb hair -.04 .98 .08 -.11 .84 .075 -.13 .66 .05",
    "girl": "limb hair -.08 .96 .05 -.2 .94 .05 -.24 .8 .03",
}


class Looks(NamedTuple):
    """Skin and hair of a person, which captions do not mention."""

    skin: Colour
    hair: Colour


def hand(arms: str) -> Point:
    """Return where the front hand is."""
    return _ARMS[arms][6], _ARMS[arms][7]


def draw_thing(
    figure: Figure, kind: str, paint: Colour, looks: Looks, *, legs: str, arms: str
) -> None:
    """Add the shapes of a thing in its pose; animals have the pose of their `legs`."""
    colours = _COLOURS | {"paint": paint, **looks._asdict()}
    if kind in PEOPLE:
        _draw_person(figure, kind, colours, legs, arms)
        return
    colours["mane"] = mix(paint, _BLACK, 0.75) if paint[0] > 60 else (92, 84, 80)
    colours["patch"] = _BLACK if paint[0] + paint[1] + paint[2] > 500 else _IVORY
    colours["face"] = (52, 46, 48) if paint[0] > 90 else (120, 110, 108)
    _sketch(figure, _DRAWINGS[kind], colours, _POSES[legs], kind=kind, pose=legs)


def _draw_person(
    figure: Figure, kind: str, colours: dict[str, Colour], legs: str, arms: str
) -> None:
    """Draw a man, woman, boy or girl; `Body` makes children smaller."""
    skin, paint = colours["skin"], colours["paint"]
    cloth = skin if kind in _LONG_HAIR else colours["trousers"]
    shorts = "limb shin x1 y1 .05 x2 y2 .042; " if kind == "boy" else ""
    shoe = "limb shoe x2 y2 .04 x2+.07 y2 .035"
    leg = f"limb cloth 0 .46 .075 x1 y1 .06 x2 y2 .045; {shorts}{shoe}"
    for numbers, light in ((_LEGS[legs][:4], 0.75), (_LEGS[legs][4:], 1.0)):
        own = colours | {"cloth": shade(cloth, light), "shin": shade(skin, light)}
        _sketch(figure, leg, own, _joints(numbers))
    sleeves = {"sleeve": shade(paint, 0.72), "hand": shade(skin, 0.75)}
    _sketch(figure, _ARM, colours | sleeves, _joints(_ARMS[arms][:4]))
    if kind in _LONG_HAIR:
        _sketch(figure, _LONG_HAIR[kind], colours)
        hem = {"hem": 0.1 if legs == "sit" else 0.0}
        skirt = "polygon paint -.08 .78 .08 .78 .2+hem .28+hem -.2 .28+hem"
        _sketch(figure, skirt, colours, hem)
    _sketch(figure, _TRUNK + _CAP * (kind == "boy"), colours)
    sleeves = {"sleeve": shade(paint, 0.88), "hand": skin}
    _sketch(figure, _ARM, colours | sleeves, _joints(_ARMS[arms][4:]))


def _joints(numbers: list[float]) -> dict[str, float]:
    return dict(zip(("x1", "y1", "x2", "y2"), numbers, strict=True))


def _sketch(
    figure: Figure,
    drawing: str,
    colours: Mapping[str, Colour],
    values: Mapping[str, float] | None = None,
    *,
    kind: str = "",
    pose: str = "",
) -> None:
    """Add the shapes of a drawing; `kind` and `pose` are those of an animal on four legs."""
    for line in drawing.strip().split("\n"):
        loop, _, shapes = line.rpartition(":")
        names, _, rows = loop.removeprefix("for ").partition(" in ")
        for row in rows.split(","):
            numbers = dict(zip(names.split(), map(float, row.split()), strict=True))
            known = {**(values or {}), **numbers}
            for shape in shapes.split(";"):
                form, name, *terms = shape.split()
                colour = _colour(name, colours)
                if form == "body":
                    _add_body(figure, kind, pose, colours["paint"], colour)
                elif form == "head":
                    _add_head(figure, kind, colour, colours[terms[0]])
                elif form == "eye":
                    _add_eye(figure, *(_number(term, known) for term in terms))
                else:
                    given = [_number(term, known) for term in terms]
                    figure.add(form.lstrip("~"), colour, given, rim=form[0] != "~")


def _colour(text: str, colours: Mapping[str, Colour]) -> Colour:
    """Return the colour of ``name``, ``name*factor`` or ``name>other*share``."""
    name, _, share = text.partition("*")
    first, _, second = name.partition(">")
    if second:
        return mix(colours[first], colours[second], float(share))
    return shade(colours[first], float(share)) if share else colours[first]


def _number(text: str, values: Mapping[str, float]) -> float:
    """Return the value of a sum of products, computed from left to right."""
    terms = []
    for sign, product in re.findall(r"([+-]?)([^+-]+)", text):
        factors = [values[f] if f in values else float(f) for f in product.split("*")]
        terms.append(-reduce(mul, factors) if sign == "-" else reduce(mul, factors))
    return reduce(add, terms)


def _add_body(figure: Figure, kind: str, pose: str, coat: Colour, legs: Colour) -> None:
    """Add the four legs, the far ones first, the trunk and the neck."""
    x_rear, y_rear, x_front, y_front, rear, front, thigh, foot, neck = _BUILDS[kind][:9]
    lift = _POSES[pose]["lift"]
    for i, (joint, stride) in enumerate(zip(_JOINTS, _STRIDES[pose], strict=True)):
        x, y, bend = ((x_rear, y_rear, 0.02), (x_front, y_front, 0.03))[i % 2]
        x += joint
        knee = x + 0.55 * stride + bend, 0.52 * (y - rear) + lift, thigh
        end = x + stride, foot + lift, foot
        colour = legs if i > 1 else shade(legs, 0.72)
        figure.add("limb", colour, (x, y - 0.3 * rear, 1.35 * thigh, *knee, *end))
    figure.add("limb", coat, (x_rear, y_rear, rear, x_front, y_front, front))
    shoulder = x_front + 0.04, y_front + 0.04, 1.25 * neck
    figure.add("limb", coat, (*shoulder, *_BUILDS[kind][9:11], neck))


def _add_head(figure: Figure, kind: str, face: Colour, nose: Colour) -> None:
    x, y, skull, x_muzzle, y_muzzle, snout, tip = _BUILDS[kind][9:]
    figure.add("disc", face, (x, y, skull))
    figure.add("limb", face, (x, y, snout, x_muzzle, y_muzzle, tip))
    spot = x_muzzle + 0.6 * tip, y_muzzle + 0.2 * tip, 0.5 * tip
    figure.add("disc", nose, spot, rim=False)
    _add_eye(figure, x + 0.35 * skull, y + 0.25 * skull, 0.2 * skull + 0.012)


def _add_eye(figure: Figure, x: float, y: float, radius: float) -> None:
    """Add a dark eye with a glint."""
    figure.add("disc", _IVORY, (x, y, 1.5 * radius), rim=False)
    figure.add("disc", _BLACK, (x + 0.2 * radius, y, radius), rim=False)
