"""Settings of a photo ranker: the values to try, and the choice on development photos."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, check_choice, check_integer, check_real, check_rng
from kernelcore._store import check_tensor
from kernelcore._threads import Progress, working
from kernelcore.captions import EncodedCaptions
from kernelcore.evaluation.metrics import chance_recall_at_k
from kernelcore.kcca import KCCAFactorization, KernelBasis, factorize
from kernelcore.kcca.kcca import as_pair
from kernelcore.kernels import power
from kernelcore.kernels.gram import LARGEST_EXPONENT
from kernelcore.models.base import reworded
from kernelcore.models.kcca_ranker import KCCARanker, products
from kernelcore.models.kcca_settings import CUTOFFS, KCCASetting, recalls_of, select_kcca
from kernelcore.models.photo_space import PhotoSpace
from kernelcore.models.pyramid_view import PyramidView
from kernelcore.models.training_items import HeldOut, TrainingItems
from kernelcore.models.vector_view import SCALINGS, Scaling


class Grid(NamedTuple):
    """Default values to try for one kind of features; see `PhotoRanker`."""

    image_power: tuple[float, ...]
    n_components: tuple[int, ...]
    regularization: tuple[tuple[float, float], ...]
    correlation_power: tuple[float, ...]


WORDS_GRID = Grid(
    image_power=(1.0, 2.0),
    n_components=(16, 32, 64, 128, 256),
    regularization=tuple(
        product((0.03, 0.1, 0.3, 1.0), (0.3, 1.0, 3.0, 10.0)),
    ),
    correlation_power=(0.0, 2.0, 4.0),
)
"""Values to try for visual words."""

VECTORS_GRID = Grid(
    image_power=(1.0,),
    n_components=(32, 64, 128, 200, 300, 400),
    regularization=((0.3, 0.3), (1.0, 0.3), (1.0, 1.0), (3.0, 1.0)),
    correlation_power=(1.0, 2.0, 3.0, 4.0),
)
"""Values to try for vectors. On samples of 100 to 800 photos of Flickr8k a grid of 700 values
chose no better."""


class Choice(NamedTuple):
    """The chosen settings and their results on the development photos; see `PhotoRanker`."""

    image_power: float
    scaling: Scaling | None
    setting: KCCASetting
    hub_neighbors: int
    dev_recalls: npt.NDArray[np.float64]
    dev_chance: npt.NDArray[np.float64]
    n_dev: tuple[int, int]

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON."""
        return {
            **self._asdict(),
            "setting": self.setting._asdict(),
            "dev_recalls": self.dev_recalls.tolist(),
            "dev_chance": self.dev_chance.tolist(),
            "n_dev": list(self.n_dev),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any], *, has_vectors: bool) -> Choice:
        """Read and check the output of `to_json`; photos with vectors have a scaling."""
        exponent = values["image_power"]
        power(np.ones((1, 1)), exponent)  # checks it
        if has_vectors:
            check_choice("scaling", values["scaling"], SCALINGS)
        recalls = np.array(values["dev_recalls"], np.float64)
        chance = np.array(values["dev_chance"], np.float64)
        n_photos, n_captions = values["n_dev"]
        return cls(
            exponent,
            values["scaling"],
            KCCASetting.from_json(values["setting"]),
            check_integer("hub_neighbors", values["hub_neighbors"], minimum=0),
            check_tensor("dev_recalls", recalls, (2, 3)),
            check_tensor("dev_chance", chance, (2, 3)),
            (
                check_integer("n_dev", n_photos, minimum=0),
                check_integer("n_dev", n_captions, minimum=0),
            ),
        )


class Kernels(NamedTuple):
    """Kernels of photos and of captions with the training items.

    A kernel of the training captions may be given as a basis that was computed before.
    """

    photos: Array
    captions: Any


