"""Scenes that are drawn and described."""

import dataclasses
import hashlib
import os
import re
import subprocess
import sys
from importlib import resources
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image, ImageDraw
from refusals import refuses, refuses_each

from kernelcore.datasets import load_flickr, make_scenes
from kernelcore.datasets.scenes import content
from kernelcore.datasets.scenes.figures import Pen, Shape, drawing
from kernelcore.datasets.scenes.picture import draw

POSES = ("stand", "run", "sit", "leap", "push", "kick", "hold")
# SHA-256 of everything that `make_scenes(40, rng=7)` returns.
DIGEST = "8746bb02226bea9b002713b6462709c1185b9f11cee6e87152b3071f592cc424"


@pytest.fixture(scope="module")
def scenes():
    return make_scenes(300, rng=1)


def digest(scenes):
    hashed = hashlib.sha256(scenes.images.tobytes())
    hashed.update(repr(scenes.scenes).encode())
    hashed.update("\n".join(map("\n".join, scenes.dataset.captions)).encode())
    hashed.update(scenes.boxes.tobytes())
    return hashed.hexdigest()


def test_shapes_and_types(scenes):
    assert (scenes.images.shape, scenes.images.dtype) == ((300, 96, 128, 3), np.uint8)
    assert scenes.boxes.shape == (300, 2, 4)
    assert len(scenes) == len(scenes.scenes) == len(scenes.dataset) == 300
    assert scenes.dataset.n_captions == 1500
    assert all(numbers == (0, 1, 2, 3, 4) for numbers in scenes.dataset.caption_numbers)
    assert scenes.dataset.caption_ids[7][2] == "scene-000007.png#2"
    counts = {name: len(part) for name, part in scenes.dataset.splits.items()}
    assert counts == {"train": 180, "dev": 60, "test": 60}
    empty = make_scenes(0)
    assert (empty.images.shape, len(empty.dataset)) == ((0, 96, 128, 3), 0)


def test_a_seed_always_gives_the_same_bits():
    assert digest(make_scenes(40, rng=7)) == DIGEST


def test_no_instruction_set_changes_the_bits():
    code = (
        "import sys; sys.path[:0] = sys.argv[1:]\n"
        "from test_scenes import digest, make_scenes; print(digest(make_scenes(40, rng=7)))"
    )
    sets = (
        "AVX2 FMA3 AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL X86_V3 X86_V4"
    )
    environment = {**os.environ, "NPY_DISABLE_CPU_FEATURES": sets}
    command = [sys.executable, "-W", "ignore", "-c", code, Path(__file__).parents[1]]
    command.append(Path(__file__).parent)
    assert subprocess.check_output(command, env=environment, text=True).strip() == DIGEST


def test_fewer_scenes_are_the_first_of_more(scenes):
    few = make_scenes(7, rng=1)
    np.testing.assert_array_equal(few.images, scenes.images[:7])
    np.testing.assert_array_equal(few.boxes, scenes.boxes[:7])
    assert few.scenes == scenes.scenes[:7]
    assert few.dataset.captions == scenes.dataset.captions[:7]
    for name, members in few.dataset.splits.items():
        expected = [i for i in scenes.dataset.split(name) if i < 7]
        np.testing.assert_array_equal(members, expected)


def test_the_seed_or_a_generator_that_draws_it_tells_the_scenes(scenes):
    one, same = (make_scenes(2, np.random.default_rng(3), size=(32, 32)) for _ in range(2))
    np.testing.assert_array_equal(one.images, same.images)
    assert not set(make_scenes(20, rng=2).scenes) & set(scenes.scenes[:20])


def test_captions_and_content_do_not_depend_on_the_size(scenes):
    small = make_scenes(20, rng=1, size=(48, 80))
    assert small.images.shape == (20, 48, 80, 3)
    assert small.scenes == scenes.scenes[:20]
    assert small.dataset.captions == scenes.dataset.captions[:20]


