"""Settings of a photo ranker: which are tried, and how one is chosen on development photos."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore._progress import Progress, working
from kernelcore._validation import Array, check_choice, check_integer, check_real, check_rng
from kernelcore.captions import EncodedCaptions
from kernelcore.evaluation.metrics import chance_recall_at_k
from kernelcore.kcca import KCCAFactorization, KernelBasis, factorize
from kernelcore.kcca.factorization import Pair, as_pair
from kernelcore.kernels import power
from kernelcore.kernels.gram import LARGEST_EXPONENT
from kernelcore.models.base import TASKS, Run
from kernelcore.models.feature_kernel import SCALINGS, Scaling
from kernelcore.models.kcca_grid import KCCASetting
from kernelcore.models.kcca_ranker import KCCARanker, products
from kernelcore.models.pairs import held_out, reworded
from kernelcore.models.photo_inputs import Rows
from kernelcore.models.photo_space import PhotoSpace
from kernelcore.models.pyramid_view import PyramidView
from kernelcore.models.selection import select_with_powers
from kernelcore.models.training_items import TrainingItems
from kernelcore.models.trials import CUTOFFS, Trials, dev_recalls


class Grid(NamedTuple):
    """Values to try for one kind of features; see `PhotoRanker`."""

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
"""Values to try for vectors, of a network say. On draws of 100 to 800 photos of Flickr8k a grid
of 700 values chose no better."""


class Kernels(NamedTuple):
    """Kernels of photos, for one way to scale vectors, and of captions with training items.

    Those of training captions may be a basis that was computed before.
    """

    photos: Array
    captions: Any


class Choice(NamedTuple):
    """The best settings that were tried.

    Attributes
    ----------
    image_power : float
        Exponent of the kernel of the photos.
    scaling : {"square_roots", "length"} or None
        What is done to vectors of photos.
    setting : KCCASetting
        The rest of kernel CCA.
    hub_neighbors : int
        See `PhotoSpace`.
    recalls : ndarray of float64, shape (2, 3)
        R@1, R@5 and R@10, as shares, of annotation and search on the development photos.
    chance : ndarray of float64, shape (2, 3)
        What a random order would reach there.
    n_dev : (int, int)
        How many photos and captions that were.
    factorization : KCCAFactorization
        Of the training kernels that they were tried with.
    """

    image_power: float
    scaling: Scaling | None
    setting: KCCASetting
    hub_neighbors: int
    recalls: npt.NDArray[np.float64]
    chance: npt.NDArray[np.float64]
    n_dev: tuple[int, int]
    factorization: KCCAFactorization


class HeldOut(NamedTuple):
    """Training items divided by their photos.

    Attributes
    ----------
    learned_from : ndarray of intp
        Items of the photos that are kept.
    photos : ndarray of intp
        One item of each photo that is held out.
    items : ndarray of intp
        All items of these photos.
    image : ndarray of intp
        Place in `photos` of the photo of each of `items`.
    """

    learned_from: Rows
    photos: Rows
    items: Rows
    image: Rows

    @classmethod
    def of(cls, numbers: Rows, share: float, rng: np.random.Generator | int | None) -> HeldOut:
        """Hold out a share of the photos; `numbers` are those of each item's photo."""
        first = np.unique(numbers, return_index=True)[1]
        if len(first) == 1 < len(numbers):
            raise ValueError("images must differ: all are one photo, or described alike")
        kept, left = held_out(len(first), share, rng)
        items = np.flatnonzero(np.isin(numbers, left))
        return cls(
            np.flatnonzero(np.isin(numbers, kept)),
            first[left],
            items,
            np.searchsorted(left, numbers[items]),
        )