@dataclass(frozen=True)
class SettingsSearch:
    """The values to try of each setting; None stands for defaults that depend on the features.

    The fields are the parameters of the same names of `PhotoRanker`, checked.
    """

    image_power: tuple[float, ...] | None
    n_components: tuple[int, ...] | None
    regularization: tuple[tuple[float, float], ...] | None
    correlation_power: tuple[float, ...] | None
    scaling: tuple[Scaling, ...] | None
    hub_neighbors: tuple[int, ...]
    max_rank: int
    dev_share: float
    rng: np.random.Generator | int | None

    @classmethod
    def of(cls, ranker: Any) -> SettingsSearch:
        """Check a ranker's parameters, before anything that takes long has begun."""
        positive = partial(check_real, minimum=0.0, exclusive=True)
        checks: dict[str, Callable[[str, Any], Any]] = {
            "image_power": partial(positive, maximum=LARGEST_EXPONENT),
            "n_components": partial(check_integer, minimum=1),
            "regularization": partial(as_pair, minimum=0.0),
            "correlation_power": partial(check_real, minimum=0.0),
            "scaling": partial(check_choice, choices=SCALINGS),
            "hub_neighbors": partial(check_integer, minimum=0),
        }
        tried: dict[str, Any] = {}
        for name, check in checks.items():
            values = getattr(ranker, name)
            is_default = values is None and name != "hub_neighbors"
            is_text = isinstance(values, (str, bytes))
            if not is_default and (is_text or not isinstance(values, (Sequence, np.ndarray))):
                raise TypeError(f"{name} must be a sequence of values, got {values!r:.80}")
            tried[name] = None if is_default else tuple(check(name, one) for one in values)
            if tried[name] == ():
                raise ValueError(f"{name} must hold at least one value, got none")
        check_rng("rng", ranker.rng)
        return cls(
            **tried,
            max_rank=check_integer("max_rank", ranker.max_rank, minimum=1),
            dev_share=check_real("dev_share", ranker.dev_share, minimum=0.0, maximum=0.9),
            rng=ranker.rng,
        )

    def learn(
        self,
        training: TrainingItems,
        dev: tuple[Sequence[Any], EncodedCaptions] | None,
        *,
        n_threads: int | None,
        progress: Progress,
    ) -> tuple[KCCARanker, Choice]:
        """Choose the settings on the development items and learn from the training items.

        Without development items some training photos are held out while the settings are
        chosen; the ranker that is returned learns from all.
        """
        run: dict[str, Any] = {"n_threads": n_threads, "progress": progress}
        search = self._for(training)
        if dev is None:
            part = HeldOut.of(training.photo_numbers(), self.dev_share, self.rng)
            learned_from, left_out, dev_image = part.learned_from, part.photos, part.image
            dev_captions = training.captions.encoded.select(part.items)
        else:
            learned_from, left_out = np.arange(len(training)), None
            dev_captions = dev[1]
            dev_image = np.arange(len(dev_captions))
        captions = training.captions.gram(**run)
        square = np.ix_(learned_from, learned_from)
        learned_captions: Array | KernelBasis = captions[square]
        dev_rows = training.captions.gram(dev_captions.caption_as_image(), **run)
        owners = np.repeat(dev_image, np.diff(dev_captions.image_offsets))
        best: tuple[Choice, KCCAFactorization, Array] | None = None
        for scaling in search.scaling or (None,):
            photos = training.photo_kernel(scaling=scaling, **run)
            new = (
                photos[left_out]
                if dev is None
                else training.photo_kernel(dev[0], scaling=scaling, **run)
            )
            choice, factorization = search._choose(
                scaling,
                Kernels(photos[square], learned_captions),
                Kernels(new[:, learned_from], dev_rows[:, learned_from]),
                owners,
                **run,
            )
            learned_captions = factorization.y  # the next kernel of photos needs the same
            if best is None or choice.dev_recalls.sum() > best[0].dev_recalls.sum():
                best = choice, factorization, photos
        assert best is not None
        choice, factorization, photos = best
        if dev is None:
            factorization = search._factorize(
                power(photos, choice.image_power), captions, **run
            )
        n_components = min(choice.setting.n_components, factorization.rank())
        setting = choice.setting._replace(n_components=n_components)
        return KCCARanker.from_factorization(factorization, **setting._asdict()), choice

    def _for(self, training: TrainingItems) -> SettingsSearch:
        """Return the search with the defaults for the features at hand filled in."""
        has_words = any(isinstance(view, PyramidView) for view in training.photos)
        has_vectors = training.scalings != (None,)
        grid = VECTORS_GRID if has_vectors else WORDS_GRID
        if has_words:
            grid = grid._replace(image_power=WORDS_GRID.image_power)
        given = {name: getattr(self, name) or value for name, value in grid._asdict().items()}
        scaling = self.scaling or tuple(how for how in training.scalings if how is not None)
        return replace(self, **given, scaling=scaling if has_vectors else None)

    def _choose(
        self,
        scaling: Scaling | None,
        training: Kernels,
        dev: Kernels,
        caption_image: npt.NDArray[np.intp],
        *,
        n_threads: int | None,
        progress: Progress,
    ) -> tuple[Choice, KCCAFactorization]:
        """Return the combination with the largest sum of recalls, and its factorisation."""
        run: dict[str, Any] = {"n_threads": n_threads, "progress": progress}
        captions, tried = training.captions, []
        for exponent in self.image_power or ():
            factorization = self._factorize(power(training.photos, exponent), captions, **run)
            captions = factorization.y  # the next kernel of photos needs the same
            rank = factorization.rank()
            selection = select_kcca(
                factorization,
                power(dev.photos, exponent),
                dev.captions,
                n_components_grid=[n for n in self.n_components or () if n <= rank] or [rank],
                regularization_grid=self.regularization or (),
                correlation_power_grid=self.correlation_power or (),
                caption_image=caption_image,
                **run,
            )
            tried.append((exponent, selection))
        exponent, selection = max(tried, key=lambda one: one[1].best_recalls.sum())
        factorization, setting = selection.factorization, selection.best()
        hub_neighbors, recalls = self._choose_hubs(
            KCCARanker.from_factorization(factorization, **setting._asdict()),
            Kernels(power(dev.photos, exponent), dev.captions),
            caption_image,
            n_threads=n_threads,
        )
        choice = Choice(
            exponent,
            scaling,
            setting,
            hub_neighbors,
            recalls,
            _chance(len(dev.photos), caption_image),
            (len(dev.photos), len(dev.captions)),
        )
        return choice, factorization

    def _choose_hubs(
        self,
        ranker: KCCARanker,
        dev: Kernels,
        caption_image: npt.NDArray[np.intp],
        *,
        n_threads: int | None,
    ) -> tuple[int, npt.NDArray[np.float64]]:
        """Return the best correction for hubs, and its recalls."""
        recalls = []
        for k in self.hub_neighbors:
            space = PhotoSpace(ranker, k)
            scores = products(space.photos(dev.photos), space.captions(dev.captions))
            recalls.append(np.array(recalls_of(scores, caption_image, n_threads=n_threads)))
        best = int(np.argmax([own.sum() for own in recalls]))
        return self.hub_neighbors[best], recalls[best]

    def _factorize(
        self,
        photos: Array,
        captions: Array | KernelBasis,
        *,
        n_threads: int | None,
        progress: Progress,
    ) -> KCCAFactorization:
        with _named(), working(progress, "Factorising kernels"):
            return factorize(
                photos,
                captions,
                decomposition="eigen",
                max_rank=self.max_rank,
                n_threads=n_threads,
            )


@contextmanager
def _named() -> Iterator[None]:
    """Reword errors about constant kernels: name the arguments of `PhotoRanker.fit`."""
    constant = r"^K{} must not be constant.*"
    with (
        reworded(constant.format("x"), "images must differ: all of them are described alike"),
        reworded(constant.format("y"), "captions must differ: all photos have the same words"),
    ):
        yield


def _chance(n_photos: int, caption_image: npt.NDArray[np.intp]) -> npt.NDArray[np.float64]:
    """Return the expected recalls of annotation and search in random orders."""
    own = np.bincount(caption_image, minlength=n_photos)[:, np.newaxis]
    annotation = chance_recall_at_k(len(caption_image), CUTOFFS, n_relevant=own)
    search = chance_recall_at_k(n_photos, CUTOFFS)
    return np.stack([annotation.mean(axis=0), search])