@pytest.mark.parametrize("size", [(32, 32), (32, 500), (300, 40), (240, 320)])
def test_every_size_shows_agent_and_patient(size):
    scenes = make_scenes(40, rng=3, size=size)
    left, top, right, bottom = np.moveaxis(scenes.boxes, 2, 0)
    assert min(left.min(), top.min()) >= 0
    assert right.max() <= size[1]
    assert bottom.max() <= size[0]
    assert min((right - left).min(), (bottom - top).min()) >= 2


def test_bad_arguments_are_refused():
    odd = {"n_images": [-1, 1.5], "rng": [-1, 0.5], "size": [96, (96, 128, 3)]}
    refuses_each(make_scenes, odd, n_images=1, rng=0, size=(32, 32))
    for place, size in ((0, (31, 128)), (1, (96, 10**6)), (1, (96, 128.0))):
        refuses((TypeError, ValueError), rf"size\[{place}\]", make_scenes, 1, size=size)


def test_everything_turns_up():
    scenes = [content.imagine(content.Dice(0, i)) for i in range(3000)]
    assert {scene.relation for scene in scenes} == set(content.RELATIONS)
    assert {scene.ground for scene in scenes} == set(content.GROUNDS)
    lights = {"clear", "cloudy", "sunset", "night", "indoors"}
    assert {scene.light for scene in scenes} == lights
    assert {scene.facing for scene in scenes} == {"left", "right"}
    parts = (part for scene in scenes for part in (scene.agent, scene.patient, scene.scenery))
    things = [thing for thing in parts if thing]
    assert {thing.kind for thing in things} == set(content.KINDS)
    assert {thing.size for thing in things} == {"small", "medium", "large"}
    assert all(thing.colour in content.KINDS[thing.kind] for thing in things)


def test_relations_have_the_parties_they_allow():
    for i in range(1500):
        scene = content.imagine(content.Dice(1, i))
        relation, agent, patient = content.RELATIONS[scene.relation], scene.agent, scene.patient
        assert agent.kind in relation.agents
        assert patient.kind in relation.patients
        assert scene.ground in relation.grounds
        assert (scene.light == "indoors") == (scene.ground == "floor")
        assert (agent.kind, agent.colour) != (patient.kind, patient.colour)
        assert scene.ground == "water" or "boat" not in {agent.kind, patient.kind}
        if scene.relation == "ride" and patient.kind == "bicycle":
            assert agent.kind in content.PEOPLE
        if scene.scenery is not None:
            assert scene.scenery.kind in content.GROUNDS[scene.ground]
            assert scene.scenery.kind not in {agent.kind, patient.kind}


def test_the_roles_are_visible(scenes):
    seen = set()
    for scene, (agent, patient) in zip(scenes.scenes, scenes.boxes, strict=True):
        sign = 1 if scene.facing == "right" else -1
        # How far the patient's middle lies ahead of, and below, the agent's.
        ahead = sign * (patient[0] + patient[2] - agent[0] - agent[2]) / 2
        below = (patient[1] + patient[3] - agent[1] - agent[3]) / 2
        if scene.relation in {"chase", "push", "kick"}:
            assert ahead > 5
        elif scene.relation == "pull":
            assert ahead < -5
        elif scene.relation == "left_of":
            assert sign * ahead > 5
        elif scene.relation == "hold":
            assert below < -3
        elif scene.relation in {"above", "jump_over"}:
            assert below > 3
        else:
            assert scene.relation in {"ride", "sit_on"}
            assert patient[3] - agent[3] > 3
        seen.add((scene.relation, scene.facing))
    assert len(seen) == 2 * len(content.RELATIONS)


@pytest.mark.parametrize("kind", sorted(content.KINDS))
@pytest.mark.parametrize("facing", ["left", "right"])
def test_every_kind_is_drawn_where_its_box_says(kind, facing):
    ball = content.Thing("ball", "red", "small")
    thing = content.Thing(kind, content.KINDS[kind][0], "medium")
    scene = content.Scene(ball, "left_of", thing, "grass", "clear", None, facing)
    pixels, (_, (left, top, right, bottom)) = draw(scene, (96, 128), content.Dice(0))
    assert min(right - left, bottom - top) >= 8
    # Its box differs from the bare ground: grass has next to no red, blue or black areas.
    part = pixels[top:bottom, left:right].astype(int)
    greenish = (part[..., 1] > part[..., 0]) & (part[..., 1] > part[..., 2])
    assert greenish.mean() < 0.85


