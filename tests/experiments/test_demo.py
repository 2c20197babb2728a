"""The demo: three systems on drawn scenes, and who does what to whom."""

import re
from collections import Counter

import numpy as np
import pytest

from kernelcore.datasets import Scene, Thing, make_scenes
from kernelcore.experiments import demo
from kernelcore.experiments.demo import RoleSwaps

MEADOW = "grass", "clear", None, "left"


@pytest.fixture(scope="module")
def found():
    return demo.run(n_images=150, rng=5)


def recalls(result):
    return {task: result.mean[task]["R@10"] for task in ("annotation", "search")}


def test_kernel_cca_beats_nearest_neighbour_and_chance_in_both_directions(found):
    *ours, nearest, _ = map(recalls, found.results)
    assert len(ours) == 2
    for recall in ours:
        for task in ("annotation", "search"):
            assert recall[task] > nearest[task]
            assert recall[task] > 2 * 10 / 30  # by chance a third is among ten of thirty
    assert [result.facts["n_images"] for result in found.results] == [30] * 4
    assert {result.pool for result in found.results} == {"caption #2"}


def test_what_is_ranked_are_the_test_scenes_with_their_caption_number_two(found):
    scenes = make_scenes(150, 5)
    test = scenes.dataset.split("test")
    np.testing.assert_array_equal(found.images, scenes.images[test])
    assert found.captions == tuple(scenes.dataset.captions[i][2] for i in test)
    assert found.sizes == (90, 30, 30)


def test_the_seed_that_settings_tell_gives_the_same_for_every_number_of_threads(found):
    assert found.settings["seed"] == 5
    one = demo.run(n_images=25, rng=np.random.default_rng(2), n_threads=1)
    two = demo.run(n_images=25, rng=one.settings["seed"], n_threads=2)
    np.testing.assert_array_equal(one.images, two.images)
    assert set(one.scores) == set(two.scores) == set(demo.SYSTEMS)
    for name in demo.SYSTEMS:
        np.testing.assert_array_equal(one.scores[name], two.scores[name])
    assert one.results == two.results


def test_sequences_tell_the_roles_of_two_sentences_apart_and_bags_do_not(found):
    bags, sequences = found.role_swaps.values()
    assert bags.n_scenes == sequences.n_scenes > 0
    assert bags.n_ties == bags.n_scenes
    assert bags.accuracy == 0.5
    assert sequences.n_ties == 0
    assert f"the same in all of {bags.n_scenes} test scenes" in str(bags)
    assert f"told apart in {bags.n_scenes} of {bags.n_scenes} test scenes" in str(sequences)


def test_a_model_that_reads_word_order_is_counted_right():
    class KnowsTheSentence:
        """Scores 1 for the right sentence of a scene; stands in for a better model."""

        def scores(self, _, sentences, *, n_threads):
            return np.array([[float(s == wanted) for s in sentences] for wanted in right])

    scenes = [scene for scene in make_scenes(40).scenes if demo._could_be_swapped(scene)]
    right = [demo._sentence(scene) for scene in scenes]
    swaps = demo._role_swaps(KnowsTheSentence(), scenes, None, 1)
    assert swaps == RoleSwaps(len(scenes), len(scenes), 0)
    assert "the right one scores higher in 100.0 % (chance: 50.0 %" in str(swaps)


def test_sentences_with_exchanged_roles_have_the_same_words():
    scenes = [scene for scene in make_scenes(100).scenes if demo._could_be_swapped(scene)]
    assert {scene.relation for scene in scenes} == set(demo._VERBS)
    for scene in scenes:
        right, swapped = demo._sentence(scene), demo._sentence(demo._swapped(scene))
        assert right != swapped
        assert Counter(right[:-1].split()) == Counter(swapped[:-1].split())


@pytest.mark.parametrize(
    ("agent", "relation", "patient", "expected"),
    [
        ("dog", "chase", "man", True),
        ("dog", "jump_over", "box", False),  # no box jumps
        ("man", "kick", "ball", False),
        ("bird", "above", "dog", False),
    ],
)
def test_only_scenes_whose_roles_can_be_exchanged_count(agent, relation, patient, expected):
    parties = Thing(agent, "red", "small"), relation, Thing(patient, "blue", "small")
    assert demo._could_be_swapped(Scene(*parties, *MEADOW)) is expected


def test_sentences_read_like_captions():
    parties = Thing("dog", "black", "small"), "chase", Thing("man", "red", "small")
    scene = Scene(*parties, *MEADOW)
    assert demo._sentence(scene) == "a black dog chases a man in red."
    assert demo._sentence(demo._swapped(scene)) == "a man in red chases a black dog."


def test_no_scene_with_two_roles_is_said_so():
    assert RoleSwaps(0, 0, 0).accuracy == 0.5
    assert "no test scene" in str(RoleSwaps(0, 0, 0))
    assert RoleSwaps(4, 1, 2).accuracy == 0.5


def test_the_page_shows_everything(found, tmp_path):
    page = tmp_path / "demo.html"
    found.write_html(page)
    text = page.read_text(encoding="utf-8")
    for system in (*demo.SYSTEMS, "nearest neighbour", "chance"):
        assert system in text
    assert "Search and annotation of 150 drawn scenes" in text
    assert "90 scenes for training" in text
    assert "as bags of words they are equal" in text
    assert text.count('class="gold"') >= 12  # two good, typical and bad queries of each task
    assert len(re.findall(r"<figure>", text)) == 2
    assert "describe the scenes" in text
    for name in demo.SYSTEMS:
        assert found.settings[name]["n_components"] in (16, 32, 64, 128, 256)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [({"n_images": 24}, ValueError), ({"n_images": 2.5}, TypeError), ({"rng": -1}, ValueError)],
)
def test_bad_sizes(arguments, error):
    with pytest.raises(error, match="must be an integer"):
        demo.run(**arguments)


@pytest.mark.slow
def test_the_whole_demo_is_clear():
    ours, _, nearest, chance = map(recalls, demo.run().results)
    for task in ("annotation", "search"):
        assert ours[task] > 2 * nearest[task] > 4 * chance[task]
