"""One name for one thing, and one type for one name, in all public signatures."""

import numpy as np
import pytest
from public_api import defined_callables, exported_callables, parameters_of

from kernelcore._renamed import renamed
from kernelcore._validation import drawn_seed
from kernelcore.datasets import make_scenes

CALLABLES = {name: parameters_of(found) for name, found in defined_callables().items()}
OTHER_NAMES_OF_RNG = {"seed", "random_state", "random_seed", "generator"}
# torch's own class of sources, in its functions and so in whatever passes one on to them.
TORCH_GENERATORS = {"torch.Generator", "torch.Generator | None"}

EXPORTED = {name: parameters_of(found) for name, found in exported_callables().items()}


def is_torch(parameter):
    return str(parameter.annotation) in TORCH_GENERATORS


def taking(parameter):
    """Return the exported callables that take a parameter, with it."""
    return {name: own[parameter] for name, own in EXPORTED.items() if parameter in own}


def test_the_sweep_sees_what_it_is_for():
    assert len(CALLABLES) > 700
    for name in (
        "kernelcore.images.proposals.SelectiveSearch",
        "kernelcore.experiments.demo.run",
        "kernelcore.experiments.hu2019.protocol.run",
        "kernelcore.datasets.scenes.collection.make_scenes",
        "kernelcore.deep.torch_ranker.TorchRanker.fit",
    ):
        assert name in CALLABLES


def test_randomness_is_called_rng():
    others = {
        f"{name}({parameter})"
        for name, own in CALLABLES.items()
        for parameter in own.values()
        if parameter.name in OTHER_NAMES_OF_RNG
        and not (parameter.name == "generator" and is_torch(parameter))
    }
    assert others == set()


def test_rng_has_one_type():
    whole = "np.random.Generator | int | None"
    kinds = {name: str(own.annotation) for name, own in taking("rng").items()}
    assert len(kinds) > 20
    assert {name: kind for name, kind in kinds.items() if kind != whole} == {}


def test_a_source_becomes_a_number():
    assert drawn_seed("rng", 7) == 7
    assert drawn_seed("rng", np.int32(7)) == 7
    one, same = (drawn_seed("rng", np.random.default_rng(1)) for _ in range(2))
    assert one == same == int(np.random.default_rng(1).integers(2**63))
    assert drawn_seed("rng", None) != drawn_seed("rng", None)
    for odd, error in ((-1, ValueError), (0.5, TypeError), ("0", TypeError)):
        with pytest.raises(error, match="rng must be an integer"):
            drawn_seed("rng", odd)


def test_an_old_name_goes_on_working():
    @renamed(colour="color")
    def paint(color, *, coats=1):
        return color, coats

    with pytest.warns(DeprecationWarning, match="colour is called color now") as told:
        assert paint(colour="red", coats=2) == ("red", 2)
    assert told[0].filename == __file__
    assert paint("red") == ("red", 1)
    with pytest.raises(TypeError, match="colour is called color now, got both"):
        paint(colour="red", color="blue")
    with pytest.raises(TypeError, match="unexpected keyword argument 'hue'"):
        paint(hue="red")


def test_scenes_of_none_are_others_each_time():
    first, second = (make_scenes(2, None, size=(32, 32)).images for _ in range(2))
    assert (first != second).any()