@pytest.mark.parametrize("pose", POSES)
@pytest.mark.parametrize("ahead", [1, -1])
def test_boxes_of_drawings_are_those_of_what_is_painted(pose, ahead):
    for kind in content.KINDS:
        shapes, (left, bottom, right, top) = drawing(kind, pose)
        image = Image.new("RGB", (400, 300))
        pen = Pen(ImageDraw.Draw(image), 200, 250, 0.2, ahead=ahead)
        pen.sketch([shape._replace(colour="white", darkness=0.0) for shape in shapes], {}, 0.0)
        first, last = sorted((200 + 0.2 * ahead * left, 200 + 0.2 * ahead * right))
        expected = first, 250 - 0.2 * top, last, 250 - 0.2 * bottom
        np.testing.assert_allclose(image.getbbox(), expected, atol=2, err_msg=kind)


def test_every_drawing_is_used():
    text = resources.files("kernelcore.datasets.scenes").joinpath("things.svg").read_text()
    drawings = {group.attrib["id"]: group for group in ElementTree.fromstring(text)[0]}
    used = {shape for k in content.KINDS for pose in POSES for shape in drawing(k, pose)[0]}
    for name, group in drawings.items():
        assert {Shape.of(node) for node in group} <= used, name


WORDS = {
    "dog": {"dog", "puppy", "hound"}, "cat": {"cat", "kitten", "kitty"},
    "horse": {"horse", "pony", "stallion"}, "elephant": {"elephant"},
    "man": {"man", "guy", "gentleman"}, "woman": {"woman", "lady"},
}  # fmt: skip


def test_captions_name_both_parties_and_end_like_sentences(scenes):
    for scene, captions in zip(scenes.scenes, scenes.dataset.captions, strict=True):
        assert len(set(captions)) == 5
        for caption in captions:
            assert re.fullmatch(r"[A-Z][A-Za-z ,-]+\.", caption), caption
            assert "  " not in caption
            assert not re.search(r"\ba [aeio]|\ban [^aeiou]|\b(an?|the) (an?|the)\b", caption)
            words = set(caption.lower().rstrip(".").split())
            for thing in (scene.agent, scene.patient):
                assert words & WORDS.get(thing.kind, words), (thing, caption)


def test_word_order_tells_the_roles_apart():
    # Captions of a scene and of the same scene with its roles swapped use the same words.
    dog, cat = content.Thing("dog", "black", "medium"), content.Thing("cat", "white", "medium")
    scene = content.Scene(dog, "chase", cat, "grass", "clear", None, "right")
    swapped = dataclasses.replace(scene, agent=cat, patient=dog)
    active = {"chases": 0, "runs after": 0, "pursues": 0}
    told = [
        (caption, agent, verb)
        for given, agent in ((scene, "dog"), (swapped, "cat"))
        for i in range(200)
        for caption in content.describe(given, 5, content.Dice(i))
        for verb in active
        if f" {verb} " in caption
    ]
    for caption, agent, verb in told:
        before, after = caption.rstrip(".").split(f" {verb} ")
        assert WORDS[agent] & set(before.split())
        assert not WORDS[agent] & set(after.split())
        active[verb] += 1
    assert min(active.values()) > 50


def test_what_is_written_is_read_back(tmp_path):
    scenes = make_scenes(10, rng=4)
    scenes.write(tmp_path / "out")
    dataset = load_flickr(tmp_path / "out")
    for part in ("name", "image_ids", "captions", "caption_ids", "caption_numbers"):
        assert getattr(dataset, part) == getattr(scenes.dataset, part)
    for name, members in scenes.dataset.splits.items():
        np.testing.assert_array_equal(dataset.split(name), members)
    for path, pixels in zip(dataset.paths, scenes.images, strict=True):
        np.testing.assert_array_equal(Image.open(path), pixels)
    assert not list((tmp_path / "out").rglob("*.tmp"))