@dataclass(frozen=True)
class SettingsSearch:
    """Values of each setting to try, checked, and what to try them on; see `PhotoRanker`.

    None stands for values that depend on the features.
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
        """Return the search that a ranker's parameters of the same names ask for."""
        return cls.checked(**{field.name: getattr(ranker, field.name) for field in fields(cls)})

    @classmethod
    def checked(
        cls,
        *,
        image_power: Sequence[float] | None,
        n_components: Sequence[int] | None,
        regularization: Sequence[Pair] | None,
        correlation_power: Sequence[float] | None,
        scaling: Sequence[Scaling] | None,
        hub_neighbors: Sequence[int],
        max_rank: Any,
        dev_share: Any,
        rng: np.random.Generator | int | None,
    ) -> SettingsSearch:
        """Return the search, or raise before anything that takes long has begun."""
        positive = partial(check_real, minimum=0.0, exclusive=True)
        checks: dict[str, tuple[Any, Any]] = {
            "image_power": (image_power, partial(positive, maximum=LARGEST_EXPONENT)),
            "n_components": (n_components, partial(check_integer, minimum=1)),
            "regularization": (regularization, partial(as_pair, minimum=0.0)),
            "correlation_power": (correlation_power, partial(check_real, minimum=0.0)),
            "scaling": (scaling, partial(check_choice, choices=SCALINGS)),
            "hub_neighbors": (hub_neighbors, partial(check_integer, minimum=0)),
        }
        tried: dict[str, Any] = {}
        for name, (values, check) in checks.items():
            is_default = values is None and name != "hub_neighbors"
            is_text = isinstance(values, (str, bytes))
            if not is_default and (is_text or not isinstance(values, (Sequence, np.ndarray))):
                raise TypeError(f"{name} must be a sequence of values, got {values!r:.80}")
            tried[name] = None if is_default else tuple(check(name, one) for one in values)
            if tried[name] == ():
                raise ValueError(f"{name} must hold at least one value, got none")
        check_rng("rng", rng)
        return cls(
            **tried,
            max_rank=check_integer("max_rank", max_rank, minimum=1),
            dev_share=check_real("dev_share", dev_share, minimum=0.0, maximum=0.9),
            rng=rng,
        )

    def learn(
        self,
        training: TrainingItems,
        dev: tuple[Sequence[Any], EncodedCaptions] | None,
        *,
        n_threads: int | None,
        progress: Progress,
    ) -> tuple[PhotoSpace, Choice]:
        """Choose the settings on the development items and learn from the training items.

        Without development items some training photos are held out, each with all of its
        items, and learned from once the settings are known.
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
        best: Choice | None = None
        for scaling in search.scaling or (None,):
            photos = training.photo_kernel(scaling=scaling, **run)
            new = (
                photos[left_out]
                if dev is None
                else training.photo_kernel(dev[0], scaling=scaling, **run)
            )
            choice = search._choose(
                scaling,
                Kernels(photos[square], learned_captions),
                Kernels(new[:, learned_from], dev_rows[:, learned_from]),
                owners,
                **run,
            )
            learned_captions = choice.factorization.y  # it serves all kernels of photos
            if best is None or choice.recalls.sum() > best.recalls.sum():
                best, best_photos = choice, photos
        assert best is not None
        factorization = best.factorization
        if dev is None:
            factorization = search._factorize(
                power(best_photos, best.image_power), captions, **run
            )
        n_components = min(best.setting.n_components, factorization.rank())
        setting = best.setting._replace(n_components=n_components)
        ranker = KCCARanker.from_factorization(factorization, **setting._asdict())
        return PhotoSpace(ranker, best.hub_neighbors), best

    def _for(self, training: TrainingItems) -> SettingsSearch:
        """Return the search with values for the features at hand where none were given."""
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
    ) -> Choice:
        """Try every combination and return the one with the largest sum of recalls."""
        run: dict[str, Any] = {"n_threads": n_threads, "progress": progress}
        captions = training.captions

        def factorized(exponent: float) -> KCCAFactorization:
            nonlocal captions
            photos = power(training.photos, exponent)
            factorization = self._factorize(photos, captions, **run)
            captions = factorization.y  # it serves all kernels of photos
            return factorization

        selections = select_with_powers(
            self.image_power or (),
            factorized,
            dev.photos,
            dev.captions,
            n_components=self.n_components or (),
            regularization=self.regularization or (),
            correlation_power=self.correlation_power or (),
            caption_image=caption_image,
            **run,
        )

        exponent, selection = max(selections, key=lambda one: one[1].best_recalls.sum())
        choice = Choice(
            exponent,
            scaling,
            selection.best(),
            0,
            selection.best_recalls,
            _chance(len(dev.photos), caption_image),
            (len(dev.photos), len(dev.captions)),
            selection.factorization,
        )
        return self._with_hubs(choice, dev, caption_image, n_threads=n_threads)

    def _with_hubs(
        self,
        choice: Choice,
        dev: Kernels,
        caption_image: npt.NDArray[np.intp],
        *,
        n_threads: int | None,
    ) -> Choice:
        """Try corrections for hubs under the best of the other settings."""
        ranker = KCCARanker.from_factorization(choice.factorization, **choice.setting._asdict())
        photos = power(dev.photos, choice.image_power)

        def runs() -> Run:
            for place, k in enumerate(self.hub_neighbors):
                space = PhotoSpace(ranker, k)
                scores = products(space.photos(photos), space.captions(dev.captions))
                yield place, dict.fromkeys(TASKS, scores)

        numbers = self.hub_neighbors
        recalls = dev_recalls([runs()], len(numbers), caption_image, n_threads=n_threads)
        trials = Trials(numbers, recalls)
        return choice._replace(hub_neighbors=trials.best(), recalls=trials.best_recalls)

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
    """Let errors about kernels that are constant say what is alike."""
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
